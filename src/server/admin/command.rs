//! What the admin listener and the signals ask of the owner of the state, and what it answers.

use tokio::sync::oneshot::Sender;

use crate::config::problem::Problems;
use crate::domain::compare::Mismatches;
use crate::domain::json::Json;
use crate::domain::rollout::{Percent, Stage};
use crate::domain::side::Side;
use crate::server::admin::{FlagView, FlagsView, PlanView};
use crate::store::StoreError;

/// One request to the owner. It goes through a bounded channel; an asker that no longer waits has dropped the other
/// end of `reply`, and nothing is changed for it.
#[derive(Debug)]
pub enum Command {
    /// All flags.
    Flags(Sender<FlagsView>),
    /// One flag.
    Flag {
        /// Its name.
        name: String,
        /// The flag.
        reply: Sender<Result<FlagView, Refusal>>,
    },
    /// Flip a flag. Answered once the flip is stored and every worker has the new plan.
    Flip {
        /// What is to be.
        flipping: Flipping,
        /// The flag as it is from then on.
        reply: Sender<Result<FlagView, Refusal>>,
    },
    /// Take a flip back: the flag is again what the flags file says. Answered like a flip.
    Unflip {
        /// The name of the flag.
        name: String,
        /// Who asks.
        who: String,
        /// The flag as it is from then on.
        reply: Sender<Result<FlagView, Refusal>>,
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
    /// The last mismatches of all workers.
    Mismatches(Sender<Mismatches>),
    /// The page of metrics.
    Metrics(Sender<String>),
    /// Whether calls can be served.
    Ready(Sender<Readiness>),
    /// Read the files again, now.
    Reload(Sender<Reloaded>),
    /// The process is about to end: readiness says no from here on.
    Drain,
}

/// A flip that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flipping {
    /// The flag.
    pub name: String,
    /// What it is to give, to how many.
    pub change: Change,
    /// Who asks.
    pub who: String,
}

/// What a flag gives, to how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The stage.
    pub stage: Stage,
    /// The share.
    pub percent: Percent,
}

/// Why a flag cannot be told or changed. In every case but the last the flag is what it was.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such flag.
    #[error("there is no flag of this name")]
    Unknown {
        /// A flag whose name is near.
        nearest: Option<String>,
    },
    /// There is no plan with this flip.
    #[error("the flag cannot be that")]
    Invalid(#[source] Problems),
    /// The flip cannot be stored.
    #[error("the flip cannot be stored")]
    Store(#[source] StoreError),
    /// The flip is stored, but some worker still serves by the plan of before.
    #[error("the flip is stored")]
    Pending(#[source] StillMissing),
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

/// Whether calls can be served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Why not; none where they can.
    pub obstacles: Vec<String>,
    /// What an operator should look at, though calls are served.
    pub notes: Vec<String>,
}
