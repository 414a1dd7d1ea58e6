use super::*;
use crate::rollout::{Baseline, Breach, Inconclusive, Share, Trigger, Trip};

const EVERY: Duration = Duration::from_secs(600);
const CONTENT: GuardDecision = GuardDecision::Content;
const UNCLEAR: GuardDecision = GuardDecision::Inconclusive(Inconclusive::Young);

fn percent(whole: u32) -> Percent {
    Percent::from_thousandths(whole * 1000).unwrap()
}

fn ramp(steps: &[u32]) -> Ramp {
    Ramp::new(steps.iter().copied().map(percent).collect(), EVERY).unwrap()
}

fn trip(mode: Mode) -> GuardDecision {
    let share = Share::ALL;
    GuardDecision::Trip(Trip {
        at: UnixMillis::default(),
        breach: Breach::Mismatches {
            share,
            limit: share,
        },
        pace: Trigger::Slow,
        new_calls: 1,
        old_calls: 1,
        span: EVERY,
        against: Baseline::SameTime,
        mode,
    })
}

fn at(seconds: u64) -> UnixMillis {
    UnixMillis::from_millis(seconds * 1000)
}

/// Looks each second; gives the seconds that it took to leave the step.
fn leaves(ramp: &Ramp, mut state: RampState, ruling: impl Fn(u64) -> GuardDecision) -> Option<u64> {
    let from = state.since.millis() / 1000;
    for second in 1..10_000 {
        match ramp.advance(&state, at(from + second), &ruling(second)) {
            RampStep::Stay(next) => state = next,
            RampStep::Advance(next) => {
                assert_eq!(next, RampState::begin(state.step + 1, at(from + second)));
                return Some(second);
            }
            RampStep::Finished | RampStep::Ended => return None,
        }
    }
    None
}

#[test]
fn a_step_takes_as_long_as_the_guard_must_be_content() {
    let ramp = ramp(&[1, 5, 100]);
    let begin = RampState::begin(0, at(1_000));
    assert_eq!(leaves(&ramp, begin, |_| CONTENT), Some(600));
    assert_eq!(ramp.percent(0), percent(1));
    assert_eq!(ramp.percent(7), Percent::ALL);
}

#[test]
fn an_inconclusive_guard_pauses_the_clock_without_resetting_it() {
    let ramp = ramp(&[1, 5]);
    let begin = RampState::begin(0, at(0));
    let half = |second: u64| {
        if second.is_multiple_of(2) {
            CONTENT
        } else {
            UNCLEAR
        }
    };
    assert_eq!(leaves(&ramp, begin, half), Some(1200));
    assert_eq!(leaves(&ramp, begin, |_| UNCLEAR), None);
}

#[test]
fn a_trip_ends_the_ramp_and_a_dry_run_trip_pauses_it() {
    let ramp = ramp(&[1, 5]);
    let state = RampState::begin(0, at(0));
    assert_eq!(
        ramp.advance(&state, at(9_999), &trip(Mode::Act)),
        RampStep::Ended
    );
    let held = ramp.advance(&state, at(9_999), &trip(Mode::DryRun));
    let seen = at(9_999);
    assert_eq!(held, RampStep::Stay(RampState { seen, ..state }));
}

#[test]
fn the_last_step_is_the_end() {
    let ramp = ramp(&[50, 100]);
    let last = RampState::begin(1, at(0));
    assert_eq!(ramp.advance(&last, at(1), &UNCLEAR), RampStep::Finished);
    let beyond = RampState::begin(usize::MAX - 1, at(0));
    assert_eq!(ramp.advance(&beyond, at(1), &CONTENT), RampStep::Finished);
}

#[test]
fn unobserved_time_does_not_count() {
    let ramp = ramp(&[1, 5]);
    let state = RampState::begin(0, at(100_000));
    for moment in [at(200_000), at(0), UnixMillis::from_millis(u64::MAX)] {
        let RampStep::Stay(next) = ramp.advance(&state, moment, &CONTENT) else {
            panic!("it stays");
        };
        assert!(next.healthy <= BELIEVED);
    }
}

#[test]
fn a_ramp_that_does_not_rise_or_is_not_guarded_is_refused() {
    let fault = |steps: &[u32]| {
        let steps = steps.iter().copied().map(percent).collect();
        Ramp::new(steps, EVERY).unwrap_err().to_string()
    };
    assert_eq!(fault(&[]), "a ramp has at least one step");
    let falls = "does not rise above";
    assert!(fault(&[0, 5]).starts_with(&format!("the step 0 {falls} 0")));
    assert!(fault(&[1, 5, 5]).starts_with(&format!("the step 5 {falls} 5")));
    assert!(fault(&[1, 50, 25]).starts_with(&format!("the step 25 {falls} 50")));
    let ramp = ramp(&[1, 100]);
    assert_eq!(ramp.guarded(None), Err(RampFault::NoGuard));
    assert_eq!(ramp.guarded(Some(&Guard::default())), Ok(()));
    let window = Duration::from_secs(601);
    let slow = Guard {
        window,
        ..Guard::default()
    };
    let every = EVERY;
    assert_eq!(
        ramp.guarded(Some(&slow)),
        Err(RampFault::Hasty { every, window })
    );
}
