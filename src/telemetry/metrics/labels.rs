//! Label values: closed enums, and ids of configured names. Used by `metrics`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dualgauge_model::failure::Blame;
use dualgauge_model::rollout::{DecidedBy, Stage};
use dualgauge_patterns::side::Side;

/// The label value of a missing item: no route, or no party at fault.
pub(super) const NONE: &str = "none";

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The upstream responded, and its response reports no error.
    Success,
    /// The response of the upstream, or one from the configuration, reports an error: a REST status of 400 or above, or
    /// an RPC error.
    Error,
    /// A tool ran and its result reports a failure (MCP, `isError: true`).
    ToolError,
    /// The proxy responded with a failure of its own.
    Failed,
    /// The response broke off after its head was sent.
    Cut,
    /// The client disconnected before its response was complete.
    Cancelled,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Outcome; 6] = [
        Outcome::Success,
        Outcome::Error,
        Outcome::ToolError,
        Outcome::Failed,
        Outcome::Cut,
        Outcome::Cancelled,
    ];

    /// Returns the word used in metrics and logs.
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

/// The id of a configured name. Ids are valid only for the [`LabelNames`] that created them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(u32);

impl LabelId {
    /// The id of `none`: the route of an unrouted call, the client of a call that was refused unread.
    pub const NONE: LabelId = LabelId(0);

    /// Returns the index of the name in [`LabelNames::texts`].
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The configured names of all plans of this process. Ids survive reloads, and so do the counts under them.
///
/// Only configured names belong here, because an interned name is never freed.
#[derive(Debug)]
pub struct LabelNames(Mutex<Interned>);

#[derive(Debug)]
struct Interned {
    ids: HashMap<Arc<str>, LabelId>,
    texts: Vec<Arc<str>>,
}

impl LabelNames {
    /// Creates a table that contains only `none`.
    #[must_use]
    pub fn new() -> LabelNames {
        let none: Arc<str> = Arc::from(NONE);
        LabelNames(Mutex::new(Interned {
            ids: HashMap::from([(Arc::clone(&none), LabelId::NONE)]),
            texts: vec![none],
        }))
    }

    /// Returns the id of a name, always the same one. For the installation of a plan, not for calls.
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

    /// Returns all names, indexed by id.
    pub(super) fn texts(&self) -> Vec<Arc<str>> {
        self.lock().texts.clone()
    }

    /// Locks the table. A name is added whole or not at all, so a poisoned lock guards consistent data.
    fn lock(&self) -> MutexGuard<'_, Interned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for LabelNames {
    fn default() -> Self {
        LabelNames::new()
    }
}

/// The configured names, indexed by id.
pub(super) struct RenderedTexts(Vec<Arc<str>>);

impl RenderedTexts {
    /// Copies all names so far.
    pub(super) fn new(names: &LabelNames) -> RenderedTexts {
        RenderedTexts(names.texts())
    }

    /// Returns the name of `id`, or `none` if there is no such name.
    pub(super) fn text(&self, id: LabelId) -> &str {
        self.0.get(id.index()).map_or(NONE, |text| text)
    }
}

/// The labels of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallLabels {
    /// The route.
    pub route: LabelId,
    /// The client.
    pub client: LabelId,
    /// The protocol side of the call.
    pub side: Side,
    /// The stage; absent if the proxy itself responded.
    pub stage: Option<Stage>,
    /// The outcome.
    pub outcome: Outcome,
    /// The party at fault, if any.
    pub blame: Option<Blame>,
}

/// The labels of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DecisionLabels {
    /// The client.
    pub client: LabelId,
    /// The protocol side of the call.
    pub side: Side,
    /// The kind of rule that decided.
    pub by: DecidedBy,
    /// The flag that decided, if any.
    pub flag: LabelId,
}

/// The labels of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VerdictLabels {
    /// The route.
    pub route: LabelId,
    /// The client.
    pub client: LabelId,
    /// The protocol side of the call.
    pub side: Side,
    /// The stage.
    pub stage: Stage,
    /// One of [`dualgauge_model::compare::Verdict::WORDS`].
    pub verdict: &'static str,
}
