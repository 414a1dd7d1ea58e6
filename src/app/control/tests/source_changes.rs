//! The values of a source when files, flips or the source change around them.

use serde_json::json;

use super::source::{SOURCE, fail, flag, folder, half, in_force, take, translate};
use super::{MAIN, at, flip};
use crate::app::control::Control;
use crate::server::admin::Reloaded;
use crate::store::Versioned;
use crate::telemetry::metrics::PollResult;
use dualgauge_model::rollout::Stage;
use dualgauge_model::rollout::overrides::{ChangeMeta, ChangeResult};

fn without_key() -> String {
    let text = MAIN.replace("[[client]]", SOURCE);
    text.replace("key = { header = 'x-device-id' }", "")
}

fn invalid_polls(control: &Control) -> u64 {
    let polls = control.facts().source.unwrap().polls;
    let invalid = PollResult::Invalid.as_str();
    let mut rows = polls.rows();
    rows.find(|(result, _)| *result == invalid).unwrap().1
}

#[tokio::test]
async fn a_dropped_flag_whose_flip_is_impossible_now_keeps_its_value() {
    let folder = folder();
    let mut control = folder.open().await;
    let flipped = flip("ios-first", Stage::Translate, "50");
    control.change(&flipped, at(1)).await.unwrap();
    let both = json!({"ios-first": half(100)["ios-first"], "others": {"value": "shadow"}});
    take(&mut control, &both, 2);
    folder.write("main.toml", &without_key());
    assert_eq!(control.reload(at(3)).await, Reloaded::Swapped);
    assert_eq!(in_force(&control), translate("100"));
    // The source drops the flag, and changes another one.
    take(&mut control, &json!({"others": {"value": "translate"}}), 4);
    assert_eq!(in_force(&control), translate("100"));
    assert_eq!(flag(&control, "others").stage, Stage::Translate);
    let notes = control.readiness().notes.join("\n");
    assert!(
        notes.contains("`ios-first`") && notes.contains("none now"),
        "{notes}"
    );
    // Other flags can be dropped meanwhile, and the flag once its flip is possible.
    take(
        &mut control,
        &json!({"ios-first": {"errorCode": "FLAG_NOT_FOUND"}}),
        5,
    );
    assert_eq!(flag(&control, "others").stage, Stage::Passthrough);
    assert_eq!(in_force(&control), translate("100"));
    folder.write("main.toml", &MAIN.replace("[[client]]", SOURCE));
    control.reload(at(6)).await;
    take(
        &mut control,
        &json!({"ios-first": {"errorCode": "FLAG_NOT_FOUND"}}),
        7,
    );
    assert_eq!(in_force(&control), translate("50"));
    assert_eq!(control.readiness(), Default::default());
}

#[tokio::test]
async fn a_dropped_flag_whose_file_value_is_impossible_keeps_its_value() {
    let folder = folder();
    let partial =
        "[[flag]]\nname = 'ios-first'\nclient = 'ios-*'\nstage = 'translate'\npercent = 50\n";
    folder.write("flags.toml", partial);
    let mut control = folder.open().await;
    take(&mut control, &half(100), 1);
    folder.write("main.toml", &without_key());
    assert_eq!(control.reload(at(2)).await, Reloaded::Swapped);
    take(
        &mut control,
        &json!({"ios-first": {"errorCode": "FLAG_NOT_FOUND"}}),
        3,
    );
    assert_eq!(in_force(&control), translate("100"));
    assert_eq!(control.facts().source.unwrap().refused, 1);
}

#[tokio::test]
async fn a_value_that_a_reload_makes_impossible_takes_no_caller() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &half(5), 1);
    folder.write("main.toml", &without_key());
    assert_eq!(control.reload(at(2)).await, Reloaded::Swapped);
    assert_eq!(in_force(&control).1, "0");
    // Neither does the same value, or another one that is impossible.
    for percent in [5, 6] {
        take(&mut control, &half(percent), 3);
        assert_eq!(in_force(&control).1, "0");
    }
    let notes = control.readiness().notes.join("\n");
    assert!(notes.contains("`ios-first`"), "{notes}");
    folder.write("main.toml", &MAIN.replace("[[client]]", SOURCE));
    control.reload(at(4)).await;
    take(&mut control, &half(6), 5);
    assert_eq!(in_force(&control), translate("6"));
    assert_eq!(control.readiness(), Default::default());
}

#[tokio::test]
async fn a_response_without_any_known_flag_changes_nothing() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &json!({}), 1);
    assert_eq!(control.readiness(), Default::default());
    take(&mut control, &half(5), 2);
    for empty in [json!({}), json!({"unknown": {"value": 7}})] {
        let before = invalid_polls(&control);
        take(&mut control, &empty, 3);
        assert_eq!(in_force(&control), translate("5"));
        assert_eq!(invalid_polls(&control), before + 1);
        let note = control.readiness().notes.join("\n");
        assert!(note.contains("none of the flags"), "{note}");
    }
    take(
        &mut control,
        &json!({"ios-first": {"errorCode": "FLAG_NOT_FOUND"}}),
        4,
    );
    assert_eq!(in_force(&control), (Stage::Passthrough, "100".to_owned()));
    assert_eq!(control.readiness(), Default::default());
}

#[tokio::test]
async fn values_without_a_plan_are_read_again() {
    let folder = folder();
    let mut control = folder.open().await;
    // Another replica, whose clients have keys, has stored a flip that is impossible here.
    let flipped = flip("others", Stage::Translate, "50");
    let by = ChangeMeta {
        who: "bob".to_owned(),
        at: "1970-01-01T00:00:01.000Z".to_owned(),
        why: None,
    };
    let hash = control.text_hash("others");
    let changed = control
        .overrides
        .change(&flipped.change, 1, &by, |_| hash.clone());
    let Ok(ChangeResult::To(next)) = changed else {
        panic!("{changed:?}");
    };
    let text = next.written().unwrap();
    control.take(Versioned { revision: 1, text });
    let before = invalid_polls(&control);
    take(&mut control, &half(5), 2);
    assert_eq!(invalid_polls(&control), before + 1);
    assert_eq!(control.poll_request().unwrap().1, None);
    let notes = control.readiness().notes.join("\n");
    assert!(
        notes.contains("no plan can be compiled with the values of the source"),
        "{notes}"
    );
}

#[tokio::test]
async fn equal_values_of_another_source_are_copied() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &half(5), 1);
    control.flush().await;
    // This copy is pending when the source changes.
    take(&mut control, &half(6), 2);
    let text = MAIN.replace("[[client]]", &SOURCE.replace("127.0.0.1:1", "127.0.0.1:2"));
    folder.write("main.toml", &text);
    control.reload(at(3)).await;
    control.flush().await;
    let state = control.config().rollout.state.value.clone();
    let copy = || std::fs::read_to_string(state.join("source/source.json")).unwrap();
    let is_of = |port: u16| copy().contains(&format!("127.0.0.1:{port}/"));
    assert!(is_of(1));
    take(&mut control, &half(6), 4);
    control.flush().await;
    assert!(is_of(2));
    drop(control);
    let control = folder.begin(at(500)).await.unwrap();
    assert_eq!(in_force(&control), translate("6"));
}

#[tokio::test]
async fn a_source_that_a_reload_adds_does_not_make_a_replica_unready() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &half(5), 1);
    control.flush().await;
    for number in 0..2 {
        folder.write("main.toml", MAIN);
        control.reload(at(10)).await;
        assert_eq!(in_force(&control), (Stage::Passthrough, "100".to_owned()));
        folder.write("main.toml", &MAIN.replace("[[client]]", SOURCE));
        control.reload(at(20)).await;
        assert_eq!(control.readiness(), Default::default(), "{number}");
        assert_eq!(control.facts().source.unwrap().answered, at(20));
        assert_eq!(in_force(&control), (Stage::Passthrough, "100".to_owned()));
        fail(&mut control, 21);
        let readiness = control.readiness();
        assert_eq!(readiness.obstacles.len(), 0);
        assert!(
            readiness.notes[0].contains("calls are served without it"),
            "{readiness:?}"
        );
    }
}
