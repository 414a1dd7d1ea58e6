//! What flags were before they were changed, for sessions that began then: a session keeps the decision that it began
//! with until a grace has passed.
//!
//! Laws: a trip acts on open sessions at once, and so does an edit of what a flag covers; a session that begins after a
//! change never sees what was before it. A session began with the plan that decided its first call, so which of a change
//! and a session came first is told by the numbers of plans and by no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Arming, Flag, Percent, Rollout, Stage};

/// A moment, as the time since the process began.
pub type ProcessTime = Duration;

/// The number of a plan of this process: a later one has a higher one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// The most changes of one flag that are remembered; sessions from before them go by the oldest.
const MOST: usize = 32;

/// What flags were, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlagHistory {
    grace: Duration,
    was: BTreeMap<String, Vec<PreviousFlag>>,
}

/// What a flag gave until it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviousFlag {
    /// The plan that changed it.
    pub until: Generation,
    /// When that was.
    pub at: ProcessTime,
    /// The stage that it gave.
    pub stage: Stage,
    /// Whom it took.
    pub taken: Membership,
}

/// Whom a flag took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// Nobody, with a key or without: it was not there, or not in force.
    Nobody,
    /// This share of callers.
    Share(Percent),
}

impl FlagHistory {
    /// Nothing is known of any flag. Sessions keep what they began with for `grace` after a change; zero lets every
    /// change act at once.
    #[must_use]
    pub fn new(grace: Duration) -> FlagHistory {
        FlagHistory {
            grace,
            was: BTreeMap::new(),
        }
    }

    /// What a flag is for a session that began with a plan; none where it is what it is for everyone.
    fn of(&self, flag: &str, (began, now): (Generation, ProcessTime)) -> Option<&PreviousFlag> {
        let mut changes = self.was.get(flag)?.iter();
        changes.find(|was| was.until > began && now < was.at + self.grace)
    }

    /// What sessions may still keep of a flag.
    pub(super) fn kept(&self, flag: &str, now: ProcessTime) -> impl Iterator<Item = &PreviousFlag> {
        let changes = self.was.get(flag).map_or(&[][..], Vec::as_slice);
        changes.iter().filter(move |was| now < was.at + self.grace)
    }

    /// What is known when other flags take the place of these, now.
    #[must_use]
    pub fn followed(
        &self,
        (flags, next): (&[Flag], &Rollout),
        (epoch, now): (Generation, ProcessTime),
    ) -> FlagHistory {
        let past = FlagHistory::new(next.session_grace);
        let was = next.flags.iter().filter_map(|flag| {
            let mut earlier = flags.iter();
            let known = self.was.get(&flag.name).map_or(&[][..], Vec::as_slice);
            let earlier = earlier.find(|earlier| earlier.name == flag.name);
            let mut changes = changes(flag, (earlier, known), (epoch, now));
            changes.retain(|was| now < was.at + past.grace);
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

/// The session that a call belongs to.
#[derive(Debug, Clone, Copy)]
pub struct SessionStart<'a> {
    /// What the flags were.
    pub past: &'a FlagHistory,
    /// The plan that it began with.
    pub began: Generation,
    /// What time it is.
    pub now: ProcessTime,
}

impl SessionStart<'_> {
    pub(super) fn was(&self, flag: &str) -> Option<&PreviousFlag> {
        self.past.of(flag, (self.began, self.now))
    }
}

/// The changes of a flag, the last one now where it is another one than before.
fn changes(
    flag: &Flag,
    (earlier, known): (Option<&Flag>, &[PreviousFlag]),
    (until, at): (Generation, ProcessTime),
) -> Vec<PreviousFlag> {
    let was = |stage, taken| PreviousFlag {
        until,
        at,
        stage,
        taken,
    };
    // Whom the flag did not take, it does not take until his session ends.
    let nobody = was(flag.stage, Membership::Nobody);
    let Some(earlier) = earlier else {
        return vec![nobody];
    };
    match (earlier.arming, flag.arming) {
        _ if !covers_alike(earlier, flag) => Vec::new(),
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

fn covers_alike(one: &Flag, other: &Flag) -> bool {
    (&one.client, &one.route, one.side, &one.headers)
        == (&other.client, &other.route, other.side, &other.headers)
}
