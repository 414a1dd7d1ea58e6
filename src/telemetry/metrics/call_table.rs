//! The calls of this process by client and by route, with ids replaced by names, for the admin API. Used by `app::run`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use super::histogram::{Histogram, LATENCY};
use super::labels::{CallLabels, LabelId, LabelNames, NONE, Outcome};
use super::shard::Snapshot;
use dualgauge_model::compare::Verdict;
use dualgauge_model::rollout::{Stage, Way};
use dualgauge_model::unrouted::{UnroutedCalls, UnroutedReport};
use dualgauge_patterns::side::Side;

/// A number of calls, and of those that ended with an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallErrors {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls with an error of the upstream, a failed tool, a failure of the proxy, or a cut response.
    pub errors: u64,
}

/// The calls of one client, or of one client on one side of a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageCalls {
    /// The number of calls by stage, in the order of [`Stage::ALL`].
    pub stages: [u64; Stage::ALL.len()],
    /// The calls that the old side served.
    pub old: CallErrors,
    /// The calls that the new side served.
    pub new: CallErrors,
}

impl StageCalls {
    fn add(&mut self, stage: Stage, outcome: Outcome, count: u64) {
        self.stages[stage as usize] += count;
        let served = match stage.control() {
            Some(Way::Old) => &mut self.old,
            Some(Way::New) => &mut self.new,
            None => return,
        };
        served.calls += count;
        if is_error(outcome) {
            served.errors += count;
        }
    }
}

/// The distribution of durations, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Durations {
    /// The number of durations.
    pub count: u64,
    /// The estimated median; zero without durations.
    pub p50: f64,
    /// The estimated 95th percentile.
    pub p95: f64,
    /// The estimated 99th percentile.
    pub p99: f64,
}

impl From<&Histogram> for Durations {
    fn from(histogram: &Histogram) -> Durations {
        Durations {
            count: histogram.count(),
            p50: histogram.quantile(0.5),
            p95: histogram.quantile(0.95),
            p99: histogram.quantile(0.99),
        }
    }
}

/// The calls of one route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteCalls {
    /// The calls by client and side.
    pub callers: BTreeMap<(Arc<str>, Side), StageCalls>,
    /// The durations of calls that the old side served.
    pub old: Durations,
    /// The durations of calls that the new side served.
    pub new: Durations,
    /// The durations of candidates, which no client waits for.
    pub candidates: Durations,
}

/// Errors, latency and verdicts of calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Performance {
    /// The calls by stage, with errors.
    pub served: StageCalls,
    /// The durations of calls that the old side served.
    pub old: Durations,
    /// The durations of calls that the new side served.
    pub new: Durations,
    /// The durations of candidates, which no client waits for.
    pub candidates: Durations,
    /// The number of calls in shadow or verify by verdict, in the order of [`Verdict::WORDS`].
    pub verdicts: [u64; Verdict::WORDS.len()],
}

/// The sums of [`Performance`].
#[derive(Debug)]
struct PerformanceSum {
    served: StageCalls,
    /// The durations of calls by the side that served them.
    ways: [Histogram; 2],
    candidates: Histogram,
    verdicts: [u64; Verdict::WORDS.len()],
}

impl PerformanceSum {
    fn new() -> PerformanceSum {
        PerformanceSum {
            served: StageCalls::default(),
            ways: [const { Histogram::new(&LATENCY) }; 2],
            candidates: Histogram::new(&LATENCY),
            verdicts: [0; Verdict::WORDS.len()],
        }
    }
}

impl From<&PerformanceSum> for Performance {
    fn from(sum: &PerformanceSum) -> Performance {
        Performance {
            served: sum.served,
            old: Durations::from(&sum.ways[Way::Old as usize]),
            new: Durations::from(&sum.ways[Way::New as usize]),
            candidates: Durations::from(&sum.candidates),
            verdicts: sum.verdicts,
        }
    }
}

/// A copy of the calls of all workers.
#[derive(Debug)]
pub struct CallTable {
    names: Vec<Arc<str>>,
    snapshots: Vec<Snapshot>,
    began: SystemTime,
}

impl CallTable {
    /// Creates the table from the copies of all workers, which have counted since `began`.
    #[must_use]
    pub fn new(names: &LabelNames, snapshots: Vec<Snapshot>, began: SystemTime) -> CallTable {
        CallTable {
            names: names.texts(),
            snapshots,
            began,
        }
    }

    /// Returns the time since which calls were counted: the start of the process.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        self.began
    }

    /// Returns the calls without a route.
    #[must_use]
    pub fn unrouted(&self) -> UnroutedReport {
        let mut all = UnroutedCalls::default();
        for snapshot in &self.snapshots {
            all.merge(&snapshot.counts.unrouted.paths);
        }
        all.report()
    }

    /// Returns the performance of all calls.
    #[must_use]
    pub fn performance(&self) -> Performance {
        let sums = self.sums(|_| Some(LabelId::NONE));
        let sum = sums.into_values().next();
        sum.map_or_else(Performance::default, |sum| Performance::from(&sum))
    }

    /// Returns the performance of the given routes; a route without calls is absent.
    #[must_use]
    pub fn performance_of(&self, routes: &BTreeSet<&str>) -> BTreeMap<Arc<str>, Performance> {
        let wanted: Vec<bool> = self
            .names
            .iter()
            .map(|name| routes.contains(name.as_ref()))
            .collect();
        let sums = self.sums(|id| wanted.get(id.index())?.then_some(id));
        let named = sums.iter();
        named
            .map(|(id, sum)| (self.name(*id), Performance::from(sum)))
            .collect()
    }

    /// Adds up by the group of a route; a route without a group is left out.
    fn sums(
        &self,
        group: impl Fn(LabelId) -> Option<LabelId>,
    ) -> BTreeMap<LabelId, PerformanceSum> {
        let mut sums: BTreeMap<LabelId, PerformanceSum> = BTreeMap::new();
        let mut sum_of = |route, add: &dyn Fn(&mut PerformanceSum)| {
            if let Some(group) = group(route) {
                add(sums.entry(group).or_insert_with(PerformanceSum::new));
            }
        };
        for snapshot in &self.snapshots {
            for (labels, counts) in &snapshot.counts.calls {
                let Some(stage) = labels.stage else { continue };
                sum_of(labels.route, &|sum| {
                    let count = counts.duration.count();
                    sum.served.add(stage, labels.outcome, count);
                    if let Some(way) = stage.control() {
                        sum.ways[way as usize].add(&counts.duration);
                    }
                });
            }
            for ((route, _, _), durations) in &snapshot.counts.candidates {
                sum_of(*route, &|sum| sum.candidates.add(durations));
            }
            for (labels, count) in &snapshot.counts.verdicts {
                let verdict = Verdict::WORDS
                    .iter()
                    .position(|word| *word == labels.verdict);
                sum_of(labels.route, &|sum| {
                    if let Some(counted) = verdict.and_then(|index| sum.verdicts.get_mut(index)) {
                        *counted += count;
                    }
                });
            }
        }
        sums
    }

    /// Returns the calls by client.
    #[must_use]
    pub fn by_client(&self) -> BTreeMap<Arc<str>, StageCalls> {
        self.by(|labels| labels.client)
    }

    /// Returns the calls by route.
    #[must_use]
    pub fn by_route(&self) -> BTreeMap<Arc<str>, StageCalls> {
        self.by(|labels| labels.route)
    }

    fn by(&self, id: impl Fn(&CallLabels) -> LabelId) -> BTreeMap<Arc<str>, StageCalls> {
        let mut by_id: BTreeMap<LabelId, StageCalls> = BTreeMap::new();
        for snapshot in &self.snapshots {
            for (labels, counts) in &snapshot.counts.calls {
                if let Some(stage) = labels.stage {
                    let calls = by_id.entry(id(labels)).or_default();
                    calls.add(stage, labels.outcome, counts.duration.count());
                }
            }
        }
        let named = by_id.into_iter();
        named.map(|(id, calls)| (self.name(id), calls)).collect()
    }

    /// Returns the calls of one route.
    #[must_use]
    pub fn of_route(&self, name: &str) -> RouteCalls {
        let Some(route) = self.names.iter().position(|known| **known == *name) else {
            return RouteCalls::default();
        };
        let mut callers: BTreeMap<(Arc<str>, Side), StageCalls> = BTreeMap::new();
        let mut served = [const { Histogram::new(&LATENCY) }; 2];
        let mut candidates = Histogram::new(&LATENCY);
        for snapshot in &self.snapshots {
            let own = |id: LabelId| id.index() == route;
            let calls = snapshot.counts.calls.iter();
            for (labels, counts) in calls.filter(|(labels, _)| own(labels.route)) {
                let Some(stage) = labels.stage else { continue };
                let caller = (self.name(labels.client), labels.side);
                let calls = callers.entry(caller).or_default();
                calls.add(stage, labels.outcome, counts.duration.count());
                if let Some(way) = stage.control() {
                    served[way as usize].add(&counts.duration);
                }
            }
            let runs = snapshot.counts.candidates.iter();
            for (_, durations) in runs.filter(|((id, _, _), _)| own(*id)) {
                candidates.add(durations);
            }
        }
        RouteCalls {
            callers,
            old: Durations::from(&served[Way::Old as usize]),
            new: Durations::from(&served[Way::New as usize]),
            candidates: Durations::from(&candidates),
        }
    }

    fn name(&self, id: LabelId) -> Arc<str> {
        let name = self.names.get(id.index());
        name.map_or_else(|| Arc::from(NONE), Arc::clone)
    }
}

/// Returns true if a call counts as an error. A call that its client ended is none.
const fn is_error(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Error | Outcome::ToolError | Outcome::Failed | Outcome::Cut => true,
        Outcome::Success | Outcome::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::telemetry::metrics::{Shard, Timing, VerdictLabels};

    fn timing(milliseconds: u64) -> Timing {
        let total = Duration::from_millis(milliseconds);
        Timing {
            total,
            upstream: None,
            head: total,
        }
    }

    #[test]
    fn calls_are_summed_over_workers_by_client_and_by_route() {
        let names = LabelNames::new();
        let (items, app) = (names.intern("items"), names.intern("app"));
        let call = |stage, outcome| CallLabels {
            route: items,
            client: app,
            side: Side::Rest,
            stage,
            outcome,
            blame: None,
        };
        let (mut one, mut two) = (Shard::new(), Shard::new());
        one.record(call(Some(Stage::Shadow), Outcome::Success), timing(4), None);
        one.record(call(None, Outcome::Success), timing(4), None);
        two.record(
            call(Some(Stage::Translate), Outcome::Error),
            timing(40),
            None,
        );
        two.record(call(Some(Stage::Retired), Outcome::Failed), timing(1), None);
        two.candidate(items, Side::Rest, Stage::Shadow, Duration::from_millis(2));
        for verdict in ["match", "match", "mismatch"] {
            two.verdict(VerdictLabels {
                route: items,
                client: app,
                side: Side::Rest,
                stage: Stage::Shadow,
                verdict,
            });
        }
        let began = SystemTime::UNIX_EPOCH;
        let table = CallTable::new(&names, vec![one.snapshot(), two.snapshot()], began);

        let calls = StageCalls {
            stages: [0, 1, 0, 1, 1],
            old: CallErrors {
                calls: 1,
                errors: 0,
            },
            new: CallErrors {
                calls: 1,
                errors: 1,
            },
        };
        assert_eq!(table.by_client(), [(Arc::from("app"), calls)].into());
        assert_eq!(table.by_route(), [(Arc::from("items"), calls)].into());
        let route = table.of_route("items");
        let callers = [((Arc::from("app"), Side::Rest), calls)];
        assert_eq!(route.callers, callers.into());
        assert_eq!((route.old.count, route.new.count), (1, 1));
        assert!(
            route.old.p50 > 0.0025 && route.old.p50 <= 0.005,
            "{route:?}"
        );
        assert!(route.new.p95 > 0.025 && route.new.p95 <= 0.05, "{route:?}");
        assert_eq!(route.candidates.count, 1);
        assert_eq!(table.of_route("other"), RouteCalls::default());

        let all = table.performance();
        assert_eq!((all.old, all.candidates), (route.old, route.candidates));
        assert_eq!(all.verdicts, [2, 1, 0, 0, 0, 0]);
        let of_items = table.performance_of(&["items", "none"].into());
        assert_eq!(of_items, [(Arc::from("items"), all)].into());
    }
}
