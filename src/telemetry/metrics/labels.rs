//! Label values: closed enums, and names of the plan by their ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::failure::Blame;
use crate::domain::rollout::{DecidedBy, Stage};
use crate::domain::side::Side;

/// What stands in a label that a call has no value for: a call of no route, or with nobody to blame.
pub(super) const NONE: &str = "none";

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The upstream answered, and its answer reports no error.
    Success,
    /// The upstream's own answer, or one that the configuration says, reports an error: a REST status of 400
    /// and above, or an RPC error.
    Error,
    /// A tool ran and its result says that it failed (MCP, `isError: true`).
    ToolError,
    /// The proxy answered with a failure of its own.
    Failed,
    /// The answer broke off after its head was out.
    Cut,
    /// The client went away before its answer was complete.
    Cancelled,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 6] = [
        Outcome::Success,
        Outcome::Error,
        Outcome::ToolError,
        Outcome::Failed,
        Outcome::Cut,
        Outcome::Cancelled,
    ];

    /// The word used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Error => "error",
            Outcome::ToolError => "tool_error",
            Outcome::Failed => "failed",
            Outcome::Cut => "cut",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// A name of the plan, as labels carry it. Ids of one [`LabelNames`] mean nothing to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(u32);

impl LabelId {
    /// `none`: the route of a call of no route, the client of a call that was refused unread.
    pub const NONE: LabelId = LabelId(0);

    /// The place of its name in [`LabelNames::texts`].
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of all plans of this process. Ids stay over reloads, and so do the counts under them.
///
/// Only names of the plan belong here: what is interned is kept for good.
#[derive(Debug)]
pub struct LabelNames(Mutex<Interned>);

#[derive(Debug)]
struct Interned {
    ids: HashMap<Arc<str>, LabelId>,
    texts: Vec<Arc<str>>,
}

impl LabelNames {
    /// No names yet but `none`.
    #[must_use]
    pub fn new() -> LabelNames {
        let none: Arc<str> = Arc::from(NONE);
        LabelNames(Mutex::new(Interned {
            ids: HashMap::from([(Arc::clone(&none), LabelId::NONE)]),
            texts: vec![none],
        }))
    }

    /// The id of a name, always the same one. For the time when a plan is installed, not for calls.
    pub fn intern(&self, name: &str) -> LabelId {
        let mut interned = self.lock();
        if let Some(id) = interned.ids.get(name) {
            return *id;
        }
        let Ok(next) = u32::try_from(interned.texts.len()) else {
            return LabelId::NONE;
        };
        let (id, text) = (LabelId(next), Arc::<str>::from(name));
        interned.texts.push(Arc::clone(&text));
        interned.ids.insert(text, id);
        id
    }

    /// Every name, at the place of its id.
    pub(super) fn texts(&self) -> Vec<Arc<str>> {
        self.lock().texts.clone()
    }

    /// A name is pushed whole or not at all, so a poisoned lock guards nothing broken.
    fn lock(&self) -> MutexGuard<'_, Interned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for LabelNames {
    fn default() -> Self {
        LabelNames::new()
    }
}

/// What a call is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallLabels {
    /// The route.
    pub route: LabelId,
    /// Who called.
    pub client: LabelId,
    /// The language of the call.
    pub side: Side,
    /// What happened to it; no stage where the proxy itself answered.
    pub stage: Option<Stage>,
    /// How it ended.
    pub outcome: Outcome,
    /// Whose fault it was, where it was one.
    pub blame: Option<Blame>,
}

/// What a decision is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DecisionLabels {
    /// Who called.
    pub client: LabelId,
    /// The language of the call.
    pub side: Side,
    /// The kind of rule that has decided.
    pub by: DecidedBy,
    /// The flag that has decided, if one has.
    pub flag: LabelId,
}

/// What a comparison is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VerdictLabels {
    /// The route.
    pub route: LabelId,
    /// Who called.
    pub client: LabelId,
    /// The language of the call.
    pub side: Side,
    /// The stage.
    pub stage: Stage,
    /// One of [`crate::domain::compare::Verdict::WORDS`].
    pub verdict: &'static str,
}
