//! The values of a source: in force over flips and ramps, under trips and the kill switch.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};
use serde_json::json;
use tokio::time::timeout;

use super::{Folder, MAIN, asked, at, flip, unflip};
use crate::app::control::Control;
use crate::app::control::polling::{PollOutcome, SourcePolls};
use crate::server::admin::{FlagView, HypotheticalCall, Refusal};
use crate::store::{PollError, PolledFlags};
use crate::telemetry::clock::now;
use dualgauge_model::ofrep::read_sourced;
use dualgauge_model::rollout::overrides::Change;
use dualgauge_model::rollout::{Arming, Kill, Stage};

pub(super) const SOURCE: &str = "[rollout.source]\nurl = 'http://127.0.0.1:1'\n[[client]]";
const URL: &str = "http://127.0.0.1:1/";

pub(super) fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("main.toml", &MAIN.replace("[[client]]", SOURCE));
    folder
}

/// Applies a response with these values of flags.
pub(super) fn take(control: &mut Control, flags: &serde_json::Value, seconds: u64) -> Duration {
    let flags = flags.as_object().unwrap();
    let rows = flags.iter().map(|(name, value)| {
        let mut row = value.clone();
        row["key"] = json!(format!("flag:{name}"));
        row
    });
    let body = json!({"flags": rows.collect::<Vec<_>>()}).to_string();
    let values = read_sourced(body.as_bytes(), "flag:").unwrap();
    let tag = Some(HeaderValue::from_static("\"1\""));
    end(control, Ok(PolledFlags::Values { values, tag }), seconds)
}

fn end(control: &mut Control, result: Result<PolledFlags, PollError>, seconds: u64) -> Duration {
    let (settings, _) = control.poll_request().unwrap();
    control.take_polled(PollOutcome { settings, result }, at(seconds))
}

pub(super) fn fail(control: &mut Control, seconds: u64) -> Duration {
    end(
        control,
        Err(PollError::Late(Duration::from_secs(2))),
        seconds,
    )
}

pub(super) fn half(percent: u32) -> serde_json::Value {
    json!({"ios-first": {"value": {"stage": "translate", "percent": percent}}})
}

pub(super) fn flag(control: &Control, name: &str) -> FlagView {
    control.flag(name).unwrap()
}

pub(super) fn in_force(control: &Control) -> (Stage, String) {
    let view = flag(control, "ios-first");
    (view.stage, view.percent.to_string())
}

pub(super) fn translate(percent: &str) -> (Stage, String) {
    (Stage::Translate, percent.to_owned())
}

#[tokio::test]
async fn a_value_of_the_source_replaces_a_flip_until_the_source_drops_it() {
    let folder = folder();
    let mut control = folder.open().await;
    let flipped = flip("ios-first", Stage::Shadow, "100");
    control.change(&flipped, at(1)).await.unwrap();
    assert_eq!(take(&mut control, &half(5), 2), Duration::from_secs(5));
    assert_eq!(in_force(&control), translate("5"));
    let by = flag(&control, "ios-first").flipped.unwrap();
    assert_eq!((by.who.as_str(), by.why.as_deref()), ("source", Some(URL)));
    for change in [
        flipped.clone(),
        unflip("ios-first"),
        asked(Change::Undo {
            flag: Some("ios-first".to_owned()),
        }),
        asked(Change::Undo { flag: None }),
    ] {
        let refused = control.change(&change, at(3)).await;
        let Err(refusal @ Refusal::Governed { .. }) = refused else {
            panic!("{change:?}: {refused:?}");
        };
        let text = refusal.to_string();
        assert_eq!(
            text,
            format!("the flag `ios-first` follows the source {URL}; change it there")
        );
    }
    // Another flag is free, and its change can be undone.
    let other = flip("others", Stage::Translate, "100");
    control.change(&other, at(4)).await.unwrap();
    control
        .change(&asked(Change::Undo { flag: None }), at(5))
        .await
        .unwrap();
    take(
        &mut control,
        &json!({"ios-first": {"errorCode": "FLAG_NOT_FOUND"}}),
        6,
    );
    assert_eq!(in_force(&control), (Stage::Shadow, "100".to_owned()));
    control.change(&unflip("ios-first"), at(7)).await.unwrap();
}

#[tokio::test]
async fn trips_and_the_kill_switch_win() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &half(5), 1);
    let trip = Change::Trip {
        flag: "ios-first".to_owned(),
        reason: "worse".to_owned(),
    };
    control.change(&asked(trip), at(2)).await.unwrap();
    take(&mut control, &half(6), 3);
    let is_tripped = |control: &Control| flag(control, "ios-first").tripped.is_some();
    assert!(is_tripped(&control));
    let arming = |control: &Control| control.plan().rollout.flags[0].arming;
    assert_eq!(arming(&control), Arming::Tripped);
    assert_eq!(in_force(&control), translate("6"));
    let rearm = Change::Rearm {
        flag: "ios-first".to_owned(),
    };
    control.change(&asked(rearm), at(4)).await.unwrap();
    assert!(!is_tripped(&control));
    assert_eq!(arming(&control), Arming::Armed);
    control.change(&asked(Change::Kill), at(5)).await.unwrap();
    take(&mut control, &half(7), 6);
    assert!(control.flags().kill.is_some());
    assert_eq!(control.plan().rollout.kill, Kill::On);
    control.change(&asked(Change::Revive), at(7)).await.unwrap();
    assert_eq!(in_force(&control), translate("7"));
}

#[tokio::test]
async fn a_flag_that_is_off_takes_nobody() {
    let folder = folder();
    folder.write(
        "flags.toml",
        "[[flag]]\nname = 'ios-first'\nclient = 'ios-*'\nstage = 'translate'\npercent = 50\nwithout_key = 'in'\n",
    );
    let mut control = folder.open().await;
    take(
        &mut control,
        &json!({"ios-first": {"reason": "DISABLED"}}),
        1,
    );
    assert_eq!(in_force(&control), translate("0"));
    let plan = control.plan();
    let off = &plan.rollout.flags[0];
    assert_eq!(off.without_key, dualgauge_model::rollout::WithoutKey::Out);
}

#[tokio::test]
async fn a_value_that_cannot_be_used_changes_nothing_for_its_flag() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &half(5), 1);
    let notes = |control: &Control| control.readiness().notes.join("\n");
    assert_eq!(notes(&control), "");
    // No value of the protocol; and a share of callers without keys.
    for (wrong, text) in [
        (json!({"value": true}), "neither a stage"),
        (
            json!({"errorCode": "GENERAL"}),
            "the source reports `GENERAL`",
        ),
    ] {
        let others = json!({"value": {"stage": "shadow"}});
        take(
            &mut control,
            &json!({"ios-first": wrong, "others": others}),
            2,
        );
        assert_eq!(in_force(&control), translate("5"));
        assert_eq!(flag(&control, "others").stage, Stage::Shadow);
        assert!(notes(&control).contains(text), "{}", notes(&control));
    }
    let share = json!({"value": {"stage": "translate", "percent": 5}});
    take(
        &mut control,
        &json!({"ios-first": half(9)["ios-first"], "others": share}),
        3,
    );
    assert_eq!(in_force(&control), translate("9"));
    assert_eq!(flag(&control, "others").stage, Stage::Shadow);
    assert!(
        notes(&control).contains("no key for `other`"),
        "{}",
        notes(&control)
    );
    let source = control.facts().source.unwrap();
    assert_eq!((source.governed, source.refused), (2, 1));
    take(&mut control, &half(9), 4);
    assert_eq!(notes(&control), "");
    assert_eq!(flag(&control, "others").stage, Stage::Passthrough);
}

#[tokio::test]
async fn the_last_good_values_survive_failures_and_a_restart() {
    let folder = folder();
    let mut control = folder.open().await;
    let unknown = "the source of flags has not answered yet";
    assert_eq!(control.readiness().obstacles, [unknown]);
    let delays: Vec<u64> = (1..6)
        .map(|second| fail(&mut control, second).as_secs())
        .collect();
    assert!(
        delays.is_sorted() && delays[0] >= 3 && delays[4] >= 45,
        "{delays:?}"
    );
    let readiness = control.readiness();
    assert_eq!(readiness.obstacles.len(), 0);
    assert!(
        readiness.notes[0].contains("calls are served without it"),
        "{readiness:?}"
    );
    take(&mut control, &half(5), 100);
    assert_eq!(control.readiness(), Default::default());
    fail(&mut control, 110);
    assert_eq!(in_force(&control), translate("5"));
    let note = &control.readiness().notes[0];
    assert!(
        note.contains("its values of 1970-01-01T00:01:40.000Z stay in force"),
        "{note}"
    );
    control.flush().await;
    drop(control);
    let control = folder.begin(at(500)).await.unwrap();
    assert_eq!(in_force(&control), translate("5"));
    assert_eq!(control.readiness().obstacles.len(), 0);
    drop(control);
    // A value that the files no longer allow does not keep the process from starting. The flag takes no caller.
    let text = MAIN.replace("[[client]]", SOURCE);
    folder.write(
        "main.toml",
        &text.replace("key = { header = 'x-device-id' }", ""),
    );
    let control = folder.begin(at(600)).await.unwrap();
    assert_eq!(in_force(&control), (Stage::Passthrough, "0".to_owned()));
    assert_eq!(control.facts().source.unwrap().refused, 1);
}

#[tokio::test]
async fn another_source_governs_once_it_answers_and_none_governs_nothing() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &half(5), 1);
    let (old, _) = control.poll_request().unwrap();
    let text = MAIN.replace("[[client]]", &SOURCE.replace("127.0.0.1:1", "127.0.0.1:2"));
    folder.write("main.toml", &text);
    control.reload(at(2)).await;
    assert_eq!(in_force(&control), translate("5"));
    // The response of the first one comes too late.
    let result = Err(PollError::TooLong);
    let outcome = PollOutcome {
        settings: old,
        result,
    };
    assert_eq!(control.take_polled(outcome, at(3)), Duration::ZERO);
    assert_eq!(control.readiness(), Default::default());
    take(&mut control, &half(6), 4);
    assert_eq!(in_force(&control), translate("6"));
    folder.write("main.toml", MAIN);
    control.reload(at(5)).await;
    assert_eq!(in_force(&control), (Stage::Passthrough, "100".to_owned()));
    assert_eq!(control.poll_request(), None);
    assert_eq!(control.facts().source, None);
}

#[tokio::test]
async fn an_explanation_names_the_source() {
    let folder = folder();
    let mut control = folder.open().await;
    take(&mut control, &half(100), 1);
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "localhost"),
        ("x-client-id", "ios-7"),
        ("x-device-id", "d"),
    ] {
        headers.append(name, HeaderValue::from_static(value));
    }
    let call = HypotheticalCall {
        method: Method::POST,
        target: Some("/tools/call".parse().unwrap()),
        headers,
        body: "{}".into(),
        from: None,
    };
    let found = control.explained(&call).remove(0).decision.unwrap();
    let expected =
        format!("set to translate 100 % by the source {URL} at 1970-01-01T00:00:01.000Z");
    assert_eq!(found.changed, Some(expected));
}

#[tokio::test(start_paused = true)]
async fn a_poll_is_due_after_its_delay_and_survives_a_dropped_wait() {
    let folder = folder();
    let control = folder.open().await;
    let mut polls = SourcePolls::new();
    let begun = now();
    polls.next(control.poll_request()).await.result.unwrap_err();
    polls.wait(Duration::from_secs(7));
    let later = now();
    assert!(later - begun <= Duration::from_secs(2));
    // The control task drops the wait with each command.
    for _ in 0..20 {
        let wait = timeout(
            Duration::from_millis(250),
            polls.next(control.poll_request()),
        );
        assert!(wait.await.is_err());
    }
    polls.next(control.poll_request()).await.result.unwrap_err();
    assert!(now() - later >= Duration::from_secs(7));
    let without = timeout(Duration::from_secs(3600), polls.next(None));
    assert!(without.await.is_err());
}
