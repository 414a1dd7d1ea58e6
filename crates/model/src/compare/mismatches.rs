//! The last mismatches of each field and the last failed candidates of each route, for finding the cause.
//!
//! All numbers are bounded: samples per field, fields per route, routes, and samples in total; the excess is only
//! counted. A sample contains only values that [`RedactedValue`] allows, and names its call by route and method. Law:
//! the order of merging does not matter as long as the fields have capacity.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::comparison::{Difference, Kind};
use super::failed::FailedCandidate;
use super::redacted::RedactedValue;
use super::replies::{ReplyPair, ReplyPairs, Translated};
use super::tally::Tally;
use crate::rollout::Stage;
use dualgauge_patterns::side::Side;

/// The maximum number of samples per field.
const SAMPLES: usize = 5;
/// The maximum number of fields per route.
const FIELDS: usize = 64;
/// The maximum number of routes.
const ROUTES: usize = 1024;
/// The maximum number of samples of all routes.
const ALL_SAMPLES: usize = 8192;
/// The maximum number of pairs of responses of all routes.
const ALL_PAIRS: usize = 2048;
/// The maximum number of forgotten differences; the earliest are dropped first.
const FORGOTTEN: usize = 512;

/// The call whose responses differed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallInfo {
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The name of the client.
    pub client: Arc<str>,
    /// The side of the call.
    pub side: Side,
    /// The stage of the call.
    pub stage: Stage,
    /// The HTTP method and path pattern, or the RPC method, as the route defines them.
    pub call: Arc<str>,
}

/// A difference and the call in which it occurred.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MismatchSample {
    /// The call.
    pub called: CallInfo,
    /// The place.
    pub pointer: String,
    /// The kind of the difference.
    pub kind: Kind,
    /// The value of the control, redacted.
    pub control: RedactedValue,
    /// The value of the candidate, redacted.
    pub candidate: RedactedValue,
}

/// A tally of calls with samples of the last ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent<S> {
    tally: Tally,
    /// The samples, latest last.
    samples: Vec<S>,
}

/// The parts of recorded mismatches that a copy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MismatchDetail {
    /// Counts and times.
    Tallies,
    /// Samples, too.
    Samples,
}

/// The calls in which a field differed.
pub type Field = Recent<MismatchSample>;

/// The calls of a route whose candidates failed.
pub type Failed = Recent<FailedCandidate>;

/// The fields and the failed candidates of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RouteMismatches {
    failed: Failed,
    fields: BTreeMap<String, Field>,
    replies: ReplyPairs,
    more: Tally,
}

/// A difference that was forgotten, because its route changed or on request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgottenDifference {
    /// The calls in which it occurred.
    pub tally: Tally,
    /// The time when it was last forgotten, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The route of a forgotten difference, and its field; `None` for failed candidates.
type ForgottenPlace = (Arc<str>, Option<String>);

/// The last mismatches of all routes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mismatches {
    routes: BTreeMap<Arc<str>, RouteMismatches>,
    samples: usize,
    /// The number of pairs of responses.
    pairs: usize,
    more: Tally,
    forgotten: BTreeMap<ForgottenPlace, ForgottenDifference>,
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
    /// Returns the number of calls and the time of the last one.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the samples, latest first.
    pub fn samples(&self) -> impl Iterator<Item = &S> {
        self.samples.iter().rev()
    }

    fn without_samples(&self) -> Recent<S> {
        Recent {
            tally: self.tally,
            samples: Vec::new(),
        }
    }

    /// Inserts a sample. Returns the increase of the number of samples.
    fn keep(&mut self, sample: S, capacity: usize) -> usize {
        let at = self.samples.partition_point(|known| *known <= sample);
        self.samples.insert(at, sample);
        if self.samples.len() > SAMPLES || capacity == 0 {
            self.samples.remove(0);
            return 0;
        }
        1
    }
}

impl Mismatches {
    /// Records the counted differences of one call.
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

    /// Records a failed candidate of a route.
    pub fn keep_failed(&mut self, route: &Arc<str>, failed: FailedCandidate) {
        let tally = Tally {
            count: 1,
            last_ms: failed.called.at_ms,
        };
        self.add_failed(route, tally, [failed]);
    }

    /// Records the responses of a call that has differences or a failed candidate.
    pub fn keep_replies(&mut self, route: &Arc<str>, called: &CallInfo, pair: ReplyPair) {
        let Some(translated) = Translated::of(called.stage) else {
            return;
        };
        let room = ALL_PAIRS.saturating_sub(self.pairs);
        // The call itself is in the entry already, or was counted as one too many.
        if let Some(known) = self.routes.get_mut(route) {
            let by = (called.side, translated);
            self.pairs += known.replies.add(pair, by, called.at_ms, room);
        }
    }

    /// Adds the mismatches of another worker.
    pub fn merge(&mut self, other: &Mismatches) {
        self.more.add(other.more);
        for (route, entry_of_route) in &other.routes {
            if entry_of_route.failed.tally.count > 0 {
                let samples = entry_of_route.failed.samples.iter().cloned();
                self.add_failed(route, entry_of_route.failed.tally, samples);
            }
            for (name, field) in &entry_of_route.fields {
                self.add(route, name, field.tally, field.samples.iter().cloned());
            }
            if let Some(known) = self.routes.get_mut(route) {
                known.more.add(entry_of_route.more);
                let room = ALL_PAIRS.saturating_sub(self.pairs);
                self.pairs += known.replies.merge(&entry_of_route.replies, room);
            }
        }
        for (place, difference) in &other.forgotten {
            self.note_forgotten(place.clone(), *difference);
        }
    }

    /// Returns a copy with the wanted parts.
    #[must_use]
    pub fn copy(&self, detail: MismatchDetail) -> Mismatches {
        match detail {
            MismatchDetail::Samples => self.clone(),
            MismatchDetail::Tallies => self.tallies(),
        }
    }

    fn tallies(&self) -> Mismatches {
        let routes = self.routes.iter().map(|(route, known)| {
            let fields = known.fields.iter();
            let fields = fields.map(|(name, field)| (name.clone(), field.without_samples()));
            let counted = RouteMismatches {
                failed: known.failed.without_samples(),
                fields: fields.collect(),
                replies: ReplyPairs::default(),
                more: known.more,
            };
            (route.clone(), counted)
        });
        Mismatches {
            routes: routes.collect(),
            samples: 0,
            pairs: 0,
            more: self.more,
            forgotten: self.forgotten.clone(),
        }
    }

    /// Returns the entry of a route. If there are too many routes, counts the calls and returns `None`.
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
        let Some(entry_of_route) = self.entry(route, tally) else {
            return;
        };
        let known = &mut entry_of_route.failed;
        known.tally.add(tally);
        for sample in samples {
            // Differences share one bound; failed candidates are bounded by the number of routes.
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
        let Some(entry_of_route) = self.entry(route, tally) else {
            return;
        };
        if !entry_of_route.fields.contains_key(field) && entry_of_route.fields.len() >= FIELDS {
            entry_of_route.more.add(tally);
            return;
        }
        let known = entry_of_route.fields.entry(field.to_owned()).or_default();
        known.tally.add(tally);
        let mut more = 0;
        for sample in samples {
            let capacity = ALL_SAMPLES.saturating_sub(all + more);
            more += known.keep(sample, capacity);
        }
        self.samples = all + more;
    }

    /// Returns the failed candidates of a route.
    #[must_use]
    pub fn failed(&self, route: &str) -> Option<&Failed> {
        let failed = self
            .routes
            .get(route)
            .map(|entry_of_route| &entry_of_route.failed);
        failed.filter(|failed| failed.tally.count > 0)
    }

    /// Returns the names of the routes that have entries, in order.
    pub fn routes(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(AsRef::as_ref)
    }

    /// Returns the fields of a route that differed.
    pub fn fields(&self, route: &str) -> impl Iterator<Item = (&str, &Field)> {
        let entry_of_route = self.routes.get(route).into_iter();
        entry_of_route.flat_map(|entry_of_route| {
            entry_of_route
                .fields
                .iter()
                .map(|(name, field)| (name.as_str(), field))
        })
    }

    /// Returns the pairs of responses of a route.
    #[must_use]
    pub fn replies(&self, route: &str) -> Option<&ReplyPairs> {
        self.routes.get(route).map(|entry| &entry.replies)
    }

    /// Returns the tally of the differences in a route's fields that exceeded the limit.
    #[must_use]
    pub fn more_of(&self, route: &str) -> Tally {
        let entry_of_route = self.routes.get(route);
        entry_of_route.map_or_else(Tally::default, |entry_of_route| entry_of_route.more)
    }

    /// Returns the tally of the calls of routes that exceeded the limit.
    #[must_use]
    pub fn more(&self) -> Tally {
        self.more
    }

    /// Returns the differences that were forgotten, by route and field (`None` for failed candidates).
    pub fn forgotten(&self) -> impl Iterator<Item = (&str, Option<&str>, ForgottenDifference)> {
        let all = self.forgotten.iter();
        all.map(|((route, field), difference)| (route.as_ref(), field.as_deref(), *difference))
    }

    /// Removes routes and returns their names. Their differences are noted as forgotten at `now_ms`. If no route is
    /// left, the tally of excess calls is reset too, because it does not tell their routes.
    pub fn forget(&mut self, is_forgotten: impl Fn(&str) -> bool, now_ms: u64) -> Vec<Arc<str>> {
        let gone: Vec<(Arc<str>, RouteMismatches)> = self
            .routes
            .extract_if(.., |route, _| is_forgotten(route))
            .collect();
        let mut names = Vec::with_capacity(gone.len());
        for (route, known) in gone {
            let samples = known.fields.values().map(|field| field.samples.len());
            self.samples = self.samples.saturating_sub(samples.sum());
            self.pairs = self.pairs.saturating_sub(known.replies.len());
            let failed = known.failed.tally;
            let failed = (failed.count > 0).then_some((None, failed));
            let fields = known.fields.into_iter();
            let fields = fields.map(|(name, field)| (Some(name), field.tally));
            for (field, tally) in failed.into_iter().chain(fields) {
                let difference = ForgottenDifference {
                    tally,
                    at_ms: now_ms,
                };
                self.note_forgotten((route.clone(), field), difference);
            }
            names.push(route);
        }
        if self.routes.is_empty() {
            self.more = Tally::default();
        }
        names
    }

    fn note_forgotten(&mut self, place: ForgottenPlace, difference: ForgottenDifference) {
        let known = self.forgotten.entry(place).or_default();
        known.tally.add(difference.tally);
        known.at_ms = known.at_ms.max(difference.at_ms);
        if self.forgotten.len() > FORGOTTEN {
            let all = self.forgotten.iter();
            let earliest = all.min_by_key(|(place, difference)| (difference.at_ms, *place));
            let earliest = earliest.map(|(place, _)| place.clone());
            earliest.and_then(|place| self.forgotten.remove(&place));
        }
    }
}

#[cfg(test)]
mod tests;
