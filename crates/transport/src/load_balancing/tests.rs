use proptest::prelude::*;

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn plan() -> AddressPlan {
    AddressPlan {
        ejection: EjectionPlan {
            failures: 3,
            pause: seconds(30),
            most_percent: 50,
        },
        breaker: None,
        budget: RetryBudgetPlan {
            percent: 20,
            least: 2,
        },
        check: Some(CheckPlan {
            path: "/health".into(),
            every: seconds(5),
            timeout: seconds(1),
            down_after: 2,
            up_after: 2,
        }),
    }
}

fn chosen(addresses: &mut Addresses, now: Duration) -> usize {
    match addresses.choose(now, None) {
        Choice::Address(index, _) => index,
        Choice::Unavailable { .. } => panic!("there is no breaker"),
    }
}

fn fails(addresses: &mut Addresses, index: usize, times: u32, now: Duration) -> Vec<HealthEvent> {
    let each =
        (0..times).flat_map(|_| addresses.record_end(index, CallRole::Usual, End::Failed, now));
    each.collect()
}

#[test]
fn equal_addresses_take_turns_and_the_least_busy_goes_first() {
    let mut three = Addresses::new(plan(), 3);
    let turns: Vec<usize> = (0..6).map(|_| chosen(&mut three, seconds(0))).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    three.acquire(0);
    three.acquire(1);
    assert_eq!(chosen(&mut three, seconds(0)), 2);
    three.release(1);
    assert_eq!(chosen(&mut three, seconds(0)), 1);
}

#[test]
fn an_address_that_fails_is_ejected_and_tried_again_after_its_pause() {
    let mut two = Addresses::new(plan(), 2);
    assert_eq!(fails(&mut two, 0, 2, seconds(0)), []);
    assert_eq!(
        two.record_end(0, CallRole::Usual, End::Answered, seconds(0)),
        []
    );
    assert_eq!(
        fails(&mut two, 0, 3, seconds(0)),
        [HealthEvent::Ejected(0, seconds(30))]
    );
    assert_eq!(two.avoided(seconds(0)), 1);
    assert!((0..5).all(|_| chosen(&mut two, seconds(29)) == 1));
    let turns = [chosen(&mut two, seconds(30)), chosen(&mut two, seconds(30))];
    assert!(turns.contains(&0));
    // One failure more is enough, and the pause is longer.
    assert_eq!(
        fails(&mut two, 0, 1, seconds(30)),
        [HealthEvent::Ejected(0, seconds(60))]
    );
    // The other one stays, for it would be more than half of them.
    assert_eq!(fails(&mut two, 1, 9, seconds(30)), []);
    assert_eq!(chosen(&mut two, seconds(31)), 1);
}

#[test]
fn an_only_address_is_never_ejected() {
    let mut one = Addresses::new(plan(), 1);
    assert_eq!(fails(&mut one, 0, 100, seconds(0)), []);
    assert_eq!(chosen(&mut one, seconds(0)), 0);
}

#[test]
fn a_second_try_goes_to_another_address_if_there_is_one() {
    let mut two = Addresses::new(plan(), 2);
    assert_eq!(
        two.choose(seconds(0), Some(0)),
        Choice::Address(1, CallRole::Usual)
    );
    assert_eq!(
        two.choose(seconds(0), Some(1)),
        Choice::Address(0, CallRole::Usual)
    );
    // Even an ejected address is preferred to the same one.
    fails(&mut two, 0, 3, seconds(0));
    assert_eq!(
        two.choose(seconds(0), Some(1)),
        Choice::Address(0, CallRole::Usual)
    );
    let mut one = Addresses::new(plan(), 1);
    assert_eq!(
        one.choose(seconds(0), Some(0)),
        Choice::Address(0, CallRole::Usual)
    );
}

#[test]
fn health_checks_take_an_address_out_and_bring_it_back() {
    let mut two = Addresses::new(plan(), 2);
    assert_eq!(two.record_check(0, HealthSignal::Unhealthy), None);
    assert_eq!(two.record_check(0, HealthSignal::Healthy), None);
    assert_eq!(two.record_check(0, HealthSignal::Unhealthy), None);
    assert_eq!(
        two.record_check(0, HealthSignal::Unhealthy),
        Some(HealthEvent::Unhealthy(0))
    );
    assert!((0..5).all(|_| chosen(&mut two, seconds(0)) == 1));
    assert_eq!(two.record_check(1, HealthSignal::Unhealthy), None);
    assert_eq!(
        two.record_check(1, HealthSignal::Unhealthy),
        Some(HealthEvent::Unhealthy(1))
    );
    assert!(two.all_unhealthy());
    // A wrong path of the checks takes nothing down.
    let turns = [chosen(&mut two, seconds(0)), chosen(&mut two, seconds(0))];
    assert_ne!(turns[0], turns[1]);
    assert_eq!(two.record_check(0, HealthSignal::Healthy), None);
    assert_eq!(
        two.record_check(0, HealthSignal::Healthy),
        Some(HealthEvent::Healthy(0))
    );
    assert!((0..5).all(|_| chosen(&mut two, seconds(0)) == 0));
}

fn with_breaker() -> Addresses {
    let breaker = Some(BreakerPlan {
        failures: 2,
        pause: seconds(10),
    });
    Addresses::new(AddressPlan { breaker, ..plan() }, 1)
}

#[test]
fn an_open_breaker_lets_one_call_through_after_its_pause() {
    let mut one = with_breaker();
    fails(&mut one, 0, 1, seconds(0));
    assert_eq!(
        fails(&mut one, 0, 1, seconds(0)),
        [HealthEvent::Opened(seconds(10))]
    );
    let unavailable = |again| Choice::Unavailable {
        retry_in: seconds(again),
    };
    assert_eq!(one.choose(seconds(4), None), unavailable(6));
    assert_eq!(
        one.choose(seconds(10), None),
        Choice::Address(0, CallRole::Trial)
    );
    assert_eq!(one.choose(seconds(10), None), unavailable(10));
    assert_eq!(
        one.record_end(0, CallRole::Trial, End::Failed, seconds(11)),
        [HealthEvent::Opened(seconds(20))]
    );
    assert_eq!(
        one.choose(seconds(31), None),
        Choice::Address(0, CallRole::Trial)
    );
    // A call that began before the breaker opened is not the trial.
    for end in [End::Abandoned, End::Failed] {
        assert_eq!(one.record_end(0, CallRole::Usual, end, seconds(31)), []);
        assert_eq!(one.choose(seconds(31), None), unavailable(10));
    }
    // The trial went away; the next call is one.
    assert_eq!(
        one.record_end(0, CallRole::Trial, End::Abandoned, seconds(31)),
        []
    );
    assert_eq!(
        one.choose(seconds(31), None),
        Choice::Address(0, CallRole::Trial)
    );
    assert_eq!(
        one.record_end(0, CallRole::Trial, End::Answered, seconds(32)),
        [HealthEvent::Closed]
    );
    assert_eq!(
        one.choose(seconds(32), None),
        Choice::Address(0, CallRole::Usual)
    );
    fails(&mut one, 0, 1, seconds(33));
    assert_eq!(
        fails(&mut one, 0, 1, seconds(33)),
        [HealthEvent::Opened(seconds(10))]
    );
}

#[test]
fn a_trial_that_does_not_end_blocks_calls_for_one_pause_at_most() {
    let mut one = with_breaker();
    fails(&mut one, 0, 2, seconds(0));
    let trial = Choice::Address(0, CallRole::Trial);
    assert_eq!(one.choose(seconds(10), None), trial);
    let unavailable = Choice::Unavailable {
        retry_in: seconds(1),
    };
    assert_eq!(one.choose(seconds(19), None), unavailable);
    assert_eq!(one.choose(seconds(20), None), trial);
    assert_eq!(one.choose(seconds(29), None), unavailable);
    // Either of them shows whether the upstream is back.
    assert_eq!(
        one.record_end(0, CallRole::Trial, End::Answered, seconds(29)),
        [HealthEvent::Closed]
    );
    assert_eq!(
        one.record_end(0, CallRole::Trial, End::Abandoned, seconds(29)),
        []
    );
    assert_eq!(
        one.choose(seconds(29), None),
        Choice::Address(0, CallRole::Usual)
    );
}

#[test]
fn retries_are_a_share_of_the_calls_and_a_few_more() {
    let mut one = Addresses::new(plan(), 1);
    let allowed = |one: &mut Addresses, now| {
        (0..100)
            .filter(|_| one.try_retry(now) == RetryDecision::Allowed)
            .count()
    };
    assert_eq!(allowed(&mut one, seconds(0)), 2);
    for _ in 0..50 {
        one.record_call();
    }
    assert_eq!(allowed(&mut one, seconds(1)), 10);
    assert_eq!(allowed(&mut one, seconds(9)), 0);
    assert_eq!(allowed(&mut one, seconds(10)), 2);
    // At most a hundred retries are saved.
    for _ in 0..10_000 {
        one.record_call();
    }
    assert_eq!(allowed(&mut one, seconds(11)), 100);
}

/// An event at an upstream.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Call(End),
    Check(usize, HealthSignal),
    Passes(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    let end = prop::sample::select(vec![
        End::Answered,
        End::Failed,
        End::Failed,
        End::Abandoned,
    ]);
    let signal = prop::sample::select(vec![HealthSignal::Healthy, HealthSignal::Unhealthy]);
    prop_oneof![
        8 => end.prop_map(Happens::Call),
        2 => (0..4_usize, signal).prop_map(|(index, signal)| Happens::Check(index, signal)),
        1 => (0..40_u64).prop_map(Happens::Passes),
    ]
}

/// The duration of a call.
#[derive(Debug, Clone, Copy)]
enum Lasts {
    /// It ends at once, and so does one of those before it.
    Ends(End, usize),
    /// It stays.
    Stays,
}

fn lasts() -> impl Strategy<Value = Lasts> {
    let end = prop::sample::select(vec![
        End::Answered,
        End::Failed,
        End::Failed,
        End::Abandoned,
    ]);
    prop_oneof![
        (end, any::<usize>()).prop_map(|(end, at)| Lasts::Ends(end, at)),
        Just(Lasts::Stays),
    ]
}

proptest! {
    /// A call always has an address unless the breaker is open, at most half are ejected for failures, and an only
    /// address is tried again.
    #[test]
    fn a_call_always_finds_its_way(count in 1..5_usize, story in prop::collection::vec(happens(), 0..200)) {
        let breaker = Some(BreakerPlan { failures: 5, pause: seconds(10) });
        let mut addresses = Addresses::new(AddressPlan { breaker, check: plan().check, ..plan() }, count);
        let mut now = seconds(0);
        let mut trials = 0;
        for step in story {
            match step {
                Happens::Passes(more) => now += seconds(more),
                Happens::Check(index, signal) => drop(addresses.record_check(index, signal)),
                Happens::Call(end) => match addresses.choose(now, None) {
                    Choice::Unavailable { retry_in } => {
                        prop_assert!(retry_in <= seconds(80));
                        trials += 1;
                    }
                    Choice::Address(index, role) => {
                        prop_assert!(index < count);
                        addresses.acquire(index);
                        addresses.record_end(index, role, end, now);
                        addresses.release(index);
                    }
                },
            }
            let ejected = addresses.all.iter().filter(|address| address.until.is_some()).count();
            prop_assert!(ejected * 2 <= count, "{ejected} of {count}");
            prop_assert!(addresses.all.iter().all(|address| address.busy == 0));
        }
        now += seconds(1000);
        let asked = addresses.choose(now, None);
        prop_assert!(matches!(asked, Choice::Address(..)), "after {trials} refusals");
    }

    /// Calls without an end never block others: a refused call is admitted when it is repeated in time, with one trial
    /// in each pause or for each call that has ended.
    #[test]
    fn no_call_without_an_end_keeps_a_breaker_open(story in prop::collection::vec((0..12_u64, lasts()), 0..200)) {
        let mut one = with_breaker();
        let (mut now, mut open, mut ended, mut trials) = (seconds(0), Vec::new(), 0_u32, 0_u32);
        for (passes, lasts) in story {
            now += seconds(passes);
            match (lasts, one.choose(now, None)) {
                (Lasts::Ends(end, _), Choice::Address(index, role)) => {
                    trials += u32::from(role == CallRole::Trial);
                    one.record_end(index, role, end, now);
                    ended += 1;
                }
                (Lasts::Stays, Choice::Address(index, role)) => {
                    trials += u32::from(role == CallRole::Trial);
                    open.push((index, role));
                }
                (_, Choice::Unavailable { retry_in }) => {
                    prop_assert!(retry_in <= seconds(80));
                    now += retry_in;
                    let again = one.choose(now, None);
                    prop_assert!(matches!(again, Choice::Address(_, CallRole::Trial)), "{again:?}");
                    trials += 1;
                    open.push((0, CallRole::Trial));
                }
            }
            if let Lasts::Ends(end, at) = lasts && !open.is_empty() {
                let (index, role) = open.swap_remove(at % open.len());
                one.record_end(index, role, end, now);
                ended += 1;
            }
            let pauses = u32::try_from(now.as_secs() / 10).unwrap();
            prop_assert!(trials <= pauses + ended, "{trials} in {pauses} pauses, {ended} ended");
        }
    }

    /// Retries never exceed their share of the calls plus the minimum for each ten seconds.
    #[test]
    fn retries_stay_within_their_budget(steps in prop::collection::vec((0..3_u64, any::<bool>()), 0..300)) {
        let mut one = Addresses::new(plan(), 1);
        let (mut now, mut calls, mut retries) = (0, 0_u64, 0_u64);
        for (passes, repeat) in steps {
            now += passes;
            one.record_call();
            calls += 1;
            if repeat && one.try_retry(seconds(now)) == RetryDecision::Allowed {
                retries += 1;
            }
        }
        let spans = now / 10 + 1;
        prop_assert!(retries <= calls * 20 / 100 + 2 * spans, "{retries} of {calls} in {now} s");
    }
}
