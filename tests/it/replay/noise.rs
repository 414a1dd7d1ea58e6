//! Noise of one side: members that change by themselves are learned also from a replay to one server.

use std::sync::atomic::{AtomicU64, Ordering};

use dualgauge_recording::recording::RecordedCall;
use serde_json::{Value, json};

use super::{Replay, call, file};
use crate::scene::{Called, answer};
use crate::support::{Upstream, both};

/// The planted differences: a wrong value, another type of a member that changes, and a member that is missing.
const ROUTES: [(&str, &str, &str); 4] = [
    ("same", r#""total":7,"at":"T""#, ""),
    ("value", r#""total":8,"at":"T""#, "/body/total"),
    ("type", r#""total":7,"at":1"#, "/body/at"),
    ("missing", r#""at":"T""#, "/body/total"),
];

const RECORDED: &str = r#"{"total":7,"at":"2026-06-30T12:00:00Z"}"#;

fn routes() -> String {
    let routes = ROUTES.iter().map(|(name, ..)| {
        format!("[[route]]\nname = \"{name}\"\nrest = \"GET /{name}/{{id}}\"\nrpc = \"{name}\"\n")
    });
    routes.collect()
}

/// The members of a response: each time another time stamp, of the same type.
fn members(name: &str, clock: &AtomicU64) -> String {
    let now = clock.fetch_add(1, Ordering::Relaxed);
    let (_, members, _) = ROUTES.iter().find(|(route, ..)| *route == name).unwrap();
    let members = members.replace("\"T\"", &format!("\"time {now}\""));
    members.replace("\"at\":1", &format!("\"at\":{}", now + 1))
}

fn servers() -> (Upstream, Upstream) {
    let clock = AtomicU64::new(0);
    let old = Upstream::serving(move |request| {
        let target = request.head.start.split('/').nth(1).unwrap();
        let body = format!("{{{}}}", members(target, &clock));
        answer("200 OK", &[("Content-Type", "application/json")], &body)
    });
    let clock = AtomicU64::new(0);
    let new = Upstream::serving(move |request| {
        let called = Called::of(request);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{{}}}}}"#,
            called.id(),
            members(called.method(), &clock)
        );
        answer("200 OK", &[("Content-Type", "application/json")], text)
    });
    (old, new)
}

/// So many calls of each route.
fn recorded(calls: usize) -> Vec<RecordedCall> {
    let calls = (0..calls * ROUTES.len()).map(|number| {
        let (name, ..) = ROUTES[number % ROUTES.len()];
        call("GET", &format!("/{name}/{number}"), 200, RECORDED)
    });
    calls.collect()
}

fn fields(summary: &Value, route: &str) -> Vec<String> {
    let fields = summary["routes"][route]["fields"].as_object().unwrap();
    fields.keys().cloned().collect()
}

#[test]
fn a_changing_time_stamp_is_noise_and_hides_no_planted_difference() {
    let (old, new) = servers();
    let config = format!("{}{}", both(&old, &new), routes());
    let replay = Replay::new(&config, file(&recorded(50)));
    for way in ["new", "old"] {
        let (summary, code) = replay.json(&["--to", way]);
        assert_eq!((code, &summary["conclusion"]), (1, &json!("different")));
        for (name, _, field) in ROUTES {
            let route = &summary["routes"][name];
            let planted: Vec<_> = [field]
                .into_iter()
                .filter(|field| !field.is_empty())
                .collect();
            assert_eq!(fields(&summary, name), planted, "{way} {name}: {route}");
            let differ = if planted.is_empty() { 0 } else { 50 };
            assert_eq!(route["different"], differ, "{way} {name}: {route}");
        }
        assert_eq!(summary["routes"]["same"]["noisy"], 50, "{way}: {summary}");
    }
}

#[test]
fn a_bounded_number_of_calls_is_sent_twice_and_none_without_noise() {
    let (old, new) = servers();
    let config = format!("{}{}", both(&old, &new), routes());
    Replay::new(&config, file(&recorded(100))).json(&["--only", "same"]);
    let sent = new.requests().len();
    // The calls that start before the first ones end, the first three, and one percent.
    assert!((103..=130).contains(&sent), "{sent} requests for 100 calls");
    let (old, new) = servers();
    let none = "[rollout.candidates]\nnoise = 0\n";
    let config = format!("{}{}{none}", both(&old, &new), routes());
    let replay = Replay::new(&config, file(&recorded(10)));
    let (summary, code) = replay.json(&["--only", "same"]);
    assert_eq!((code, new.requests().len()), (1, 10));
    assert_eq!(fields(&summary, "same"), ["/body/at"]);
}

#[test]
fn an_unsafe_call_is_never_sent_twice() {
    let (old, new) = servers();
    let route = "[[route]]\nname = \"same\"\nrest = \"POST /same/{id}\"\nrpc = \"same\"\n";
    let config = format!("{}{route}", both(&old, &new));
    let calls: Vec<_> = (0..10)
        .map(|number| call("POST", &format!("/same/{number}"), 200, RECORDED))
        .collect();
    let (summary, code) = Replay::new(&config, file(&calls)).json(&["--unsafe"]);
    assert_eq!((code, new.requests().len()), (1, 10));
    assert_eq!(fields(&summary, "same"), ["/body/at"]);
}
