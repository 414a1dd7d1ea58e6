//! What was changed for a text that a flag no longer has.

use std::fs;

use super::{FLAGS, Folder, asked, at, flip, in_force, poll, watching};
use crate::app::control::{Control, Polled};
use crate::server::admin::{Refusal, Reloaded};
use dualgauge_model::rollout::Stage;
use dualgauge_model::rollout::overrides::Change;

/// The folder, and a control in which two flags are flipped.
async fn flipped() -> (Folder, Control) {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    for name in ["rest-way", "ios-first"] {
        let flip = flip(name, Stage::Retired, "100");
        control.change(&flip, at(1)).await.unwrap();
    }
    (folder, control)
}

fn edited() -> String {
    FLAGS.replace("client = 'ios-*'\n", "client = 'ios-*'\npercent = 10\n")
}

/// The last change: what, who, why and under which revision.
fn last(control: &Control) -> (String, String, Option<String>, u64) {
    let entry = control.history().into_iter().next().unwrap();
    (entry.what, entry.by.who, entry.by.why, entry.revision)
}

fn dropped(why: &str, revision: u64) -> (String, String, Option<String>, u64) {
    let [what, who, why] = ["drop", "dualgauge", why].map(str::to_owned);
    (what, who, Some(why), revision)
}

#[tokio::test]
async fn the_history_tells_what_was_dropped_and_no_undo_brings_it_back() {
    let (folder, mut control) = flipped().await;
    folder.write("flags.toml", &edited());
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    let expected = dropped("the flag was edited in the flags file since", 3);
    assert_eq!(last(&control), expected);
    let undo = |flag: Option<&str>| {
        asked(Change::Undo {
            flag: flag.map(str::to_owned),
        })
    };
    let refusal = control.change(&undo(Some("ios-first")), at(5)).await;
    assert!(matches!(refusal, Err(Refusal::Fault(_))), "{refusal:?}");
    // The last change that is still one is that of the other flag.
    control.change(&undo(None), at(6)).await.unwrap();
    assert_eq!(in_force(&control, "rest-way").0, Stage::Translate);
    assert_eq!(
        in_force(&control, "ios-first"),
        (Stage::Passthrough, "10".to_owned())
    );
}

#[tokio::test]
async fn a_flag_that_is_gone_when_the_process_starts_leaves_an_entry_as_well() {
    let (folder, control) = flipped().await;
    drop(control);
    folder.write("flags.toml", &FLAGS.replace("'ios-first'", "'ios-second'"));
    let control = folder.open().await;
    let expected = dropped("the flag is no longer in the flags file", 3);
    assert_eq!(last(&control), expected);
}

#[tokio::test]
async fn a_drop_that_could_not_be_stored_is_tried_again() {
    let (folder, mut control) = flipped().await;
    let obstacle = folder.path("state/rollout.json.new");
    fs::create_dir(&obstacle).unwrap();
    folder.write("flags.toml", &edited());
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    // It acts, though it is not stored.
    assert_eq!(in_force(&control, "ios-first").0, Stage::Passthrough);
    control.observe(at(61)).await;
    assert_eq!(control.flags().revision, 2);
    let notes = control.readiness().notes.join("\n");
    assert!(notes.contains("edited since is still stored"), "{notes}");

    fs::remove_dir(&obstacle).unwrap();
    control.observe(at(62)).await;
    assert_eq!(last(&control).0, "drop");
    assert!(control.readiness().notes.is_empty());
    control.observe(at(63)).await;
    assert_eq!(control.flags().revision, 3);
    drop(control);
    folder.write("flags.toml", FLAGS);
    let control = folder.open().await;
    assert_eq!(in_force(&control, "ios-first").0, Stage::Passthrough);
    assert_eq!(in_force(&control, "rest-way").0, Stage::Retired);
}
