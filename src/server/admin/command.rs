//! What the admin listener and the signals ask of the owner of the state, and what it answers.

use serde::Serialize;
use tokio::sync::oneshot::Sender;

use crate::config::problem::Problems;
use crate::domain::compare::Mismatches;
use crate::domain::explain::Explanation;
use crate::domain::json::Json;
use crate::domain::lifecycle::UsageReport;
use crate::domain::rollout::Glob;
use crate::domain::rollout::overrides::{Change, ChangeFault, HistoryEntry};
use crate::domain::side::Side;
use crate::server::admin::{FlagView, FlagsView, HypotheticalCall, PlanView};
use crate::store::{Late, StoreError};

/// One request to the owner. It goes through a bounded channel; an asker that no longer waits has dropped the other
/// end of `reply`, and nothing is changed for it but by the kill switch.
#[derive(Debug)]
pub enum AdminCommand {
    /// All flags.
    Flags(Sender<FlagsView>),
    /// One flag.
    Flag {
        /// Its name.
        name: String,
        /// The flag.
        reply: Sender<Result<FlagView, Refusal>>,
    },
    /// Change the standing. Answered once the change is stored and every worker has the new plan. The kill switch acts
    /// first, and is answered once storing it was tried.
    Change {
        /// What is to be.
        asked: ChangeRequest,
        /// All flags, and the rest of the standing, from then on.
        reply: Sender<Result<FlagsView, Refusal>>,
    },
    /// What was changed, the newest first.
    History(Sender<Vec<HistoryEntry>>),
    /// What becomes of a call that is not made.
    Explain {
        /// The call.
        call: Box<HypotheticalCall>,
        /// What is told of it, for each message of an RPC body.
        reply: Sender<Vec<Explanation>>,
    },
    /// What the plan consists of.
    Plan(Sender<PlanView>),
    /// The routes as a document: OpenAPI of the REST side, OpenRPC of the RPC side.
    Document {
        /// The side.
        side: Side,
        /// The document.
        reply: Sender<Json>,
    },
    /// Who still calls which route.
    Usage {
        /// Which routes.
        route: Glob,
        /// How long nobody may have called one that may be deleted, in seconds.
        idle: u64,
        /// What the counts say.
        reply: Sender<UsageReport>,
    },
    /// The last mismatches of all workers.
    Mismatches(Sender<Mismatches>),
    /// Forget the mismatches and failed candidates of routes.
    ForgetMismatches {
        /// Which routes.
        routes: Glob,
        /// Who asks, and why where he says so.
        signed: (String, Option<String>),
        /// The names of the routes that had any.
        reply: Sender<Vec<String>>,
    },
    /// The page of metrics.
    Metrics(Sender<String>),
    /// Whether calls can be served.
    Ready(Sender<Readiness>),
    /// Read the files again, now.
    Reload(Sender<Reloaded>),
    /// The same, for somebody who wants to know what came of it.
    Reread {
        /// Who asks, and why where he says so.
        signed: (String, Option<String>),
        /// What is in force from then on.
        reply: Sender<Result<ReloadView, Refusal>>,
    },
    /// The process is about to end: readiness says no from here on. Answered once what was counted so far is kept.
    Drain(Sender<()>),
    /// The same, and another process takes over: what is stored belongs to it once this is answered.
    HandOver(Sender<()>),
}

/// A change that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRequest {
    /// The change.
    pub change: Change,
    /// Who asks.
    pub who: String,
    /// Why, where he says so.
    pub why: Option<String>,
    /// The tags of `If-Match`: what is changed must still have one of them. Without, it may have any.
    pub expected: Option<Vec<String>>,
}

/// Why something cannot be told or changed. In every case but the last it is what it was, or what somebody else has
/// made of it.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such flag.
    #[error("there is no flag of this name")]
    Unknown {
        /// A flag whose name is near.
        nearest: Option<String>,
    },
    /// There is no such route.
    #[error("there is no route of this name")]
    UnknownRoute {
        /// A route whose name is near.
        nearest: Option<String>,
    },
    /// Somebody has changed it since the asker looked.
    #[error(
        "it was changed since; read it again, and say `If-Match: \"{found}\"` to change what is there now"
    )]
    Stale {
        /// The tag that it has now.
        found: String,
    },
    /// Other replicas were faster each time.
    #[error("other replicas change flags at this moment; read it again, and try once more")]
    Lost,
    /// There is nothing to change like that.
    #[error(transparent)]
    Fault(ChangeFault),
    /// There is no plan with this change.
    #[error("the flag cannot be that")]
    Invalid(#[source] Problems),
    /// The files cannot be put in force.
    #[error("the configuration has problems; what was in force before stays in force")]
    Config(#[source] Problems),
    /// The files are not read in time.
    #[error("the files cannot be read; what was in force before stays in force")]
    Unread(#[source] Late),
    /// The change cannot be stored.
    #[error("the change cannot be stored")]
    Store(#[source] StoreError),
    /// The standing cannot be written, which is a fault of this program.
    #[error("the change cannot be written")]
    Unwritable(#[source] serde_json::Error),
    /// The change is stored, but some worker still serves by the plan of before.
    #[error("the change is stored")]
    Pending(#[source] StillMissing),
    /// The kill switch is neither stored nor with every worker yet.
    #[error("the kill switch is thrown, and is stored later")]
    PendingKill(#[source] StillMissing),
}

/// A plan that some worker has not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not every worker has taken the new plan; it is offered again until all have")]
pub struct StillMissing;

/// What came of reading the files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// A new plan is in force.
    Swapped,
    /// The files say what is in force already.
    Unchanged,
    /// The files have problems, which are in the log; the plan of before stays in force.
    Refused,
}

/// What is in force after the files were read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReloadView {
    /// `swapped` where it is something else than before, or `unchanged`.
    pub result: &'static str,
    /// How often a new plan was put in force since the start.
    pub reloads: u64,
    /// How many routes there are.
    pub routes: usize,
    /// How many flags there are.
    pub flags: usize,
    /// The revision of what is changed at run time.
    pub revision: u64,
}

/// Whether calls can be served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Why not; none where they can.
    pub obstacles: Vec<String>,
    /// What an operator should look at, though calls are served.
    pub notes: Vec<String>,
}
