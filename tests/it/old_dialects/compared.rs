//! Old calls with a candidate, and flags with a guard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json as value;

use super::{BITCOIN, OLD_CALL, post};
use crate::scene::{Called, body_of, json, json_with};
use crate::support::{Proxy, Upstream, becomes, both, eventually};

/// A client whose callers have keys, and a flag for half of them.
pub(super) const APP: &str = "[[client]]\nname = \"app\"\nmatch = { header = { x-app = \"*\" } }\nkey = { header = \"x-device\" }\n";
pub(super) const FLAG: &str = "[[flag]]\nname = \"mover\"\nside = \"rest\"\nstage = \"translate\"\npercent = 50\nguard = { window = \"10s\", min_calls = 10 }\n";
/// The number of callers.
pub(super) const DEVICES: usize = 32;

/// The response of both servers to a call with this id.
fn old(result: &str) -> Upstream {
    let result = result.to_owned();
    Upstream::serving(move |request| {
        let id = &request.json()["id"];
        json(format!(r#"{{"result":{result},"error":null,"id":{id}}}"#))
    })
}

fn new(result: &str) -> Upstream {
    let result = result.to_owned();
    Upstream::serving(move |request| {
        let id = Called::of(request).id().to_owned();
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
    })
}

fn start(stage: &str, (old, new): (&Upstream, &Upstream)) -> Proxy {
    let routes = BITCOIN.replace(
        "name   = \"call\"\n",
        "name   = \"call\"\neffect = \"safe\"\n",
    );
    let config = format!(
        "{}{routes}\n[rollout.candidates]\nnoise = 0\n",
        both(old, new)
    );
    let flags = format!("[[flag]]\nname = \"compare\"\nstage = \"{stage}\"\n");
    Proxy::start_with_flags(&config, &flags)
}

fn verdicts(proxy: &Proxy) -> BTreeMap<String, f64> {
    let labels = ["route", "client", "side", "stage", "verdict"];
    proxy.metrics().table("dualgauge_verdicts_total", &labels)
}

fn one(row: &str) -> BTreeMap<String, f64> {
    BTreeMap::from([(row.to_owned(), 1.0)])
}

#[test]
fn an_old_call_in_shadow_is_compared_in_its_dialect() {
    for (result, verdict) in [("7", "match"), ("8", "mismatch")] {
        let (old, new) = (old("7"), new(result));
        let proxy = start("shadow", (&old, &new));
        let came = post(&proxy, OLD_CALL);
        assert_eq!(
            body_of(&came, 200),
            r#"{"result":7,"error":null,"id":"curl"}"#
        );
        let expected = one(&format!("call other rest shadow {verdict}"));
        becomes(|| verdicts(&proxy), &expected);
        assert_eq!(old.request().text(), OLD_CALL);
        let candidate = new.request();
        assert_eq!(Called::of(&candidate).method(), "getblockhash");
    }
}

#[test]
fn an_old_call_in_verify_gets_the_new_response_and_the_old_one_is_compared() {
    let (old, new) = (old("7"), new("8"));
    let proxy = start("verify", (&old, &new));
    let came = post(&proxy, OLD_CALL);
    assert_eq!(
        body_of(&came, 200),
        r#"{"result":8,"error":null,"id":"curl"}"#
    );
    becomes(|| verdicts(&proxy), &one("call other rest verify mismatch"));
    assert_eq!(old.request().text(), OLD_CALL);
    let line = proxy.log_line(&["dualgauge::mismatch", "call"]);
    assert!(line.contains("/body/result"), "{line}");
}

#[test]
fn the_messages_of_a_split_batch_have_candidates_and_those_of_a_whole_one_are_skipped() {
    let (old, new) = (old("7"), new("7"));
    let proxy = start("verify", (&old, &new));
    let batch = format!("[{OLD_CALL},{OLD_CALL}]");
    let came = post(&proxy, &batch).json();
    assert_eq!(came[1], value!({"result": 7, "error": null, "id": "curl"}));
    let expected = BTreeMap::from([("call other rest verify match".to_owned(), 2.0)]);
    becomes(|| verdicts(&proxy), &expected);
    let proxy = start("shadow", (&old, &new));
    post(&proxy, &batch);
    let skipped = r#"dualgauge_candidates_skipped_total{route="call",reason="batch_limit"}"#;
    becomes(|| proxy.metrics().value(skipped), &2.0);
}

#[test]
fn a_guard_takes_the_flag_of_old_calls_back() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let new = Upstream::serving(move |request| {
        let id = Called::of(request).id().to_owned();
        match failing.load(Ordering::Relaxed) {
            true => json_with("502 Bad Gateway", "{}"),
            false => json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":8}}"#)),
        }
    });
    let old = old("7");
    let config = format!("{}{BITCOIN}{APP}", both(&old, &new));
    let proxy = Proxy::start_with_flags(&config, FLAG);
    let call = |device: usize| {
        let headers = [("x-device", &*device.to_string()), ("x-app", "1")];
        let came = proxy.rest("POST", "/rpc", &headers, OLD_CALL);
        came.json()["result"].clone()
    };
    let results = || (0..DEVICES).map(call).collect::<Vec<_>>();
    let before = results();
    for result in [value!(7), value!(8)] {
        assert!(before.contains(&result), "{before:?}");
    }
    fails.store(true, Ordering::Relaxed);
    eventually("the guard takes the flag back", || {
        results();
        let flag = proxy.ask("GET", "/api/v1/flags/mover", "").json();
        flag["tripped"]["reason"].as_str().map(drop)
    });
    becomes(results, &vec![value!(7); DEVICES]);
}
