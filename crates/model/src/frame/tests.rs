use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::check::{FindingKind, LossVerdict, check};
use crate::dialect::{self, OldRequest};
use crate::failure::{Failure, FailureCodes, Reason};
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::outcome::{RestReplySource, RowOrder, RowSource, RpcAnswer, RpcReplySource};
use crate::route::test_syntax::tree;
use crate::route::{Extra, RouteSource, RouteTable, TableError, parse_route};
use crate::translate::{MethodCall, TranslateContext};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

mod simulation;
mod stories;

const TERMS: TranslateContext = TranslateContext {
    depth: 32,
    now: || "2026-01-01T12:00:00Z".to_owned(),
};

fn context(routes: &RouteTable, now: Duration) -> FrameContext<'_> {
    FrameContext {
        routes,
        translate: TERMS,
        now,
    }
}

fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), 32).unwrap()
}

fn part(tree: &SourceTree, key: &str) -> Option<SourceTree> {
    match tree {
        SourceTree::Table(members) => {
            let mut members = members.iter();
            members
                .find(|(name, _)| name == key)
                .map(|(_, tree)| tree.clone())
        }
        SourceTree::Text(_) | SourceTree::Literal(_) | SourceTree::List(_) => None,
    }
}

fn row(index: usize, spelled: &str) -> RowSource {
    let said = tree(spelled);
    let rpc = match part(&said, "error") {
        Some(error) => RpcReplySource::Error {
            code: part(&error, "code").unwrap(),
            message: part(&error, "message"),
            data: part(&error, "data"),
        },
        None => RpcReplySource::Result(part(&said, "result").unwrap()),
    };
    RowSource {
        key: format!("route[0].outcome[{index}]"),
        origin: 0,
        order: RowOrder::default(),
        rest: RestReplySource::frame(part(&said, "frame")),
        rpc,
        lossy: None,
    }
}

fn source((name, frame): (&str, &str), (rpc, params): (&str, &str), rows: &[&str]) -> RouteSource {
    let rows = rows.iter().enumerate();
    RouteSource {
        key: "route[0]".to_owned(),
        name: name.to_owned(),
        rest: "frame".to_owned(),
        rpc: rpc.to_owned(),
        params: Some(tree(params)),
        extra: Some(Extra::Drop),
        rows: rows.map(|(index, spelled)| row(index, spelled)).collect(),
        ..RouteSource::of_frame(tree(frame))
    }
}

const ERROR: &str = r#"{
    "frame": {"event": "error", "timestamp": "{>now}", "request_id": "{>id}",
        "payload": {"code": "{_=FAILED}", "message": "{message}", "request_id": "{>id}"}},
    "error": {"code": [-32603, -32602], "message": "{message}"}}"#;

const PLAIN: &str = r#"{"frame": {"event": "done"}, "result": {}}"#;

const SILENT: &str = r#"{"result": {}}"#;

const FILE: &str = r#"{
    "frame": {"event": "file", "request_id": "{>id}", "payload": {"path": "{path}", "content": "{content}"}},
    "result": {"path": "{path}", "content": "{content}"}}"#;

const WATCHED: &str = r#"{
    "frame": {"event": "watched", "payload": {"session_id": "{>session_id}", "watching": true}},
    "result": {"status": "watching"}}"#;

const UNWATCHED: &str = r#"{
    "frame": {"event": "unwatched", "payload": {"session_id": "{session?}"}},
    "result": {"session": "{session?}"}}"#;

const STARTED: &str = r#"{"result": {"status": "started", "mode": "{>mode}"}}"#;

/// Routes whose answers are correlated by id, by session, by nothing, and by silence.
fn sources() -> Vec<RouteSource> {
    let file = r#"{"command": "get_file", "request_id": "{id?}", "payload": {"path": "{path}"}}"#;
    let watch =
        r#"{"command": "watch", "request_id": "{id?}", "payload": {"session_id": "{session_id}"}}"#;
    let unwatch = r#"{"command": "unwatch", "request_id": "{id?}"}"#;
    let run = r#"{"command": "run", "request_id": "{id?}", "payload": {"prompt": "{prompt}", "mode": "{mode=new}"}}"#;
    vec![
        source(
            ("file", file),
            ("file/get", r#"{"path": "{path}"}"#),
            &[FILE, ERROR],
        ),
        source(
            ("watch", watch),
            ("watch", r#"{"session_id": "{session_id}"}"#),
            &[WATCHED, ERROR],
        ),
        source(("unwatch", unwatch), ("unwatch", "{}"), &[UNWATCHED, ERROR]),
        RouteSource {
            silence: Some(Duration::from_millis(500)),
            ..source(
                ("run", run),
                ("run", r#"{"prompt": "{prompt}", "mode": "{mode}"}"#),
                &[STARTED, ERROR],
            )
        },
    ]
}

fn table() -> RouteTable {
    let routes = sources()
        .into_iter()
        .map(|source| parse_route(source).unwrap());
    RouteTable::build(routes.collect()).unwrap()
}

fn errors(source: RouteSource) -> Vec<String> {
    let errors = parse_route(source).unwrap_err();
    let said = errors
        .iter()
        .map(|error| format!("{}: {}", error.key, error.what));
    said.collect()
}

fn text(pieces: dualgauge_patterns::rope::Rope) -> String {
    String::from_utf8(pieces.into_bytes().to_vec()).unwrap()
}

#[test]
fn a_message_is_json_rpc_by_its_version_and_a_frame_by_being_an_object() {
    let heard = |text: &str| match SocketMessage::new(&Bytes::copy_from_slice(text.as_bytes()), 8) {
        SocketMessage::Rpc(_) => "rpc",
        SocketMessage::Frame(_) => "frame",
        SocketMessage::Unrecognized(Unrecognized::NotJson) => "no json",
        SocketMessage::Unrecognized(Unrecognized::NotAnObject) => "no object",
    };
    for rpc in [
        r#"{"jsonrpc":"2.0","method":"a"}"#,
        r#" {"method":"a","jsonrpc":"1.0"}"#,
        r#"[{"jsonrpc":"2.0","method":"a"}]"#,
        r#"[1,{"jsonrpc":"2.0"}]"#,
    ] {
        assert_eq!(heard(rpc), "rpc", "{rpc}");
    }
    assert_eq!(
        heard(r#"{"command":"a","payload":{"jsonrpc":"2.0"}}"#),
        "frame"
    );
    assert_eq!(heard("{}"), "frame");
    for noise in ["[]", "[1]", "7", "null", "\"jsonrpc\""] {
        assert_eq!(heard(noise), "no object", "{noise}");
    }
    for noise in [
        "",
        "{",
        "{\"jsonrpc\":\"2.0\"",
        "[[[[[[[[[[]]]]]]]]]]",
        "hello",
    ] {
        assert_eq!(heard(noise), "no json", "{noise}");
    }
}

#[test]
fn a_command_becomes_a_call_and_its_answer_has_its_id() {
    let table = table();
    let frame =
        json(r#"{"command":"get_file","request_id":"r-1","payload":{"path":"a.go"},"x":1}"#);
    let route = table.select_frame(&frame).unwrap();
    let route = table.route(route);
    assert_eq!(route.name, "file");
    let called = command_to_rpc(route, frame, TERMS).unwrap();
    assert_eq!((&*called.method, called.dropped), ("file/get", 1));
    assert_eq!(text(called.params), r#"{"path":"a.go"}"#);
    let result = ResponseReply::Result(json(r#"{"path":"a.go","content":"<b>"}"#));
    let said = answer_to_frame(route, result, &called.bindings, TERMS).answer;
    let FrameReply::Frame(said) = said else {
        panic!("{said:?}")
    };
    assert_eq!(
        text(said),
        r#"{"event":"file","request_id":"r-1","payload":{"path":"a.go","content":"<b>"}}"#
    );
}

#[test]
fn a_command_without_an_id_gets_an_answer_without_one() {
    let table = table();
    let frame = json(r#"{"command":"unwatch"}"#);
    let route = table.route(table.select_frame(&frame).unwrap());
    let called = command_to_rpc(route, frame, TERMS).unwrap();
    let error = ResponseReply::Error(ErrorObject {
        code: -32603,
        message: json("\"no\""),
        data: None,
    });
    let said = answer_to_frame(route, error, &called.bindings, TERMS).answer;
    let FrameReply::Frame(said) = said else {
        panic!("{said:?}")
    };
    assert_eq!(
        text(said),
        r#"{"event":"error","timestamp":"2026-01-01T12:00:00Z","payload":{"code":"FAILED","message":"no"}}"#
    );
}

#[test]
fn an_answer_may_be_silence_or_match_no_row() {
    let table = table();
    let frame = json(r#"{"command":"run","payload":{"prompt":"p"}}"#);
    let route = table.route(table.select_frame(&frame).unwrap());
    let called = command_to_rpc(route, frame, TERMS).unwrap();
    assert_eq!(text(called.params), r#"{"prompt":"p","mode":"new"}"#);
    let answer = |reply| answer_to_frame(route, reply, &called.bindings, TERMS).answer;
    let started = ResponseReply::Result(json(r#"{"status":"started","pid":7}"#));
    assert_eq!(answer(started), FrameReply::Silence);
    assert_eq!(
        answer(ResponseReply::Result(json("null"))),
        FrameReply::NoRow
    );
}

#[test]
fn a_failure_repeats_the_values_of_its_command() {
    let row = r#"{
        "frame": {"event": "error", "request_id": "{>id}", "path": "{>path}", "why": "{message}"},
        "error": {"code": -31021, "message": "{message}"}}"#;
    let command = r#"{"command": "get", "request_id": "{id?}", "path": "{path}"}"#;
    let source = source(("get", command), ("get", r#"{"path": "{path}"}"#), &[row]);
    let route = parse_route(source).unwrap();
    let frame = json(r#"{"command":"get","request_id":"r-1","path":"a"}"#);
    let failure = Failure::new(Reason::UpstreamUnreachable, "the server is down");
    let message = OldRequest::of_frame(&frame);
    let codes = FailureCodes::default();
    let said = dialect::failure(&route, message, &failure, &codes, TERMS).unwrap();
    let wanted = r#"{"event":"error","request_id":"r-1","path":"a","why":"the server is down"}"#;
    assert_eq!(text(said.body), wanted);
}

#[test]
fn a_command_that_does_not_fit_gets_an_error_with_its_id() {
    let table = table();
    let frame = json(r#"{"command":"get_file","request_id":"r-2","payload":{}}"#);
    let route = table.route(table.select_frame(&frame).unwrap());
    let misfit = command_to_rpc(route, frame.clone(), TERMS).unwrap_err();
    assert_eq!(misfit.location, "frame/payload/path");
    let failure = crate::rejections::bind_failure(misfit);
    let codes = FailureCodes::default();
    let message = OldRequest::of_frame(&frame);
    let said = dialect::failure(route, message, &failure, &codes, TERMS).unwrap();
    let said = json(&text(said.body));
    assert_eq!(said.member("request_id"), Some(json("\"r-2\"")));
    assert!(
        table
            .select_frame(&json(r#"{"command":"other"}"#))
            .is_none()
    );
    assert!(table.select_frame(&json("{}")).is_none());
}

#[test]
fn frames_are_not_http_calls_and_have_their_own_methods() {
    let mut all = sources();
    all.push(RouteSource {
        name: "http".to_owned(),
        rest: "POST /".to_owned(),
        rpc: "file/get".to_owned(),
        ..RouteSource::default()
    });
    let routes = all.into_iter().map(|source| parse_route(source).unwrap());
    let table = RouteTable::build(routes.collect()).unwrap();
    let found = table.select_rpc("file/get", None).unwrap();
    assert_eq!(table.route(found).name, "http");
    assert_eq!(table.select_rpc("watch", None), None);
    assert!(!table.knows_rpc("watch"));
    let rest_protocol = crate::route::Wire::Frame;
    let call = json(r#"{"path":"a"}"#);
    let found = table
        .select_rpc_to(rest_protocol, MethodCall::new("file/get", Some(&call)))
        .unwrap();
    assert_eq!(table.route(found).name, "file");
}

#[test]
fn ambiguous_frames_are_refused_and_a_literal_beats_a_hole() {
    let two = |one: &str, other: &str| {
        let routes = [("a", one), ("b", other)].map(|(name, frame)| {
            parse_route(source((name, frame), (name, r#"{"x": "{x}"}"#), &[])).unwrap()
        });
        RouteTable::build(routes.into())
    };
    let shared = two(
        r#"{"command": "a", "x": "{x}"}"#,
        r#"{"command": "{x}", "x": "a"}"#,
    );
    let TableError { route, key, .. } = &shared.unwrap_err()[0];
    assert_eq!((*route, *key), (1, "rest"));
    let table = two(
        r#"{"command": "{_=c}", "x": "{x}"}"#,
        r#"{"command": "a", "x": "{x}"}"#,
    );
    let table = table.unwrap();
    let name = |text: &str| {
        table
            .route(table.select_frame(&json(text)).unwrap())
            .name
            .clone()
    };
    assert_eq!(name(r#"{"command":"a","x":1}"#), "b");
    assert_eq!(name(r#"{"command":"c","x":1}"#), "a");
}

#[test]
fn faults_of_a_frame_are_reported_with_their_key() {
    let one = |frame: &str, rows: &[&str]| errors(source(("a", frame), ("a", "{}"), rows));
    let lone = one(r#"{"command": "a", "payload": {"x": "{x}"}}"#, &[]);
    assert!(
        lone[0].starts_with("route[0].frame: the hole `x` is on the rest side only"),
        "{lone:?}"
    );
    let text = one(r#"{"command": "a", "payload": {"x": "{x"}}"#, &[]);
    assert!(
        text[0].starts_with("route[0].frame.payload.x: "),
        "{text:?}"
    );
    let empty = one("{}", &[]);
    assert!(
        empty[0].starts_with("route[0].frame: a message must be an object"),
        "{empty:?}"
    );
    let row = one(
        r#"{"command": "a"}"#,
        &[r#"{"frame": {"event": "{y", "z": 1}, "result": {}}"#],
    );
    assert!(
        row[0].starts_with("route[0].outcome[0].frame.event: "),
        "{row:?}"
    );
    let row = one(
        r#"{"command": "a"}"#,
        &[r#"{"frame": {"event": "{y}"}, "result": {}}"#],
    );
    assert!(
        row[0].starts_with("route[0].outcome[0].frame: the hole `y`"),
        "{row:?}"
    );
    let silence = errors(RouteSource {
        silence: Some(Duration::from_secs(1)),
        ..source(("a", r#"{"command": "a"}"#), ("a", "{}"), &[PLAIN])
    });
    assert!(
        silence[0].starts_with("route[0].silence: no outcome"),
        "{silence:?}"
    );
    let http = errors(RouteSource {
        old: None,
        body: None,
        rest: "POST /a".to_owned(),
        ..source(("a", r#"{"command": "a"}"#), ("a", "{}"), &[PLAIN, SILENT])
    });
    assert!(
        http[0].starts_with("route[0].outcome[0]: the route has `rest`"),
        "{http:?}"
    );
    assert_eq!(http[1], "route[0].outcome[1]: `rest` is missing");
}

#[test]
fn check_proves_frames_as_it_proves_calls_and_answers() {
    let table = table();
    let verdicts = |place: usize| {
        let directions = &check(&table)[place].directions;
        let said = directions.iter().map(|direction| {
            let kind = match direction.kind {
                FindingKind::Request => "call".to_owned(),
                FindingKind::Outcome(row) => format!("row {row}"),
                FindingKind::BuiltIn => "built in".to_owned(),
            };
            let losses: Vec<String> = direction
                .losses
                .iter()
                .map(|finding| finding.rule.describe(&finding.at))
                .collect();
            (kind, direction.from, direction.verdict(), losses)
        });
        said.collect::<Vec<_>>()
    };
    let file = verdicts(0);
    let verdict = |kind: &str, from: Side| {
        let mut all = file.iter();
        let found = all.find(|(own, side, ..)| own == kind && *side == from);
        found.map(|(_, _, verdict, _)| *verdict)
    };
    // The id is sent outside the params, so no part of a command is lost.
    assert_eq!(
        verdict("call", Side::Rest),
        Some(LossVerdict::Lossless),
        "{file:?}"
    );
    assert_eq!(
        verdict("call", Side::Rpc),
        Some(LossVerdict::Lossless),
        "{file:?}"
    );
    assert_eq!(
        verdict("row 0", Side::Rpc),
        Some(LossVerdict::Lossless),
        "{file:?}"
    );
    assert_eq!(
        verdict("row 1", Side::Rest),
        Some(LossVerdict::Lossy),
        "{file:?}"
    );
    assert_eq!(verdict("built in", Side::Rest), None);
    let run = verdicts(3);
    assert!(
        run.iter()
            .all(|(_, _, verdict, _)| *verdict != LossVerdict::Never),
        "{run:?}"
    );
}
