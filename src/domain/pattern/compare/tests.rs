
use proptest::prelude::*;

use super::*;
use crate::domain::pattern::arbitrary::{Dice, dice, near, pattern, plain_pattern, texts, value, words};
use crate::domain::pattern::Words;

const WORLDS: [World; 2] = [World::Open, World::Closed];

fn fits_words(words: &Words, given: &[String]) -> bool {
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let holes = words.slots().len() + 8;
    let mut reading = Reading::of(holes, Strangers::Refused, 64);
    words.read(&given, &mut reading).is_ok()
}

fn laws_of_two(one: &Pattern, other: &Pattern, dice: &mut Dice) -> Result<(), TestCaseError> {
    for world in WORLDS {
        let inside = within(one, other, world);
        let met = meeting(one, other, world);
        if let Some(met) = &met {
            prop_assert!(reads(one, met, world), "{met:?} is not read by the first");
            prop_assert!(reads(other, met, world), "{met:?} is not read by the second");
        }
        for from in [one, one, other] {
            let value = value(from, dice);
            let (first, second) = (reads(one, &value, world), reads(other, &value, world));
            prop_assert!(!(inside && first && !second), "within, but {world:?} {value:?} fits the first only");
            prop_assert!(!(first && second && met.is_none()), "{world:?} {value:?} fits both, and nothing was found");
        }
        if inside && reads(one, &sample(one), world) {
            prop_assert!(met.is_some(), "within, and they do not meet");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(512)
    ))]

    #[test]
    fn every_pattern_is_within_itself(mut dice in dice()) {
        let one = pattern(&mut dice);
        for world in WORLDS {
            prop_assert!(within(&one, &one, world), "{one:#?}");
        }
    }

    #[test]
    fn within_carries_over(mut dice in dice()) {
        let one = plain_pattern(&mut dice);
        let other = near(&one, &mut dice);
        let third = near(&other, &mut dice);
        for world in WORLDS {
            if within(&one, &other, world) && within(&other, &third, world) {
                prop_assert!(within(&one, &third, world), "{world:?} {one:#?}\n{other:#?}\n{third:#?}");
            }
        }
    }

    #[test]
    fn what_fits_two_patterns_is_found_and_what_is_within_fits(mut dice in dice()) {
        let one = pattern(&mut dice);
        let other = near(&one, &mut dice);
        laws_of_two(&one, &other, &mut dice)?;
        laws_of_two(&other, &one, &mut dice)?;
        let third = pattern(&mut dice);
        laws_of_two(&one, &third, &mut dice)?;
    }

    #[test]
    fn a_sample_fits(mut dice in dice()) {
        let one = pattern(&mut dice);
        let value = value(&one, &mut dice);
        if reads(&one, &value, World::Closed) {
            prop_assert!(reads(&one, &sample(&one), World::Closed), "{one:#?} {:?}", sample(&one));
        }
    }

    #[test]
    fn the_laws_hold_for_words(mut dice in dice()) {
        let (one, other, third) = (words(&mut dice), words(&mut dice), words(&mut dice));
        prop_assert!(words_within(&one, &one), "{one:?}");
        let inside = words_within(&one, &other);
        prop_assert!(!(inside && words_within(&other, &third)) || words_within(&one, &third));
        let met = words_meeting(&one, &other);
        if let Some(met) = &met {
            prop_assert!(fits_words(&one, met) && fits_words(&other, met), "{met:?}");
        }
        for from in [&one, &one, &other] {
            let given = texts(from, &mut dice);
            let (first, second) = (fits_words(&one, &given), fits_words(&other, &given));
            prop_assert!(!(inside && first && !second), "{one:?} is not within {other:?}: {given:?}");
            prop_assert!(!(first && second && met.is_none()), "{one:?} and {other:?} share {given:?}");
        }
    }
}
