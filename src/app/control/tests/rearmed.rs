//! A flag that is tripped and armed again between two looks of a guard: on another replica, for instance.

use serde_json::{Value, json};

use super::{Folder, asked, at, flip};
use crate::app::control::Control;
use dualgauge_model::rollout::Stage;
use dualgauge_model::rollout::overrides::Change;

const GUARDED: &str = "
[[flag]]
name = 'guarded'
client = 'ios-*'
side = 'rest'
stage = 'translate'
percent = 50
guard = { window = '10s', min_calls = 10 }
";

/// Since when the guard has watched, as it is stored.
fn watching_since(control: &Control) -> Value {
    let watched = serde_json::to_value(&control.guards.watched["guarded"]).unwrap();
    watched["watch"]["seen"]["since"].clone()
}

fn millis(seconds: u64) -> Value {
    json!(seconds * 1000)
}

#[tokio::test]
async fn the_guard_begins_anew_though_it_has_never_seen_the_flag_tripped() {
    let folder = Folder::new();
    folder.write("flags.toml", GUARDED);
    let mut control = folder.open().await;
    control.observe(at(100)).await;
    control.observe(at(101)).await;
    assert_eq!(watching_since(&control), millis(100));

    let flag = || "guarded".to_owned();
    let trip = Change::Trip {
        flag: flag(),
        reason: "failures".to_owned(),
    };
    control.change(&asked(trip), at(102)).await.unwrap();
    let rearm = Change::Rearm { flag: flag() };
    control.change(&asked(rearm), at(103)).await.unwrap();
    control.observe(at(104)).await;
    assert_eq!(watching_since(&control), millis(104));

    // Once, and by nothing else.
    control.observe(at(105)).await;
    let flip = flip("guarded", Stage::Translate, "60");
    control.change(&flip, at(106)).await.unwrap();
    control.observe(at(107)).await;
    assert_eq!(watching_since(&control), millis(104));
    control.leave(108_000).await;
    control.flush().await;
    drop(control);

    // A process that begins later remembers both.
    let mut control = folder.open().await;
    control
        .report(crate::app::control::ReportCounts::default(), at(109))
        .await;
    control.observe(at(110)).await;
    assert_eq!(watching_since(&control), millis(104));
}
