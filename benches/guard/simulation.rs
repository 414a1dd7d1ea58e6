//! Days of traffic in steps of a second, and a guard that watches them: for the table of `main.rs` and for
//! `tests/guard.rs`. All that happens follows from a seed.

use std::time::Duration;

use dualgauge_model::rollout::{
    CallEnd, Guard, GuardDecision, GuardState, Limits, Percent, Ramp, RampState, RampStep, Ratio,
    Share, Tally, Trip, UnixMillis, Way,
};

#[path = "cases.rs"]
mod cases;

pub(crate) use cases::{faulty, quiet};

/// Seconds of a minute, an hour and a day.
pub(crate) const MINUTE: u64 = 60;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

/// splitmix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    pub(crate) fn share(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or_default()) / 4_294_967_296.0
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }

    /// How many of events that come at random come in a second.
    fn events(&mut self, mean: f64) -> u64 {
        if mean > 60.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as u64;
        }
        let (limit, mut product, mut events) = ((-mean).exp(), self.share(), 0);
        while product > limit {
            product *= self.share();
            events += 1;
        }
        events
    }
}

/// How a way behaves at a moment.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub failed: f64,
    pub refused: f64,
    pub median_ms: f64,
    pub mismatched: f64,
}

/// What both ways are like when nothing is wrong: the new one is a little slower, for it rewrites.
pub(crate) fn healthy(way: Way, second: u64) -> Manner {
    let busy = tide(second);
    Manner {
        failed: 0.003,
        refused: 0.02,
        median_ms: 40.0 * (1.0 + 0.2 * busy) * if way == Way::New { 1.05 } else { 1.0 },
        mismatched: 0.000_1,
    }
}

/// From -1 at night to 1 by day.
fn tide(second: u64) -> f64 {
    (second as f64 / DAY as f64 * std::f64::consts::TAU).sin()
}

/// Which share of the calls takes the new way.
#[derive(Clone, Copy)]
pub(crate) enum Portion {
    Fixed(f64),
    /// One share, and from a second on another one.
    Then(f64, u64, f64),
    /// 1, 5, 25, 50 and 100 %, ten minutes each, of what is not held back.
    Ramped(f64),
}

/// What is to be seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Trip,
    NoTrip,
}

/// A case.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub name: &'static str,
    pub per_second: f64,
    pub portion: Portion,
    pub guard: Guard,
    pub manner: fn(Way, u64) -> Manner,
    /// When the fault begins.
    pub onset: u64,
    /// How long it is watched.
    pub until: u64,
    pub wanted: Wanted,
    /// Long ones are run by so many times more rarely.
    pub rarely: u64,
}

/// What became of a run.
pub(crate) struct Course {
    pub trip: Option<(u64, Trip)>,
    pub content: u64,
    pub inconclusive: u64,
    /// Calls of the new way that failed or were refused from the onset on.
    pub hurt: u64,
    /// The share of the new way at the end.
    pub portion: f64,
}

impl Course {
    /// Seconds from the onset to the trip.
    pub(crate) fn delay(&self, scenario: &Scenario) -> Option<u64> {
        let (second, _) = self.trip.as_ref()?;
        second.checked_sub(scenario.onset)
    }
}

struct Traffic<'s> {
    scenario: &'s Scenario,
    random: Random,
    /// The time of day at which it begins.
    phase: u64,
    /// A sample of how latencies spread about their median, to draw from.
    spread: Vec<f64>,
    tally: Tally,
    hurt: u64,
}

impl Traffic<'_> {
    fn second(&mut self, second: u64, portion: f64) {
        let scenario = self.scenario;
        let mean = scenario.per_second * (1.0 + 0.8 * tide(second + self.phase));
        let manners = [Way::New, Way::Old].map(|arm| (scenario.manner)(arm, second));
        for _ in 0..self.random.events(mean) {
            let (arm, manner) = if self.random.share() < portion {
                (Way::New, manners[0])
            } else {
                (Way::Old, manners[1])
            };
            let draw = self.random.share();
            let fate = match draw {
                _ if draw < manner.failed => CallEnd::Failed,
                _ if draw < manner.failed + manner.refused => CallEnd::Refused,
                _ => CallEnd::Served,
            };
            let place = self.random.next() as usize % self.spread.len();
            let millis = manner.median_ms * self.spread[place];
            self.tally
                .count(arm, fate, Duration::from_secs_f64(millis / 1e3));
            if arm == Way::Old {
                continue;
            }
            self.hurt += u64::from(fate != CallEnd::Served && second >= scenario.onset);
            // One of five is compared.
            if self.random.share() < 0.2 {
                if self.random.share() < manner.mismatched {
                    self.tally.count_mismatch();
                } else {
                    self.tally.count_match();
                }
            }
        }
    }
}

/// Runs a case.
pub(crate) fn run(scenario: &Scenario, seed: u64) -> Course {
    let mut random = Random::new(seed);
    let spread = (0..4096).map(|_| (0.6 * random.normal()).exp()).collect();
    let phase = random.next() % DAY;
    let start = 1_800_000_000_000 + random.next() % 60_000;
    let mut traffic = Traffic {
        scenario,
        random,
        phase,
        spread,
        tally: Tally::default(),
        hurt: 0,
    };
    let ramp = ramp();
    let mut state = RampState::begin(0, UnixMillis::from_millis(start));
    let mut watch = GuardState::new();
    let mut course = Course {
        trip: None,
        content: 0,
        inconclusive: 0,
        hurt: 0,
        portion: 0.0,
    };
    for second in 0..scenario.until {
        let at = UnixMillis::from_millis(start + second * 1_000);
        course.portion = match scenario.portion {
            Portion::Fixed(share) => share,
            Portion::Then(share, from, _) if second < from => share,
            Portion::Then(_, _, share) => share,
            Portion::Ramped(all) => all * f64::from(ramp.percent(state.step).thousandths()) / 1e5,
        };
        traffic.second(second, course.portion);
        let ruling = watch.observe(&scenario.guard, at, &traffic.tally);
        match &ruling {
            GuardDecision::Content => course.content += 1,
            GuardDecision::Inconclusive(_) => course.inconclusive += 1,
            GuardDecision::Trip(trip) => {
                course.trip = Some((second, trip.clone()));
                break;
            }
        }
        match ramp.advance(&state, at, &ruling) {
            RampStep::Stay(next) | RampStep::Advance(next) => state = next,
            RampStep::Finished | RampStep::Ended => {}
        }
    }
    course.hurt = traffic.hurt;
    course
}

fn ramp() -> Ramp {
    let steps = [1_000, 5_000, 25_000, 50_000, 100_000];
    let steps = steps
        .into_iter()
        .filter_map(Percent::from_thousandths)
        .collect();
    Ramp::new(steps, Duration::from_secs(600)).unwrap_or_else(|fault| unreachable!("{fault}"))
}

/// The guard of the documentation.
pub(crate) fn guard() -> Guard {
    Guard {
        limits: Limits {
            failure_delta: Share::from_millionths(20_000),
            refused_delta: Share::from_millionths(50_000),
            tool_error_delta: Share::from_millionths(50_000),
            latency_ratio: Ratio::from_thousandths(1_500),
            mismatch: Share::from_millionths(1_000),
        },
        ..Guard::default()
    }
}

fn strict() -> Guard {
    Guard {
        limits: Limits {
            failure_delta: Share::from_millionths(5_000),
            ..guard().limits
        },
        ..guard()
    }
}

/// The healthy manner, with a change of the new way from the moment on at which faults begin.
const ONSET: u64 = 20 * MINUTE;

fn changed(way: Way, second: u64, from: u64, change: impl Fn(&mut Manner)) -> Manner {
    let mut manner = healthy(way, second);
    if way == Way::New && second >= from {
        change(&mut manner);
    }
    manner
}

/// Down for 30 s in every ten minutes.
fn flaps(second: u64) -> bool {
    second % 600 >= 570
}

fn outage(manner: &mut Manner) {
    manner.failed = 0.95;
    manner.refused = 0.0;
}
