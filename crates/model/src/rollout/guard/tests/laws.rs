//! What holds for any traffic.

use proptest::prelude::*;

use super::*;

fn way() -> impl Strategy<Value = (u64, u64, u64)> {
    (0u64..30, 0u64..30, 0u64..30).prop_map(|(calls, failed, refused)| {
        let failed = failed.min(calls);
        (calls, failed, refused.min(calls - failed))
    })
}

/// Some seconds that are alike, then others.
fn traffic() -> impl Strategy<Value = Vec<(u64, Second)>> {
    let second = (way(), way()).prop_map(|(new, old)| Second { new, old });
    prop::collection::vec((1u64..60, second), 1..8)
}

fn seconds(traffic: &[(u64, Second)]) -> impl Iterator<Item = Second> {
    traffic
        .iter()
        .flat_map(|(times, second)| (0..*times).map(|_| *second))
}

fn small() -> Guard {
    Guard {
        window: Duration::from_secs(20),
        min_calls: 20,
        ..Guard::default()
    }
}

/// The first second at which it trips.
fn trips_at(scene: &mut Scene, seconds: impl Iterator<Item = Tally>) -> Option<usize> {
    let mut rulings = seconds.map(|tally| scene.add(&tally));
    rulings.position(|ruling| matches!(ruling, GuardDecision::Trip(_)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn it_does_not_matter_which_worker_counted(traffic in traffic(), share in 0u64..=4) {
        let mut together = Scene::new(small());
        let mut apart = Scene::new(small());
        let (mut one, mut other) = (Tally::default(), Tally::default());
        for second in seconds(&traffic) {
            let part = |(calls, failed, refused): (u64, u64, u64)| {
                let served = (calls - failed - refused) * share / 4;
                let (failed, refused) = (failed * share / 4, refused * share / 4);
                (served + failed + refused, failed, refused)
            };
            let all = second.tally();
            let first = Second { new: part(second.new), old: part(second.old) }.tally();
            one.add(&first);
            other.add(&all.since(&first));
            let decision = together.add(&all);
            apart.sums = one.clone();
            apart.sums.add(&other);
            apart.now += 1;
            prop_assert_eq!(decision, apart.observe());
        }
        prop_assert_eq!(together.watch, apart.watch);
    }

    #[test]
    fn failures_of_the_old_way_cause_no_trip(traffic in traffic(), more in prop::collection::vec(0u64..10, 8)) {
        let mut before = Scene::new(small());
        let first = trips_at(&mut before, seconds(&traffic).map(Second::tally));
        // The same calls and the same times; only their fate is another one.
        let worse = traffic.iter().zip(&more).flat_map(|((times, second), more)| {
            let (calls, failed, refused) = second.old;
            let mut tally = second.tally();
            tally.old.failed = (failed + more).min(calls - refused);
            (0..*times).map(move |_| tally.clone())
        });
        let mut after = Scene::new(small());
        let second = trips_at(&mut after, worse);
        prop_assert!(first.is_some() || second.is_none());
        if let (Some(first), Some(second)) = (first, second) {
            prop_assert!(second >= first);
        }
    }

    #[test]
    fn a_restart_forgets_nothing(traffic in traffic()) {
        let mut stored = Scene::new(small());
        let mut restarted = Scene::new(small());
        for (number, second) in seconds(&traffic).enumerate() {
            let decision = stored.add(&second.tally());
            if number % 10 == 3 {
                let text = serde_json::to_string(&restarted.watch).unwrap();
                restarted.watch = serde_json::from_str(&text).unwrap();
            }
            prop_assert_eq!(decision, restarted.add(&second.tally()));
        }
    }

    #[test]
    fn nothing_makes_it_panic(
        window in 0u64..100_000,
        least in any::<u64>(),
        observations in prop::collection::vec((any::<u64>(), prop::array::uniform8(any::<u64>())), 0..60),
        step in prop_oneof![Just(1u64), Just(1 << 40), Just(1 << 60)],
    ) {
        let guard = Guard { window: Duration::from_millis(window), min_calls: least, ..Guard::default() };
        let mut watch = GuardState::new();
        let mut sums = Tally::default();
        for (number, (at, counts)) in (0u64..).zip(observations) {
            let [calls, failed, refused, old, old_failed, old_refused, compared, mismatched] = counts;
            let more = Tally {
                new: WayTally { calls: calls % step, failed: failed % step, refused: refused % step, ..WayTally::default() },
                old: WayTally { calls: old, failed: old_failed, refused: old_refused, ..WayTally::default() },
                compared,
                mismatched,
            };
            // Sometimes a sum, sometimes whatever comes.
            if number % 3 == 0 { sums = more } else { sums.add(&more) }
            let at = if number % 2 == 0 { at } else { number.saturating_mul(1000) };
            watch.observe(&guard, UnixMillis::from_millis(at), &sums);
        }
        serde_json::from_str::<GuardState>(&serde_json::to_string(&watch).unwrap()).unwrap();
    }
}
