//! The times in which calls were counted, for each replica. A count of zero proves something only for such a time.
//!
//! Laws: merging is commutative and idempotent, and associative as long as no limit is reached. At a limit the oldest
//! interval is forgotten, so a record never claims more observed time than there was.
//!
//! Used by `lifecycle::usage`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Gaps of up to this many seconds are ignored: reports arrive at intervals, and a restart takes a moment.
const PAUSE: u64 = 60;
/// The most intervals kept for one replica.
const INTERVALS: usize = 100;
/// The most replicas kept; beyond it the one whose last interval ended first is forgotten.
const REPLICAS: usize = 200;

/// A time in which calls were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// The first moment.
    pub from: Timestamp,
    /// The last moment.
    pub until: Timestamp,
}

/// The times in which one replica counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaObservation {
    /// Rising, each more than [`PAUSE`] after the one before.
    intervals: Vec<Interval>,
    /// The end of the last forgotten interval, if one was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forgotten: Option<Timestamp>,
}

/// The times in which each replica counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Observation(BTreeMap<String, ReplicaObservation>);

impl ReplicaObservation {
    /// Returns the intervals in which it counted, rising.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    fn last(&self) -> Option<Timestamp> {
        self.intervals.last().map(|interval| interval.until)
    }

    fn merge(&mut self, other: &ReplicaObservation) {
        self.forgotten = self.forgotten.max(other.forgotten);
        let all = self.intervals.iter().chain(&other.intervals).copied();
        self.intervals = joined(all.collect());
        let more = self.intervals.len().saturating_sub(INTERVALS);
        for forgotten in self.intervals.drain(..more) {
            self.forgotten = self.forgotten.max(Some(forgotten.until));
        }
    }

    /// Returns the gaps between its first and its last interval, at or after a moment.
    fn gaps_since(&self, since: Timestamp) -> impl Iterator<Item = Interval> {
        // The gap between the forgotten intervals and the first one that was kept.
        let before = self.forgotten.into_iter().zip(self.intervals.first());
        let before = before.map(|(forgotten, first)| (forgotten, first.from));
        let pairs = self.intervals.windows(2);
        let between = pairs.map(|pair| (pair[0].until, pair[1].from));
        before
            .chain(between)
            .filter(move |(_, until)| *until > since)
            .map(|(from, until)| Interval { from, until })
    }
}

impl Observation {
    /// Records that a replica counted without a break in an interval.
    pub fn note(&mut self, replica: &str, interval: Interval) {
        let noted = ReplicaObservation {
            intervals: joined(vec![interval]),
            forgotten: None,
        };
        self.add(replica, &noted);
        self.bound();
    }

    /// Cuts all intervals off at a moment.
    pub(super) fn bound_by(&mut self, at: Timestamp) {
        for observed in self.0.values_mut() {
            observed.intervals.retain(|interval| interval.from <= at);
            for interval in &mut observed.intervals {
                interval.until = interval.until.min(at);
            }
            observed.forgotten = observed.forgotten.map(|forgotten| forgotten.min(at));
        }
    }

    /// Adds the intervals of another record.
    pub fn merge(&mut self, other: &Observation) {
        for (replica, observed) in &other.0 {
            self.add(replica, observed);
        }
        self.bound();
    }

    /// Returns the known replicas, by name.
    pub fn replicas(&self) -> impl Iterator<Item = (&str, &ReplicaObservation)> {
        self.0
            .iter()
            .map(|(name, observed)| (name.as_str(), observed))
    }

    /// Returns the gaps since a moment in which a replica did not count, although it did before and after.
    #[must_use]
    pub fn gaps_since(&self, since: Timestamp) -> Vec<(&str, Interval)> {
        let of = |(name, observed)| {
            let gaps: Vec<_> = ReplicaObservation::gaps_since(observed, since).collect();
            gaps.into_iter().map(move |gap| (name, gap))
        };
        self.replicas().flat_map(of).collect()
    }

    /// Returns true if a replica counted in the whole interval, apart from ignored gaps. The counting may have begun and
    /// ended a little later and earlier, as within a process that counts several things.
    pub(super) fn contains(&self, replica: &str, interval: Interval) -> bool {
        let observed = self.0.get(replica).into_iter();
        let mut known = observed.flat_map(|observed| &observed.intervals);
        known.any(|known| {
            known.from.since(interval.from) <= PAUSE && interval.until.since(known.until) <= PAUSE
        })
    }

    /// Returns the time since which at least one replica has counted at every moment until `now`; `None` if none counts
    /// now.
    #[must_use]
    pub fn unbroken_since(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.0.values().flat_map(|observed| &observed.intervals);
        let all = joined(all.copied().collect());
        let last = all.iter().rev().find(|interval| interval.from <= now)?;
        (now.since(last.until) <= PAUSE).then_some(last.from)
    }

    /// Returns the first known moment at which a replica counted.
    #[must_use]
    pub fn first(&self) -> Option<Timestamp> {
        let all = self.0.values();
        all.filter_map(|observed| Some(observed.intervals.first()?.from))
            .min()
    }

    fn add(&mut self, replica: &str, observed: &ReplicaObservation) {
        self.0
            .entry(replica.to_owned())
            .or_default()
            .merge(observed);
    }

    fn bound(&mut self) {
        while self.0.len() > REPLICAS {
            let ends = self
                .0
                .iter()
                .map(|(name, observed)| (observed.last(), name));
            let Some(first) = ends.min().map(|(_, name)| name.clone()) else {
                return;
            };
            self.0.remove(&first);
        }
    }
}

/// Sorts intervals and joins those that overlap or lie within [`PAUSE`] of each other. Drops those that end before they
/// begin.
fn joined(mut all: Vec<Interval>) -> Vec<Interval> {
    all.retain(|interval| interval.from <= interval.until);
    all.sort_unstable();
    let mut joined: Vec<Interval> = Vec::with_capacity(all.len());
    for next in all {
        match joined.last_mut() {
            Some(last) if next.from.since(last.until) <= PAUSE => {
                last.until = last.until.max(next.until);
            }
            Some(_) | None => joined.push(next),
        }
    }
    joined
}
