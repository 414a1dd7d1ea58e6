//! Recorded calls, made again and compared: `dualgauge replay`.

mod files;
mod learned;
mod noise;
mod planted;
mod safety;

use std::fs;
use std::process::Command;

use bytes::Bytes;
use dualgauge_patterns::side::Side;
use dualgauge_recording::recording::{
    RecordedBody, RecordedCall, RecordedRequest, RecordedResponse, RecordedTime, Responder,
    header_line, write_call,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Ended, program, run_to_end};

/// A folder with a configuration and a file of calls.
struct Replay(TempDir);

impl Replay {
    fn new(config: &str, file: impl AsRef<[u8]>) -> Replay {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("dualgauge.toml"), config).unwrap();
        fs::write(folder.path().join("calls"), file).unwrap();
        Replay(folder)
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = program(&["replay"]);
        command.arg(self.0.path().join("calls"));
        command
            .arg("--config")
            .arg(self.0.path().join("dualgauge.toml"));
        command.args(more);
        command
    }

    fn run(&self, more: &[&str]) -> Ended {
        run_to_end(self.command(more))
    }

    /// The result as JSON, and the exit code.
    fn json(&self, more: &[&str]) -> (Value, i32) {
        let ended = self.run(&[&["--format", "json"], more].concat());
        let found = serde_json::from_str(&ended.output);
        let found = found.unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        (found, ended.code.unwrap())
    }
}

/// A recorded REST call with this response.
fn call(method: &str, target: &str, status: u16, body: &str) -> RecordedCall {
    RecordedCall {
        time: RecordedTime::parse("2026-06-30T12:00:00Z").unwrap(),
        side: Side::Rest,
        route: None,
        client: None,
        stage: Some("passthrough".into()),
        reason: "default".into(),
        request: RecordedRequest {
            method: method.into(),
            target: target.into(),
            headers: Vec::new(),
            body: RecordedBody::Empty,
        },
        response: Some(RecordedResponse {
            status,
            from: Responder::Old,
            failure: None,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body_of(body),
            latency_us: 2_000,
        }),
        redacted: Vec::new(),
        complete: true,
    }
}

/// A recorded RPC call with this response.
fn rpc_call(body: &str, answer: &str) -> RecordedCall {
    let mut recorded = call("POST", "/rpc", 200, answer);
    recorded.side = Side::Rpc;
    recorded.request.headers = vec![("content-type".into(), "application/json".into())];
    recorded.request.body = body_of(body);
    recorded
}

fn body_of(text: &str) -> RecordedBody {
    RecordedBody::new(&Bytes::copy_from_slice(text.as_bytes()))
}

fn file(calls: &[RecordedCall]) -> Vec<u8> {
    let mut file = header_line(RecordedTime::default(), "test");
    for call in calls {
        file.extend(write_call(call).unwrap());
    }
    file
}
