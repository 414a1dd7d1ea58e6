//! Recordings of calls: their start, their state and their end. Used by `admin::command`
//! and `admin::response`.

use serde::Serialize;
use tokio::sync::oneshot::Sender;

use crate::server::admin::{Attribution, RecordingRequest, Refusal};
use crate::telemetry::recorder::RecordingStatus;

/// A command to the recorder.
#[derive(Debug)]
pub enum RecordingCommand {
    /// Returns the state.
    Show(Sender<RecordingView>),
    /// Starts a recording.
    Start {
        /// The settings.
        request: RecordingRequest,
        /// The author, and the reason if given.
        attribution: Attribution,
        /// The state after the start.
        reply: Sender<Result<RecordingView, Refusal>>,
    },
    /// Stops the recording.
    Stop {
        /// The author, and the reason if given.
        attribution: Attribution,
        /// The final state.
        reply: Sender<RecordingView>,
    },
}

/// The state of the recorder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordingView {
    /// True while a recording runs.
    pub running: bool,
    /// True if it was to stop and still runs, because its disk does not respond.
    pub stopping: bool,
    /// The recording that runs, or the last one.
    pub recording: Option<RecordingStatus>,
}

impl RecordingView {
    /// Creates the view of a state; `is_stopping` is true if the recording was to stop.
    #[must_use]
    pub fn new(recording: Option<RecordingStatus>, is_stopping: bool) -> RecordingView {
        let last = recording.as_ref();
        let running = last.is_some_and(|recording| recording.stopped.is_none());
        RecordingView {
            running,
            stopping: running && is_stopping,
            recording,
        }
    }
}
