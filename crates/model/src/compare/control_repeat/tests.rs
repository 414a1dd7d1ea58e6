//! When the control is repeated for a difference, and the confidence that follows.

use super::*;
use crate::compare::{Difference, Kind, RedactedValue, Verdict};

fn found(fields: &[String]) -> Comparison {
    let difference = |field: &String| Difference {
        pointer: field.clone(),
        field: field.clone(),
        kind: Kind::Value,
        control: RedactedValue::restore("1"),
        candidate: RedactedValue::restore("1"),
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
        assert!(repeats.needs_repeat(&noise, &judged));
        assert_eq!(
            repeats.confidence(&noise, &judged, RepeatOutcome::NotRepeated),
            Confidence::Unsure
        );
        repeats.take(&noise, &real);
        assert_eq!(
            repeats.confidence(&noise, &judged, RepeatOutcome::Repeated),
            Confidence::Sure
        );
    }
    let judged = noise.judge(&real);
    assert!(!repeats.needs_repeat(&noise, &judged));
    assert_eq!(
        repeats.confidence(&noise, &judged, RepeatOutcome::NotRepeated),
        Confidence::Sure
    );
    let other = field("/other");
    assert!(repeats.needs_repeat(&noise, &noise.judge(&other)));
}

#[test]
fn known_noise_needs_no_repeat() {
    let (mut repeats, mut noise) = (ControlRepeats::default(), Noise::default());
    let stamp = field("/at");
    assert!(repeats.needs_repeat(&noise, &noise.judge(&stamp)));
    noise.feed_noise(&stamp);
    repeats.take(&noise, &stamp);
    let judged = noise.judge(&stamp);
    assert_eq!(judged.verdict, Verdict::Match);
    assert!(!repeats.needs_repeat(&noise, &judged));
    assert_eq!(
        repeats,
        ControlRepeats::default(),
        "it takes no room either"
    );
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
        repeats.confidence(&noise, &judged, RepeatOutcome::Repeated),
        Confidence::Unsure
    );
    assert!(!repeats.needs_repeat(&noise, &judged));
}

#[test]
fn stored_fields_are_bounded_and_others_are_not_repeated_forever() {
    let (mut repeats, noise) = (ControlRepeats::default(), Noise::default());
    for turn in 0..1_000 {
        repeats.take(&noise, &field(&format!("/{turn}")));
    }
    assert_eq!(repeats.fields.len(), FIELDS);
    let late = field("/999");
    assert!(!repeats.needs_repeat(&noise, &noise.judge(&late)));
}
