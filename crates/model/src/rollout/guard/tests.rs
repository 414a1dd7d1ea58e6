//! The guard, observation by observation. Days of traffic are in `tests/guard.rs`.

use std::time::Duration;

use super::*;
use crate::rollout::{CallEnd, Tally, UnixMillis, Way, WayTally};

mod laws;
mod tools;

/// What one second adds: calls, failures and refusals of each way.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    new: (u64, u64, u64),
    old: (u64, u64, u64),
}

fn arm((calls, failed, refused): (u64, u64, u64)) -> WayTally {
    let mut arm = WayTally::default();
    for call in 0..calls {
        let outcome = match call {
            _ if call < failed => CallEnd::Failed,
            _ if call < failed + refused => CallEnd::Refused,
            _ => CallEnd::Served,
        };
        arm.count(outcome, Duration::from_millis(40));
    }
    arm
}

impl Second {
    fn tally(self) -> Tally {
        Tally {
            new: arm(self.new),
            old: arm(self.old),
            ..Tally::default()
        }
    }
}

/// A watch, its clock and its sums.
struct Scene {
    guard: Guard,
    watch: GuardState,
    sums: Tally,
    now: u64,
}

impl Scene {
    fn new(guard: Guard) -> Scene {
        let mut scene = Scene {
            guard,
            watch: GuardState::new(),
            sums: Tally::default(),
            now: 1_800_000_000,
        };
        scene.observe();
        scene
    }

    fn observe(&mut self) -> GuardDecision {
        let at = UnixMillis::from_millis(self.now * 1000);
        self.watch.observe(&self.guard, at, &self.sums)
    }

    fn add(&mut self, tally: &Tally) -> GuardDecision {
        self.now += 1;
        self.sums.add(tally);
        self.observe()
    }

    /// The ruling after so many seconds that are alike, or the first trip.
    fn run(&mut self, seconds: u64, second: Second) -> GuardDecision {
        let mut ruling = self.observe();
        for _ in 0..seconds {
            ruling = self.add(&second.tally());
            if matches!(ruling, GuardDecision::Trip(_)) {
                break;
            }
        }
        ruling
    }
}

const FINE: Second = Second {
    new: (10, 0, 0),
    old: (10, 0, 0),
};

fn trip(ruling: GuardDecision) -> Trip {
    match ruling {
        GuardDecision::Trip(trip) => trip,
        other @ (GuardDecision::Content | GuardDecision::Inconclusive(_)) => panic!("{other}"),
    }
}

#[test]
fn it_is_content_after_a_window_with_enough_calls() {
    let mut scene = Scene::new(Guard::default());
    assert_eq!(
        scene.run(59, FINE),
        GuardDecision::Inconclusive(Inconclusive::Young)
    );
    assert_eq!(scene.run(1, FINE), GuardDecision::Content);
}

#[test]
fn too_few_calls_are_inconclusive_and_never_a_trip() {
    let mut scene = Scene::new(Guard::default());
    let thin = Second {
        new: (1, 0, 0),
        old: (10, 0, 0),
    };
    let few = GuardDecision::Inconclusive(Inconclusive::FewNew { calls: 60, of: 100 });
    assert_eq!(scene.run(66, thin), few);
    let thin = Second {
        new: (10, 0, 0),
        old: (1, 0, 0),
    };
    let mut scene = Scene::new(Guard::default());
    let few = GuardDecision::Inconclusive(Inconclusive::FewOld { calls: 60, of: 100 });
    assert_eq!(scene.run(66, thin), few);
    let nothing = GuardDecision::Inconclusive(Inconclusive::FewNew { calls: 0, of: 100 });
    let mut scene = Scene::new(Guard::default());
    assert_eq!(scene.run(90, Second::default()), nothing);
}

#[test]
fn a_broken_new_way_trips_within_seconds_and_says_why() {
    let mut scene = Scene::new(Guard::default());
    scene.run(100, FINE);
    let broken = Second {
        new: (10, 10, 0),
        old: (10, 0, 0),
    };
    let trip = trip(scene.run(9, broken));
    assert_eq!(trip.at.millis(), (1_800_000_000 + 103) * 1000);
    assert_eq!(
        trip.to_string(),
        "fast trip: failure rate 100 % against 0 % (limit +2 points) over 20 and 20 calls in 2 s"
    );
}

#[test]
fn where_both_ways_fail_it_does_not_trip_and_says_so() {
    let mut scene = Scene::new(Guard::default());
    scene.run(100, FINE);
    let down = Second {
        new: (10, 10, 0),
        old: (10, 10, 0),
    };
    for _ in 0..300 {
        let ruling = scene.add(&down.tally());
        assert_eq!(ruling, GuardDecision::Inconclusive(Inconclusive::BothFail));
    }
}

#[test]
fn a_trip_stays_until_a_person_begins_the_watch_anew() {
    let mut scene = Scene::new(Guard::default());
    scene.run(100, FINE);
    let broken = Second {
        new: (10, 10, 0),
        old: (10, 0, 0),
    };
    let first = scene.run(9, broken);
    assert_eq!(scene.run(500, FINE), first);
    assert_eq!(scene.add(&FINE.tally()), first);
    assert!(scene.watch.trip().is_some());
    scene.watch.rearm();
    assert_eq!(
        scene.observe(),
        GuardDecision::Inconclusive(Inconclusive::Young)
    );
    assert_eq!(
        scene.run(59, FINE),
        GuardDecision::Inconclusive(Inconclusive::Young)
    );
    assert_eq!(scene.run(1, FINE), GuardDecision::Content);
}

#[test]
fn a_dry_run_rules_the_same_and_says_would() {
    let dry = Guard {
        mode: Mode::DryRun,
        ..Guard::default()
    };
    let mut scene = Scene::new(dry);
    scene.run(100, FINE);
    let worse = Second {
        new: (10, 1, 0),
        old: (10, 0, 0),
    };
    let trip = trip(scene.run(300, worse));
    assert_eq!(trip.mode, Mode::DryRun);
    assert!(
        trip.to_string().starts_with("would trip: failure rate "),
        "{trip}"
    );
}

#[test]
fn refusals_have_a_separate_limit() {
    let mut scene = Scene::new(Guard::default());
    scene.run(100, FINE);
    let mapped_badly = Second {
        new: (10, 0, 3),
        old: (10, 0, 0),
    };
    let trip = trip(scene.run(300, mapped_badly));
    assert_eq!(trip.breach.limit(), Limit::Refusals);
    assert!(trip.to_string().starts_with("refused rate "), "{trip}");
}

#[test]
fn a_limit_that_is_off_never_trips() {
    let limits = Limits {
        failure_delta: None,
        ..Limits::default()
    };
    let mut scene = Scene::new(Guard {
        limits,
        ..Guard::default()
    });
    let broken = Second {
        new: (10, 10, 0),
        old: (10, 0, 0),
    };
    assert_eq!(scene.run(300, broken), GuardDecision::Content);
}

#[test]
fn without_the_old_way_its_last_windows_are_the_reference() {
    let mut scene = Scene::new(Guard::default());
    scene.run(700, FINE);
    let alone = Second {
        new: (20, 0, 0),
        old: (0, 0, 0),
    };
    assert_eq!(scene.run(5_000, alone), GuardDecision::Content);
    let worse = Second {
        new: (20, 2, 0),
        old: (0, 0, 0),
    };
    let trip = trip(scene.run(60, worse));
    assert_eq!(trip.against, Baseline::Earlier);
    let text = trip.to_string();
    assert!(
        text.contains(" calls in 60 s and ") && text.ends_with(" calls before"),
        "{text}"
    );
}

#[test]
fn without_a_reference_the_guard_is_inconclusive() {
    let mut scene = Scene::new(Guard::default());
    let alone = Second {
        new: (20, 10, 0),
        old: (0, 0, 0),
    };
    assert_eq!(
        scene.run(1000, alone),
        GuardDecision::Inconclusive(Inconclusive::NoOld)
    );
}

#[test]
fn a_burst_that_is_over_is_no_reason_to_go_back() {
    let mut scene = Scene::new(Guard::default());
    scene.run(100, FINE);
    let burst = Second {
        new: (10, 4, 0),
        old: (10, 0, 0),
    };
    scene.run(5, burst);
    assert_eq!(scene.run(600, FINE), GuardDecision::Content);
}

#[test]
fn slower_answers_trip_and_a_small_difference_does_not() {
    for (new, old, trips) in [(100, 40, true), (55, 40, false), (5, 1, false)] {
        let mut scene = Scene::new(Guard::default());
        let mut second = Tally::default();
        for call in 0..20 {
            let spread = Duration::from_micros(50 * call);
            second.count(
                Way::New,
                CallEnd::Served,
                Duration::from_millis(new) + spread,
            );
            second.count(
                Way::Old,
                CallEnd::Served,
                Duration::from_millis(old) + spread,
            );
        }
        let rulings = (0..300).map(|_| scene.add(&second)).collect::<Vec<_>>();
        let tripped = rulings
            .iter()
            .any(|ruling| matches!(ruling, GuardDecision::Trip(_)));
        assert_eq!(tripped, trips, "{new} ms against {old} ms");
    }
}

#[test]
fn one_mismatch_trips_where_none_is_allowed() {
    let limits = Limits {
        mismatch: Share::from_millionths(0),
        ..Limits::default()
    };
    let mut scene = Scene::new(Guard {
        limits,
        ..Guard::default()
    });
    let mut second = FINE.tally();
    second.count_match();
    (0..100).for_each(|_| {
        scene.add(&second);
    });
    assert_eq!(scene.add(&second), GuardDecision::Content);
    let mut other = second.clone();
    other.count_mismatch();
    scene.add(&other);
    (0..30).for_each(|_| {
        scene.add(&second);
    });
    let trip = scene.watch.trip().expect("it tripped");
    let text = trip.to_string();
    assert!(
        text.starts_with("mismatches ") && text.contains("(limit 0 %)"),
        "{text}"
    );
}

#[test]
fn a_counter_that_begins_anew_and_a_gap_are_survived() {
    let mut scene = Scene::new(Guard::default());
    scene.run(100, FINE);
    scene.sums = Second {
        new: (5, 5, 0),
        old: (5, 0, 0),
    }
    .tally();
    assert_eq!(scene.run(2, FINE), GuardDecision::Content);
    scene.now += 3600;
    scene.sums.add(
        &Second {
            new: (9000, 9000, 0),
            old: (9000, 0, 0),
        }
        .tally(),
    );
    assert_eq!(
        scene.observe(),
        GuardDecision::Inconclusive(Inconclusive::Young)
    );
    assert_eq!(scene.run(60, FINE), GuardDecision::Content);
}

#[test]
fn a_clock_that_steps_back_does_not_stop_the_guard() {
    let mut scene = Scene::new(Guard::default());
    scene.run(100, FINE);
    scene.now -= 7200;
    assert_eq!(scene.run(70, FINE), GuardDecision::Content);
    let worse = Second {
        new: (10, 2, 0),
        old: (10, 0, 0),
    };
    assert!(matches!(scene.run(120, worse), GuardDecision::Trip(_)));
}

#[test]
fn shares_are_printed_with_significant_digits() {
    let printed = |millionths| Share::from_millionths(millionths).unwrap().to_string();
    let cases = [
        (0, "0"),
        (1_000_000, "100"),
        (123_900, "12.4"),
        (20_000, "2"),
        (3_000, "0.3"),
        (1_234, "0.12"),
        (500, "0.05"),
        (1, "0.0001"),
    ];
    for (millionths, text) in cases {
        assert_eq!(printed(millionths), text);
    }
}
