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
fn a_difference_is_looked_at_a_few_times_and_then_no_more() {
    let (mut looked, noise) = (ControlRepeats::default(), Noise::default());
    let real = field("/ok");
    for _ in 0..ENOUGH {
        let judged = noise.judge(&real);
        assert!(looked.asks_for_one(&noise, &judged));
        assert_eq!(
            looked.footing(&noise, &judged, RepeatLook::None),
            Confidence::Unsure
        );
        looked.take(&noise, &real);
        assert_eq!(
            looked.footing(&noise, &judged, RepeatLook::Taken),
            Confidence::Sure
        );
    }
    let judged = noise.judge(&real);
    assert!(!looked.asks_for_one(&noise, &judged));
    assert_eq!(
        looked.footing(&noise, &judged, RepeatLook::None),
        Confidence::Sure
    );
    let other = field("/other");
    assert!(looked.asks_for_one(&noise, &noise.judge(&other)));
}

#[test]
fn what_is_known_as_noise_asks_for_no_look() {
    let (mut looked, mut noise) = (ControlRepeats::default(), Noise::default());
    let stamp = field("/at");
    assert!(looked.asks_for_one(&noise, &noise.judge(&stamp)));
    noise.feed_noise(&stamp);
    looked.take(&noise, &stamp);
    let judged = noise.judge(&stamp);
    assert_eq!(judged.verdict, Verdict::Match);
    assert!(!looked.asks_for_one(&noise, &judged));
    assert_eq!(looked, ControlRepeats::default(), "it takes no room either");
}

#[test]
fn differences_that_were_not_kept_are_nothing_to_build_on() {
    let (looked, noise) = (ControlRepeats::default(), Noise::default());
    let many = Comparison {
        more: 7,
        ..Comparison::default()
    };
    let judged = noise.judge(&many);
    assert_eq!(judged.verdict, Verdict::Mismatch);
    assert_eq!(
        looked.footing(&noise, &judged, RepeatLook::Taken),
        Confidence::Unsure
    );
    assert!(!looked.asks_for_one(&noise, &judged));
}

#[test]
fn what_is_kept_is_bounded_and_what_has_no_room_is_not_looked_at_for_ever() {
    let (mut looked, noise) = (ControlRepeats::default(), Noise::default());
    for turn in 0..1_000 {
        looked.take(&noise, &field(&format!("/{turn}")));
    }
    assert_eq!(looked.fields.len(), FIELDS);
    let late = field("/999");
    assert!(!looked.asks_for_one(&noise, &noise.judge(&late)));
}
