//! The kill switch, which acts before it is stored.

use std::fs;
use std::path::PathBuf;

use super::{FLAGS, Folder, asked, at, flip, poll, watching};
use crate::app::control::{Control, Polled};
use crate::server::admin::{ChangeRequest, Refusal, Reloaded};
use dualgauge_model::rollout::overrides::Change;
use dualgauge_model::rollout::{Kill, Stage};

/// Keeps the state from being written.
fn obstruct(folder: &Folder) -> PathBuf {
    let obstacle = folder.path("state/rollout.json.new");
    fs::create_dir(&obstacle).unwrap();
    obstacle
}

fn kill(control: &Control) -> Kill {
    control.plan().rollout.kill
}

/// The latest changes, the newest first: what and who.
fn changes(control: &Control) -> Vec<(String, String)> {
    let entries = control.history().into_iter();
    entries.map(|entry| (entry.what, entry.by.who)).collect()
}

#[tokio::test]
async fn it_acts_although_it_cannot_be_stored_and_is_stored_later() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let obstacle = obstruct(&folder);
    control.change(&asked(Change::Kill), at(1)).await.unwrap();
    assert_eq!(kill(&control), Kill::On);
    let flags = control.flags();
    assert_eq!(flags.kill.unwrap().who, "anna");
    let error = flags.kill_unstored.unwrap();
    assert!(error.contains("rollout.json.new"), "{error}");
    let notes = control.readiness().notes.join("\n");
    assert!(
        notes.contains("the kill switch is on, but not stored yet"),
        "{notes}"
    );

    // Nothing overtakes it, and nothing but a stored change lifts it.
    for change in [
        flip("ios-first", Stage::Retired, "100"),
        asked(Change::Revive),
    ] {
        let refusal = control.change(&change, at(2)).await.unwrap_err();
        assert!(matches!(refusal, Refusal::Store(_)), "{refusal:?}");
    }
    control.observe(at(3)).await;
    assert_eq!((kill(&control), control.flags().revision), (Kill::On, 0));

    fs::remove_dir(&obstacle).unwrap();
    control.observe(at(4)).await;
    let flags = control.flags();
    assert_eq!((flags.revision, flags.kill_unstored), (1, None));
    assert_eq!(flags.kill.unwrap().at, "1970-01-01T00:00:01.000Z");
    assert!(control.readiness().notes.is_empty());
    control.observe(at(5)).await;
    assert_eq!(changes(&control), [("kill".to_owned(), "anna".to_owned())]);
    drop(control);
    let mut control = folder.open().await;
    assert_eq!(kill(&control), Kill::On);
    control.change(&asked(Change::Revive), at(6)).await.unwrap();
    assert_eq!(kill(&control), Kill::Off);
}

#[tokio::test]
async fn who_revives_later_leaves_both_changes_in_the_history() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let obstacle = obstruct(&folder);
    control.change(&asked(Change::Kill), at(1)).await.unwrap();
    fs::remove_dir(&obstacle).unwrap();
    control.change(&asked(Change::Revive), at(2)).await.unwrap();
    assert_eq!(kill(&control), Kill::Off);
    let words: Vec<String> = changes(&control)
        .into_iter()
        .map(|(what, _)| what)
        .collect();
    assert_eq!(words, ["revive", "kill"]);
    control.observe(at(3)).await;
    assert_eq!(kill(&control), Kill::Off);
}

#[tokio::test]
async fn a_reload_does_not_lift_one_that_is_not_stored() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    obstruct(&folder);
    control.change(&asked(Change::Kill), at(1)).await.unwrap();
    folder.write("flags.toml", &FLAGS.replace("passthrough", "retired"));
    let reloaded = Polled::Reloaded(Reloaded::Swapped);
    assert_eq!(poll(&mut control).await, reloaded);
    assert_eq!(kill(&control), Kill::On);
}

#[tokio::test]
async fn it_does_not_act_for_who_has_seen_another_revision() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let stale = ChangeRequest {
        expected: Some(vec!["7".to_owned()]),
        ..asked(Change::Kill)
    };
    for refusal in [
        control.throw(&stale, at(1)).unwrap_err(),
        control.change(&stale, at(1)).await.unwrap_err(),
    ] {
        assert!(matches!(refusal, Refusal::Stale { .. }), "{refusal:?}");
    }
    assert_eq!((kill(&control), control.flags().kill), (Kill::Off, None));
}
