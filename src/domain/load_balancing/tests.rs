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
        Choice::Address(place, _) => place,
        Choice::Nowhere { .. } => panic!("there is no breaker"),
    }
}

fn fails(addresses: &mut Addresses, place: usize, times: u32, now: Duration) -> Vec<News> {
    let each = (0..times).flat_map(|_| addresses.ended((place, Part::Usual), End::Failed, now));
    each.collect()
}

#[test]
fn equals_take_turns_and_the_less_busy_goes_first() {
    let mut three = Addresses::new(plan(), 3);
    let turns: Vec<usize> = (0..6).map(|_| chosen(&mut three, seconds(0))).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    three.begun(0);
    three.begun(1);
    assert_eq!(chosen(&mut three, seconds(0)), 2);
    three.over(1);
    assert_eq!(chosen(&mut three, seconds(0)), 1);
}

#[test]
fn an_address_that_fails_is_left_out_and_asked_again_after_its_pause() {
    let mut two = Addresses::new(plan(), 2);
    assert_eq!(fails(&mut two, 0, 2, seconds(0)), []);
    assert_eq!(two.ended((0, Part::Usual), End::Answered, seconds(0)), []);
    assert_eq!(
        fails(&mut two, 0, 3, seconds(0)),
        [News::Ejected(0, seconds(30))]
    );
    assert_eq!(two.left_out(seconds(0)), 1);
    assert!((0..5).all(|_| chosen(&mut two, seconds(29)) == 1));
    let turns = [chosen(&mut two, seconds(30)), chosen(&mut two, seconds(30))];
    assert!(turns.contains(&0));
    // One failure more is enough, and the pause is longer.
    assert_eq!(
        fails(&mut two, 0, 1, seconds(30)),
        [News::Ejected(0, seconds(60))]
    );
    // The other one stays, for it would be more than half of them.
    assert_eq!(fails(&mut two, 1, 9, seconds(30)), []);
    assert_eq!(chosen(&mut two, seconds(31)), 1);
}

#[test]
fn an_only_address_is_never_left_out() {
    let mut one = Addresses::new(plan(), 1);
    assert_eq!(fails(&mut one, 0, 100, seconds(0)), []);
    assert_eq!(chosen(&mut one, seconds(0)), 0);
}

#[test]
fn a_second_try_goes_to_another_address_if_there_is_one() {
    let mut two = Addresses::new(plan(), 2);
    assert_eq!(
        two.choose(seconds(0), Some(0)),
        Choice::Address(1, Part::Usual)
    );
    assert_eq!(
        two.choose(seconds(0), Some(1)),
        Choice::Address(0, Part::Usual)
    );
    // Also to one that was left out, rather than to the same again.
    fails(&mut two, 0, 3, seconds(0));
    assert_eq!(
        two.choose(seconds(0), Some(1)),
        Choice::Address(0, Part::Usual)
    );
    let mut one = Addresses::new(plan(), 1);
    assert_eq!(
        one.choose(seconds(0), Some(0)),
        Choice::Address(0, Part::Usual)
    );
}

#[test]
fn health_checks_take_an_address_out_and_bring_it_back() {
    let mut two = Addresses::new(plan(), 2);
    assert_eq!(two.checked(0, Sign::Ill), None);
    assert_eq!(two.checked(0, Sign::Well), None);
    assert_eq!(two.checked(0, Sign::Ill), None);
    assert_eq!(two.checked(0, Sign::Ill), Some(News::Ill(0)));
    assert!((0..5).all(|_| chosen(&mut two, seconds(0)) == 1));
    assert_eq!(two.checked(1, Sign::Ill), None);
    assert_eq!(two.checked(1, Sign::Ill), Some(News::Ill(1)));
    assert!(two.all_ill());
    // A wrong path of the checks takes nothing down.
    let turns = [chosen(&mut two, seconds(0)), chosen(&mut two, seconds(0))];
    assert_ne!(turns[0], turns[1]);
    assert_eq!(two.checked(0, Sign::Well), None);
    assert_eq!(two.checked(0, Sign::Well), Some(News::Well(0)));
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
        [News::Opened(seconds(10))]
    );
    let nowhere = |again| Choice::Nowhere {
        again_in: seconds(again),
    };
    assert_eq!(one.choose(seconds(4), None), nowhere(6));
    assert_eq!(
        one.choose(seconds(10), None),
        Choice::Address(0, Part::Trial)
    );
    assert_eq!(one.choose(seconds(10), None), nowhere(10));
    assert_eq!(
        one.ended((0, Part::Trial), End::Failed, seconds(11)),
        [News::Opened(seconds(20))]
    );
    assert_eq!(
        one.choose(seconds(31), None),
        Choice::Address(0, Part::Trial)
    );
    // What began before the breaker opened is not the trial.
    for end in [End::Abandoned, End::Failed] {
        assert_eq!(one.ended((0, Part::Usual), end, seconds(31)), []);
        assert_eq!(one.choose(seconds(31), None), nowhere(10));
    }
    // The trial went away; the next call is one.
    assert_eq!(one.ended((0, Part::Trial), End::Abandoned, seconds(31)), []);
    assert_eq!(
        one.choose(seconds(31), None),
        Choice::Address(0, Part::Trial)
    );
    assert_eq!(
        one.ended((0, Part::Trial), End::Answered, seconds(32)),
        [News::Closed]
    );
    assert_eq!(
        one.choose(seconds(32), None),
        Choice::Address(0, Part::Usual)
    );
    fails(&mut one, 0, 1, seconds(33));
    assert_eq!(
        fails(&mut one, 0, 1, seconds(33)),
        [News::Opened(seconds(10))]
    );
}

#[test]
fn a_trial_that_does_not_end_holds_nobody_up_for_longer_than_a_pause() {
    let mut one = with_breaker();
    fails(&mut one, 0, 2, seconds(0));
    let trial = Choice::Address(0, Part::Trial);
    assert_eq!(one.choose(seconds(10), None), trial);
    let nowhere = Choice::Nowhere {
        again_in: seconds(1),
    };
    assert_eq!(one.choose(seconds(19), None), nowhere);
    assert_eq!(one.choose(seconds(20), None), trial);
    assert_eq!(one.choose(seconds(29), None), nowhere);
    // Either of them shows whether the upstream is back.
    assert_eq!(
        one.ended((0, Part::Trial), End::Answered, seconds(29)),
        [News::Closed]
    );
    assert_eq!(one.ended((0, Part::Trial), End::Abandoned, seconds(29)), []);
    assert_eq!(
        one.choose(seconds(29), None),
        Choice::Address(0, Part::Usual)
    );
}

#[test]
fn repeats_are_a_share_of_the_calls_and_a_few_more() {
    let mut one = Addresses::new(plan(), 1);
    let allowed = |one: &mut Addresses, now| {
        (0..100)
            .filter(|_| one.repeats(now) == Repeats::Allowed)
            .count()
    };
    assert_eq!(allowed(&mut one, seconds(0)), 2);
    for _ in 0..50 {
        one.called();
    }
    assert_eq!(allowed(&mut one, seconds(1)), 10);
    assert_eq!(allowed(&mut one, seconds(9)), 0);
    assert_eq!(allowed(&mut one, seconds(10)), 2);
    // No more is put by than for a hundred.
    for _ in 0..10_000 {
        one.called();
    }
    assert_eq!(allowed(&mut one, seconds(11)), 100);
}

/// What may happen to an upstream.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Call(End),
    Check(usize, Sign),
    Passes(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    let end = prop::sample::select(vec![
        End::Answered,
        End::Failed,
        End::Failed,
        End::Abandoned,
    ]);
    let sign = prop::sample::select(vec![Sign::Well, Sign::Ill]);
    prop_oneof![
        8 => end.prop_map(Happens::Call),
        2 => (0..4_usize, sign).prop_map(|(place, sign)| Happens::Check(place, sign)),
        1 => (0..40_u64).prop_map(Happens::Passes),
    ]
}

/// How long a call lasts.
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
    /// Whatever happens, a call has an address unless the breaker is open, at most half are left out for failures, and
    /// who is left alone is asked again.
    #[test]
    fn a_call_always_finds_its_way(count in 1..5_usize, story in prop::collection::vec(happens(), 0..200)) {
        let breaker = Some(BreakerPlan { failures: 5, pause: seconds(10) });
        let mut addresses = Addresses::new(AddressPlan { breaker, check: plan().check, ..plan() }, count);
        let mut now = seconds(0);
        let mut trials = 0;
        for step in story {
            match step {
                Happens::Passes(more) => now += seconds(more),
                Happens::Check(place, sign) => drop(addresses.checked(place, sign)),
                Happens::Call(end) => match addresses.choose(now, None) {
                    Choice::Nowhere { again_in } => {
                        prop_assert!(again_in <= seconds(80));
                        trials += 1;
                    }
                    Choice::Address(place, part) => {
                        prop_assert!(place < count);
                        addresses.begun(place);
                        addresses.ended((place, part), end, now);
                        addresses.over(place);
                    }
                },
            }
            let ejected = addresses.all.iter().filter(|own| own.until.is_some()).count();
            prop_assert!(ejected * 2 <= count, "{ejected} of {count}");
            prop_assert!(addresses.all.iter().all(|own| own.busy == 0));
        }
        now += seconds(1000);
        let asked = addresses.choose(now, None);
        prop_assert!(matches!(asked, Choice::Address(..)), "after {trials} refusals");
    }

    /// Whichever calls have no end, whoever is refused is let through when he comes again in time, and there is one trial
    /// in each pause for each call that has ended.
    #[test]
    fn no_call_without_an_end_keeps_a_breaker_open(story in prop::collection::vec((0..12_u64, lasts()), 0..200)) {
        let mut one = with_breaker();
        let (mut now, mut open, mut ended, mut trials) = (seconds(0), Vec::new(), 0_u32, 0_u32);
        for (passes, lasts) in story {
            now += seconds(passes);
            match (lasts, one.choose(now, None)) {
                (Lasts::Ends(end, _), Choice::Address(place, part)) => {
                    trials += u32::from(part == Part::Trial);
                    one.ended((place, part), end, now);
                    ended += 1;
                }
                (Lasts::Stays, Choice::Address(place, part)) => {
                    trials += u32::from(part == Part::Trial);
                    open.push((place, part));
                }
                (_, Choice::Nowhere { again_in }) => {
                    prop_assert!(again_in <= seconds(80));
                    now += again_in;
                    let again = one.choose(now, None);
                    prop_assert!(matches!(again, Choice::Address(_, Part::Trial)), "{again:?}");
                    trials += 1;
                    open.push((0, Part::Trial));
                }
            }
            if let Lasts::Ends(end, at) = lasts && !open.is_empty() {
                let earlier = open.swap_remove(at % open.len());
                one.ended(earlier, end, now);
                ended += 1;
            }
            let pauses = u32::try_from(now.as_secs() / 10).unwrap();
            prop_assert!(trials <= pauses + ended, "{trials} in {pauses} pauses, {ended} ended");
        }
    }

    /// No more is repeated than the share of the calls, and the least of each ten seconds.
    #[test]
    fn repeats_keep_within_their_budget(steps in prop::collection::vec((0..3_u64, any::<bool>()), 0..300)) {
        let mut one = Addresses::new(plan(), 1);
        let (mut now, mut calls, mut repeats) = (0, 0_u64, 0_u64);
        for (passes, repeat) in steps {
            now += passes;
            one.called();
            calls += 1;
            if repeat && one.repeats(seconds(now)) == Repeats::Allowed {
                repeats += 1;
            }
        }
        let spans = now / 10 + 1;
        prop_assert!(repeats <= calls * 20 / 100 + 2 * spans, "{repeats} of {calls} in {now} s");
    }
}
