//! Commands from the admin listener and the signal handlers to the task that owns the state, and their replies.

use serde::Serialize;
use tokio::sync::oneshot::Sender;

use crate::server::admin::{
    Attribution, FlagView, FlagsView, HypotheticalCall, OfrepCommand, PlanView, RecordingCommand,
    Refusal, ViewCommand,
};
use dualgauge_model::compare::Mismatches;
use dualgauge_model::explain::Explanation;
use dualgauge_model::lifecycle::UsageReport;
use dualgauge_model::rollout::Glob;
use dualgauge_model::rollout::overrides::{Change, HistoryEntry};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// A command to the owner of the state, sent over a bounded channel. If the sender has dropped its end of `reply`,
/// only the kill switch is still applied.
#[derive(Debug)]
pub enum AdminCommand {
    /// Returns all flags.
    Flags(Sender<FlagsView>),
    /// Returns one flag.
    Flag {
        /// The name of the flag.
        name: String,
        /// The flag.
        reply: Sender<Result<FlagView, Refusal>>,
    },
    /// Changes the runtime state. The reply follows once the change is stored and every worker has the new plan. The
    /// kill switch takes effect first, and its reply follows once storing it was attempted.
    Change {
        /// The change.
        asked: ChangeRequest,
        /// All flags and the rest of the runtime state after the change.
        reply: Sender<Result<FlagsView, Refusal>>,
    },
    /// Returns the change history, newest first.
    History(Sender<Vec<HistoryEntry>>),
    /// Explains a call without making it.
    Explain {
        /// The call.
        call: Box<HypotheticalCall>,
        /// The explanations, one for each message of an RPC body.
        reply: Sender<Vec<Explanation>>,
    },
    /// Evaluates flags for an application.
    Ofrep(OfrepCommand),
    /// Returns the parts of the plan.
    Plan(Sender<PlanView>),
    /// Returns the routes as a document: OpenAPI for the REST side, OpenRPC for the RPC side.
    Document {
        /// The side.
        side: Side,
        /// The document.
        reply: Sender<Json>,
    },
    /// Returns the usage of routes by client.
    Usage {
        /// The routes to report.
        route: Glob,
        /// The idle time after which a route may be deleted, in seconds.
        idle: u64,
        /// The report.
        reply: Sender<UsageReport>,
    },
    /// Returns a part of the state for the console.
    View(ViewCommand),
    /// Returns the last mismatches of all workers.
    Mismatches(Sender<Mismatches>),
    /// Deletes the recorded mismatches and failed candidates of routes.
    ForgetMismatches {
        /// The routes.
        routes: Glob,
        /// The author, and the reason if given.
        attribution: Attribution,
        /// The names of the routes that had any.
        reply: Sender<Vec<String>>,
    },
    /// Shows, starts or stops the recording of calls.
    Recording(RecordingCommand),
    /// Returns the metrics page.
    Metrics(Sender<String>),
    /// Returns the readiness to serve calls.
    Ready(Sender<Readiness>),
    /// Reloads the configuration files now.
    Reload(Sender<Reloaded>),
    /// Reloads the configuration files and reports the result.
    ReloadForApi {
        /// The author, and the reason if given.
        attribution: Attribution,
        /// The state after the reload.
        reply: Sender<Result<ReloadView, Refusal>>,
    },
    /// Announces the end of the process: readiness fails from here on. The reply follows once the usage counts are
    /// stored.
    Drain(Sender<()>),
    /// Stores the counts of the calls that ended during the drain, once all workers have ended.
    Drained(Sender<()>),
    /// Drains for a hot restart. Once the reply is sent, the stored state belongs to the successor process.
    HandOver(Sender<()>),
}

/// A requested change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRequest {
    /// The change.
    pub change: Change,
    /// The author.
    pub who: String,
    /// The reason, if given.
    pub why: Option<String>,
    /// The entity tags of `If-Match`, one of which must match the current state; `None` accepts any state.
    pub expected: Option<Vec<String>>,
}

/// The result of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// A new plan is active.
    Swapped,
    /// The files match the active plan.
    Unchanged,
    /// The files have problems, which were logged; the old plan stays active.
    Refused,
}

/// The active state after a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReloadView {
    /// `swapped` if the plan changed, else `unchanged`.
    pub result: &'static str,
    /// The number of plans installed since the start.
    pub reloads: u64,
    /// The number of routes.
    pub routes: usize,
    /// The number of flags.
    pub flags: usize,
    /// The revision of the runtime state.
    pub revision: u64,
}

/// The readiness to serve calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// The reasons why calls cannot be served; empty if they can.
    pub obstacles: Vec<String>,
    /// Warnings for the operator that do not affect readiness.
    pub notes: Vec<String>,
}
