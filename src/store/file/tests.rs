//! The state folder: data after a restart, and refused files.

mod blocking_store;
mod symlinks;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::FileStore;
use crate::store::error::{CommitError, StoreError, chain};
use crate::store::pretty_json::pretty;
use crate::store::record::record;
use crate::store::state::{Health, LONGEST_TEXT, MOST_REPORTS, ReplicaReport};
use crate::store::versioned::Versioned;
use blocking_store::BlockingStore;

fn open(folder: &TempDir) -> BlockingStore {
    BlockingStore::new(FileStore::open(folder.path()).unwrap())
}

fn at(revision: u64, text: &str) -> Versioned {
    Versioned {
        revision,
        text: text.to_owned(),
    }
}

fn report(boot: &str, at: u64) -> ReplicaReport {
    ReplicaReport {
        replica: "here \"1\"".to_owned(),
        boot: boot.to_owned(),
        at,
        text: format!("{{\"calls\":{at}}}").into(),
    }
}

fn written(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

#[test]
fn committed_data_survives_a_restart() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("deep/state");
    {
        let mut store = BlockingStore::new(FileStore::open(&state).unwrap());
        assert_eq!(store.read(0).unwrap(), None);
        assert_eq!(store.commit(0, "[1]").unwrap(), 1);
        assert_eq!(store.commit(1, "[1,2]").unwrap(), 2);
    }
    let store = FileStore::open(&state).unwrap();
    assert_eq!(store.read(0).unwrap(), Some(at(2, "[1,2]")));
    assert_eq!(store.read(2).unwrap(), None);
}

#[test]
fn the_state_is_indented_and_the_counts_are_compact() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    let text = r#"{"a":[],"b":{"c":[1.10,"{\"x\":[2]}\\"]},"d":{}}"#;
    store.commit(0, text).unwrap();
    let indented = r#"{
  "version": 1,
  "revision": 1,
  "state": {
    "a": [],
    "b": {
      "c": [
        1.10,
        "{\"x\":[2]}\\"
      ]
    },
    "d": {}
  }
}
"#;
    assert_eq!(written(&folder, "rollout.json"), indented);
    store.exchange(&report("b", 7)).unwrap();
    let compact = r#"{"version":1,"archive":null,"reports":[{"at":7,"replica":"here \"1\"","boot":"b","report":{"calls":7}}]}"#;
    assert_eq!(written(&folder, "watch.json"), compact);
}

#[test]
fn a_commit_on_an_outdated_revision_is_a_conflict() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    store.commit(0, "1").unwrap();
    store.commit(1, "2").unwrap();
    let Err(CommitError::Conflict(found)) = store.commit(1, "3") else {
        panic!("a conflict");
    };
    assert_eq!(found, at(2, "2"));
    assert_eq!(store.read(1).unwrap(), Some(at(2, "2")));
    // The same text again is another commit, since the first one was confirmed.
    let again = store.commit(1, "2");
    assert!(matches!(again, Err(CommitError::Conflict(_))));
}

#[test]
fn a_store_with_lost_data_reports_it_and_can_be_restored() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    store.commit(0, "1").unwrap();
    let forgot = |error: &StoreError| matches!(error, StoreError::Forgot { known: 5, found: 1 });
    assert!(forgot(&store.read(5).unwrap_err()));
    let Err(CommitError::Store(error)) = store.commit(5, "6") else {
        panic!("the data is lost");
    };
    assert!(forgot(&error));
    store.restore(&at(5, "5")).unwrap();
    assert_eq!(store.read(0).unwrap(), Some(at(5, "5")));
    store.restore(&at(4, "4")).unwrap();
    store.restore(&at(5, "[]")).unwrap();
    drop(store);
    assert_eq!(open(&folder).read(0).unwrap(), Some(at(5, "5")));
}

#[test]
fn a_second_process_on_the_same_folder_is_refused() {
    let folder = tempdir().unwrap();
    let first = open(&folder);
    let error = FileStore::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)));
    drop(first);
    assert!(FileStore::open(folder.path()).is_ok());
}

#[test]
fn an_unfinished_replacement_is_removed() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    store.commit(0, r#"{"a":1}"#).unwrap();
    store.exchange(&report("b", 7)).unwrap();
    drop(store);
    for name in ["rollout.json", "watch.json"] {
        let whole = written(&folder, name);
        let unfinished = folder.path().join(format!("{name}.new"));
        for length in 0..=whole.len() {
            fs::write(&unfinished, &whole.as_bytes()[..length]).unwrap();
            let store = open(&folder);
            assert_eq!(store.read(0).unwrap(), Some(at(1, r#"{"a":1}"#)));
            assert!(!unfinished.exists());
        }
    }
}

#[test]
fn a_truncated_file_is_refused_with_a_remedy_and_kept() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    store.commit(0, r#"{"a":1}"#).unwrap();
    store.exchange(&report("b", 7)).unwrap();
    drop(store);
    let name = "rollout.json";
    let path = folder.path().join(name);
    let whole = written(&folder, name);
    for length in 0..whole.len() - 1 {
        fs::write(&path, &whole[..length]).unwrap();
        let message = chain(&FileStore::open(folder.path()).unwrap_err());
        assert!(
            message.contains("is damaged; repair it, or move it away"),
            "{message}"
        );
        assert!(message.contains(name), "{message}");
        assert_eq!(written(&folder, name), whole[..length]);
    }
    fs::write(&path, &whole).unwrap();
    assert!(FileStore::open(folder.path()).is_ok());
}

#[test]
fn a_damaged_watch_file_is_set_aside_and_counts_start_from_zero() {
    let cases = [
        "",
        "{",
        r#"{"version":3,"reports":[]}"#,
        r#"{"version":1,"reports":{}}"#,
        r#"{"version":1,"reports":[{}]}"#,
    ];
    for text in cases {
        let folder = tempdir().unwrap();
        let mut store = open(&folder);
        store.commit(0, r#"{"a":1}"#).unwrap();
        drop(store);
        // More often than the number of damaged files that are kept.
        for time in 1..12_u32 {
            fs::write(folder.path().join("watch.json"), text).unwrap();
            let mut store = open(&folder);
            assert_eq!(store.read(0).unwrap(), Some(at(1, r#"{"a":1}"#)));
            let own = report("own", 3);
            let reports = store.exchange(&own).unwrap();
            assert_eq!(
                (reports.archive, reports.reports),
                (Versioned::default(), vec![own])
            );
            let aside = format!("watch.json.damaged-{}", time.min(9));
            assert_eq!(written(&folder, &aside), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 12);
    }
}

#[test]
fn a_file_of_another_format_is_refused() {
    let cases = [
        (
            "rollout.json",
            r#"{"version":2}"#,
            "the format version is 2",
        ),
        (
            "rollout.json",
            r#"{"version":1}"#,
            "missing field `revision`",
        ),
        (
            "rollout.json",
            r#"{"version":1,"revision":0,"state":1}"#,
            "invalid revision 0",
        ),
        (
            "rollout.json",
            r#"{"version":1,"revision":1,"state":1,"x":1}"#,
            "unknown field `x`",
        ),
        (
            "rollout.json",
            r#"{"version":1,"revision":18446744073709551615,"state":1}"#,
            "invalid revision",
        ),
    ];
    for (name, text, expected) in cases {
        let folder = tempdir().unwrap();
        fs::write(folder.path().join(name), text).unwrap();
        let message = chain(&FileStore::open(folder.path()).unwrap_err());
        assert!(message.contains(expected), "{text}: {message}");
        assert_eq!(written(&folder, name), text);
    }
}

#[test]
fn a_failed_write_keeps_the_old_state_and_is_visible_in_the_health() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    store.commit(0, "1").unwrap();
    assert_eq!(store.health(), Health::Fine);
    // A folder instead of the unfinished file: not even root can write there.
    let obstacle = folder.path().join("rollout.json.new");
    fs::create_dir(&obstacle).unwrap();
    let Err(CommitError::Store(error)) = store.commit(1, "2") else {
        panic!("the write fails");
    };
    assert!(chain(&error).contains("cannot be written: "), "{error}");
    let Health::Away { error, .. } = store.health() else {
        panic!("the store is unavailable");
    };
    assert!(
        error.starts_with("the state folder (`rollout.state`): `"),
        "{error}"
    );
    assert!(error.contains("rollout.json.new` cannot be written: "));
    assert_eq!(store.read(0).unwrap(), Some(at(1, "1")));
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(store.commit(1, "2").unwrap(), 2);
    assert_eq!(store.health(), Health::Fine);
}

#[test]
fn counts_that_cannot_be_written_are_written_later() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    let obstacle = folder.path().join("watch.json.new");
    fs::create_dir(&obstacle).unwrap();
    let own = report("own", 3);
    assert_eq!(store.exchange(&own).unwrap().reports, [own]);
    let Health::Away { error, .. } = store.health() else {
        panic!("the store is unavailable");
    };
    assert!(
        error.contains("watch.json.new` cannot be written: "),
        "{error}"
    );
    fs::remove_dir(&obstacle).unwrap();
    store.flush();
    assert_eq!(store.health(), Health::Fine);
    assert!(written(&folder, "watch.json").contains("own"));
}

#[test]
fn only_json_up_to_a_size_is_stored() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    for text in ["", "{", "1 2", "{\"a\":}"] {
        let refused = store.commit(0, text);
        assert!(matches!(
            refused,
            Err(CommitError::Store(StoreError::InvalidJson(_)))
        ));
    }
    let long = format!("\"{}\"", "x".repeat(LONGEST_TEXT - 1));
    let refused = store.commit(0, &long);
    assert!(matches!(
        refused,
        Err(CommitError::Store(StoreError::TooLong { .. }))
    ));
    assert_eq!(store.commit(0, &long.replacen('x', "", 1)).unwrap(), 1);
}

#[test]
fn reports_of_earlier_starts_remain_until_they_are_folded() {
    let folder = tempdir().unwrap();
    let (old, older) = (report("old", 2), report("older", 1));
    for report in [&older, &old] {
        open(&folder).exchange(report).unwrap();
    }
    let mut store = open(&folder);
    let own = report("own", 3);
    let reports = store.exchange(&own).unwrap();
    assert_eq!(reports.archive, Versioned::default());
    assert_eq!(reports.reports, [own.clone(), old.clone(), older.clone()]);

    let folded = [old.clone(), older];
    store.fold(0, "[3]", &folded).unwrap();
    let Err(CommitError::Conflict(archive)) = store.fold(0, "[4]", &[]) else {
        panic!("another writer was first");
    };
    assert_eq!(archive, at(1, "[3]"));
    let again = store.fold(1, "[6]", &folded);
    assert!(matches!(again, Err(CommitError::Conflict(_))));
    drop(store);

    let mut store = open(&folder);
    let newer = report("own", 4);
    let reports = store.exchange(&newer).unwrap();
    assert_eq!(
        (reports.archive, reports.reports),
        (at(1, "[3]"), vec![newer])
    );
    // A report that was replaced since is not removed by a fold that has not seen it.
    let refused = store.fold(1, "[6]", &[own]);
    assert!(matches!(refused, Err(CommitError::Conflict(_))));
}

#[test]
fn the_number_of_returned_reports_is_limited_and_includes_the_own_one() {
    let folder = tempdir().unwrap();
    let reports: Vec<_> = (0..MOST_REPORTS + 5)
        .map(|n| record(&report(&n.to_string(), 1)))
        .collect();
    let file = format!(r#"{{"version":1,"reports":[{}]}}"#, reports.join(","));
    fs::write(folder.path().join("watch.json"), file).unwrap();
    let mut store = open(&folder);
    let own = report("own", 3);
    let reports = store.exchange(&own).unwrap().reports;
    assert_eq!((reports.len(), &reports[0]), (MOST_REPORTS, &own));
    store.fold(0, "1", &reports[1..]).unwrap();
    assert_eq!(store.exchange(&own).unwrap().reports.len(), 7);
}

#[test]
fn an_archive_is_restored_only_if_there_is_none() {
    let folder = tempdir().unwrap();
    let mut store = open(&folder);
    store.restore_archive(&at(4, "[4]")).unwrap();
    store.restore_archive(&at(5, "[5]")).unwrap();
    assert_eq!(
        store.exchange(&report("b", 1)).unwrap().archive,
        at(4, "[4]")
    );
}

#[test]
fn flips_of_an_earlier_version_are_found() {
    let folder = tempdir().unwrap();
    assert_eq!(crate::store::legacy(folder.path()).unwrap(), None);
    let text = r#"{"version":1,"revision":3,"flips":[{"flag":"f","text_hash":"h","stage":"retired","percent":"12.5","who":"anna","at":"2026-02-03T04:05:06Z"}]}"#;
    let path = folder.path().join("flips.json");
    fs::write(&path, text).unwrap();
    let flips = crate::store::legacy(folder.path()).unwrap().unwrap();
    assert_eq!((flips.len(), flips[0].flag.as_str()), (1, "f"));
    assert_eq!(flips[0].percent.to_string(), "12.5");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    damaged_flips_are_refused(folder.path());
}

fn damaged_flips_are_refused(folder: &Path) {
    fs::write(folder.join("flips.json"), "{").unwrap();
    let refused = crate::store::legacy(folder);
    assert!(matches!(refused, Err(StoreError::Damaged { .. })));
}

/// Values of every kind, as compact text.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,9})?(e[+-]?[0-9]{1,3})?",
        any::<String>().prop_map(|text| Value::from(text).to_string()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let member = (any::<String>(), inner.clone())
            .prop_map(|(name, value)| format!("{}:{value}", Value::from(name)));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_compact_text_is_read_back_byte_for_byte(text in any_json()) {
        let folder = tempdir().unwrap();
        let mut store = open(&folder);
        store.commit(0, &text).unwrap();
        let own = ReplicaReport { text: text.as_str().into(), ..report("b", 1) };
        store.fold(0, &text, &[]).unwrap();
        store.exchange(&own).unwrap();
        drop(store);
        let mut store = open(&folder);
        prop_assert_eq!(store.read(0).unwrap(), Some(at(1, &text)));
        let next = report("next", 2);
        let reports = store.exchange(&next).unwrap();
        prop_assert_eq!(reports.archive, at(1, &text));
        prop_assert_eq!(reports.reports, [next, own]);
    }

    #[test]
    fn indentation_is_idempotent(text in any_json()) {
        let once = pretty(&text);
        prop_assert_eq!(pretty(&once), once);
    }
}

#[test]
fn the_next_process_reads_at_once_and_owns_the_folder_after_its_release() {
    let folder = tempdir().unwrap();
    let mut last = open(&folder);
    last.commit(0, "[1]").unwrap();
    let mut next = BlockingStore::new(FileStore::open_unlocked(folder.path()).unwrap());
    assert_eq!(next.read(0).unwrap(), Some(at(1, "[1]")));
    next.acquire().unwrap();
    let refused = next.commit(1, "[2]").unwrap_err();
    let elsewhere = CommitError::Store(StoreError::NotOwned(folder.path().to_path_buf()));
    assert_eq!(refused.to_string(), elsewhere.to_string());
    assert!(next.exchange(&report("next", 1)).is_err());
    assert_eq!(next.health(), Health::Fine);

    last.commit(1, "[1,2]").unwrap();
    last.exchange(&report("last", 1)).unwrap();
    last.release();
    assert!(last.commit(2, "[3]").is_err());
    next.acquire().unwrap();
    assert_eq!(next.read(1).unwrap(), Some(at(2, "[1,2]")));
    assert_eq!(next.commit(2, "[4]").unwrap(), 3);
    let reports = next.exchange(&report("next", 2)).unwrap().reports;
    assert_eq!(reports, [report("next", 2), report("last", 1)]);
}
