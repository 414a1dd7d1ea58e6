//! A call that is explained by what is in force.

use http::{HeaderMap, HeaderValue, Method};

use super::{Folder, asked, at, flip};
use crate::app::control::Control;
use crate::server::admin::HypotheticalCall;
use dualgauge_model::explain::Explanation;
use dualgauge_model::rollout::Stage;
use dualgauge_model::rollout::overrides::Change;

const HELD_BACK: &str = "
[[flag]]
name = 'ios-first'
client = 'ios-*'
side = 'rest'
stage = 'translate'
holdback = 50
guard = { window = '10s', min_calls = 10 }
";

fn call(device: &str) -> HypotheticalCall {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("x-client-id", "ios-7"),
        ("x-device-id", device),
        ("authorization", "Bearer opensesame"),
    ] {
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    HypotheticalCall {
        method: Method::POST,
        target: Some("/tools/call".parse().unwrap()),
        headers,
        body: "{}".into(),
        from: None,
    }
}

fn told(control: &Control, call: &HypotheticalCall) -> Explanation {
    let told = control.explained(call);
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("opensesame"), "{text}");
    told.into_iter().next().unwrap()
}

/// The stage and the rule.
fn decided(control: &Control, call: &HypotheticalCall) -> (String, String) {
    let decision = told(control, call).decision.unwrap();
    (decision.stage.into_owned(), decision.why)
}

#[tokio::test]
async fn flips_trips_and_the_kill_switch_count() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let call = call("d");
    let said = |stage: &str, why: &str| (stage.to_owned(), why.to_owned());
    let change = async |control: &mut Control, change| {
        control.change(&asked(change), at(1)).await.unwrap();
    };
    assert_eq!(
        decided(&control, &call),
        said("passthrough", "flag ios-first")
    );
    let flip = flip("ios-first", Stage::Translate, "100");
    assert_eq!(changed(&control, &call), None);
    control.change(&flip, at(1)).await.unwrap();
    assert_eq!(
        decided(&control, &call),
        said("translate", "flag ios-first")
    );
    let flipped = "flipped to translate 100 % by anna 1970-01-01T00:00:01.000Z";
    assert_eq!(changed(&control, &call).as_deref(), Some(flipped));
    let trip = Change::Trip {
        flag: "ios-first".to_owned(),
        reason: "failures".to_owned(),
    };
    change(&mut control, trip).await;
    assert_eq!(decided(&control, &call), said("passthrough", "default"));
    let passed = told(&control, &call).decision.unwrap().passed_over;
    assert_eq!(
        (passed[0].flag.as_str(), &*passed[0].why),
        ("ios-first", "tripped")
    );
    let former = passed[0].changed.as_deref();
    assert_eq!(former, Some("tripped 1970-01-01T00:00:01.000Z: failures"));
    change(&mut control, Change::Kill).await;
    assert_eq!(decided(&control, &call), said("passthrough", "kill switch"));
    let thrown = "the kill switch was thrown by anna 1970-01-01T00:00:01.000Z";
    assert_eq!(changed(&control, &call).as_deref(), Some(thrown));
}

fn changed(control: &Control, call: &HypotheticalCall) -> Option<String> {
    told(control, call).decision.unwrap().changed
}

#[tokio::test]
async fn who_is_held_back_is_told_so() {
    let folder = Folder::new();
    folder.write("flags.toml", HELD_BACK);
    let control = folder.open().await;
    let mut seen = Vec::new();
    for device in 0..40 {
        let decision = told(&control, &call(&device.to_string())).decision.unwrap();
        seen.push(match &*decision.stage {
            "translate" => "taken".to_owned(),
            _ => decision.passed_over[0].why.to_string(),
        });
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["held_back", "taken"]);
}

#[tokio::test]
async fn what_narrows_a_flag_is_shown_where_something_does() {
    let folder = Folder::new();
    let narrow = HELD_BACK.replace("50", "2.5") + "header = { x-beta = '1*' }\n";
    let plain = "[[flag]]\nname = 'plain'\nstage = 'passthrough'\n";
    let narrow = narrow.replace("guard = { window = '10s', min_calls = 10 }\n", "");
    folder.write("flags.toml", &format!("{narrow}{plain}"));
    let control = folder.open().await;
    let shown = serde_json::to_value(control.flags()).unwrap();
    let [first, plain] = [&shown["flags"][0], &shown["flags"][1]];
    assert_eq!(first["headers"], serde_json::json!({"x-beta": "1*"}));
    assert_eq!(first["holdback"], serde_json::json!(2.5));
    assert!(plain.get("headers").is_none() && plain.get("holdback").is_none());
}
