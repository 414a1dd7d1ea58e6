use proptest::prelude::*;

use super::*;
use crate::rollout::{Arming, Percent, Stage};

fn by(who: &str) -> ChangeMeta {
    ChangeMeta {
        who: who.to_owned(),
        at: "2026-11-21T10:00:00Z".to_owned(),
        why: None,
    }
}

fn flip(flag: &str, percent: u32) -> Change {
    Change::Flip {
        flag: flag.to_owned(),
        stage: Stage::Translate,
        percent: Percent::from_thousandths(percent).unwrap(),
    }
}

fn trip(flag: &str) -> Change {
    Change::Trip {
        flag: flag.to_owned(),
        reason: "failures".to_owned(),
    }
}

/// Overrides with the number of their revision.
#[derive(Debug, Clone, Default)]
struct Run(Overrides, u64);

impl Run {
    fn to(&mut self, change: &Change) -> Result<(), ChangeFault> {
        match self
            .0
            .change(change, self.1 + 1, &by("anna"), str::to_owned)?
        {
            ChangeResult::To(next) => {
                self.0 = *next;
                self.1 += 1;
            }
            ChangeResult::Already => {}
        }
        Ok(())
    }
}

#[test]
fn a_flip_is_recorded_with_author_time_before_and_after() {
    let mut run = Run::default();
    run.to(&flip("a", 5_000)).unwrap();
    run.to(&flip("a", 25_000)).unwrap();
    let overrides = run.0.of("a", "a").unwrap();
    assert_eq!(overrides.flip.as_ref().unwrap().percent.to_string(), "25");
    assert_eq!(overrides.revision, 2);
    let last = run.0.history.back().unwrap();
    assert_eq!((last.what.as_str(), last.by.who.as_str()), ("flip", "anna"));
    let Reverted::Flag {
        overrides: Some(before),
        ..
    } = &last.before
    else {
        panic!("the flag was flipped before")
    };
    assert_eq!(before.flip.as_ref().unwrap().percent.to_string(), "5");
}

#[test]
fn the_same_flip_again_changes_nothing() {
    let mut run = Run::default();
    run.to(&flip("a", 5_000)).unwrap();
    let once = run.clone();
    run.to(&flip("a", 5_000)).unwrap();
    assert_eq!((run.0, run.1), (once.0, once.1));
}

#[test]
fn a_flag_whose_text_changed_follows_the_file() {
    let mut run = Run::default();
    run.to(&flip("a", 5_000)).unwrap();
    assert!(run.0.of("a", "a").is_some());
    assert!(run.0.of("a", "edited").is_none());
}

#[test]
fn undo_goes_back_one_change_of_the_flag_at_a_time() {
    let mut run = Run::default();
    run.to(&flip("a", 5_000)).unwrap();
    run.to(&flip("b", 1_000)).unwrap();
    run.to(&flip("a", 25_000)).unwrap();
    let undo = Change::Undo {
        flag: Some("a".to_owned()),
    };
    run.to(&undo).unwrap();
    let percent = |run: &Run| {
        run.0
            .of("a", "a")
            .and_then(|now| Some(now.flip.as_ref()?.percent.to_string()))
    };
    assert_eq!(percent(&run).as_deref(), Some("5"));
    run.to(&undo).unwrap();
    assert_eq!(percent(&run), None);
    assert_eq!(run.to(&undo), Err(ChangeFault::NothingToUndo));
    assert!(run.0.of("b", "b").is_some());
    run.to(&Change::Kill).unwrap();
    run.to(&Change::Undo { flag: None }).unwrap();
    assert!(run.0.kill.is_none());
}

#[test]
fn a_trip_holds_until_a_person_rearms_the_flag() {
    let mut run = Run::default();
    run.to(&flip("a", 5_000)).unwrap();
    run.to(&trip("a")).unwrap();
    assert_eq!(run.to(&trip("a")), Err(ChangeFault::Overtaken));
    run.to(&flip("a", 1_000)).unwrap();
    assert_eq!(run.0.of("a", "a").unwrap().arming(), Arming::Tripped);
    run.to(&Change::Rearm {
        flag: "a".to_owned(),
    })
    .unwrap();
    assert_eq!(run.0.of("a", "a").unwrap().arming(), Arming::Armed);
    let again = run.to(&Change::Rearm {
        flag: "a".to_owned(),
    });
    assert_eq!(again, Err(ChangeFault::NotTripped));
}

#[test]
fn an_undo_reverts_changes_by_people_and_leaves_a_trip() {
    let mut run = Run::default();
    run.to(&flip("a", 5_000)).unwrap();
    run.to(&trip("a")).unwrap();
    let undo = Change::Undo { flag: None };
    run.to(&undo).unwrap();
    let stands = run.0.of("a", "a").unwrap();
    assert_eq!((stands.arming(), &stands.flip), (Arming::Tripped, &None));
    assert_eq!(run.to(&undo), Err(ChangeFault::NothingToUndo));
}

#[test]
fn a_ramp_advances_once_however_many_replicas_say_so() {
    let mut run = Run::default();
    let step = |from, to| Change::Advance {
        flag: "a".to_owned(),
        from,
        to,
        at: 7,
    };
    run.to(&step(None, 0)).unwrap();
    run.to(&step(Some(0), 1)).unwrap();
    assert_eq!(run.to(&step(Some(0), 1)), Err(ChangeFault::Overtaken));
    assert_eq!(run.0.of("a", "a").unwrap().ramp.unwrap().step, 1);
    run.to(&trip("a")).unwrap();
    assert_eq!(run.to(&step(Some(1), 2)), Err(ChangeFault::Overtaken));
}

fn any_change() -> impl Strategy<Value = Change> {
    let name = || prop::sample::select(vec!["a", "b"]).prop_map(str::to_owned);
    prop_oneof![
        (name(), 0_u32..=100_000).prop_map(|(flag, percent)| flip(&flag, percent)),
        name().prop_map(|flag| Change::Unflip { flag }),
        name().prop_map(|flag| trip(&flag)),
        name().prop_map(|flag| Change::Rearm { flag }),
        (name(), prop::option::of(0_usize..3), 0_usize..3).prop_map(|(flag, from, to)| {
            Change::Advance {
                flag,
                from,
                to,
                at: 1,
            }
        }),
        Just(Change::Kill),
        Just(Change::Revive),
        name().prop_map(|route| Change::CallOff { route }),
        name().prop_map(|route| Change::CallOn { route }),
        prop::option::of(name()).prop_map(|flag| Change::Undo { flag }),
    ]
}

proptest! {
    #[test]
    fn what_is_undone_is_as_it_was(before in prop::collection::vec(any_change(), 0..12), last in any_change()) {
        let mut run = Run::default();
        for change in &before {
            let _ = run.to(change);
        }
        let was = run.clone();
        let _ = run.to(&last);
        let by_a_guard = matches!(last, Change::Trip { .. } | Change::Advance { .. });
        if run.1 > was.1 && !by_a_guard && !matches!(last, Change::Undo { .. }) {
            let flag = run.0.history.back().unwrap().flag().map(str::to_owned);
            run.to(&Change::Undo { flag }).unwrap();
            let plain = |overrides: &Overrides| {
                let mut plain = (overrides.kill.clone(), overrides.called_off.clone(), overrides.flags.clone());
                for flag in plain.2.values_mut() {
                    flag.revision = 0;
                }
                plain
            };
            prop_assert_eq!(plain(&run.0), plain(&was.0));
        }
    }

    #[test]
    fn overrides_survive_a_round_trip(changes in prop::collection::vec(any_change(), 0..12)) {
        let mut run = Run::default();
        for change in &changes {
            let _ = run.to(change);
        }
        prop_assert_eq!(Overrides::read(&run.0.written().unwrap()).unwrap(), run.0);
    }
}

#[test]
fn the_history_keeps_the_last_changes() {
    let mut run = Run::default();
    for number in 1..=HISTORY + 5 {
        run.to(&flip("a", u32::try_from(number).unwrap())).unwrap();
        assert_eq!(run.0.history.len(), number.min(HISTORY));
    }
    let revisions = run.0.history.iter().map(|entry| entry.revision);
    assert!(revisions.eq(6..=u64::try_from(HISTORY).unwrap() + 5));
}
