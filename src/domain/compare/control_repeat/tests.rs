//! When a difference is looked at, and what may be built on it.

use super::*;
use crate::domain::compare::{Difference, Kind, RedactedValue, Verdict};

fn found(fields: &[String]) -> Comparison {
    let difference = |field: &String| Difference {
        pointer: field.clone(),
        field: field.clone(),
        kind: Kind::Value,
        control: RedactedValue::kept("1"),
        candidate: RedactedValue::kept("1"),
        times: 1,
    };
    Comparison {
        differences: fields.iter().map(difference).collect(),
        ..Comparison::default()
    }
}

fn field(name: &str) -> Comparison {
    found(&[name.to_owned()])
}

#[test]
fn a_difference_is_repeated_a_few_times_only() {
    let (mut repeats, noise) = (ControlRepeats::default(), Noise::default());
    let real = field("/ok");
    for _ in 0..ENOUGH {
        let judged = noise.judge(&real);
        assert!(repeats.asks_for_one(&noise, &judged));
        assert_eq!(
            repeats.footing(&noise, &judged, RepeatLook::None),
            Confidence::Unsure
        );
        repeats.take(&noise, &real);
        assert_eq!(
            repeats.footing(&noise, &judged, RepeatLook::Taken),
            Confidence::Sure
        );
    }
    let judged = noise.judge(&real);
    assert!(!repeats.asks_for_one(&noise, &judged));
    assert_eq!(
        repeats.footing(&noise, &judged, RepeatLook::None),
        Confidence::Sure
    );
    let other = field("/other");
    assert!(repeats.asks_for_one(&noise, &noise.judge(&other)));
}

#[test]
fn known_noise_needs_no_repeat() {
    let (mut repeats, mut noise) = (ControlRepeats::default(), Noise::default());
    let stamp = field("/at");
    assert!(repeats.asks_for_one(&noise, &noise.judge(&stamp)));
    noise.feed_noise(&stamp);
    repeats.take(&noise, &stamp);
    let judged = noise.judge(&stamp);
    assert_eq!(judged.verdict, Verdict::Match);
    assert!(!repeats.asks_for_one(&noise, &judged));
    assert_eq!(repeats, ControlRepeats::default(), "it takes no room either");
}

#[test]
fn differences_that_were_not_stored_give_no_confidence() {
    let (repeats, noise) = (ControlRepeats::default(), Noise::default());
    let many = Comparison {
        more: 7,
        ..Comparison::default()
    };
    let judged = noise.judge(&many);
    assert_eq!(judged.verdict, Verdict::Mismatch);
    assert_eq!(
        repeats.footing(&noise, &judged, RepeatLook::Taken),
        Confidence::Unsure
    );
    assert!(!repeats.asks_for_one(&noise, &judged));
}

#[test]
fn stored_fields_are_bounded_and_others_are_not_repeated_forever() {
    let (mut repeats, noise) = (ControlRepeats::default(), Noise::default());
    for turn in 0..1_000 {
        repeats.take(&noise, &field(&format!("/{turn}")));
    }
    assert_eq!(repeats.fields.len(), FIELDS);
    let late = field("/999");
    assert!(!repeats.asks_for_one(&noise, &noise.judge(&late)));
}
