//! The recordings of a process: those of the configuration follow the plan, others follow the admin API.
//!
//! Used by `control` and `run`.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::server::admin::{
    Attribution, RecordingCommand, RecordingRequest, RecordingView, Refusal,
};
use crate::telemetry::recorder::{
    Recorder, RecorderCounts, RecordingSettings, RecordingSource, StopReason,
};
use dualgauge_model::plan::Plan;
use dualgauge_model::record::{RecordLimits, RecordPlan};
use dualgauge_model::rollout::Percent;
use dualgauge_net::chain;

/// The recordings of a process.
#[derive(Debug)]
pub struct Recordings {
    recorder: Recorder,
    /// The settings of the plan in force; borrowed only between awaits.
    settings: RefCell<Option<Arc<RecordPlan>>>,
    /// True if the recording of these settings did not start; the next plan tries again.
    has_failed: Cell<bool>,
}

impl Recordings {
    /// Creates the recordings of a process without a plan.
    #[must_use]
    pub fn new(recorder: Recorder) -> Recordings {
        Recordings {
            recorder,
            settings: RefCell::default(),
            has_failed: Cell::default(),
        }
    }

    /// Returns the counts of the recorder.
    #[must_use]
    pub fn counts(&self) -> RecorderCounts {
        self.recorder.counts()
    }

    /// Follows the settings of a plan: if they changed, the recording stops, and that of `record.sample` starts. A start
    /// that failed is tried again with the next plan, unless another recording runs.
    pub async fn follow(&self, plan: &Plan) {
        if *self.settings.borrow() == plan.record {
            if !self.has_failed.get() || self.recorder.active().is_some() {
                return;
            }
        } else {
            self.recorder.stop(StopReason::Reload).await;
        }
        self.has_failed.set(false);
        self.settings.borrow_mut().clone_from(&plan.record);
        let Some(settings) = &plan.record else { return };
        if settings.sample == Percent::NONE {
            return;
        }
        // Also if the caller drops this future while it waits.
        self.has_failed.set(true);
        let started = self.recorder.start(RecordingSettings {
            source: RecordingSource::Configuration,
            directory: settings.directory.clone(),
            sample: settings.sample,
            bodies: settings.bodies,
            limits: settings.limits,
        });
        match started.await {
            Ok(_) => self.has_failed.set(false),
            Err(error) => tracing::error!(
                error = chain(&error),
                "calls are not recorded; calls go on. Check `record.directory`, and reload"
            ),
        }
    }

    /// Executes a command of the admin API.
    pub async fn obey(&self, command: RecordingCommand) {
        match command {
            RecordingCommand::Show(reply) => tell(reply, self.view()),
            RecordingCommand::Start {
                request,
                attribution: Attribution { who, why },
                reply,
            } => {
                tracing::info!(who, why, "a recording is started for the admin API");
                tell(reply, self.start(request).await);
            }
            RecordingCommand::Stop {
                attribution: Attribution { who, why },
                reply,
            } => {
                tracing::info!(who, why, "the recording is stopped for the admin API");
                self.recorder.stop(StopReason::Command).await;
                tell(reply, self.view());
            }
        }
    }

    fn view(&self) -> RecordingView {
        RecordingView::new(self.recorder.status(), self.recorder.is_stopping())
    }

    async fn start(&self, request: RecordingRequest) -> Result<RecordingView, Refusal> {
        let settings = self.settings.borrow().clone();
        let settings = settings.ok_or(Refusal::NoRecordings)?;
        let started = self.recorder.start(RecordingSettings {
            source: RecordingSource::Command,
            directory: settings.directory.clone(),
            sample: request.sample,
            bodies: request.bodies.unwrap_or(settings.bodies),
            limits: RecordLimits {
                time: Some(request.time),
                ..settings.limits
            },
        });
        started.await.map_err(Refusal::Recording)?;
        Ok(self.view())
    }
}

/// Sends a reply; a requester that no longer waits needs none.
fn tell<T>(reply: oneshot::Sender<T>, answer: T) {
    drop(reply.send(answer));
}
