//! What `explain` says of many calls.

use std::fs;
use std::path::Path;

use super::json::Json;
use crate::support::{Message, program, run_to_end};

/// What becomes of each request of an HTTP file, by the configuration in a folder.
pub(crate) fn explain(folder: &Path, requests: &str) -> Vec<Json> {
    let file = folder.join("requests.http");
    fs::write(&file, requests).unwrap();
    let mut command = program(&["explain", "--format", "json", "--config"]);
    command
        .arg(folder.join("dualgauge.toml"))
        .arg("--http")
        .arg(file);
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    // It says alone that the files do not know what was changed since.
    let faults: Vec<&str> = ended.errors.lines().skip(1).collect();
    assert!(faults.is_empty(), "{}", ended.errors);
    assert!(
        ended
            .errors
            .starts_with("note: the files say nothing of flag changes")
    );
    let told = Json::parse(&ended.output);
    let first = |explained: &Json| {
        let [one] = explained.at("explanations").elements() else {
            panic!("not one explanation: {explained}");
        };
        one.clone()
    };
    told.elements().iter().map(first).collect()
}

/// A request that came is the one that was explained.
pub(crate) fn assert_sent(explained: &Json, came: &Message) {
    let sends = explained.at("sends");
    let word = |name| sends.at(name).as_text();
    let line = format!("{} {} HTTP/1.1", word("method"), word("target"));
    assert_eq!(came.head.start, line, "{explained}");
    for header in sends.at("headers").elements() {
        let name = header.at("name").as_text();
        let value = header.at("value").as_text();
        assert_eq!(came.head.one(name), Some(value), "{name} of {explained}");
    }
    let body = match came.body.is_empty() {
        true => Json::Null,
        false => without_id(Json::parse(came.text()), &line),
    };
    let said = sends.get("body").cloned().unwrap_or(Json::Null);
    assert_eq!(body, without_id(said, &line), "{explained}");
}

/// The id of an RPC call is the proxy's own.
fn without_id(body: Json, line: &str) -> Json {
    if let Json::Object(mut members) = body.clone()
        && line.starts_with("POST /rpc ")
    {
        assert!(members.remove("id").is_some(), "no id in {line}");
        return Json::Object(members);
    }
    body
}
