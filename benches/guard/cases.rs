//! The cases: traffic in which the guard must keep still, and traffic in which it must trip.

use dualgauge_model::rollout::Way;

use super::{
    DAY, HOUR, Manner, ONSET, Portion, Scenario, Wanted, changed, flaps, guard, healthy, outage,
    strict,
};

/// A case in which the new way does well.
fn well(
    name: &'static str,
    per_second: f64,
    portion: Portion,
    manner: fn(Way, u64) -> Manner,
) -> Scenario {
    Scenario {
        name,
        per_second,
        portion,
        guard: guard(),
        manner,
        onset: 0,
        until: DAY,
        wanted: Wanted::NoTrip,
        rarely: if per_second > 10.0 { 10 } else { 1 },
    }
}

/// A case in which it does not, from an hour on.
fn ill(
    name: &'static str,
    per_second: f64,
    portion: Portion,
    manner: fn(Way, u64) -> Manner,
) -> Scenario {
    Scenario {
        onset: ONSET,
        until: ONSET + 6 * HOUR,
        wanted: Wanted::Trip,
        ..well(name, per_second, portion, manner)
    }
}

/// For so many hours.
fn hours(hours: u64, scenario: Scenario) -> Scenario {
    Scenario {
        until: hours * HOUR,
        rarely: 10,
        ..scenario
    }
}

/// Under the stricter guard.
fn strictly(scenario: Scenario) -> Scenario {
    Scenario {
        guard: strict(),
        ..scenario
    }
}

/// With the fault a day later.
fn a_day_later(scenario: Scenario) -> Scenario {
    Scenario {
        onset: DAY,
        rarely: 10,
        until: DAY + 6 * HOUR,
        ..scenario
    }
}

fn both_flap(way: Way, second: u64) -> Manner {
    let mut manner = healthy(way, second);
    if flaps(second) {
        outage(&mut manner);
    }
    manner
}

fn both_fail(way: Way, second: u64) -> Manner {
    let mut manner = healthy(way, second);
    if second % DAY > HOUR {
        manner.failed = 0.15;
        manner.refused = 0.1;
        manner.median_ms *= 5.0;
    }
    manner
}

fn down(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.failed = 1.0)
}

fn mostly(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.failed = 0.7)
}

fn flapping(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| {
        if flaps(second) {
            outage(m);
        }
    })
}

fn one(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.failed += 0.01)
}

fn three(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.failed += 0.03)
}

fn ten(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.failed += 0.1)
}

fn slow(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.median_ms *= 2.0)
}

fn other(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.mismatched = 0.01)
}

fn refused(way: Way, second: u64) -> Manner {
    changed(way, second, ONSET, |m| m.refused = 0.3)
}

fn leak(way: Way, second: u64) -> Manner {
    changed(way, second, DAY, |m| m.failed += 0.1)
}

const HALF: Portion = Portion::Fixed(0.5);
const LITTLE: Portion = Portion::Fixed(0.01);
const ALL_LATER: Portion = Portion::Then(0.5, HOUR, 1.0);
const HELD_BACK: Portion = Portion::Then(0.5, HOUR, 0.95);

/// Cases in which the guard must keep still.
pub(crate) fn quiet() -> Vec<Scenario> {
    vec![
        well("healthy, half the calls", 10.0, HALF, healthy),
        strictly(well("healthy, limit 0.5 points", 10.0, HALF, healthy)),
        hours(6, well("healthy, 1 % of the calls", 10.0, LITTLE, healthy)),
        hours(
            3,
            well(
                "healthy, a ramp at 100 calls/s",
                100.0,
                Portion::Ramped(1.0),
                healthy,
            ),
        ),
        hours(
            12,
            well("healthy, all calls after an hour", 10.0, ALL_LATER, healthy),
        ),
        hours(
            12,
            well(
                "healthy, all but 5 % after an hour",
                10.0,
                HELD_BACK,
                healthy,
            ),
        ),
        hours(12, well("one call a minute", 1.0 / 60.0, HALF, healthy)),
        hours(
            12,
            well("both ways down 30 s in 10 min", 10.0, HALF, both_flap),
        ),
        hours(
            3,
            well(
                "the same, in a ramp, 5 % held back",
                100.0,
                Portion::Ramped(0.95),
                both_flap,
            ),
        ),
        hours(
            12,
            well(
                "the same, all but 5 % after an hour",
                10.0,
                HELD_BACK,
                both_flap,
            ),
        ),
        hours(
            6,
            well(
                "both fail 15 %, refuse 10 %, 5 times slower",
                10.0,
                HALF,
                both_fail,
            ),
        ),
    ]
}

/// Cases in which the guard must trip.
pub(crate) fn faulty() -> Vec<Scenario> {
    vec![
        ill("the new server is gone, half the calls", 10.0, HALF, down),
        ill(
            "the new server is gone, 1 % of 10 calls/s",
            10.0,
            LITTLE,
            down,
        ),
        ill("7 of 10 fail, 1 % of 10 calls/s", 10.0, LITTLE, mostly),
        ill("the new way down 30 s in 10 min", 10.0, HALF, flapping),
        ill("+10 points, limit 2", 10.0, HALF, ten),
        ill("+3 points, limit 2, 10 calls/s", 10.0, HALF, three),
        ill("+3 points, limit 2, 1000 calls/s", 1000.0, HALF, three),
        strictly(ill("+1 point, limit 0.5, 10 calls/s", 10.0, HALF, one)),
        strictly(ill("+1 point, limit 0.5, 1000 calls/s", 1000.0, HALF, one)),
        ill("latency doubled, limit 1.5", 10.0, HALF, slow),
        ill("latency doubled, limit 1.5, 100 calls/s", 100.0, HALF, slow),
        ill("1 % of the answers differ, limit 0.1 %", 10.0, HALF, other),
        ill("30 % refused (a bad mapping)", 10.0, HALF, refused),
        a_day_later(ill(
            "+10 points after a day at 100 %",
            10.0,
            ALL_LATER,
            leak,
        )),
        a_day_later(ill("the same, 5 % held back", 10.0, HELD_BACK, leak)),
    ]
}
