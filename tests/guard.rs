//! Hours of simulated traffic, a few seeds of each case; the table of a thousand is that of `cargo bench --bench guard`.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "draws of chance, and shares of small counts"
)]

#[path = "../benches/guard/simulation.rs"]
mod simulation;

use simulation::{HOUR, MINUTE, Scenario, Wanted, run};

/// The seeds of a case. In a debug build a second of traffic takes some microseconds.
const SEEDS: std::ops::Range<u64> = 0..3;

#[test]
fn nothing_wrong_with_the_new_way_trips_nothing() {
    for scenario in simulation::quiet() {
        let until = scenario.until.min(if scenario.per_second > 10.0 {
            65 * MINUTE
        } else {
            3 * HOUR
        });
        let scenario = Scenario { until, ..scenario };
        assert!(scenario.wanted == Wanted::NoTrip);
        for seed in SEEDS {
            let course = run(&scenario, seed);
            let trip = course
                .trip
                .map(|(second, trip)| format!("after {second} s: {trip}"));
            assert_eq!(trip, None, "{}, seed {seed}", scenario.name);
        }
    }
}

#[test]
fn a_fault_of_the_new_way_trips_and_never_before_it_began() {
    for scenario in simulation::faulty() {
        // What takes thousands of calls a second, or a day, is left to the bench.
        if scenario.rarely > 1 {
            continue;
        }
        assert!(scenario.wanted == Wanted::Trip);
        for seed in SEEDS {
            let course = run(&scenario, seed);
            let told = course
                .trip
                .as_ref()
                .map(|(second, trip)| format!("{second} s: {trip}"));
            let delay = course.delay(&scenario);
            assert!(delay.is_some(), "{}, seed {seed}: {told:?}", scenario.name);
        }
    }
}

#[test]
fn a_fault_that_begins_a_day_later_is_found_and_nothing_trips_before() {
    let late = simulation::faulty()
        .into_iter()
        .filter(|case| case.onset >= 24 * HOUR && case.per_second <= 10.0);
    let mut found = 0;
    for scenario in late {
        let course = run(&scenario, 0);
        let told = course
            .trip
            .as_ref()
            .map(|(second, trip)| format!("{second} s: {trip}"));
        assert!(
            course.delay(&scenario).is_some(),
            "{}: {told:?}",
            scenario.name
        );
        found += 1;
    }
    assert!(found > 0, "there is such a case");
}

#[test]
fn a_server_that_is_gone_costs_few_calls() {
    let gone = simulation::faulty()
        .into_iter()
        .filter(|case| case.name.contains("is gone"));
    for scenario in gone {
        for seed in 0..10 {
            let course = run(&scenario, seed);
            assert!(
                course.hurt <= 60,
                "{}, seed {seed}: {} calls",
                scenario.name,
                course.hurt
            );
        }
    }
}

#[test]
fn a_call_a_minute_is_never_content_and_never_trips() {
    let mut cases = simulation::quiet().into_iter();
    let thin = cases
        .find(|case| case.per_second < 1.0)
        .expect("there is one");
    for seed in SEEDS {
        let course = run(&thin, seed);
        assert_eq!(course.content, 0, "seed {seed}");
        assert!(course.trip.is_none(), "seed {seed}");
        assert_eq!(course.inconclusive, thin.until, "seed {seed}");
    }
}

#[test]
fn a_healthy_ramp_reaches_its_end() {
    let mut cases = simulation::quiet().into_iter();
    let ramp = cases
        .find(|case| case.name.contains("a ramp at"))
        .expect("there is one");
    let course = run(
        &Scenario {
            per_second: 300.0,
            until: 55 * MINUTE,
            ..ramp
        },
        1,
    );
    assert!(course.trip.is_none());
    assert!(course.portion >= 1.0, "it is at {}", course.portion);
}
