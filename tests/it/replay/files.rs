//! Files: recordings, HAR files, and everything else.

use std::fs;

use dualgauge_recording::recording::RecordedCall;
use serde_json::json;

use super::{Replay, call, file, rpc_call};
use crate::scene::{json as json_answer, saying};
use crate::support::{Upstream, both};

const ROUTES: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
"#;

fn config() -> (String, Upstream, Upstream) {
    let old = Upstream::answering(json_answer(r#"{"a":1}"#));
    let new = saying(r#""result":{"a":1}"#);
    (format!("{}{ROUTES}", both(&old, &new)), old, new)
}

#[test]
fn a_har_file_of_a_browser_is_replayed() {
    let har = json!({ "log": { "version": "1.2", "creator": { "name": "WebInspector", "version": "537.36" }, "entries": [
        {
            "_priority": "High", "startedDateTime": "2026-06-30T12:00:00.000Z", "time": 12.5,
            "request": { "method": "GET", "url": "https://old.example/items/1#top", "httpVersion": "h2",
                "headers": [{ "name": ":method", "value": "GET" }, { "name": "Cookie", "value": "secret" },
                    { "name": "Origin", "value": "https://page.example" }, { "name": "Accept-Encoding", "value": "zstd" }] },
            "response": { "status": 200, "headers": [{ "name": "Content-Encoding", "value": "zstd" },
                    { "name": "Content-Type", "value": "application/json" }],
                "content": { "size": 7, "mimeType": "application/json", "text": "eyJhIjoxfQ==", "encoding": "base64" } },
            "timings": { "send": 0, "wait": 12, "receive": 0.5 },
        },
        { "request": { "method": "GET", "url": "https://cdn.example/page.js", "headers": [] },
          "response": { "status": 200, "headers": [], "content": { "size": 3, "text": "1+1" } } },
        { "request": { "method": "GET", "url": "blob:https://old.example/1" }, "response": { "status": 200 } },
    ] } });
    let (config, old, new) = config();
    let replay = Replay::new(&config, har.to_string());
    for way in ["new", "old", "both"] {
        let (summary, code) = replay.json(&["--to", way]);
        assert_eq!(
            (code, &summary["compared"]),
            (0, &json!(1)),
            "{way}: {summary}"
        );
        assert_eq!(summary["skipped_calls"], 2);
    }
    for request in old.requests().iter().chain(&new.requests()) {
        assert_eq!(
            (request.head.one("cookie"), request.head.one("origin")),
            (None, None)
        );
    }
    let ended = replay.run(&[]);
    let lines: Vec<_> = ended
        .output
        .lines()
        .filter(|line| !line.contains("time new"))
        .collect();
    assert_eq!(
        lines,
        [
            "items.get: 1 call, 1 equal",
            "  time recorded: p50 12.2, p90 12.2, p99 12.2, longest 12.5 ms",
            "skipped: unreadable: 1 call: 3 (its URL is not one of HTTP)",
            "skipped: unrouted GET /page.js: 1 call: 2",
            "1 call compared (new with recorded): all equal; 2 skipped",
        ]
    );
}

#[test]
fn rpc_calls_and_batches_are_replayed_call_by_call() {
    let (config, old, new) = config();
    let get = |id: u32| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"items/get","params":{{"id":"{id}"}}}}"#)
    };
    let got = |id: u32, a: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":{a}}}}}"#);
    let batch = format!("[{},{}]", get(2), get(3));
    let answers = format!("[{},{}]", got(3, 5), got(2, 1));
    let calls = file(&[rpc_call(&get(1), &got(1, 1)), rpc_call(&batch, &answers)]);
    let replay = Replay::new(&config, calls);
    let (summary, code) = replay.json(&[]);
    assert_eq!(
        (code, &summary["compared"], &summary["different"]),
        (1, &json!(3), &json!(1)),
        "{summary}"
    );
    let field = &summary["routes"]["items.get"]["fields"]["/result/a"];
    assert_eq!(
        (&field["calls"], &field["samples"][0]["number"]),
        (&json!(1), &json!(3))
    );
    // The first three calls of a route are sent twice.
    assert_eq!((old.requests().len(), new.requests().len()), (6, 0));
    let (summary, code) = replay.json(&["--to", "both"]);
    assert_eq!((code, &summary["compared"]), (0, &json!(3)), "{summary}");
}

#[test]
fn truncated_and_foreign_files_are_told_clearly() {
    let (config, ..) = config();
    let whole = file(&[
        call("GET", "/items/1", 200, r#"{"a":1}"#),
        call("GET", "/items/2", 200, r#"{"a":1}"#),
    ]);
    let ended = Replay::new(&config, &whole[..whole.len() - 20]).run(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let note = "note: line 3: the file ends inside this line; the calls before it are whole; later calls are not compared";
    assert!(ended.output.lines().any(|line| line == note), "{ended:?}");
    for (text, expected) in [
        ("", "the file is empty; a recording begins with a line"),
        (
            "{\"format\":\"dualgauge-recording\",\"version\":9}\n",
            "use a newer dualgauge",
        ),
        (
            "{\"format\":\"dualgauge-rec",
            "this is no recording: the first line has no",
        ),
        ("{\"format\":\"other\"}\n", "this is no recording"),
        (
            "{\"log\":{\"entries\":[{\"requ",
            "the file ends in line 1, inside a value: it was truncated",
        ),
        (
            "{\"openapi\":\"3.1.0\"}",
            "this is no HAR file: missing field `log`",
        ),
        ("{\"log\":{,}}", "the file is not JSON"),
        (
            "127.0.0.1 - - [30/Jun/2026] \"GET / HTTP/1.1\" 200",
            "is neither a recording of dualgauge nor a HAR file",
        ),
        (
            "\u{1f}\u{8b}",
            "is neither a recording of dualgauge nor a HAR file",
        ),
    ] {
        let ended = Replay::new(&config, text).run(&[]);
        assert_eq!(
            (ended.code, ended.output.as_str()),
            (Some(2), ""),
            "{text}: {ended:?}"
        );
        assert!(ended.errors.contains(expected), "{text}: {}", ended.errors);
    }
}

#[test]
fn a_wrong_command_or_configuration_cannot_run() {
    let (config, _old, new) = config();
    let calls = file(&[call("GET", "/items/1", 200, r#"{"a":1}"#)]);
    let replay = Replay::new(&config, &calls);
    for more in [
        &["--header", "no header"][..],
        &["--rate", "0"],
        &["--header", "a: {env:NONE}"],
        &["--junit", "/no/such/folder/a.xml"],
    ] {
        let ended = replay.run(more);
        assert_eq!(
            (ended.code, ended.output.as_str()),
            (Some(2), ""),
            "{more:?}: {ended:?}"
        );
    }
    assert!(
        new.requests().is_empty(),
        "a call was sent before the files were opened"
    );
    let ended = Replay::new("[[route]]\nname = 1\n", &calls).run(&[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn a_pipeline_reads_the_results_as_junit() {
    let (config, ..) = config();
    let calls = [
        call("GET", "/items/1", 200, r#"{"a":2}"#),
        call("GET", "/<&>", 200, "{}"),
    ];
    let replay = Replay::new(&config, file(&calls[..1]));
    let path = replay.0.path().join("replay.xml");
    let ended = replay.run(&["--junit", path.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = std::fs::read_to_string(path).unwrap();
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
<testsuite name="dualgauge replay: new with recorded" tests="1" failures="1" errors="0" skipped="0">
<testcase classname="dualgauge.replay" name="items.get"><failure message="1 of 1 call differs">/body/a: 1 call (value), first in call 2</failure></testcase>
</testsuite>
</testsuites>
"#;
    assert_eq!(found, expected);
}

#[test]
fn junit_skips_a_route_without_a_valid_control() {
    let (config, _old, _new) = config();
    let junit = |calls: &[RecordedCall]| {
        let replay = Replay::new(&config, file(calls));
        let path = replay.0.path().join("replay.xml");
        let ended = replay.run(&["--junit", path.to_str().unwrap()]);
        (ended.code, std::fs::read_to_string(path).unwrap())
    };
    let failed = call("GET", "/items/1", 502, "");
    let (code, found) = junit(&[failed.clone(), failed.clone()]);
    assert_eq!(code, Some(2), "{found}");
    for part in [
        r#" tests="1" failures="0" errors="0" skipped="1">"#,
        r#" name="items.get"><skipped message="control of 2 calls failed"/></testcase>"#,
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
    let (code, found) = junit(&[failed, call("GET", "/items/1", 200, r#"{"a":1}"#)]);
    assert_eq!(code, Some(0), "{found}");
    for part in [
        r#" tests="1" failures="0" errors="0" skipped="0">"#,
        r#" name="items.get"><system-out>2 calls, 1 equal, 1 control failed</system-out></testcase>"#,
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
}

#[test]
fn the_results_are_metrics_of_a_textfile_collector() {
    let (config, ..) = config();
    let calls = [
        call("GET", "/items/1", 200, r#"{"a":2}"#),
        call("GET", "/none", 200, "{}"),
    ];
    let replay = Replay::new(&config, file(&calls));
    let path = replay.0.path().join("replay.prom");
    let ended = replay.run(&["--metrics", path.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = std::fs::read_to_string(path).unwrap();
    let found: Vec<_> = found
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let expected = [
        r#"dualgauge_replay_calls{route="items.get",verdict="mismatch"} 1"#,
        r#"dualgauge_replay_different_calls{route="items.get"} 1"#,
        r#"dualgauge_replay_skipped_calls{reason="unrouted"} 1"#,
        r#"dualgauge_replay_conclusion{conclusion="equal"} 0"#,
        r#"dualgauge_replay_conclusion{conclusion="different"} 1"#,
        r#"dualgauge_replay_conclusion{conclusion="unproven"} 0"#,
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_recording_becomes_a_har_file_with_the_same_results() {
    let (config, ..) = config();
    let mut other = call("GET", "/items/2?a=b", 200, r#"{"a":2}"#);
    other.redacted = vec!["response.body/b".into()];
    let calls = [call("GET", "/items/1", 200, r#"{"a":1}"#), other];
    let recording = Replay::new(&config, file(&calls));
    let path = recording.0.path();
    let har = crate::support::run_to_end({
        let mut command = crate::support::program(&["har", "--origin", "https://api.example/"]);
        command.arg(path.join("calls"));
        command
    });
    assert_eq!((har.code, har.errors.as_str()), (Some(0), ""), "{har:?}");
    let before = fs::read(path.join("calls")).unwrap();
    let refused = crate::support::run_to_end({
        let mut command = crate::support::program(&["har", "--output"]);
        command.arg(path.join("calls")).arg(path.join("calls"));
        command
    });
    assert!(
        refused.errors.contains("is the file that is read"),
        "{refused:?}"
    );
    assert_eq!(fs::read(path.join("calls")).unwrap(), before);
    let found: serde_json::Value = serde_json::from_str(&har.output).unwrap();
    assert_eq!(found["log"]["version"], "1.2");
    let request = &found["log"]["entries"][1]["request"];
    assert_eq!(request["url"], "https://api.example/items/2?a=b");
    assert_eq!(
        request["queryString"],
        json!([{ "name": "a", "value": "b" }])
    );
    let (by_recording, by_har) = (
        recording.json(&[]).0,
        Replay::new(&config, har.output).json(&[]).0,
    );
    for member in ["compared", "different", "conclusion", "skipped_calls"] {
        assert_eq!(by_recording[member], by_har[member], "{member}");
    }
    let redacted = &by_har["routes"]["items.get"]["redacted"];
    assert_eq!(
        (&by_har["different"], redacted),
        (&json!(1), &json!(1)),
        "{by_har}"
    );
}
