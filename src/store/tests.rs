//! Flips over flags, and what is left of them on disk.

use std::error::Error;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::tempdir;

use crate::config::flags::parse_flags;
use crate::config::raw::RawFlag;
use crate::domain::rollout::{Percent, Stage};
use crate::store::{Applied, DropReason, Flip, FlipStore, StoreError, apply};

fn flags(text: &str) -> Vec<RawFlag> {
    parse_flags(Path::new("flags.toml"), text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn two_flags() -> Vec<RawFlag> {
    flags(
        "[[flag]]\nname = 'one'\nstage = 'passthrough'\n\
         [[flag]]\nname = 'two'\nstage = 'translate'\npercent = 5\n",
    )
}

fn flip_of(flag: &RawFlag, stage: Stage, thousandths: u32) -> Flip {
    Flip {
        flag: flag.name.value.clone(),
        text_hash: flag.text_hash.clone(),
        stage,
        percent: Percent::from_thousandths(thousandths).unwrap(),
        who: "anna".to_owned(),
        at: "2026-02-03T04:05:06Z".to_owned(),
    }
}

/// The message with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[test]
fn a_flip_replaces_stage_and_percentage_and_nothing_else() {
    let before = two_flags();
    let flip = flip_of(&before[1], Stage::Retired, 12_345);
    let Applied { flags, kept, .. } = apply(before.clone(), vec![flip.clone()]);
    assert_eq!(kept, [flip]);
    assert_eq!(flags[0], before[0]);
    assert_eq!(flags[1].stage.value, Stage::Retired);
    assert_eq!(flags[1].percent.value, 12_345);
    assert_eq!(flags[1].stage.place.to_string(), "flip of `two`");
    assert_eq!(flags[1].name, before[1].name);
    assert_eq!(flags[1].text_hash, before[1].text_hash);
}

#[test]
fn a_flip_on_a_flag_that_was_edited_or_removed_is_dropped_and_said_so() {
    let before = two_flags();
    let edited = flip_of(&before[0], Stage::Translate, 1);
    let gone = flip_of(&before[1], Stage::Retired, 1);
    let after = flags("[[flag]]\nname = 'one'\nstage = 'retired'\n");
    let applied = apply(after.clone(), vec![edited.clone(), gone.clone()]);
    assert_eq!(applied.flags, after);
    assert_eq!(applied.kept, []);
    let dropped = [(edited, DropReason::Edited), (gone, DropReason::Gone)];
    assert_eq!(applied.dropped, dropped);
}

#[test]
fn what_is_saved_is_there_after_a_restart() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("deep/state");
    let flags = two_flags();
    let flip = flip_of(&flags[0], Stage::Translate, 33_333);
    {
        let (mut store, none) = FlipStore::open(&state).unwrap();
        assert_eq!((store.revision(), none), (0, vec![]));
        assert_eq!(store.save(std::slice::from_ref(&flip)).unwrap(), 1);
        assert_eq!(store.save(std::slice::from_ref(&flip)).unwrap(), 2);
    }
    let (store, flips) = FlipStore::open(&state).unwrap();
    assert_eq!((store.revision(), flips), (2, vec![flip]));
}

#[test]
fn a_second_process_on_the_same_folder_is_refused() {
    let folder = tempdir().unwrap();
    let first = FlipStore::open(folder.path()).unwrap();
    let error = FlipStore::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)));
    assert!(error.to_string().contains("in use by another process"));
    drop(first);
    assert!(FlipStore::open(folder.path()).is_ok());
}

#[test]
fn a_replacement_that_was_never_finished_is_cleaned_away() {
    let folder = tempdir().unwrap();
    let flip = flip_of(&two_flags()[0], Stage::Retired, 1);
    let (mut store, _) = FlipStore::open(folder.path()).unwrap();
    store.save(std::slice::from_ref(&flip)).unwrap();
    drop(store);
    let unfinished = folder.path().join("flips.json.new");
    fs::write(&unfinished, "{\"version\":1,").unwrap();
    let (store, flips) = FlipStore::open(folder.path()).unwrap();
    assert_eq!((store.revision(), flips), (1, vec![flip]));
    assert!(!unfinished.exists());
}

#[test]
fn what_cannot_be_stored_leaves_the_flips_of_before() {
    let folder = tempdir().unwrap();
    let flags = two_flags();
    let first = flip_of(&flags[0], Stage::Retired, 1);
    let (mut store, _) = FlipStore::open(folder.path()).unwrap();
    store.save(std::slice::from_ref(&first)).unwrap();
    // A folder in the place of the unfinished file: no user can write there, not even root.
    let obstacle = folder.path().join("flips.json.new");
    fs::create_dir(&obstacle).unwrap();
    let second = flip_of(&flags[1], Stage::Retired, 1);
    let error = store.save(&[second]).unwrap_err();
    assert!(chain(&error).contains("cannot be written: "), "{error}");
    assert_eq!(store.revision(), 1);
    fs::remove_dir(&obstacle).unwrap();
    drop(store);
    assert_eq!(FlipStore::open(folder.path()).unwrap().1, [first]);
}

#[test]
fn a_damaged_file_is_refused_with_a_way_out_and_stays() {
    let flip = |stage: &str, percent: &str| {
        format!(
            r#"{{"flag":"f","text_hash":"","stage":"{stage}","percent":"{percent}","who":"","at":""}}"#
        )
    };
    let file = |flips: &str| format!(r#"{{"version":1,"revision":1,"flips":[{flips}]}}"#);
    let good = flip("retired", "1");
    let cases = [
        (String::new(), "EOF while parsing"),
        ("{\"version\":1,\"revi".to_owned(), "EOF while parsing"),
        ("[]".to_owned(), "invalid length 0"),
        ("{}".to_owned(), "missing field `version`"),
        ("{\"version\":2}".to_owned(), "its version is 2"),
        ("{\"version\":1}".to_owned(), "missing field `revision`"),
        (file("").replace("flips", "x"), "unknown field `x`"),
        (file(&flip("shadow", "1")), "`shadow` is no stage"),
        (file(&flip("retired", "100.001")), "`100.001` is no"),
        (file(&format!("{good},{good}")), "flipped twice"),
    ];
    for (text, expected) in cases {
        let folder = tempdir().unwrap();
        let path = folder.path().join("flips.json");
        fs::write(&path, &text).unwrap();
        let error = FlipStore::open(folder.path()).unwrap_err();
        let said = chain(&error);
        assert!(said.contains(expected), "{text}: {said}");
        assert!(said.contains("is damaged; mend it, or move it away"));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

fn any_flip() -> impl Strategy<Value = Flip> {
    let stage = prop::sample::select(Stage::ALL.to_vec());
    let text = "[a-zé\"\\\\\n]{0,9}";
    let current = any::<prop::sample::Index>();
    (stage, 0..=100_000_u32, text, text, current).prop_map(
        |(stage, thousandths, name, who, current)| {
            let flags = two_flags();
            let mut flip = flip_of(&flags[current.index(2)], stage, thousandths);
            if name.len() % 3 == 0 {
                flip.flag = name;
            } else if name.len() % 3 == 1 {
                flip.text_hash = name;
            }
            flip.who = who;
            flip
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_applied_and_stored_is_applied_again_the_same(
        mut flips in proptest::collection::vec(any_flip(), 0..5)
    ) {
        let mut seen = Vec::new();
        flips.retain(|flip| {
            let new = !seen.contains(&flip.flag);
            seen.push(flip.flag.clone());
            new
        });
        let count = flips.len();
        let once = apply(two_flags(), flips);
        prop_assert_eq!(once.kept.len() + once.dropped.len(), count);

        let folder = tempdir().unwrap();
        let (mut store, _) = FlipStore::open(folder.path()).unwrap();
        store.save(&once.kept).unwrap();
        drop(store);
        let (_, read) = FlipStore::open(folder.path()).unwrap();
        prop_assert_eq!(&read, &once.kept);

        let again = apply(two_flags(), read);
        prop_assert_eq!(again.flags, once.flags);
        prop_assert_eq!(again.kept, once.kept);
        prop_assert_eq!(again.dropped, vec![]);
    }
}
