use proptest::prelude::*;

use super::law::{StreamTrace, check_whole, streamed_call, trace};
use super::*;
use crate::event::Events;
use crate::event::{EventSource, OtherSide, RpcEventSource, SseSource};
use crate::failure::FailureCodes;
use crate::jsonrpc::RequestId;
use crate::outcome::ReplyLimits;
use crate::outcome::{Outcomes, RestReply, ToolResult};
use crate::reply;
use crate::route::Route;
use crate::route::test_syntax::{route, row, tree};
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::pattern::HoleFacts;

const CONTEXT: TranslateContext = TranslateContext {
    depth: 32,
    now: String::new,
};
const LIMITS: ReplyLimits = ReplyLimits {
    depth: 32,
    error_text: 256,
};
const EVENTS: StreamFormats = StreamFormats {
    upstream: StreamFormat::EventStream,
    client: StreamFormat::EventStream,
};
const FROM_LINES: StreamFormats = StreamFormats {
    upstream: StreamFormat::JsonLines,
    client: StreamFormat::EventStream,
};
const TO_LINES: StreamFormats = StreamFormats {
    upstream: StreamFormat::EventStream,
    client: StreamFormat::JsonLines,
};

/// A route with an outcome row for successes and one for an error, and a notification with a row.
struct Scene {
    route: Route,
    events: Events,
    codes: FailureCodes,
}

impl Scene {
    fn new() -> Scene {
        let rows = vec![
            row(
                0,
                r#"{"status": 200, "body": {"task": "{t}"}}"#,
                r#"{"result": {"id": "{t}"}}"#,
            ),
            row(
                1,
                r#"{"status": 404, "body": {"error": {"code": 404, "message": "{m}"}}}"#,
                r#"{"code": -32001, "message": "{m}"}"#,
            ),
        ];
        let mut route = route("POST /r", "m", "");
        route.outcomes = Outcomes::build(rows, &HoleFacts::default(), ToolResult::Any).unwrap();
        let events = vec![
            EventSource {
                key: "event[0]".to_owned(),
                rpc: Some(RpcEventSource {
                    method: "notifications/progress".to_owned(),
                    params: Some(tree(r#"{"n": "{n}"}"#)),
                }),
                shown: Some(OtherSide::Sse(SseSource {
                    event: Some("progress".to_owned()),
                    id: None,
                    data: Some(tree(r#"{"n": "{n}"}"#)),
                    text: None,
                })),
                lossy: None,
            },
            EventSource {
                key: "event[1]".to_owned(),
                rpc: None,
                shown: Some(OtherSide::Sse(SseSource {
                    event: None,
                    id: None,
                    data: None,
                    text: Some("[DONE]".to_owned()),
                })),
                lossy: None,
            },
        ];
        Scene {
            route,
            events: Events::build(events).unwrap(),
            codes: FailureCodes::default(),
        }
    }

    fn scope(&self) -> StreamScope<'_> {
        StreamScope {
            route: &self.route,
            events: &self.events,
            limits: LIMITS,
            codes: &self.codes,
            context: CONTEXT,
        }
    }

    fn run(&self, side: Side, formats: StreamFormats, input: &str) -> (String, Vec<&'static str>) {
        let new = || ResponseStream::new(streamed_call(side), formats, 300);
        let StreamTrace { out, kinds } = trace(new(), input.as_bytes(), usize::MAX, self.scope());
        for size in 1..input.len() {
            let cut = trace(new(), input.as_bytes(), size, self.scope());
            assert_eq!(cut.kinds, kinds, "{input:?} in pieces of {size}");
            assert_eq!(cut.out, out, "{input:?} in pieces of {size}");
        }
        check_whole(&out, formats.client, side);
        (String::from_utf8(out).unwrap(), kinds)
    }

    fn to_rest(&self, input: &str) -> (String, Vec<&'static str>) {
        self.run(Side::Rest, EVENTS, input)
    }

    fn to_rpc(&self, input: &str) -> (String, Vec<&'static str>) {
        self.run(Side::Rpc, EVENTS, input)
    }
}

fn result(id: u64, result: &str) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n")
}

#[test]
fn results_become_bodies_and_go_through_the_rows() {
    let input = format!(
        ": open\n\nid: 1\n{}{}",
        result(7, "{\"id\":\"a\"}"),
        result(7, "[1.10]")
    );
    let out = ": open\n\nid: 1\ndata: {\"task\":\"a\"}\n\ndata: [1.10]\n\n";
    let kinds = vec!["response", "response"];
    assert_eq!(Scene::new().to_rest(&input), (out.to_owned(), kinds));
}

#[test]
fn bodies_become_results_under_the_id_of_the_call() {
    let input = "retry: 9\r\nid: 1\r\ndata: {\"task\": \"a\"}\r\n\r\ndata: [\r\ndata: 2]\r\n\r\n";
    let out = "retry: 9\r\nid: 1\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{\"id\":\"a\"}}\r\n\r\n\
        data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":[ 2]}\r\n\r\n";
    let kinds = vec!["response", "response"];
    assert_eq!(Scene::new().to_rpc(input), (out.to_owned(), kinds));
}

#[test]
fn an_error_is_the_last_event_on_either_side() {
    let error = "id: 3\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32001,\"message\":\"gone\"}}\n\n";
    let input = format!("{}{error}{}", result(7, "1"), result(7, "2"));
    let out =
        "data: 1\n\nid: 3\nevent: error\ndata: {\"error\":{\"code\":404,\"message\":\"gone\"}}\n\n";
    let kinds = vec!["response", "error"];
    assert_eq!(
        Scene::new().to_rest(&input),
        (out.to_owned(), kinds.clone())
    );

    let input = "data: 1\n\nevent: error\nid: 3\ndata: {\"error\":{\"code\":404,\"message\":\"gone\"}}\n\ndata: 2\n\n";
    let out = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}}\n\nid: 3\nevent: error\ndata: {}\n\n",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone"}}"#
    );
    assert_eq!(Scene::new().to_rpc(input), (out, kinds));
}

#[test]
fn an_error_without_a_row_comes_back_from_the_other_side() {
    let error = r#"{"code":-32044,"message":"no","data":{"a":1.0}}"#;
    let input =
        format!("event: error\ndata: {{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{error}}}\n\n");
    let (rest, kinds) = Scene::new().to_rest(&input);
    assert_eq!(kinds, ["error"]);
    let (rpc, kinds) = Scene::new().to_rpc(&rest);
    assert_eq!(kinds, ["error"]);
    let expected =
        format!("event: error\ndata: {{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{error}}}\n\n");
    assert_eq!(rpc, expected);
}

#[test]
fn notifications_go_through_the_declared_events() {
    let note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"n\":1}}\n\n";
    let unknown = "id: 4\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"other\"}\n\n";
    let input = format!("{note}{unknown}{}", result(7, "1"));
    let out = "event: progress\ndata: {\"n\":1}\n\nid: 4\n\ndata: 1\n\n";
    let kinds = vec!["rewritten", "unmatched", "response"];
    assert_eq!(Scene::new().to_rest(&input), (out.to_owned(), kinds));

    let input = "event: progress\ndata: {\"n\":1}\n\ndata: 1\n\ndata: [DONE]\n\n";
    let out = format!("{note}data: {{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}}\n\n");
    let kinds = vec!["rewritten", "response", "swallowed"];
    assert_eq!(Scene::new().to_rpc(input), (out, kinds));
}

#[test]
fn the_name_of_a_member_may_be_written_with_escapes() {
    let scene = Scene::new();
    let escaped = r#"{"jsonrpc":"2.0","\u006dethod":"unknown"}"#;
    let (out, kinds) = scene.to_rest(&format!("data: {escaped}\n\n{}", result(7, "1")));
    assert_eq!(
        (out.as_str(), kinds.as_slice()),
        ("data: 1\n\n", &["unmatched", "response"][..])
    );
}

#[test]
fn a_message_that_is_no_response_of_the_call_becomes_a_failure() {
    for (data, reason) in [
        (
            r#"{"jsonrpc":"2.0","id":8,"result":1}"#,
            "upstream_wrong_id",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#,
            "upstream_not_protocol",
        ),
        ("{", "upstream_not_json"),
        ("[1]", "upstream_not_protocol"),
    ] {
        let input = format!("{}data: {data}\n\n{}", result(7, "1"), result(7, "2"));
        let (out, kinds) = Scene::new().to_rest(&input);
        assert_eq!(kinds, ["response", "refused"], "{data}");
        let (before, last) = out.split_once("event: error\n").unwrap();
        assert_eq!(before, "data: 1\n\n");
        assert!(last.contains(&format!("\"reason\":\"{reason}\"")), "{last}");
    }
    let (out, kinds) = Scene::new().to_rpc("data: 1\n\ndata: two\n\ndata: 3\n\n");
    assert_eq!(kinds, ["response", "refused"]);
    assert!(
        out.contains("\"id\":null,\"error\"") && out.contains("upstream_not_json"),
        "{out}"
    );
}

#[test]
fn an_event_beyond_the_limit_becomes_a_failure() {
    let input = format!("data: 1\n\ndata: \"{}\"\n\ndata: 2\n\n", "x".repeat(400));
    let (out, kinds) = Scene::new().to_rpc(&input);
    assert_eq!(kinds, ["response", "refused"]);
    assert!(out.contains("upstream_too_large"), "{out}");
}

#[test]
fn an_event_without_data_and_an_unfinished_one_are_no_responses() {
    let input = "id: 5\ndata:\n\n: ping\n\ndata: 1\n\ndata: 2\n";
    let (out, kinds) = Scene::new().to_rpc(input);
    assert_eq!(kinds, ["response", "unfinished"]);
    let expected =
        "id: 5\ndata:\n\n: ping\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}\n\n";
    assert_eq!(out, expected);
    assert_eq!(Scene::new().to_rest(&result(7, "null")).0, "data: null\n\n");
}

#[test]
fn lines_of_json_are_events_on_either_side() {
    let scene = Scene::new();
    let (out, kinds) = scene.run(Side::Rpc, FROM_LINES, "{\"task\":\"a\"}\n\n 2\r\n{\"b\":1}");
    let of =
        |result: &str| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{result}}}\n\n");
    assert_eq!(
        out,
        [of("{\"id\":\"a\"}"), of("2"), of("{\"b\":1}")].concat()
    );
    assert_eq!(kinds, ["response"; 3]);
    let (_, kinds) = scene.run(Side::Rpc, FROM_LINES, "1\n12");
    assert_eq!(
        kinds,
        ["response", "unfinished"],
        "12 may be the beginning of 123"
    );

    let error =
        "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32001,\"message\":\"gone\"}}\n\n";
    let input = format!(
        ": open\n\n{}{error}",
        result(7, "{\"id\":\n\ndata: 2}").replace("\n\ndata", "\ndata")
    );
    let (out, kinds) = scene.run(Side::Rest, TO_LINES, &input);
    assert_eq!(
        out,
        "{\"task\":2}\n{\"error\":{\"code\":404,\"message\":\"gone\"}}\n"
    );
    assert_eq!(kinds, ["response", "error"]);
}

#[test]
fn a_failure_of_the_proxy_is_a_whole_event_of_the_call() {
    let scene = Scene::new();
    let failure = || Failure::new(Reason::UpstreamCut, "the server's response broke off");
    let mut stream = ResponseStream::new(streamed_call(Side::Rpc), EVENTS, 4);
    stream.feed(b": a long comment");
    let mut out = Vec::new();
    while let Some(input) = stream.next_input() {
        out.extend_from_slice(&stream.translate(input, scene.scope()).out);
    }
    let last = stream.fail(failure(), scene.scope());
    out.extend_from_slice(&last.out);
    check_whole(&out, StreamFormat::EventStream, Side::Rpc);
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with(": a long comment\nevent: error\ndata: {"),
        "{text}"
    );
    assert!(stream.is_over());
    stream.end_input();
    assert!(stream.next_input().is_none());
}

/// An event of a REST upstream, and whether it is of type `error`.
fn body() -> impl Strategy<Value = (bool, String)> {
    let text = prop::sample::select(vec![
        "1",
        "{\"task\":\"a\"}",
        "{\"task\":{\"b\":[1.10,\"\\u0041\"]}}",
        "{\"error\":{\"code\":404,\"message\":\"x\"}}",
        "{\"type\":\"about:blank\",\"status\":409}",
        "null",
        "text",
    ]);
    (prop::bool::weighted(0.2), text.prop_map(str::to_owned))
}

/// The data of each event of a stream.
fn datas(out: &[u8]) -> Vec<String> {
    let mut reader = crate::sse::SseReader::new(usize::MAX / 2);
    reader.feed(out);
    let mut datas = Vec::new();
    while let Some(piece) = reader.next() {
        if let crate::sse::StreamPiece::Event(text) = piece {
            let block = crate::sse::RawEvent::read(&text).unwrap();
            datas.push(block.data().unwrap_or_default().into_owned());
        }
    }
    datas
}

proptest! {
    #[test]
    fn an_event_is_translated_like_a_complete_response(
        bodies in prop::collection::vec(body(), 0..6),
        size in 1..40_usize,
    ) {
        let scene = Scene::new();
        let input: String = bodies
            .iter()
            .map(|(is_error, body)| format!("{}data: {body}\n\n", if *is_error { "event: error\n" } else { "" }))
            .collect();
        let stream = ResponseStream::new(streamed_call(Side::Rpc), EVENTS, 300);
        let made = trace(stream, input.as_bytes(), size, scene.scope());
        let mut expected = Vec::new();
        for (is_error, body) in &bodies {
            let reply = if *is_error { break } else { RestReply {
                status: 200,
                headers: [(http::header::CONTENT_TYPE, crate::headers::JSON)].into_iter().collect(),
                body: body.clone().into(),
            }};
            let bindings = Bindings::default();
            match reply::to_rpc(&scene.route, &reply, &bindings, LIMITS, CONTEXT) {
                Ok((translated, Ok(()))) => match translated.answer {
                    crate::outcome::RpcAnswer::Result(result) => {
                        let message = jsonrpc::result(&RequestId::null(), result);
                        expected.push(String::from_utf8(message.into_bytes().to_vec()).unwrap());
                    }
                    crate::outcome::RpcAnswer::Error(_) => prop_assert!(false, "a success became an error"),
                },
                Ok((_, Err(_))) | Err(_) => break,
            }
        }
        let datas = datas(&made.out);
        prop_assert_eq!(&datas[..expected.len()], &expected[..]);
        // At most one further event: the error or the failure that ended the stream.
        prop_assert!(datas.len() <= expected.len() + 1);
        for data in datas {
            let message = Json::parse(data.clone().into(), 99).unwrap();
            let id = message.member("id").unwrap();
            prop_assert_eq!(id.as_bytes(), b"null", "{}", data);
        }
    }

    #[test]
    fn any_stream_keeps_the_laws(
        parts in prop::collection::vec(prop::sample::select(vec![
            "\n", "\r", "\r\n", "\n\n", ":c", "data: ", "data", "id: 1", "event: error", "1", "{\"a\":2}", "[",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":3}",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"m\"}}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"n\"}",
            "\u{e4}", "                                                              x",
        ]), 0..14),
    ) {
        check_any_stream(parts.concat().as_bytes());
    }

    #[test]
    fn any_bytes_keep_the_laws(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        check_any_stream(&bytes);
    }
}
