//! When calls were counted: that nobody was seen means something only where somebody looked.
//!
//! Laws: merging is commutative and idempotent, and associative as long as no bound is met; a bound forgets the oldest,
//! so that no more is claimed to have been watched than was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// A pause of so many seconds is none: reports come at their own pace, and a restart takes a moment.
const PAUSE: u64 = 60;
/// The most intervals that are kept of one replica.
const INTERVALS: usize = 100;
/// The most replicas that are kept apart; the one that ended first is forgotten.
const REPLICAS: usize = 200;

/// A time in which calls were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// The beginning.
    pub from: Timestamp,
    /// The last moment.
    pub until: Timestamp,
}

/// When one replica counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaObservation {
    /// Rising, more than a pause between them.
    intervals: Vec<Interval>,
    /// The end of what is forgotten, where something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forgotten: Option<Timestamp>,
}

/// When each replica counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Observation(BTreeMap<String, ReplicaObservation>);

impl ReplicaObservation {
    /// When it counted, rising.
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
        for gone in self.intervals.drain(..more) {
            self.forgotten = self.forgotten.max(Some(gone.until));
        }
    }

    /// Whether something between its beginning and its end was not watched, at or after a moment.
    fn gaps_since(&self, since: Timestamp) -> impl Iterator<Item = Interval> {
        // What came before the first interval, where that is known to be something.
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
    /// A replica counted all the time between two moments.
    pub fn note(&mut self, replica: &str, interval: Interval) {
        let noted = ReplicaObservation {
            intervals: joined(vec![interval]),
            forgotten: None,
        };
        self.add(replica, &noted);
        self.bound();
    }

    /// Keeps nothing that lies behind a moment.
    pub(super) fn bound_by(&mut self, at: Timestamp) {
        for watched in self.0.values_mut() {
            watched.intervals.retain(|interval| interval.from <= at);
            for interval in &mut watched.intervals {
                interval.until = interval.until.min(at);
            }
            watched.forgotten = watched.forgotten.map(|forgotten| forgotten.min(at));
        }
    }

    /// Adds what another record knows.
    pub fn merge(&mut self, other: &Observation) {
        for (replica, watched) in &other.0 {
            self.add(replica, watched);
        }
        self.bound();
    }

    /// The replicas that are known, by name.
    pub fn replicas(&self) -> impl Iterator<Item = (&str, &ReplicaObservation)> {
        self.0
            .iter()
            .map(|(name, watched)| (name.as_str(), watched))
    }

    /// The times since a moment in which a replica that was there before and after did not count.
    #[must_use]
    pub fn gaps_since(&self, since: Timestamp) -> Vec<(&str, Interval)> {
        let of = |(name, watched)| {
            let gaps: Vec<_> = ReplicaObservation::gaps_since(watched, since).collect();
            gaps.into_iter().map(move |gap| (name, gap))
        };
        self.replicas().flat_map(of).collect()
    }

    /// Since when one replica at least has counted at every moment until now; none where none counts now.
    #[must_use]
    pub fn unbroken_since(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.0.values().flat_map(|watched| &watched.intervals);
        let all = joined(all.copied().collect());
        let last = all.iter().rev().find(|interval| interval.from <= now)?;
        (now.since(last.until) <= PAUSE).then_some(last.from)
    }

    /// When anybody first counted, as far as it is known.
    #[must_use]
    pub fn first(&self) -> Option<Timestamp> {
        let all = self.0.values();
        all.filter_map(|watched| Some(watched.intervals.first()?.from))
            .min()
    }

    fn add(&mut self, replica: &str, watched: &ReplicaObservation) {
        self.0.entry(replica.to_owned()).or_default().merge(watched);
    }

    fn bound(&mut self) {
        while self.0.len() > REPLICAS {
            let ends = self.0.iter().map(|(name, watched)| (watched.last(), name));
            let Some(first) = ends.min().map(|(_, name)| name.clone()) else {
                return;
            };
            self.0.remove(&first);
        }
    }
}

/// Intervals in order, those joined that meet or have no more than a pause between them; turned ones are dropped.
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
