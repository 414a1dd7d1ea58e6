//! Replays of recordings in which the new server has answered calls.

use serde_json::json;

use super::{FLAGS, RECORD, TABLES, files, replay, state};
use crate::scene::{json as json_answer, saying};
use crate::support::{Proxy, Upstream, becomes, both, program, run_to_end};

/// The servers differ in each response.
fn start() -> (Proxy, [Upstream; 2]) {
    let old = Upstream::answering(json_answer(r#"{"seen":"old"}"#));
    let new = saying(r#""result":{"seen":"new"}"#);
    let sample = "sample = 100\nbodies = true\n";
    let config = format!("{}{TABLES}{RECORD}{sample}", both(&old, &new));
    (Proxy::start_with_flags(&config, FLAGS), [old, new])
}

/// Makes these numbers of calls of the client that is translated and of others, and waits until they are recorded.
fn record(proxy: &Proxy, moved: usize, others: usize) {
    for (calls, client, seen) in [(moved, "mover", "new"), (others, "other", "old")] {
        for _ in 0..calls {
            let answer = proxy.rest("GET", "/notes", &[("X-Client", client)], "");
            assert_eq!(answer.json()["seen"], seen);
        }
    }
    becomes(
        || state(proxy, "GET", "")["recording"]["calls"].clone(),
        &(moved + others).into(),
    );
}

#[test]
fn a_response_of_the_new_server_proves_nothing_in_a_replay() {
    let (proxy, _servers) = start();
    record(&proxy, 4, 0);
    for way in ["new", "old"] {
        let ended = replay(&proxy, &files(&proxy)[0], &["--to", way]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let expected = format!(
            "skipped: answered_by_new notes.list: 4 calls: 2, 3, 4, 5\n\
             note: 4 calls skipped, because the recorded response is from the new server; record clients in `passthrough` or `shadow`, or use `--to both`\n\
             0 calls compared ({way} with recorded): nothing proven; 4 skipped"
        );
        assert_eq!(ended.output, expected);
    }
    // Both servers answer now, and they differ.
    let ended = replay(&proxy, &files(&proxy)[0], &["--to", "both"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.output.contains("4 calls compared"), "{ended:?}");
}

#[test]
fn the_other_calls_of_the_recording_are_compared() {
    let (proxy, _servers) = start();
    record(&proxy, 2, 3);
    let junit = proxy.folder().join("replay.xml");
    let junit_path = junit.to_str().unwrap();
    let ended = replay(
        &proxy,
        &files(&proxy)[0],
        &["--format", "json", "--junit", junit_path],
    );
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(
        (&found["compared"], &found["different"]),
        (&json!(3), &json!(3)),
        "{found}"
    );
    let skipped = json!([{
        "reason": "answered_by_new", "of": "notes.list", "calls": 2, "numbers": [2, 3], "why": null
    }]);
    assert_eq!(found["skipped"], skipped);
    let junit = std::fs::read_to_string(junit).unwrap();
    let case = "name=\"answered_by_new notes.list\"><skipped message=\"2 calls\"/>";
    assert!(junit.contains(case), "{junit}");
}

#[test]
fn a_har_file_keeps_the_server_that_answered() {
    let (proxy, _servers) = start();
    record(&proxy, 2, 0);
    let har = proxy.folder().join("calls.har");
    let mut command = program(&["har", "--output"]);
    command.arg(&har).arg(&files(&proxy)[0]);
    let written = run_to_end(command);
    assert_eq!(written.code, Some(0), "{written:?}");
    let ended = replay(&proxy, &har, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.output.contains("answered_by_new"), "{ended:?}");
}
