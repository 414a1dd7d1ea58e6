//! What `explain`, `check` and the API document tell of responses that stream.

use serde_json::Value;

use crate::support::{Ended, program, run_to_end};

/// Runs a command on a configuration with one upstream and this route.
fn told(side: &str, route: &str, arguments: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("dualgauge.toml");
    let route = format!(
        "[upstream.one]\nside = \"{side}\"\nurl = \"http://127.0.0.1:9001\"\n\
         [[route]]\nname = \"send\"\nrest = \"POST /send\"\nrpc = \"send\"\n{route}"
    );
    std::fs::write(&config, route).unwrap();
    let mut command = program(&arguments[..1]);
    command.arg("--config").arg(config).args(&arguments[1..]);
    run_to_end(command)
}

const CALL: &[&str] = &["explain", "-X", "POST", "/send"];

#[test]
fn explain_tells_whether_the_client_gets_a_stream() {
    let gets = told("rpc", "stream = \"sse\"", CALL);
    let line =
        "stream     each event is translated as it arrives; the client gets `text/event-stream`";
    assert!(gets.output.contains(line), "{gets:?}");
    let asks = "accept: application/json, text/event-stream";
    assert!(gets.output.contains(asks), "{gets:?}");
    let lines = told("rpc", "stream = \"ndjson\"", CALL);
    assert!(
        lines.output.contains("gets `application/x-ndjson`"),
        "{lines:?}"
    );
    let never = told("rpc", "stream = false", CALL);
    assert!(
        never.output.contains("the route has `stream = false`"),
        "{never:?}"
    );
    let silent = told("rpc", "", CALL);
    assert!(!silent.output.contains("stream"), "{silent:?}");

    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"send\"}";
    let call = ["explain", "/rpc", "-d", body];
    let refused = told("rest", "stream = \"sse\"", &call);
    let line = "`upstream_stream`: the client does not accept `text/event-stream`";
    assert!(refused.output.contains(line), "{refused:?}");
    let accepting = [&call[..], &["-H", "accept: text/event-stream"]].concat();
    let gets = told("rest", "stream = \"sse\"", &accepting);
    assert!(gets.output.contains("each event is translated"), "{gets:?}");
}

#[test]
fn check_notes_a_stream_that_the_route_does_not_declare() {
    let row = "[[route.outcome]]\nrest = { status = 200, headers = { content-type = \"application/jsonl\" }, text = \"{t}\" }\nrpc = { result = \"{t}\" }\n";
    let noted = told("rest", row, &["check"]);
    assert_eq!(noted.code, Some(0), "{noted:?}");
    let note = "the content type of a stream (`application/x-ndjson`)";
    assert!(noted.output.contains(note), "{noted:?}");
    assert!(
        noted.output.contains("write `stream = \"ndjson\"`"),
        "{noted:?}"
    );
    let declared = told("rest", &format!("stream = false\n{row}"), &["check"]);
    assert!(!declared.output.contains(note), "{declared:?}");
}

#[test]
fn what_cannot_stream_is_refused_with_its_place() {
    let notify = told("rpc", "stream = \"sse\"\nnotify = true", &["check"]);
    assert_eq!(notify.code, Some(1), "{notify:?}");
    let fault = "a notification has no answer that could stream";
    assert!(notify.errors.contains(fault), "{notify:?}");
    let word = told("rpc", "stream = \"xml\"", &["check"]);
    assert!(word.errors.contains("`sse` or `ndjson`"), "{word:?}");
    let limit = told("rpc", "stream = false\nstream_timeout = \"1s\"", &["check"]);
    assert!(
        limit.errors.contains("no response of the route streams"),
        "{limit:?}"
    );
}

#[test]
fn the_document_names_the_content_type() {
    let route = "stream = { rest = \"ndjson\", rpc = \"sse\" }";
    let document = told("rpc", route, &["routes", "--format", "openapi"]);
    let document: Value = serde_json::from_str(&document.output).unwrap();
    let content = &document["paths"]["/send"]["post"]["responses"]["200"]["content"];
    assert!(content["application/x-ndjson"].is_object(), "{document}");
    assert!(content["application/json"].is_object(), "{document}");
}
