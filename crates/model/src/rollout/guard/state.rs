//! The state of one guard: its observations, suspicions and decision.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::bounds::Rate;
use super::burst::{BurstCalls, BurstSignal, BurstSpan, Checkpoints, Unserved};
use super::comparison::{FoundBreach, GuardComparison};
use super::decision::{Baseline, Breach, GuardDecision, Inconclusive, Limit, Trigger, Trip};
use super::settings::{Guard, Share};
use super::windows::{PARTS, Population, WindowCounts, WindowSlice, Windows, number};
use crate::rollout::{Tally, UnixMillis, WayTally};

/// The number of consecutive slices that must find the same breach: a problem of a few seconds is no reason to roll
/// back.
const IN_A_ROW: u8 = 3;
/// The number of consecutive observations that must find the new way broken.
const BROKEN_IN_A_ROW: u8 = 2;
/// The number of windows of the old way that are kept for the time when it is no longer called.
const KEPT: usize = 10;
/// The multiple of `min_calls` on the new way, without a call of the old one, after which the old way counts as
/// unused. With a holdback of 2 %, chance causes that once in 20,000 times.
const GONE: u64 = 5;
/// The share of failures at which a way counts as down.
const DOWN: f64 = 0.25;

/// The state of one guard. It is stored on disk, so that it survives a restart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GuardState {
    seen: Option<LastObservation>,
    slice: WindowSlice,
    looks: Windows,
    marks: Checkpoints,
    earlier: VecDeque<WayTally>,
    /// The number of calls of the new way since the last one of the old way.
    alone: u64,
    /// The number of consecutive slices that exceeded each limit.
    #[serde(deserialize_with = "suspicion")]
    suspicion: [u8; Limit::ALL.len()],
    broken: u8,
    #[serde(rename = "standing")]
    decision: Option<GuardDecision>,
}

/// The last observation, and the time of the first since the guard started or had a gap.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct LastObservation {
    since: UnixMillis,
    at: UnixMillis,
    tally: Tally,
}

impl GuardState {
    /// Creates a state without observations.
    #[must_use]
    pub fn new() -> GuardState {
        GuardState::default()
    }

    /// Returns the trip, if there was one.
    #[must_use]
    pub const fn trip(&self) -> Option<&Trip> {
        match &self.decision {
            Some(GuardDecision::Trip(trip)) => Some(trip),
            Some(GuardDecision::Content | GuardDecision::Inconclusive(_)) | None => None,
        }
    }

    /// Restarts the guard after a trip. Only the earlier windows of the old way stay.
    pub fn rearm(&mut self) {
        let earlier = std::mem::take(&mut self.earlier);
        *self = GuardState {
            earlier,
            ..GuardState::default()
        };
    }

    /// Takes the cumulative tally of the flag over all workers and replicas, and returns a decision. The caller calls
    /// it about once a second. If a sum falls, the clock steps back or a gap is longer than a window, the uncertain
    /// time since the last observation is left out. After a trip, the decision stays the same until
    /// [`GuardState::rearm`].
    pub fn observe(&mut self, guard: &Guard, at: UnixMillis, cumulative: &Tally) -> GuardDecision {
        let burst_signal = match self.take(guard, at, cumulative) {
            Some(delta) => {
                self.slice.tally.add(&delta);
                self.marks.push(at, &delta);
                self.alone = match delta.old.calls {
                    0 => self.alone.saturating_add(delta.new.calls),
                    _ => 0,
                };
                self.burst_signal(guard)
            }
            None => None,
        };
        if at.since(self.slice.from) >= slice_of(guard) {
            self.complete_slice(guard, at);
        }
        if let Some(trip) = self.trip() {
            return GuardDecision::Trip(trip.clone());
        }
        match burst_signal {
            Some((limit, BurstSignal::Broken(span))) => {
                self.broken = self.broken.saturating_add(1);
                if self.broken < BROKEN_IN_A_ROW {
                    return GuardDecision::Inconclusive(Inconclusive::Suspect(limit));
                }
                let trip = self.fast_trip(guard, at, limit, &span);
                return self.decision.insert(GuardDecision::Trip(trip)).clone();
            }
            Some((_, BurstSignal::Alike)) => {
                self.broken = 0;
                return GuardDecision::Inconclusive(Inconclusive::BothFail);
            }
            Some((_, BurstSignal::Fine)) | None => self.broken = 0,
        }
        let young = GuardDecision::Inconclusive(Inconclusive::Young);
        self.decision.clone().unwrap_or(young)
    }

    /// Returns the tally since the last observation, if it is known.
    fn take(&mut self, guard: &Guard, at: UnixMillis, cumulative: &Tally) -> Option<Tally> {
        let seen = self.seen.get_or_insert_with(|| LastObservation {
            since: at,
            at,
            tally: cumulative.clone(),
        });
        let has_gap = at.since(seen.at) > guard.window;
        if has_gap || self.slice == WindowSlice::default() {
            seen.since = at;
            self.slice = WindowSlice {
                from: at,
                tally: Tally::default(),
            };
            self.looks = Windows::default();
            self.marks = Checkpoints::begin(at);
            self.suspicion = [0; Limit::ALL.len()];
            if self
                .decision
                .as_ref()
                .is_some_and(|ruling| !matches!(ruling, GuardDecision::Trip(_)))
            {
                self.decision = None;
            }
        }
        if at < seen.at {
            seen.since = seen.since.min(at);
            self.slice.from = self.slice.from.min(at);
            self.looks.step_back(at);
            self.marks.step_back(at);
        }
        seen.at = at;
        let usable = !has_gap && !cumulative.fell_below(&seen.tally);
        let delta = usable.then(|| cumulative.since(&seen.tally));
        seen.tally.clone_from(cumulative);
        delta
    }

    /// Checks the last calls against each limit and returns the most severe signal.
    fn burst_signal(&self, guard: &Guard) -> Option<(Limit, BurstSignal)> {
        let fast = guard.fast.as_ref()?;
        let reference = self.reference(guard);
        // The same problem can have another form on the old way: a failure may show there as a tool error, and a
        // refusal or tool error as any other kind.
        let by = |unserved| self.marks.signal(fast, &unserved, reference.as_ref());
        let failures = guard.limits.failure_delta.map(|_| {
            let burst_signal = by(Unserved {
                among: Population::All,
                of: |calls| calls.failed,
                instead: |calls| calls.tool_errors,
            });
            (Limit::Failures, burst_signal)
        });
        let refusals = guard.limits.refused_delta.map(|_| {
            let burst_signal = by(Unserved {
                among: Population::All,
                of: |calls| calls.refused,
                instead: |calls| calls.failed.saturating_add(calls.tool_errors),
            });
            (Limit::Refusals, burst_signal)
        });
        let tool_errors = guard.limits.tool_error_delta.map(|_| {
            let burst_signal = by(Unserved {
                among: Population::ToolKnown,
                of: |calls| calls.tool_errors,
                instead: |calls| calls.failed.saturating_add(calls.refused),
            });
            (Limit::ToolErrors, burst_signal)
        });
        let signals = failures.into_iter().chain(refusals).chain(tool_errors);
        let rank = |burst_signal: &BurstSignal| match burst_signal {
            BurstSignal::Broken(_) => 0,
            BurstSignal::Alike => 1,
            BurstSignal::Fine => 2,
        };
        signals.min_by_key(|(_, burst_signal)| rank(burst_signal))
    }

    /// Returns the earlier windows of the old way if it is no longer called.
    fn reference(&self, guard: &Guard) -> Option<WayTally> {
        let here = self.looks.old_calls() > 0 || self.slice.tally.old.calls > 0;
        let gone = !here && self.alone >= guard.min_calls.saturating_mul(GONE);
        if !gone || self.earlier.is_empty() {
            return None;
        }
        let mut sum = WayTally::default();
        self.earlier.iter().for_each(|window| sum.add(window));
        Some(sum)
    }

    fn complete_slice(&mut self, guard: &Guard, at: UnixMillis) {
        let next = WindowSlice {
            from: at,
            tally: Tally::default(),
        };
        let slice = std::mem::replace(&mut self.slice, next);
        // A slice ends a little late, because observations come once a second; so one slice more is allowed.
        let window = guard.window + slice_of(guard);
        let oldest = at.millis().saturating_sub(millis(window));
        if let Some(old) = self.looks.push(slice, UnixMillis::from_millis(oldest)) {
            self.keep(guard, old);
        }
        if self.trip().is_none() {
            self.decision = Some(self.rule(guard, at));
        }
    }

    /// Keeps a window of the old way for the time when it is no longer called.
    fn keep(&mut self, guard: &Guard, window: WayTally) {
        if window.calls < guard.min_calls {
            return;
        }
        if self.earlier.len() >= KEPT {
            self.earlier.pop_front();
        }
        self.earlier.push_back(window);
    }

    /// Decides at the end of a slice.
    fn rule(&mut self, guard: &Guard, at: UnixMillis) -> GuardDecision {
        let reference = self.reference(guard);
        let window = self.looks.window();
        let found = self.found(guard, &window, reference.as_ref());
        for (times, found) in self.suspicion.iter_mut().zip(&found) {
            *times = found.as_ref().map_or(0, |_| times.saturating_add(1));
        }
        let suspects = self.suspicion.iter().zip(&found);
        let suspects = suspects.filter_map(|(times, found)| Some((*times, found.as_ref()?)));
        // The breach that was found in the most slices; the first one among equals.
        match suspects.rev().max_by_key(|(times, _)| *times) {
            Some((IN_A_ROW.., found)) => GuardDecision::Trip(self.slow_trip(guard, at, found)),
            Some((_, found)) => {
                GuardDecision::Inconclusive(Inconclusive::Suspect(found.breach.limit()))
            }
            None => self
                .unclear(guard, at, &window, reference.as_ref())
                .or_else(|| GuardState::tools_unclear(guard, &window, reference.as_ref()))
                .map_or(GuardDecision::Content, GuardDecision::Inconclusive),
        }
    }

    /// Returns the reason why a window without a breach is inconclusive.
    fn unclear(
        &self,
        guard: &Guard,
        at: UnixMillis,
        window: &Tally,
        reference: Option<&WayTally>,
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
        let failed = |arm: &WayTally| Rate::new(number(arm.failed), number(arm.calls)).share;
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

    /// Returns a reason if the tool errors of the new way would exceed the limit against an old way without any, and
    /// the old way has too few calls with a known tool result.
    fn tools_unclear(
        guard: &Guard,
        window: &Tally,
        reference: Option<&WayTally>,
    ) -> Option<Inconclusive> {
        let limit = guard.limits.tool_error_delta?;
        let new = WindowCounts::new(&window.new, Population::ToolKnown);
        let of = guard.min_calls;
        let calls = Population::ToolKnown.calls(reference.unwrap_or(&window.old));
        let beyond = Rate::new(new.tool_errors, new.calls).share > limit.get();
        (beyond && calls < of).then_some(Inconclusive::FewKnown { calls, of })
    }

    /// Returns the certain breach of each limit.
    fn found(
        &self,
        guard: &Guard,
        window: &Tally,
        reference: Option<&WayTally>,
    ) -> [Option<FoundBreach>; Limit::ALL.len()] {
        let windows = self.looks.all();
        let against = GuardComparison {
            least: number(guard.min_calls),
            windows: &windows,
            reference,
            among: Population::All,
        };
        let among_known = GuardComparison {
            among: Population::ToolKnown,
            ..against
        };
        let limits = &guard.limits;
        // The old way may show the same problem in another form: see `burst_signal`.
        Limit::ALL.map(|limit| match limit {
            Limit::Failures => {
                let limit = limits.failure_delta?;
                let breach = |new, old| Breach::Failures { new, old, limit };
                let of = |calls: &WindowCounts| calls.failed;
                let instead = |calls: &WindowCounts| calls.tool_errors;
                against.rates(limit, of, instead, breach)
            }
            Limit::Refusals => {
                let limit = limits.refused_delta?;
                let breach = |new, old| Breach::Refusals { new, old, limit };
                let of = |calls: &WindowCounts| calls.refused;
                let instead = |calls: &WindowCounts| calls.failed + calls.tool_errors;
                against.rates(limit, of, instead, breach)
            }
            Limit::Latency => against.latency(limits.latency_ratio?, window),
            Limit::Mismatches => against.mismatches(limits.mismatch?),
            Limit::ToolErrors => {
                let limit = limits.tool_error_delta?;
                let breach = |new, old| Breach::ToolErrors { new, old, limit };
                let of = |calls: &WindowCounts| calls.tool_errors;
                let instead = |calls: &WindowCounts| calls.failed + calls.refused;
                among_known.rates(limit, of, instead, breach)
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

    fn fast_trip(&self, guard: &Guard, at: UnixMillis, limit: Limit, span: &BurstSpan) -> Trip {
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

/// Reads the suspicions of a stored state, which an earlier version with fewer limits may have written.
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

/// Converts a sum of counts to an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of counts is whole and not negative"
)]
fn whole(calls: f64) -> u64 {
    calls.round() as u64
}
