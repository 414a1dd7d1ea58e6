//! What metrics tell of decisions: the rule, the flag, and callers without a key.

use dualgauge_model::rollout::bucket;

use crate::stages::{CLIENTS, Scene, flag};

#[test]
fn metrics_tell_which_rule_has_decided_and_who_has_no_key() {
    let half = |name: &str, keys: &str| {
        flag(
            name,
            &format!("client = \"ios-app\"\nstage = \"translate\"\npercent = 50\n{keys}"),
        )
    };
    let flags = half("half", "route = \"agent.get\"")
        + &half("all-in", "route = \"agent.put\"\nwithout_key = \"in\"");
    let scene = Scene::of(CLIENTS, &flags);
    let device = |inside: bool| {
        let mut devices = (0..).map(|number| format!("device-{number}"));
        devices
            .find(|device| (bucket("half", device).get() < 50_000) == inside)
            .unwrap()
    };
    let (inside, outside) = (device(true), device(false));
    for (method, target, device) in [
        ("GET", "/agents/7", Some(&inside)),
        ("GET", "/agents/7", Some(&outside)),
        ("GET", "/agents/7", None),
        ("PUT", "/agents/7", None),
        ("GET", "/elsewhere", Some(&inside)),
    ] {
        let mut headers = vec![("X-Client-Id", "ios-1")];
        headers.extend(device.map(|device| ("X-Device-Id", device.as_str())));
        scene.served(method, target, &headers);
    }
    let metrics = scene.proxy.metrics();
    let decided = metrics.table(
        "dualgauge_decisions_total",
        &["client", "side", "reason", "flag"],
    );
    let expected = [
        ("ios-app rest default none", 2.0),
        ("ios-app rest keyless all-in", 1.0),
        ("ios-app rest share half", 1.0),
        ("ios-app rest unrouted none", 1.0),
    ];
    let decided = decided.iter().map(|(row, calls)| (row.as_str(), *calls));
    assert_eq!(decided.collect::<Vec<_>>(), expected);
    let keyless = metrics.table("dualgauge_keyless_calls_total", &["flag"]);
    assert_eq!((keyless["half"], keyless["all-in"]), (1.0, 1.0));
}
