//! One side's work for one call or one answer, from the bytes that came to the bytes that go, without any I/O.

use std::hint::black_box;

use bytes::Bytes;
use dualgauge_model::jsonrpc::{self, Incoming, MessageItem, MessageLimits, RequestId};
use dualgauge_model::outcome::{ReplyLimits, RestReply, RpcAnswer};
use dualgauge_model::route::{Route, Segments};
use dualgauge_model::translate::{
    MethodCall, RestHead, TranslateContext, read_rest, rest_to_rpc, rpc_to_rest,
};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};

use super::Case;
use super::shapes::{self, Fill};

const LIMITS: MessageLimits = MessageLimits {
    depth: 128,
    batch: 100,
};

const REPLY: ReplyLimits = ReplyLimits {
    depth: 128,
    error_text: 1024,
};

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

pub(super) fn case(name: &str, size: usize) -> Option<Case> {
    let (name, fill) = match name.strip_suffix(" many") {
        Some(name) => (name, Fill::Count(size)),
        None => (name, Fill::Bytes(size)),
    };
    let carried = || shapes::short("POST /mcp/v1/tools/call");
    let one_hole = || shapes::short("POST /mcp/v1/tools/{tool}");
    let (target, twelve_body, twelve_params) = shapes::twelve_call(fill);
    let (twelve_answer, twelve_result) = shapes::twelve_reply(fill);
    let (list_body, list_params) = shapes::list_call(size);
    let plain = shapes::plain_body(fill);
    let with_tool = plain.replacen('{', r#"{"tool":"seven","#, 1);
    Some(match name {
        "serde_json body" => checks(plain),
        "serde_json message" => checks(message(&plain)),
        "carried to rpc" => to_rpc(carried(), "/mcp/v1/tools/call", plain),
        "carried to rest" => to_rest(carried(), &plain),
        "one hole to rpc" => to_rpc(one_hole(), "/mcp/v1/tools/seven", plain),
        "one hole to rest" => to_rest(one_hole(), &with_tool),
        "serde_json twelve body" => checks(twelve_body),
        "serde_json twelve message" => checks(message(&twelve_params)),
        "twelve holes to rpc" => to_rpc(shapes::twelve(), target, twelve_body),
        "twelve holes to rest" => to_rest(shapes::twelve(), &twelve_params),
        "serde_json twelve answer" => checks(twelve_answer),
        "serde_json twelve response" => checks(response(&twelve_result)),
        "twelve holes answer to rpc" => answer_to_rpc(shapes::twelve(), twelve_answer),
        "twelve holes answer to rest" => answer_to_rest(shapes::twelve(), &twelve_result),
        "list to rpc" => to_rpc(shapes::list(), "/people", list_body),
        "list to rest" => to_rest(shapes::list(), &list_params),
        _ => return None,
    })
}

fn message(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

fn response(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

fn checks(text: String) -> Case {
    Box::new(move || {
        let checked = serde_json::from_slice::<serde::de::IgnoredAny>(black_box(text.as_bytes()));
        usize::from(checked.is_ok())
    })
}

fn to_rpc(route: Route, target: &'static str, body: String) -> Case {
    let (body, headers) = (Bytes::from(body), HeaderMap::new());
    // What reads the head of a request has cut the target already.
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    Box::new(move || {
        let body = Json::parse(black_box(&body).clone(), LIMITS.depth).expect("the body is JSON");
        let head = RestHead {
            segments: &Segments::split(black_box(path)),
            query,
            headers: &headers,
        };
        let reading = read_rest(&route, head, TERMS).expect("the URL fits");
        let call = rest_to_rpc(&route, reading, Some(body), TERMS).expect("the call fits");
        jsonrpc::request(7, &call.method, call.params, &[]).len()
    })
}

fn to_rest(route: Route, params: &str) -> Case {
    let message = Bytes::from(message(params));
    Box::new(move || {
        let Ok(Incoming::Single(MessageItem::Call(call))) =
            jsonrpc::parse(black_box(&message), LIMITS)
        else {
            return 0;
        };
        let said = MethodCall::new(&call.method, call.params.as_ref());
        let call = rpc_to_rest(&route, said, TERMS).expect("the call fits");
        call.target.len() + call.body.map_or(0, |body| body.len())
    })
}

fn answer_to_rpc(route: Route, body: String) -> Case {
    let headers =
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let reply = RestReply {
        status: 200,
        headers,
        body: body.into(),
    };
    let (id, call) = (RequestId::null(), Bindings::default());
    Box::new(move || {
        let answered = route
            .outcomes
            .rest_to_rpc(black_box(&reply), &call, REPLY, TERMS);
        let answered = answered.expect("the answer is one");
        assert_eq!(answered.row, Some(0), "the row fits");
        match answered.answer {
            RpcAnswer::Result(result) => jsonrpc::result(&id, result).len(),
            RpcAnswer::Error(_) => 0,
        }
    })
}

fn answer_to_rest(route: Route, result: &str) -> Case {
    let (response, call) = (Bytes::from(response(result)), Bindings::default());
    Box::new(move || {
        let response = jsonrpc::parse_response(black_box(&response), LIMITS.depth);
        let reply = response.expect("the response is one").reply;
        let answered = route.outcomes.rpc_to_rest(reply, &call, TERMS);
        assert_eq!(answered.row, Some(0), "the row fits");
        answered.answer.body.len()
    })
}
