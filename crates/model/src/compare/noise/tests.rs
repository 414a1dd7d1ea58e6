use proptest::prelude::*;

use super::*;
use crate::compare::{Kind, RedactedValue};

fn found(fields: &[&str]) -> Comparison {
    let difference = |field: &&str| Difference {
        pointer: (*field).to_owned(),
        field: (*field).to_owned(),
        kind: Kind::Value,
        control: RedactedValue::restore("1"),
        candidate: RedactedValue::restore("2"),
        times: 1,
    };
    Comparison {
        differences: fields.iter().map(difference).collect(),
        ..Comparison::default()
    }
}

fn known(raw: (u64, u64), noise: (u64, u64)) -> Noise {
    let compared = NoiseCounts {
        raw: raw.1,
        noise: noise.1,
    };
    let counts = NoiseCounts {
        raw: raw.0,
        noise: noise.0,
    };
    Noise::restore(compared, [("/body/a".to_owned(), counts)])
}

fn is_volatile(raw: (u64, u64), noise: (u64, u64)) -> bool {
    known(raw, noise).is_volatile("/body/a")
}

#[test]
fn a_field_that_never_differed_by_itself_always_counts() {
    assert!(!is_volatile((1, 1), (0, 0)));
    assert!(!is_volatile((1, 10_000), (0, 10_000)));
    assert!(!Noise::default().is_volatile("/body/a"));
}

#[test]
fn a_time_stamp_is_noise_after_one_repeat() {
    let mut noise = Noise::default();
    let differs = found(&["/body/at"]);
    assert_eq!(noise.judge(&differs).verdict, Verdict::Mismatch);
    noise.feed_raw(&differs);
    noise.feed_noise(&differs);
    let judged = noise.judge(&differs);
    assert_eq!((judged.verdict, judged.noisy), (Verdict::Match, 1));
    let both = found(&["/body/at", "/body/name"]);
    let judged = noise.judge(&both);
    assert_eq!((judged.verdict, judged.noisy), (Verdict::Mismatch, 1));
    assert_eq!(judged.counted[0].field, "/body/name");
    assert_eq!(noise.judge(&found(&[])).noisy, 0);
}

#[test]
fn differences_that_were_not_stored_are_never_noise() {
    let mut noise = Noise::default();
    let mut differs = found(&["/body/at"]);
    noise.feed_noise(&differs);
    differs.more = 1;
    assert_eq!(noise.judge(&differs).verdict, Verdict::Mismatch);
}

#[test]
fn a_frequent_regression_is_found_despite_noise() {
    assert!(is_volatile((1, 1), (1, 20)), "one proves little");
    assert!(!is_volatile((500, 500), (1, 20)));
    assert!(!is_volatile((100, 10_000), (1, 10_000)));
    assert!(
        is_volatile((110, 1_000), (100, 1_000)),
        "not by a fifth of both"
    );
    assert!(
        is_volatile((9, 100_000), (1, 100_000)),
        "less than 0.03 % of all"
    );
    assert!(is_volatile((0, 1_000), (5, 10)));
}

#[test]
fn old_counts_weigh_less_and_are_not_forgotten() {
    let mut noise = known((5, MEMORY - 1), (1, 100));
    noise.feed_raw(&found(&[]));
    noise.feed_raw(&found(&["/body/a"]));
    assert_eq!(noise.compared().raw, MEMORY / 2 + 1);
    assert_eq!(
        noise.fields().next().unwrap().1,
        NoiseCounts { raw: 4, noise: 1 }
    );
}

#[test]
fn a_field_that_differs_in_two_ways_is_counted_once() {
    let mut noise = Noise::default();
    noise.feed_raw(&found(&["/body/a", "/body/a"]));
    assert_eq!(noise.fields().next().unwrap().1.raw, 1);
}

#[test]
fn a_full_table_keeps_known_noise() {
    let mut noise = Noise::default();
    for index in 0..FIELDS + 10 {
        noise.feed_raw(&found(&[&format!("/body/{index}")]));
    }
    assert_eq!((noise.fields().count(), noise.more()), (FIELDS, 10));
    noise.feed_noise(&found(&["/body/at"]));
    assert_eq!(noise.fields().count(), FIELDS);
    assert!(noise.is_volatile("/body/at"));
}

/// A deterministic source of numbers.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Returns the number of seeds for which a field is volatile after some comparisons, with one control in `every`
/// compared twice.
fn volatile_of_a_hundred(raw_percent: u64, noise_percent: u64, calls: u64, every: u64) -> usize {
    let (differs, same) = (found(&["/body/a"]), found(&[]));
    let runs = (1..=100_u64).filter(|seed| {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut noise = Noise::default();
        let mut look = |percent| {
            if next(&mut state) % 100 < percent {
                &differs
            } else {
                &same
            }
        };
        for call in 0..calls {
            noise.feed_raw(look(raw_percent));
            if call % every == 0 {
                noise.feed_noise(look(noise_percent));
            }
        }
        noise.is_volatile("/body/a")
    });
    runs.count()
}

#[test]
fn noise_and_regressions_are_distinguished_in_simulated_traffic() {
    for share in [5, 50, 100] {
        let right = volatile_of_a_hundred(share, share, 2_000, 10);
        assert!(right >= 97, "{share} %: {right}");
    }
    assert_eq!(
        volatile_of_a_hundred(10, 0, 500, 10),
        0,
        "a stable field that regresses"
    );
    let hidden = volatile_of_a_hundred(40, 5, 2_000, 10);
    assert!(hidden <= 3, "{hidden}");
}

proptest! {
    #[test]
    fn a_field_that_differs_as_often_by_itself_is_noise(noise in 1_u64..1000, of in 1_u64..1000, less in 0_u64..1000) {
        let of = of.max(noise);
        prop_assert!(is_volatile((noise.saturating_sub(less), of), (noise, of)));
    }

    #[test]
    fn workers_add_up(feeds in prop::collection::vec((any::<bool>(), 0_usize..4, 0_usize..3), 0..40)) {
        let fields = ["/body/a", "/body/b", "/body/c", "/status"];
        let mut alone = Noise::default();
        let mut workers = [Noise::default(), Noise::default(), Noise::default()];
        for (raw, field, worker) in feeds {
            let found = found(&[fields[field]]);
            for noise in [&mut alone, &mut workers[worker]] {
                if raw { noise.feed_raw(&found) } else { noise.feed_noise(&found) }
            }
        }
        let mut there = Noise::default();
        let mut back = Noise::default();
        workers.iter().for_each(|worker| there.merge(worker));
        workers.iter().rev().for_each(|worker| back.merge(worker));
        prop_assert_eq!(&there, &alone);
        prop_assert_eq!(&back, &alone);
        let kept = alone.fields().map(|(field, counts)| (field.to_owned(), counts)).collect::<Vec<_>>();
        prop_assert_eq!(Noise::restore(alone.compared(), kept), alone);
    }

    #[test]
    fn no_counts_are_too_odd(raw in any::<(u64, u64)>(), noise in any::<(u64, u64)>()) {
        prop_assert_eq!(is_volatile(raw, (0, noise.1)), false);
        let _ = is_volatile(raw, noise);
    }
}
