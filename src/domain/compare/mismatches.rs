//! The last mismatches of each field and the last failed candidates of each route, for people who look for the cause.
//!
//! Bounded in every direction: samples of a field, fields of a route, routes, and samples together; what has no room is
//! counted. A sample holds no value but what [`RedactedValue`] allows, and names its call by route and method.
//! Law: the order in which keepers are merged does not matter as long as their fields have room.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Difference, FailedCandidate, Kind, RedactedValue};
use crate::domain::rollout::Stage;
use crate::domain::side::Side;

/// Samples of one field.
const SAMPLES: usize = 5;
/// Fields of one route.
const FIELDS: usize = 64;
/// Routes.
const ROUTES: usize = 1024;
/// Samples of all routes together.
const ALL_SAMPLES: usize = 8192;

/// The call whose answers differed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallInfo {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The name of the client.
    pub client: Arc<str>,
    /// The side of the call.
    pub side: Side,
    /// Its stage.
    pub stage: Stage,
    /// The HTTP method and the pattern of the path, or the RPC method, as the route has them.
    pub call: Arc<str>,
}

/// A difference, and the call that it was met in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MismatchSample {
    /// The call.
    pub called: CallInfo,
    /// The place.
    pub pointer: String,
    /// What is different.
    pub kind: Kind,
    /// The control's value, as far as it may be shown.
    pub control: RedactedValue,
    /// The candidate's.
    pub candidate: RedactedValue,
}

/// A number of calls, and when the last of them was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number.
    pub count: u64,
    /// The time of the last call in milliseconds since 1970; 0 without a call.
    pub last_ms: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.count = self.count.saturating_add(other.count);
        self.last_ms = self.last_ms.max(other.last_ms);
    }
}

/// A tally of calls with samples of the last few of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent<S> {
    tally: Tally,
    /// The latest last.
    samples: Vec<S>,
}

/// The calls in which a field differed.
pub type Field = Recent<MismatchSample>;

/// The calls of a route whose candidates failed.
pub type Failed = Recent<FailedCandidate>;

/// A route's fields and failed candidates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RouteMismatches {
    failed: Failed,
    fields: BTreeMap<String, Field>,
    more: Tally,
}

/// The last mismatches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mismatches {
    routes: BTreeMap<Arc<str>, RouteMismatches>,
    samples: usize,
    more: Tally,
}

impl<S> Default for Recent<S> {
    fn default() -> Self {
        Recent {
            tally: Tally::default(),
            samples: Vec::new(),
        }
    }
}

impl<S: Ord> Recent<S> {
    /// Returns the number of calls, and when the last of them was.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the last of them, the latest first.
    pub fn samples(&self) -> impl Iterator<Item = &S> {
        self.samples.iter().rev()
    }

    /// Takes a sample in; gives how many more there are now.
    fn keep(&mut self, sample: S, room: usize) -> usize {
        let at = self.samples.partition_point(|known| *known <= sample);
        self.samples.insert(at, sample);
        if self.samples.len() > SAMPLES || room == 0 {
            self.samples.remove(0);
            return 0;
        }
        1
    }
}

impl Mismatches {
    /// Keeps the differences of one call that count.
    pub fn keep<'d>(
        &mut self,
        route: &Arc<str>,
        called: &CallInfo,
        differences: impl IntoIterator<Item = &'d Difference>,
    ) {
        let mut seen: Vec<&str> = Vec::new();
        for difference in differences {
            let count = u64::from(!seen.contains(&difference.field.as_str()));
            seen.push(&difference.field);
            let sample = MismatchSample {
                called: called.clone(),
                pointer: difference.pointer.clone(),
                kind: difference.kind,
                control: difference.control.clone(),
                candidate: difference.candidate.clone(),
            };
            let tally = Tally {
                count,
                last_ms: called.at_ms,
            };
            self.add(route, &difference.field, tally, [sample]);
        }
    }

    /// Keeps one failed candidate of a route.
    pub fn keep_failed(&mut self, route: &Arc<str>, failed: FailedCandidate) {
        let tally = Tally {
            count: 1,
            last_ms: failed.called.at_ms,
        };
        self.add_failed(route, tally, [failed]);
    }

    /// Adds what another worker has kept.
    pub fn merge(&mut self, other: &Mismatches) {
        self.more.add(other.more);
        for (route, of_route) in &other.routes {
            if of_route.failed.tally.count > 0 {
                let samples = of_route.failed.samples.iter().cloned();
                self.add_failed(route, of_route.failed.tally, samples);
            }
            for (name, field) in &of_route.fields {
                self.add(route, name, field.tally, field.samples.iter().cloned());
            }
            if let Some(known) = self.routes.get_mut(route) {
                known.more.add(of_route.more);
            }
        }
    }

    /// Returns the entry of a route; `None` if there are too many routes, and counts the calls then.
    fn entry(&mut self, route: &Arc<str>, tally: Tally) -> Option<&mut RouteMismatches> {
        if !self.routes.contains_key(route) && self.routes.len() >= ROUTES {
            self.more.add(tally);
            return None;
        }
        Some(self.routes.entry(route.clone()).or_default())
    }

    fn add_failed(
        &mut self,
        route: &Arc<str>,
        tally: Tally,
        samples: impl IntoIterator<Item = FailedCandidate>,
    ) {
        let Some(of_route) = self.entry(route, tally) else {
            return;
        };
        let known = &mut of_route.failed;
        known.tally.add(tally);
        for sample in samples {
            // Differences share their room; failed candidates have the number of routes as their bound.
            known.keep(sample, SAMPLES);
        }
    }

    fn add(
        &mut self,
        route: &Arc<str>,
        field: &str,
        tally: Tally,
        samples: impl IntoIterator<Item = MismatchSample>,
    ) {
        let all = self.samples;
        let Some(of_route) = self.entry(route, tally) else {
            return;
        };
        if !of_route.fields.contains_key(field) && of_route.fields.len() >= FIELDS {
            of_route.more.add(tally);
            return;
        }
        let known = of_route.fields.entry(field.to_owned()).or_default();
        known.tally.add(tally);
        let mut more = 0;
        for sample in samples {
            let room = ALL_SAMPLES.saturating_sub(all + more);
            more += known.keep(sample, room);
        }
        self.samples = all + more;
    }

    /// Returns the failed candidates of a route.
    #[must_use]
    pub fn failed(&self, route: &str) -> Option<&Failed> {
        let failed = self.routes.get(route).map(|of_route| &of_route.failed);
        failed.filter(|failed| failed.tally.count > 0)
    }

    /// The routes that have any, by name.
    pub fn routes(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(AsRef::as_ref)
    }

    /// The fields of a route that differed.
    pub fn fields(&self, route: &str) -> impl Iterator<Item = (&str, &Field)> {
        let of_route = self.routes.get(route).into_iter();
        of_route.flat_map(|of_route| {
            of_route
                .fields
                .iter()
                .map(|(name, field)| (name.as_str(), field))
        })
    }

    /// How often a field of a route differed that had no room.
    #[must_use]
    pub fn more_of(&self, route: &str) -> Tally {
        let of_route = self.routes.get(route);
        of_route.map_or_else(Tally::default, |of_route| of_route.more)
    }

    /// How often a field of a route differed that had no room itself.
    #[must_use]
    pub fn more(&self) -> Tally {
        self.more
    }

    /// Forgets routes, and returns their names. When no route is left, the calls that had no room are forgotten too:
    /// nobody knows of which routes they were.
    pub fn forget(&mut self, is_forgotten: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        let gone = self
            .routes
            .extract_if(.., |route, _| is_forgotten(route))
            .map(|(route, of_route)| {
                let samples = of_route.fields.values().map(|field| field.samples.len());
                self.samples = self.samples.saturating_sub(samples.sum());
                route
            });
        let gone = gone.collect();
        if self.routes.is_empty() {
            self.more = Tally::default();
        }
        gone
    }
}

#[cfg(test)]
mod tests;
