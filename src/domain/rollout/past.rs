//! What flags were before they were changed, for sessions that began then: a session keeps the decision that it began
//! with until a grace has passed.
//!
//! Laws: a trip acts on open sessions at once, and so does an edit of what a flag covers; a session that begins after a
//! change never sees what was before it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Arming, Flag, Percent, Rollout, Stage};

/// A moment, as the time since the process began: sessions and changes are compared to the nanosecond, and by no clock
/// that is ever set.
pub type Clock = Duration;

/// The most changes of one flag that are remembered; sessions from before them go by the oldest.
const MOST: usize = 32;

/// What flags were, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    grace: Duration,
    was: BTreeMap<String, Vec<Was>>,
}

/// What a flag gave until it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Was {
    /// When it was changed.
    pub until: Clock,
    /// The stage that it gave.
    pub stage: Stage,
    /// The share of callers that it took.
    pub share: Percent,
}

impl Past {
    /// Nothing is known of any flag. Sessions keep what they began with for `grace` after a change; zero lets every
    /// change act at once.
    #[must_use]
    pub fn new(grace: Duration) -> Past {
        Past {
            grace,
            was: BTreeMap::new(),
        }
    }

    /// The moment whose flags hold for a session now.
    #[must_use]
    pub fn as_of(&self, began: Clock, now: Clock) -> Clock {
        began.max(now.saturating_sub(self.grace))
    }

    /// What a flag was at a moment; none where it is what it was.
    fn of(&self, flag: &str, moment: Clock) -> Option<&Was> {
        let mut changes = self.was.get(flag)?.iter();
        changes.find(|was| was.until > moment)
    }

    /// What is known when other flags take the place of these, now.
    #[must_use]
    pub fn followed(&self, (flags, next): (&[Flag], &Rollout), now: Clock) -> Past {
        let past = Past::new(next.session_grace);
        let oldest = past.as_of(Clock::ZERO, now);
        let was = next.flags.iter().filter_map(|flag| {
            let mut earlier = flags.iter();
            let known = self.was.get(&flag.name).map_or(&[][..], Vec::as_slice);
            let earlier = earlier.find(|earlier| earlier.name == flag.name);
            let mut changes = changes(flag, (earlier, known), now);
            changes.retain(|was| was.until > oldest);
            let surplus = changes.len().saturating_sub(MOST);
            changes.drain(..surplus);
            (!changes.is_empty()).then(|| (flag.name.clone(), changes))
        });
        Past {
            was: was.collect(),
            ..past
        }
    }
}

/// The session that a call belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// What the flags were.
    pub past: &'a Past,
    /// The moment whose flags hold for it.
    pub as_of: Clock,
}

impl Session<'_> {
    pub(super) fn was(&self, flag: &str) -> Option<&Was> {
        self.past.of(flag, self.as_of)
    }
}

/// The changes of a flag, the last one now where it is another one than before.
fn changes(flag: &Flag, (earlier, known): (Option<&Flag>, &[Was]), now: Clock) -> Vec<Was> {
    // Whom the flag did not take, it does not take until his session ends.
    let nobody = Was {
        until: now,
        stage: flag.stage,
        share: Percent::NONE,
    };
    let Some(earlier) = earlier else {
        return vec![nobody];
    };
    match (earlier.arming, flag.arming) {
        _ if !covers_alike(earlier, flag) => Vec::new(),
        (_, Arming::Tripped) => Vec::new(),
        (Arming::Tripped, Arming::Armed) => vec![nobody],
        (Arming::Armed, Arming::Armed) => {
            let before = (earlier.stage, earlier.share());
            let changed = (before != (flag.stage, flag.share())).then_some(Was {
                until: now,
                stage: before.0,
                share: before.1,
            });
            known.iter().copied().chain(changed).collect()
        }
    }
}

fn covers_alike(one: &Flag, other: &Flag) -> bool {
    (&one.client, &one.route, one.side, &one.headers)
        == (&other.client, &other.route, other.side, &other.headers)
}
