//! The members of recordings and of the files of `rollout.state`, as the program writes them.
//!
//! The files in `tests/data/state` have every member. The program reads them and writes them again. Names of flags and the
//! like are `NAME` there.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::Value;
use tempfile::TempDir;

use super::names::read_json;
use dualgauge::app::control::{Control, Files, ReportCounts};
use dualgauge::config::load::Sources;
use dualgauge::store::{SnapshotDir, SnapshotKind, Store, StoreSettings, Versioned};
use dualgauge_model::lifecycle::Usage;
use dualgauge_model::rollout::SourcedFlags;
use dualgauge_model::rollout::overrides::Overrides;
use dualgauge_patterns::side::Side;
use dualgauge_recording::recording::{
    RecordedBody, RecordedCall, RecordedRequest, RecordedResponse, RecordedTime, Responder,
    header_line, write_call,
};

const CONFIG: &str = "
[upstream.old]
side = 'rest'
url = 'http://127.0.0.1:9'
[rollout]
state = 'state'
";

/// Adds the members of a value, with their types.
pub(super) fn add_members(value: &Value, name: &str, found: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(items) => {
            let name = format!("{name}[]");
            items
                .iter()
                .for_each(|item| add_members(item, &name, found));
            "array"
        }
        Value::Object(members) => {
            for (key, inner) in members {
                let key = if key.starts_with("NAME") { "NAME" } else { key };
                let name = format!("{name}.{key}");
                add_members(inner, &name, found);
                found.insert(name);
            }
            "object"
        }
    };
    found.insert(format!("{name} type \"{kind}\""));
}

/// Adds the members of recordings, and the words and constants in them.
pub(super) fn add_recordings(found: &mut BTreeSet<String>) {
    let time = RecordedTime::from_unix_ms(0);
    let header: Value = serde_json::from_slice(&header_line(time, "dualgauge")).unwrap();
    add_members(&header, "recording header", found);
    for member in ["format", "version"] {
        found.insert(format!(
            "recording header.{member} const {}",
            header[member]
        ));
    }
    let bodies = [
        RecordedBody::new(&Bytes::from("1")),
        RecordedBody::new(&Bytes::from("a=1")),
        RecordedBody::new(&Bytes::from(vec![0xff])),
        RecordedBody::Omitted(1),
    ];
    for body in bodies {
        for side in Side::ALL {
            for from in [Responder::Old, Responder::New, Responder::Proxy] {
                let call = recorded(body.clone(), side, from);
                let call: Value = serde_json::from_slice(&write_call(&call).unwrap()).unwrap();
                add_members(&call, "recording call", found);
                let (side, from) = (&call["side"], &call["response"]["from"]);
                found.insert(format!("recording call.side enum {side}"));
                found.insert(format!("recording call.response.from enum {from}"));
            }
        }
    }
}

/// Returns a call with all members.
fn recorded(body: RecordedBody, side: Side, from: Responder) -> RecordedCall {
    let some = || Some("a".to_owned());
    let headers = vec![("a".to_owned(), "b".to_owned())];
    RecordedCall {
        time: RecordedTime::from_unix_ms(0),
        side,
        route: some(),
        client: some(),
        stage: some(),
        reason: "a".to_owned(),
        request: RecordedRequest {
            method: "POST".to_owned(),
            target: "/".to_owned(),
            headers: headers.clone(),
            body: body.clone(),
        },
        response: Some(RecordedResponse {
            status: 200,
            from,
            failure: some(),
            headers,
            body,
            latency_us: 1,
        }),
        redacted: vec!["request.path".to_owned()],
        complete: true,
    }
}

fn example(name: &str) -> Value {
    read_json(&format!("tests/data/state/{name}.json"))
}

/// Adds the members of the files of the state. Fails if the program does not write a member of the examples again.
pub(super) fn add_state(found: &mut BTreeSet<String>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    for (file, written) in [
        ("rollout", runtime.block_on(written_overrides())),
        ("watch", runtime.block_on(written_reports())),
        ("rollout.copy", runtime.block_on(written_copy())),
        ("source", runtime.block_on(written_source())),
    ] {
        let name = format!("state {file}");
        let (mut members, mut expected) = (BTreeSet::new(), BTreeSet::new());
        add_members(&written, &name, &mut members);
        members.insert(format!("{name}.version const {}", written["version"]));
        add_members(&example(file), &name, &mut expected);
        let lost: Vec<&String> = expected.difference(&members).collect();
        assert!(lost.is_empty(), "the program does not write {lost:#?}");
        found.extend(members);
    }
}

/// Returns `rollout.json` as the program writes the example.
async fn written_overrides() -> Value {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings::File {
        folder: folder.path().to_owned(),
    };
    let mut store = Store::open(&settings).await.unwrap();
    let state = example("rollout")["state"].to_string();
    let overrides = Overrides::read(&state).unwrap();
    let text = overrides.written().unwrap();
    store.commit(0, &text).await.unwrap();
    written(&folder, "rollout.json")
}

async fn written_copy() -> Value {
    let text = example("rollout.copy")["state"].to_string();
    snapshot(SnapshotKind::Store, "rollout.copy.json", text).await
}

async fn written_source() -> Value {
    let state = example("source")["state"].take();
    let flags: SourcedFlags = serde_json::from_value(state).unwrap();
    let text = serde_json::to_string(&flags).unwrap();
    snapshot(SnapshotKind::Source, "source.json", text).await
}

/// Returns a copy of a state as the program writes it.
async fn snapshot(kind: SnapshotKind, file: &str, text: String) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut copies = SnapshotDir::open(kind, folder.path(), "a".to_owned());
    let state = Versioned { revision: 1, text };
    copies.note(&state, "2026-11-26T01:09:45.161Z".to_owned());
    copies.flush().await;
    written(&folder, file)
}

fn written(folder: &TempDir, file: &str) -> Value {
    read_json(folder.path().join(file).to_str().unwrap())
}

/// Returns `watch.json` as a process writes it that continues after the one of the example.
async fn written_reports() -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let example = example("watch");
    fs::create_dir(path("state")).unwrap();
    fs::write(path("state/watch.json"), example.to_string()).unwrap();
    fs::write(path("dualgauge.toml"), CONFIG).unwrap();
    let files = Files::read(Sources {
        file: Some(path("dualgauge.toml")),
        ..Sources::default()
    });
    let report = &example["reports"][0];
    let counts = ReportCounts {
        tallies: serde_json::from_value(report["report"]["tallies"].clone()).unwrap(),
        usage: Usage::from_json(&report["report"]["usage"].to_string()).unwrap(),
    };
    let now = report["at"].as_u64().unwrap();
    let at = UNIX_EPOCH + Duration::from_millis(now);
    let mut control = Control::open(files.unwrap(), at).await.unwrap();
    // The first report reads what the process before this one left; the second writes it.
    control.report(counts, at).await;
    control.leave(now).await;
    control.flush().await;
    let written = written(&folder, "state/watch.json");
    // The report of the example is folded into the archive.
    assert_eq!(written["reports"].as_array().unwrap().len(), 1);
    written
}
