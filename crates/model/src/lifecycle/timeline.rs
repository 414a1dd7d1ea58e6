//! The shares of calls and clients on the new side over time, in a bounded number of intervals.
//!
//! The owner notes the usage so far at any times; differences between two notes are what happened between them. When the
//! intervals are full, neighbours are joined, so that the timeline always covers the whole time since its start.
//!
//! Laws: the sums over all intervals equal the calls since the first note, except for counts that another process has
//! taken back; the number of intervals stays below [`INTERVALS`]; their ends never decrease.
//!
//! Used by `app::control`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::usage::UsageTotals;
use crate::time::Timestamp;

/// The maximum number of intervals; joining leaves half of it.
const INTERVALS: usize = 240;
/// The length of the first intervals, in seconds.
const FIRST_SECONDS: u64 = 10;

/// The calls and clients of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineInterval {
    /// The end of the interval, in seconds since 1970.
    pub until: Timestamp,
    /// Calls served by the upstream of the caller's side.
    pub old: u64,
    /// Calls translated for the upstream of the other side.
    pub new: u64,
    /// Calls refused: retired, or in a brownout.
    pub refused: u64,
    /// The clients that called the old side only. In joined intervals, the largest number of one of them.
    pub clients_old: u64,
    /// The clients that called both sides.
    pub clients_both: u64,
    /// The clients that called the new side only.
    pub clients_new: u64,
}

impl TimelineInterval {
    fn join(self, later: TimelineInterval) -> TimelineInterval {
        TimelineInterval {
            until: later.until,
            old: self.old.saturating_add(later.old),
            new: self.new.saturating_add(later.new),
            refused: self.refused.saturating_add(later.refused),
            clients_old: self.clients_old.max(later.clients_old),
            clients_both: self.clients_both.max(later.clients_both),
            clients_new: self.clients_new.max(later.clients_new),
        }
    }
}

/// The progress of the migration since a process began to count. The next process continues a stored timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeline {
    seconds: u64,
    intervals: Vec<TimelineInterval>,
    /// The totals of each client at the end of the last interval.
    #[serde(skip)]
    last: Option<(Timestamp, BTreeMap<String, UsageTotals>)>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline {
            seconds: FIRST_SECONDS,
            intervals: Vec::new(),
            last: None,
        }
    }
}

impl Timeline {
    /// Returns a stored timeline, or an empty one if its values are out of range. The next note only begins an interval:
    /// the totals before it may have lacked the counts of other processes.
    #[must_use]
    pub fn restore(stored: Timeline) -> Timeline {
        let is_valid = stored.seconds >= FIRST_SECONDS && stored.intervals.len() < INTERVALS;
        if is_valid {
            Timeline {
                last: None,
                ..stored
            }
        } else {
            Timeline::default()
        }
    }

    /// Returns the length of an interval, in seconds.
    #[must_use]
    pub const fn seconds(&self) -> u64 {
        self.seconds
    }

    /// Returns the intervals, the earliest first.
    #[must_use]
    pub fn intervals(&self) -> &[TimelineInterval] {
        &self.intervals
    }

    /// Returns true if the current interval has ended, so that [`Timeline::note`] adds it. A clock that was set back ends
    /// it too.
    #[must_use]
    pub fn is_due(&self, at: Timestamp) -> bool {
        let last = self.last.as_ref();
        last.is_none_or(|(last, _)| at < *last || at.since(*last) >= self.seconds)
    }

    /// Ends the current interval, if it is due, with the totals of each client so far. The first note is only the start
    /// of the first interval.
    pub fn note(&mut self, totals: BTreeMap<String, UsageTotals>, at: Timestamp) {
        if !self.is_due(at) {
            return;
        }
        if let Some((_, before)) = &self.last {
            let latest = self.intervals.last();
            let until = latest.map_or(at, |latest| latest.until.max(at));
            let interval = difference(before, &totals, until);
            self.intervals.push(interval);
        }
        self.last = Some((at, totals));
        if self.intervals.len() >= INTERVALS {
            let pairs = self.intervals.chunks(2);
            let joined =
                pairs.filter_map(|pair| pair.iter().copied().reduce(TimelineInterval::join));
            self.intervals = joined.collect();
            self.seconds = self.seconds.saturating_mul(2);
        }
    }
}

fn difference(
    before: &BTreeMap<String, UsageTotals>,
    now: &BTreeMap<String, UsageTotals>,
    until: Timestamp,
) -> TimelineInterval {
    let mut interval = TimelineInterval {
        until,
        ..TimelineInterval::default()
    };
    for (client, totals) in now {
        let earlier = before.get(client).copied().unwrap_or_default();
        let old = totals.old.saturating_sub(earlier.old);
        let new = totals.new.saturating_sub(earlier.new);
        interval.old += old;
        interval.new += new;
        interval.refused += totals.refused.saturating_sub(earlier.refused);
        match (old > 0, new > 0) {
            (true, false) => interval.clients_old += 1,
            (true, true) => interval.clients_both += 1,
            (false, true) => interval.clients_new += 1,
            (false, false) => {}
        }
    }
    interval
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lifecycle::{ClientUsage, Usage};
    use crate::rollout::Way;
    use dualgauge_patterns::side::Side;

    fn calls(usage: &mut Usage, client: &str, way: Option<Way>, count: u64) {
        let mut seen = ClientUsage::default();
        for _ in 0..count {
            seen.add(way, Timestamp::from_unix(1));
        }
        usage.note("items", client, Side::Rest, &seen);
    }

    fn note(timeline: &mut Timeline, usage: &Usage, at: Timestamp) {
        let mut totals = BTreeMap::new();
        usage.add_by_client(&mut totals);
        timeline.note(totals, at);
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    #[test]
    fn an_interval_has_the_calls_and_the_clients_between_two_notes() {
        let (mut timeline, mut usage) = (Timeline::default(), Usage::default());
        calls(&mut usage, "before", Some(Way::Old), 9);
        note(&mut timeline, &usage, at(0));
        assert!(timeline.intervals().is_empty() && !timeline.is_due(at(9)));
        calls(&mut usage, "stays", Some(Way::Old), 2);
        calls(&mut usage, "moves", Some(Way::Old), 1);
        calls(&mut usage, "moves", Some(Way::New), 3);
        calls(&mut usage, "moved", Some(Way::New), 4);
        calls(&mut usage, "retired", None, 5);
        note(&mut timeline, &usage, at(9));
        assert!(timeline.intervals().is_empty());
        note(&mut timeline, &usage, at(10));
        let expected = TimelineInterval {
            until: at(10),
            old: 3,
            new: 7,
            refused: 5,
            clients_old: 1,
            clients_both: 1,
            clients_new: 1,
        };
        assert_eq!(timeline.intervals(), [expected]);
    }

    #[test]
    fn a_stored_timeline_goes_on_without_a_jump() {
        let (mut timeline, mut usage) = (Timeline::default(), Usage::default());
        note(&mut timeline, &usage, at(0));
        calls(&mut usage, "app", Some(Way::Old), 2);
        note(&mut timeline, &usage, at(10));
        let text = serde_json::to_string(&timeline).unwrap();
        let mut next = Timeline::restore(serde_json::from_str(&text).unwrap());
        assert_eq!(next.intervals(), timeline.intervals());
        calls(&mut usage, "app", Some(Way::New), 3);
        note(&mut next, &usage, at(100));
        calls(&mut usage, "app", Some(Way::New), 4);
        note(&mut next, &usage, at(110));
        let last = next.intervals().last().unwrap();
        assert_eq!((next.intervals().len(), last.new), (2, 4));
        let strange = serde_json::from_str(r#"{"seconds":0}"#).unwrap();
        assert_eq!(Timeline::restore(strange), Timeline::default());
    }

    #[test]
    fn a_clock_that_steps_back_stops_nothing() {
        let (mut timeline, mut usage) = (Timeline::default(), Usage::default());
        note(&mut timeline, &usage, at(7200));
        for seconds in [7210, 3600, 3610] {
            calls(&mut usage, "app", Some(Way::Old), 1);
            assert!(timeline.is_due(at(seconds)), "{seconds}");
            note(&mut timeline, &usage, at(seconds));
        }
        let all = timeline.intervals();
        assert_eq!(all.iter().map(|one| one.old).collect::<Vec<_>>(), [1; 3]);
        assert!(all.iter().all(|one| one.until == at(7210)), "{all:?}");
    }

    #[test]
    fn a_restored_timeline_begins_with_the_next_note() {
        let (mut timeline, mut usage) = (Timeline::default(), Usage::default());
        note(&mut timeline, &usage, at(0));
        let mut timeline = Timeline::restore(timeline);
        // The counts of others became known.
        calls(&mut usage, "others", Some(Way::New), 9);
        note(&mut timeline, &usage, at(10));
        assert_eq!(timeline.intervals(), []);
    }

    proptest! {
        #[test]
        fn joining_keeps_the_sums_and_the_bound(steps in prop::collection::vec((0_u64..4, 0_u64..4), 0..900)) {
            let (mut timeline, mut usage) = (Timeline::default(), Usage::default());
            note(&mut timeline, &usage, at(0));
            let (mut old, mut new, mut now) = (0, 0, 0);
            for (olds, news) in steps {
                calls(&mut usage, "a", Some(Way::Old), olds);
                calls(&mut usage, "b", Some(Way::New), news);
                old += olds;
                new += news;
                now += i64::try_from(timeline.seconds()).unwrap();
                note(&mut timeline, &usage, at(now));
                prop_assert!(timeline.intervals().len() < INTERVALS);
            }
            let all = timeline.intervals();
            prop_assert_eq!(all.iter().map(|one| one.old).sum::<u64>(), old);
            prop_assert_eq!(all.iter().map(|one| one.new).sum::<u64>(), new);
            prop_assert!(all.is_sorted_by_key(|one| one.until));
        }
    }
}
