//! The memory of one guard: what it saw, what it suspects, what it ruled.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::bounds::Rate;
use super::burst::{BurstCalls, BurstSignal, BurstSpan, Checkpoints, Unserved};
use super::comparison::{FoundBreach, GuardComparison};
use super::decision::{Baseline, Breach, GuardDecision, Inconclusive, Limit, Trigger, Trip};
use super::windows::{PARTS, Population, WindowCounts, WindowSlice, Windows, number};
use super::{Guard, Share};
use crate::domain::rollout::{ArmTally, Tally, UnixMillis};

/// Slices in a row that must find the same fault: what is over within seconds is no reason to go back.
const IN_A_ROW: u8 = 3;
/// Observations in a row that must find the new way broken.
const BROKEN_IN_A_ROW: u8 = 2;
/// Windows of the old way that are kept for the time when it is no longer called.
const KEPT: usize = 10;
/// So many times the least calls of the new way, without one of the old: nobody is on the old way any more. Chance
/// does that once in 20,000 times where 2 % are held back.
const GONE: u64 = 5;
/// A share of failures at which a way is down.
const DOWN: f64 = 0.25;

/// The memory of one guard. It is kept on disk, so that a restart forgets nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GuardState {
    seen: Option<LastObservation>,
    slice: WindowSlice,
    looks: Windows,
    marks: Checkpoints,
    earlier: VecDeque<ArmTally>,
    /// New calls since the last one of the old way.
    alone: u64,
    /// For each limit, in how many slices in a row it was exceeded.
    #[serde(deserialize_with = "suspicion")]
    suspicion: [u8; Limit::ALL.len()],
    broken: u8,
    standing: Option<GuardDecision>,
}

/// The last observation, and the first since the watch began or lost sight.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct LastObservation {
    since: UnixMillis,
    at: UnixMillis,
    tally: Tally,
}

impl GuardState {
    /// A watch that has seen nothing.
    #[must_use]
    pub fn new() -> GuardState {
        GuardState::default()
    }

    /// The trip, if there was one.
    #[must_use]
    pub const fn trip(&self) -> Option<&Trip> {
        match &self.standing {
            Some(GuardDecision::Trip(trip)) => Some(trip),
            Some(GuardDecision::Content | GuardDecision::Inconclusive(_)) | None => None,
        }
    }

    /// What a person does after a trip: the watch begins anew. Only what it knows of the old way stays.
    pub fn rearm(&mut self) {
        let earlier = std::mem::take(&mut self.earlier);
        *self = GuardState {
            earlier,
            ..GuardState::default()
        };
    }

    /// Takes what the flag has counted so far, over all workers and replicas, and rules. To be called about each
    /// second. A sum that falls, a clock that steps back and a gap of more than a window are survived: what is unclear
    /// about the time between two observations is left out. After a trip it says the same until [`GuardState::rearm`].
    pub fn observe(&mut self, guard: &Guard, at: UnixMillis, cumulative: &Tally) -> GuardDecision {
        let glimpse = match self.take(guard, at, cumulative) {
            Some(delta) => {
                self.slice.tally.add(&delta);
                self.marks.push(at, &delta);
                self.alone = match delta.old.calls {
                    0 => self.alone.saturating_add(delta.new.calls),
                    _ => 0,
                };
                self.glimpse(guard)
            }
            None => None,
        };
        if at.since(self.slice.from) >= slice_of(guard) {
            self.complete_slice(guard, at);
        }
        if let Some(trip) = self.trip() {
            return GuardDecision::Trip(trip.clone());
        }
        match glimpse {
            Some((limit, BurstSignal::Broken(span))) => {
                self.broken = self.broken.saturating_add(1);
                if self.broken < BROKEN_IN_A_ROW {
                    return GuardDecision::Inconclusive(Inconclusive::Suspect(limit));
                }
                let trip = self.fast_trip(guard, at, (limit, span));
                return self.standing.insert(GuardDecision::Trip(trip)).clone();
            }
            Some((_, BurstSignal::Alike)) => {
                self.broken = 0;
                return GuardDecision::Inconclusive(Inconclusive::BothFail);
            }
            Some((_, BurstSignal::Fine)) | None => self.broken = 0,
        }
        let young = GuardDecision::Inconclusive(Inconclusive::Young);
        self.standing.clone().unwrap_or(young)
    }

    /// What was counted since the last observation, if that can be told.
    fn take(&mut self, guard: &Guard, at: UnixMillis, cumulative: &Tally) -> Option<Tally> {
        let seen = self.seen.get_or_insert_with(|| LastObservation {
            since: at,
            at,
            tally: cumulative.clone(),
        });
        let lost_sight = at.since(seen.at) > guard.window;
        if lost_sight || self.slice == WindowSlice::default() {
            seen.since = at;
            self.slice = WindowSlice {
                from: at,
                tally: Tally::default(),
            };
            self.looks = Windows::default();
            self.marks = Checkpoints::begin(at);
            self.suspicion = [0; Limit::ALL.len()];
            if self
                .standing
                .as_ref()
                .is_some_and(|ruling| !matches!(ruling, GuardDecision::Trip(_)))
            {
                self.standing = None;
            }
        }
        if at < seen.at {
            seen.since = seen.since.min(at);
            self.slice.from = self.slice.from.min(at);
            self.looks.step_back(at);
            self.marks.step_back(at);
        }
        seen.at = at;
        let usable = !lost_sight && !cumulative.fell_below(&seen.tally);
        let delta = usable.then(|| cumulative.since(&seen.tally));
        seen.tally.clone_from(cumulative);
        delta
    }

    /// The way's last calls, by the first limit that they seem to be beyond.
    fn glimpse(&self, guard: &Guard) -> Option<(Limit, BurstSignal)> {
        let fast = guard.fast.as_ref()?;
        let reference = self.reference(guard);
        // The old way may tell as a tool error what is a failure here, and as any other kind what is a refusal or a tool
        // error.
        let by = |unserved| self.marks.signal(fast, &unserved, reference.as_ref());
        let failures = guard.limits.failure_delta.map(|_| {
            let glimpse = by(Unserved {
                among: Population::All,
                of: |calls| calls.failed,
                instead: |calls| calls.tool_errors,
            });
            (Limit::Failures, glimpse)
        });
        let refusals = guard.limits.refused_delta.map(|_| {
            let glimpse = by(Unserved {
                among: Population::All,
                of: |calls| calls.refused,
                instead: |calls| calls.failed.saturating_add(calls.tool_errors),
            });
            (Limit::Refusals, glimpse)
        });
        let tool_errors = guard.limits.tool_error_delta.map(|_| {
            let glimpse = by(Unserved {
                among: Population::ToolKnown,
                of: |calls| calls.tool_errors,
                instead: |calls| calls.failed.saturating_add(calls.refused),
            });
            (Limit::ToolErrors, glimpse)
        });
        let told = failures.into_iter().chain(refusals).chain(tool_errors);
        let rank = |glimpse: &BurstSignal| match glimpse {
            BurstSignal::Broken(_) => 0,
            BurstSignal::Alike => 1,
            BurstSignal::Fine => 2,
        };
        told.min_by_key(|(_, glimpse)| rank(glimpse))
    }

    /// The old way's earlier windows, where it is no longer called.
    fn reference(&self, guard: &Guard) -> Option<ArmTally> {
        let here = self.looks.old_calls() > 0 || self.slice.tally.old.calls > 0;
        let gone = !here && self.alone >= guard.min_calls.saturating_mul(GONE);
        if !gone || self.earlier.is_empty() {
            return None;
        }
        let mut sum = ArmTally::default();
        self.earlier.iter().for_each(|window| sum.add(window));
        Some(sum)
    }

    fn complete_slice(&mut self, guard: &Guard, at: UnixMillis) {
        let next = WindowSlice {
            from: at,
            tally: Tally::default(),
        };
        let slice = std::mem::replace(&mut self.slice, next);
        // A slice is over a little late, for observations come each second only: one slice more or less is none.
        let window = guard.window + slice_of(guard);
        let oldest = at.millis().saturating_sub(millis(window));
        if let Some(old) = self.looks.push(slice, UnixMillis::from_millis(oldest)) {
            self.keep(guard, old);
        }
        if self.trip().is_none() {
            self.standing = Some(self.rule(guard, at));
        }
    }

    /// Keeps a window of the old way for the time when it is no longer called.
    fn keep(&mut self, guard: &Guard, window: ArmTally) {
        if window.calls < guard.min_calls {
            return;
        }
        if self.earlier.len() >= KEPT {
            self.earlier.pop_front();
        }
        self.earlier.push_back(window);
    }

    /// Rules at the end of a slice.
    fn rule(&mut self, guard: &Guard, at: UnixMillis) -> GuardDecision {
        let reference = self.reference(guard);
        let window = self.looks.window();
        let found = self.found(guard, &window, reference.as_ref());
        for (times, found) in self.suspicion.iter_mut().zip(&found) {
            *times = found.as_ref().map_or(0, |_| times.saturating_add(1));
        }
        let told = self.suspicion.iter().zip(&found);
        let told = told.filter_map(|(times, found)| Some((*times, found.as_ref()?)));
        // The one that was found for longest; the first among equals.
        match told.rev().max_by_key(|(times, _)| *times) {
            Some((IN_A_ROW.., found)) => GuardDecision::Trip(self.slow_trip(guard, at, found)),
            Some((_, found)) => {
                GuardDecision::Inconclusive(Inconclusive::Suspect(found.breach.limit()))
            }
            None => self
                .unclear(guard, (at, &window), reference.as_ref())
                .or_else(|| GuardState::tools_unclear(guard, &window, reference.as_ref()))
                .map_or(GuardDecision::Content, GuardDecision::Inconclusive),
        }
    }

    /// Unclear a window without a breach says nothing.
    fn unclear(
        &self,
        guard: &Guard,
        (at, window): (UnixMillis, &Tally),
        reference: Option<&ArmTally>,
    ) -> Option<Inconclusive> {
        let of = guard.min_calls;
        let since = self.seen.as_ref().map_or(at, |seen| seen.since);
        let calls = window.new.calls;
        if at.since(since) < guard.window {
            return Some(Inconclusive::Young);
        }
        if calls < of {
            return Some(Inconclusive::FewNew { calls, of });
        }
        let failed = |arm: &ArmTally| Rate::new(number(arm.failed), number(arm.calls)).share;
        if failed(&window.new) >= DOWN && failed(&window.old) >= DOWN {
            return Some(Inconclusive::BothFail);
        }
        match window.old.calls {
            _ if reference.is_some() => None,
            0 => Some(Inconclusive::NoOld),
            calls if calls < of => Some(Inconclusive::FewOld { calls, of }),
            _ => None,
        }
    }

    /// Whether tool errors of the new way are beyond the limit if the old way has none, and too little is known of
    /// the old way to tell.
    fn tools_unclear(
        guard: &Guard,
        window: &Tally,
        reference: Option<&ArmTally>,
    ) -> Option<Inconclusive> {
        let limit = guard.limits.tool_error_delta?;
        let new = WindowCounts::new(&window.new, Population::ToolKnown);
        let of = guard.min_calls;
        let calls = Population::ToolKnown.calls(reference.unwrap_or(&window.old));
        let beyond = Rate::new(new.tool_errors, new.calls).share > limit.get();
        (beyond && calls < of).then_some(Inconclusive::FewKnown { calls, of })
    }

    /// For each limit, whether it is exceeded for sure.
    fn found(
        &self,
        guard: &Guard,
        window: &Tally,
        reference: Option<&ArmTally>,
    ) -> [Option<FoundBreach>; Limit::ALL.len()] {
        let looks = self.looks.all();
        let against = GuardComparison {
            least: number(guard.min_calls),
            looks: &looks,
            reference,
            among: Population::All,
        };
        let among_known = GuardComparison {
            among: Population::ToolKnown,
            ..against
        };
        let limits = &guard.limits;
        // See `signal` for what the old way may tell instead.
        Limit::ALL.map(|limit| match limit {
            Limit::Failures => {
                let limit = limits.failure_delta?;
                let breach = |new, old| Breach::Failures { new, old, limit };
                let kinds = (
                    |calls: &WindowCounts| calls.failed,
                    |calls: &WindowCounts| calls.tool_errors,
                );
                against.rates(limit, kinds, breach)
            }
            Limit::Refusals => {
                let limit = limits.refused_delta?;
                let breach = |new, old| Breach::Refusals { new, old, limit };
                let instead = |calls: &WindowCounts| calls.failed + calls.tool_errors;
                against.rates(
                    limit,
                    (|calls: &WindowCounts| calls.refused, instead),
                    breach,
                )
            }
            Limit::Latency => against.latency(limits.latency_ratio?, window),
            Limit::Mismatches => against.mismatches(limits.mismatch?),
            Limit::ToolErrors => {
                let limit = limits.tool_error_delta?;
                let breach = |new, old| Breach::ToolErrors { new, old, limit };
                let instead = |calls: &WindowCounts| calls.failed + calls.refused;
                let kinds = (|calls: &WindowCounts| calls.tool_errors, instead);
                among_known.rates(limit, kinds, breach)
            }
        })
    }

    fn slow_trip(&self, guard: &Guard, at: UnixMillis, found: &FoundBreach) -> Trip {
        let since = self.seen.as_ref().map_or(at, |seen| seen.since);
        let begun = match found.windows {
            1 => self.looks.from().unwrap_or(since),
            _ => since,
        };
        Trip {
            at,
            breach: found.breach,
            pace: Trigger::Slow,
            new_calls: whole(found.new_calls),
            old_calls: whole(found.old_calls),
            span: at.since(begun).min(
                guard
                    .window
                    .saturating_mul(found.windows + found.windows / 10),
            ),
            against: found.against,
            mode: guard.mode,
        }
    }

    fn fast_trip(&self, guard: &Guard, at: UnixMillis, (limit, span): (Limit, BurstSpan)) -> Trip {
        let share = |bad: u64, calls: &BurstCalls| {
            Share::near(Rate::new(number(bad), number(calls.calls)).share)
        };
        let allowed = |limit: Option<Share>| limit.unwrap_or_default();
        let (new, old) = (&span.new, &span.old);
        let breach = match limit {
            Limit::Refusals => Breach::Refusals {
                new: share(new.refused, new),
                old: share(old.refused, old),
                limit: allowed(guard.limits.refused_delta),
            },
            Limit::ToolErrors => Breach::ToolErrors {
                new: share(new.tool_errors, new),
                old: share(old.tool_errors, old),
                limit: allowed(guard.limits.tool_error_delta),
            },
            Limit::Failures | Limit::Latency | Limit::Mismatches => Breach::Failures {
                new: share(new.failed, new),
                old: share(old.failed, old),
                limit: allowed(guard.limits.failure_delta),
            },
        };
        let against = match self.reference(guard) {
            Some(_) => Baseline::Earlier,
            None => Baseline::SameTime,
        };
        Trip {
            at,
            breach,
            pace: Trigger::Fast,
            new_calls: new.calls,
            old_calls: old.calls,
            span: span.took,
            against,
            mode: guard.mode,
        }
    }
}

/// Reads the suspicions of a state that may have been written when there were fewer limits.
fn suspicion<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; Limit::ALL.len()], D::Error> {
    let written = Vec::<u8>::deserialize(from)?;
    let mut all = [0; Limit::ALL.len()];
    for (place, times) in all.iter_mut().zip(written) {
        *place = times;
    }
    Ok(all)
}

fn slice_of(guard: &Guard) -> Duration {
    let parts = u32::try_from(PARTS).unwrap_or(1);
    (guard.window / parts).max(Duration::from_millis(1))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A sum of counts as a count again.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of counts is whole and not negative"
)]
fn whole(calls: f64) -> u64 {
    calls.round() as u64
}
