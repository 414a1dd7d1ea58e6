//! The earlier states of changed flags, for sessions that began before the change: a session keeps its initial
//! decision for a grace period.
//!
//! Laws: a trip affects open sessions at once, and so does an edit of a flag's scope; a session that begins after a
//! change never sees the state before it. A session begins with the plan that decided its first call, so plan numbers,
//! not a clock, order changes and sessions.
//!
//! Used by `app`, `model`, `gateway` and `server`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::flag::{Arming, Flag};
use super::percent::Percent;
use super::stage::Stage;

/// A time since the start of the process.
pub type ProcessTime = Duration;

/// The number of a plan in this process; later plans have higher numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// The moment when a plan took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanStart {
    /// The number of the plan.
    pub generation: Generation,
    /// The time.
    pub at: ProcessTime,
}

/// The maximum number of remembered changes per flag; sessions from before them use the oldest.
const MOST: usize = 32;

/// The earlier states of flags, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlagHistory {
    grace: Duration,
    was: BTreeMap<String, Vec<PreviousFlag>>,
}

/// The state of a flag before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviousFlag {
    /// The plan that changed it.
    pub until: Generation,
    /// The time of the change.
    pub at: ProcessTime,
    /// The stage before the change.
    pub stage: Stage,
    /// The callers that the flag matched.
    pub membership: Membership,
}

/// The callers that a flag matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// No callers, with a key or without: the flag did not exist or was tripped.
    Nobody,
    /// This share of callers.
    Share(Percent),
}

impl FlagHistory {
    /// Creates an empty history. Sessions keep their initial decision for `grace` after a change; zero applies every
    /// change at once.
    #[must_use]
    pub fn new(grace: Duration) -> FlagHistory {
        FlagHistory {
            grace,
            was: BTreeMap::new(),
        }
    }

    /// Returns the state of a flag for a session; `None` if it is the current one.
    fn of(&self, flag: &str, began: Generation, now: ProcessTime) -> Option<&PreviousFlag> {
        let mut changes = self.was.get(flag)?.iter();
        changes.find(|was| was.until > began && now < was.at + self.grace)
    }

    /// Returns the states of a flag that sessions may still keep.
    pub(super) fn retained(
        &self,
        flag: &str,
        now: ProcessTime,
    ) -> impl Iterator<Item = &PreviousFlag> {
        let changes = self.was.get(flag).map_or(&[][..], Vec::as_slice);
        changes.iter().filter(move |was| now < was.at + self.grace)
    }

    /// Returns the history after the flags `next` of a new plan replace `flags`. Sessions keep their initial
    /// decision for `grace`.
    pub(super) fn followed(
        &self,
        flags: &[Flag],
        next: &[Flag],
        grace: Duration,
        start: PlanStart,
    ) -> FlagHistory {
        let past = FlagHistory::new(grace);
        let was = next.iter().filter_map(|flag| {
            let mut earlier = flags.iter();
            let known = self.was.get(&flag.name).map_or(&[][..], Vec::as_slice);
            let earlier = earlier.find(|earlier| earlier.name == flag.name);
            let mut changes = changes(flag, earlier, known, start);
            changes.retain(|was| start.at < was.at + past.grace);
            let surplus = changes.len().saturating_sub(MOST);
            changes.drain(..surplus);
            (!changes.is_empty()).then(|| (flag.name.clone(), changes))
        });
        FlagHistory {
            was: was.collect(),
            ..past
        }
    }
}

/// The session of a call.
#[derive(Debug, Clone, Copy)]
pub struct SessionStart<'a> {
    /// The history of flags.
    pub past: &'a FlagHistory,
    /// The plan with which the session began.
    pub began: Generation,
    /// The current time.
    pub now: ProcessTime,
}

impl SessionStart<'_> {
    pub(super) fn was(&self, flag: &str) -> Option<&PreviousFlag> {
        self.past.of(flag, self.began, self.now)
    }
}

/// Returns the changes of a flag, with a new entry if the flag differs from before.
fn changes(
    flag: &Flag,
    earlier: Option<&Flag>,
    known: &[PreviousFlag],
    start: PlanStart,
) -> Vec<PreviousFlag> {
    let was = |stage, membership| PreviousFlag {
        until: start.generation,
        at: start.at,
        stage,
        membership,
    };
    // A caller that the flag did not match stays unmatched until its session ends.
    let nobody = was(flag.stage, Membership::Nobody);
    let Some(earlier) = earlier else {
        return vec![nobody];
    };
    match (earlier.arming, flag.arming) {
        _ if !has_same_scope(earlier, flag) => Vec::new(),
        (_, Arming::Tripped) => Vec::new(),
        (Arming::Tripped, Arming::Armed) => vec![nobody],
        (Arming::Armed, Arming::Armed) => {
            let before = (earlier.stage, earlier.share());
            let changed = before != (flag.stage, flag.share());
            let changed = changed.then(|| was(before.0, Membership::Share(before.1)));
            known.iter().copied().chain(changed).collect()
        }
    }
}

fn has_same_scope(one: &Flag, other: &Flag) -> bool {
    (&one.client, &one.route, one.side, &one.headers)
        == (&other.client, &other.route, other.side, &other.headers)
}
