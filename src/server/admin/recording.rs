//! Recordings of calls: their start, their state and their end. Used by `admin::command`, `admin::response` and
//! `admin::routes`.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use serde::Serialize;
use tokio::sync::oneshot::Sender;

use super::api::AdminApi;
use super::decode::RecordingBody;
use super::problem::{AdminProblem, ok};
use crate::server::admin::{AdminCommand, Attribution, Refusal};
use crate::telemetry::recorder::RecordingStatus;
use dualgauge_model::record::RecordedBodies;
use dualgauge_model::rollout::Percent;

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

/// The requested recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingRequest {
    /// The time after which it stops.
    pub time: Duration,
    /// The percentage of calls that are recorded.
    pub sample: Percent,
    /// The bodies that are recorded; `None` for `record.bodies`.
    pub bodies: Option<RecordedBodies>,
}

/// The state of the recorder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordingView {
    /// True while a recording runs.
    pub running: bool,
    /// The recording that runs, or the last one.
    pub recording: Option<RecordingStatus>,
}

impl RecordingView {
    /// Creates the view of a state.
    #[must_use]
    pub fn new(recording: Option<RecordingStatus>) -> RecordingView {
        let last = recording.as_ref();
        RecordingView {
            running: last.is_some_and(|recording| recording.stopped.is_none()),
            recording,
        }
    }
}

impl AdminApi {
    /// Returns the state of the recorder.
    pub(super) async fn recording(&self) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let show = |reply| AdminCommand::Recording(RecordingCommand::Show(reply));
        Ok(ok(&self.ask(show).await?))
    }

    /// Starts a recording.
    pub(super) async fn start_recording(
        &self,
        body: RecordingBody,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let RecordingBody {
            request,
            attribution,
        } = body;
        let start = |reply| {
            AdminCommand::Recording(RecordingCommand::Start {
                request,
                attribution,
                reply,
            })
        };
        Ok(ok(&self.ask(start).await??))
    }

    /// Stops the recording.
    pub(super) async fn stop_recording(
        &self,
        attribution: Attribution,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let stop = |reply| AdminCommand::Recording(RecordingCommand::Stop { attribution, reply });
        Ok(ok(&self.ask(stop).await?))
    }
}
