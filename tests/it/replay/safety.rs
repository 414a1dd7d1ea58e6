//! Calls that are sent, and those that are not.

use serde_json::json;

use super::{Replay, body_of, call, file, rpc_call};
use crate::scene::{answer, json as json_answer, saying};
use crate::support::{Upstream, both, eventually, run_to_end};

const ROUTES: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
[[route]]
name = "items.make"
rest = "POST /items"
rpc = "items/make"
[[route]]
name = "items.find"
rest = "POST /find"
rpc = "items/find"
effect = "safe"
"#;

#[test]
fn a_call_that_may_have_an_effect_is_sent_only_if_that_is_asked_for() {
    let (old, new) = (json_upstream(), saying(r#""result":{"a":1}"#));
    let mut make = call("POST", "/items", 200, r#"{"a":1}"#);
    make.request.body = body_of(r#"{"name":"n"}"#);
    let message = r#"{"jsonrpc":"2.0","id":7,"method":"items/make","params":{"name":"n"}}"#;
    let made = rpc_call(message, r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#);
    let calls = file(&[make, made, call("GET", "/items/1", 200, r#"{"a":1}"#)]);
    let replay = Replay::new(&format!("{}{ROUTES}", both(&old, &new)), calls);
    for way in ["new", "old", "both"] {
        let (summary, code) = replay.json(&["--to", way]);
        assert_eq!((code, &summary["compared"]), (0, &json!(1)), "{summary}");
        let skipped = json!([{ "reason": "unsafe", "of": "items.make", "calls": 2, "numbers": [2, 3], "why": null }]);
        assert_eq!(summary["skipped"], skipped);
    }
    let is_unsafe = |request: &crate::support::Message| {
        request.head.start.starts_with("POST /items") || request.text().contains("items/make")
    };
    assert!(!old.requests().iter().chain(&new.requests()).any(is_unsafe));
    let (summary, code) = replay.json(&["--unsafe"]);
    assert_eq!((code, &summary["compared"]), (0, &json!(3)), "{summary}");
    assert_eq!(
        new.requests().iter().filter(|one| is_unsafe(one)).count(),
        1
    );
    assert_eq!(
        old.requests().iter().filter(|one| is_unsafe(one)).count(),
        1
    );
}

fn json_upstream() -> Upstream {
    Upstream::answering(json_answer(r#"{"a":1}"#))
}

#[test]
fn every_skipped_call_is_listed_with_its_reason() {
    let (old, new) = (json_upstream(), saying(r#""result":{"a":1}"#));
    let mut conditional = call("GET", "/items/1", 304, "");
    conditional.request.headers = vec![("if-none-match".into(), "\"1\"".into())];
    let mut omitted = call("POST", "/find", 200, "{}");
    omitted.request.body = dualgauge_recording::recording::RecordedBody::Omitted(9);
    let mut cut = call("POST", "/find", 200, "{}");
    (cut.request.body, cut.complete) = (body_of("{}"), false);
    let mut unanswered = call("GET", "/items/2", 200, "");
    unanswered.response = None;
    unanswered.route = Some("items.get".into());
    let notification = rpc_call(
        r#"{"jsonrpc":"2.0","method":"items/get","params":{"id":"1"}}"#,
        "",
    );
    let calls = [
        call("GET", "/elsewhere", 200, "{}"),
        conditional,
        omitted,
        cut,
        unanswered,
        call("GET", "no path", 200, "{}"),
        notification,
        rpc_call("no message", ""),
        call("GET", "/items/1", 200, r#"{"a":1}"#),
    ];
    let mut text = file(&calls);
    text.extend(b"{\"time\":1}\n");
    let replay = Replay::new(&format!("{}{ROUTES}", both(&old, &new)), text);
    let (summary, code) = replay.json(&[]);
    assert_eq!((code, &summary["compared"]), (0, &json!(1)), "{summary}");
    let skipped = summary["skipped"].as_array().unwrap().iter();
    let skipped: Vec<_> = skipped
        .map(|one| (one["reason"].as_str().unwrap(), &one["numbers"]))
        .collect();
    let numbers = |number: u64| json!([number]);
    let expected = [
        ("body_not_recorded", numbers(4)),
        ("conditional", numbers(3)),
        ("incomplete", numbers(5)),
        ("invalid", numbers(7)),
        ("no_response", numbers(6)),
        ("notification", numbers(8)),
        ("refused", numbers(9)),
        ("unreadable", numbers(11)),
        ("unrouted", numbers(2)),
    ];
    let expected = expected.each_ref().map(|(reason, of)| (*reason, of));
    assert_eq!(skipped, expected);
    let ended = replay.run(&["--only", "items.make"]);
    assert_eq!(ended.code, Some(2), "nothing is compared: {ended:?}");
    let last = ended.output.lines().next_back().unwrap();
    assert_eq!(
        last,
        "0 calls compared (new with recorded): nothing proven; 6 skipped; 4 not selected by `--only`"
    );
    let listed = "skipped: no_response items.get: 1 call: 6";
    for (only, is_listed) in [("items.make", false), ("items.get", true)] {
        let ended = replay.run(&["--only", only]);
        assert_eq!(ended.output.contains(listed), is_listed, "{ended:?}");
    }
}

#[test]
fn placeholders_and_credentials_are_not_sent_and_hidden_values_not_compared() {
    let (old, new) = (json_upstream(), saying(r#""result":{"a":1,"token":"t"}"#));
    let mut hidden = call(
        "GET",
        "/items/1",
        200,
        r#"{"a":1,"token":{"redacted":"string"}}"#,
    );
    hidden.request.headers = vec![
        ("x-token".into(), "[redacted]".into()),
        ("authorization".into(), "Bearer secret".into()),
        ("x-kept".into(), "1".into()),
    ];
    hidden.redacted = vec![
        "request.headers.x-token".into(),
        "response.body/token".into(),
    ];
    let mut only_response = call("GET", "/items/2", 200, r#"{"a":2,"token":""}"#);
    only_response.redacted = vec!["response.body/token".into()];
    let calls = file(&[hidden.clone(), only_response]);
    let config = format!(
        "{}{ROUTES}[upstream.new.pass]\nheaders = [\"*\"]\n",
        both(&old, &new)
    );
    let config = config.replace("[upstream.new.pass]\nheaders = [\"*\"]\n", "");
    let replay = Replay::new(&config, calls);
    let mut command = replay.command(&[
        "--format",
        "json",
        "--header",
        "authorization: Bearer {env:TOKEN}",
    ]);
    command.env("TOKEN", "given");
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let summary: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
    let route = &summary["routes"]["items.get"];
    assert_eq!(
        (&route["redacted"], &route["different"]),
        (&json!(2), &json!(1)),
        "{route}"
    );
    let fields: Vec<_> = route["fields"].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["/body/a"],
        "the second call differs in a value that is not hidden"
    );
    for request in new.requests() {
        assert_eq!(request.head.one("authorization"), Some("Bearer given"));
        assert_eq!(request.head.one("x-token"), None);
    }
    // The request with a placeholder may have another response, so its difference is uncertain.
    hidden.response.as_mut().unwrap().body = body_of(r#"{"a":3}"#);
    let replay = Replay::new(&config, file(&[hidden]));
    let (summary, code) = replay.json(&[]);
    assert_eq!(
        (code, &summary["routes"]["items.get"]["uncertain"]),
        (0, &json!(1)),
        "{summary}"
    );
}

#[test]
fn a_call_without_a_recorded_body_is_compared_by_its_status() {
    let (old, new) = (json_upstream(), saying(r#""result":{"a":1}"#));
    let omitted = |target: &str, status: u16| {
        let mut omitted = call("GET", target, status, "");
        omitted.response.as_mut().unwrap().body =
            dualgauge_recording::recording::RecordedBody::Omitted(9);
        omitted
    };
    let config = format!("{}{ROUTES}", both(&old, &new));
    let (summary, code) = Replay::new(&config, file(&[omitted("/items/1", 200)])).json(&[]);
    assert_eq!(
        (code, &summary["routes"]["items.get"]["by_status"]),
        (0, &json!(1)),
        "{summary}"
    );
    let ended = Replay::new(&config, file(&[omitted("/items/1", 404)])).run(&[]);
    assert_eq!(ended.code, Some(1));
    let note = "note: 1 call compared by status only, because the body of the response is missing, incomplete or redacted as a whole; `dualgauge record --bodies` records bodies of at most 4 MiB";
    assert!(ended.output.lines().any(|line| line == note), "{ended:?}");
    assert!(
        ended.output.contains("1 compared by status only"),
        "{ended:?}"
    );
    assert!(
        ended
            .output
            .contains("call 2 GET /items/1: status /status: candidate 200, control 404"),
        "{ended:?}"
    );
}

#[test]
fn a_control_that_failed_proves_nothing() {
    let (old, new) = (json_upstream(), saying(r#""result":{"a":1}"#));
    let config = format!("{}{ROUTES}", both(&old, &new));
    let failed = call("GET", "/items/1", 502, "");
    let ended = Replay::new(&config, file(&[failed.clone(), failed.clone()])).run(&[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let last = "2 calls compared (new with recorded): nothing proven";
    assert!(ended.output.ends_with(last), "{ended:?}");
    let calls = [failed, call("GET", "/items/1", 200, r#"{"a":1}"#)];
    let ended = Replay::new(&config, file(&calls)).run(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last = "2 calls compared (new with recorded): all equal, except 1 whose control failed";
    assert!(ended.output.ends_with(last), "{ended:?}");
}

#[test]
fn noise_is_learned_from_either_server() {
    let count = std::sync::atomic::AtomicU64::new(0);
    let count = std::sync::Arc::new(count);
    let next = move || count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let counted = next.clone();
    let old = Upstream::serving(move |_| json_answer(format!(r#"{{"a":1,"at":{}}}"#, counted())));
    let new = Upstream::serving(move |request| {
        let called = crate::scene::Called::of(request);
        let (id, at) = (called.id(), next());
        json_answer(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":1,"at":{at}}}}}"#
        ))
    });
    let calls: Vec<_> = (0..50)
        .map(|id| call("GET", &format!("/items/{id}"), 200, r#"{"a":1,"at":0}"#))
        .collect();
    let replay = Replay::new(&format!("{}{ROUTES}", both(&old, &new)), file(&calls));
    let (summary, code) = replay.json(&["--to", "both"]);
    assert_eq!(
        (code, &summary["conclusion"]),
        (0, &json!("equal")),
        "{summary}"
    );
    assert_eq!(summary["routes"]["items.get"]["noisy"], 50);
    let (summary, code) = replay.json(&["--to", "new"]);
    assert_eq!((code, &summary["different"]), (0, &json!(0)), "{summary}");
    assert_eq!(summary["routes"]["items.get"]["noisy"], 50);
}

#[test]
fn a_signal_ends_the_replay_with_the_summary_so_far() {
    let (old, new) = (
        json_upstream(),
        Upstream::serving(|request| {
            let called = crate::scene::Called::of(request);
            match called.params().contains("\"1\"") {
                true => json_answer(format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":{{"a":1}}}}"#,
                    called.id()
                )),
                // It answers this one never: the connection stays open.
                false => answer("100 Continue", &[], ""),
            }
        }),
    );
    let calls = file(&[
        call("GET", "/items/1", 200, r#"{"a":1}"#),
        call("GET", "/items/2", 200, r#"{"a":1}"#),
    ]);
    let config = format!(
        "{}{ROUTES}[rollout.candidates]\nconcurrency = 1\ntimeout = \"60s\"\n",
        both(&old, &new)
    );
    let replay = Replay::new(&config, calls);
    let child = replay.command(&["--format", "json"]).spawn().unwrap();
    // The first call is sent twice.
    eventually("the second call", || {
        (new.requests().len() == 3).then_some(())
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["interrupted"], &summary["compared"]),
        (&json!(true), &json!(1)),
        "{summary}"
    );
}

#[test]
fn the_verdict_of_a_call_with_placeholders_is_marked_redacted() {
    let (old, new) = (json_upstream(), saying(r#""result":{"a":1,"token":"t"}"#));
    let with = |id: u32, body: &str, place: Option<&str>| {
        let mut call = call("GET", &format!("/items/{id}"), 200, body);
        call.redacted.extend(place.map(str::to_owned));
        call
    };
    let (equal, differs) = (r#"{"a":1,"token":"***"}"#, r#"{"a":2,"token":"***"}"#);
    let calls = file(&[
        with(1, r#"{"a":1,"token":"t"}"#, None),
        with(2, equal, Some("response.body/token")),
        with(3, equal, Some("response.body/token")),
        with(4, differs, Some("response.body/token")),
        with(5, r#"{"a":2,"token":"t"}"#, None),
        with(6, r#"{"a":2,"token":"t"}"#, Some("request.query.a")),
    ]);
    let replay = Replay::new(&format!("{}{ROUTES}", both(&old, &new)), calls);
    let junit = replay.0.path().join("replay.xml");
    let (summary, code) = replay.json(&["--junit", junit.to_str().unwrap()]);
    assert_eq!(code, 1, "{summary}");
    let route = &summary["routes"]["items.get"];
    assert_eq!(route["verdicts"], json!({ "match": 3, "mismatch": 3 }));
    assert_eq!(
        route["redacted_verdicts"],
        json!({ "match": 2, "mismatch": 2 })
    );
    let field = &route["fields"]["/body/a"];
    assert_eq!(
        (&field["calls"], &field["redacted"]),
        (&json!(3), &json!(2))
    );
    let samples = field["samples"].as_array().unwrap();
    let marks: Vec<_> = samples.iter().map(|sample| &sample["redacted"]).collect();
    assert_eq!(marks, [true, false, true]);
    let text = replay.run(&[]).output;
    let verdicts = "6 calls, 3 equal (2 redacted), 3 differ (2 redacted), 1 uncertain, because of placeholders in the request";
    for line in [
        format!("items.get: {verdicts}").as_str(),
        "  /body/a  3 calls (2 redacted) (value)",
        "    call 5 GET /items/4 (redacted): value /body/a: candidate 1, control 2",
        "    call 6 GET /items/5: value /body/a: candidate 1, control 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let junit = std::fs::read_to_string(junit).unwrap();
    for part in [
        "/body/a: 3 calls (2 redacted) (value), first in call 5 (redacted)",
        &format!("</failure><system-out>{verdicts}</system-out></testcase>"),
    ] {
        assert!(junit.contains(part), "{part}\n{junit}");
    }
}

#[test]
fn the_rate_limits_the_calls_and_a_short_replay_shows_no_progress() {
    let (old, new) = (json_upstream(), saying(r#""result":{"a":1}"#));
    let calls: Vec<_> = (0..31)
        .map(|id| call("GET", &format!("/items/{id}"), 200, r#"{"a":1}"#))
        .collect();
    let replay = Replay::new(&format!("{}{ROUTES}", both(&old, &new)), file(&calls));
    #[expect(clippy::disallowed_methods, reason = "the pace of another process")]
    let now = std::time::Instant::now;
    let began = now();
    let ended = replay.run(&["--rate", "50"]);
    assert!(began.elapsed() >= std::time::Duration::from_millis(600));
    assert_eq!(
        (ended.code, ended.errors.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
}
