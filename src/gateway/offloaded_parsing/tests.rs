//! Long texts are parsed off the worker, with the same results as short ones.

use std::fs;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, StatusCode};

use super::*;
use crate::config::compile::compile;
use crate::config::load::{Sources, load};
use crate::gateway::call_response::UpstreamResponse;
use crate::gateway::offload::Offload;
use crate::gateway::shared_state::Shared;
use crate::upstream::link::Links;
use dualgauge_model::jsonrpc::MessageItem;
use dualgauge_model::outcome::RpcAnswer;
use dualgauge_model::route::Segments;
use dualgauge_model::translate::{RestHead, read_rest_call};
use dualgauge_patterns::rope::Rope;

/// A number of members that makes a text long enough to be parsed off the worker.
const MANY: usize = 10_000;
const FEW: usize = 3;

fn worker(offload: Offload) -> Rc<Worker> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let text = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
                [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:1/rpc'\n\
                [[route]]\nname = 'put'\nrest = 'POST /things'\nrpc = 'things.put'\n";
    fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let plan = compile(&load(&sources).unwrap(), &[]).unwrap();
    let shared = Shared {
        offload,
        ..Shared::for_tests(&plan)
    };
    Worker::new(Arc::new(plan), Links::default(), shared)
}

fn object(members: usize) -> String {
    let members: Vec<String> = (0..members).map(|n| format!(r#""m{n}":{n}"#)).collect();
    format!("{{{}}}", members.join(","))
}

fn message(members: usize) -> Bytes {
    let params = object(members);
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"things.put","params":{params}}}"#).into()
}

fn result(members: usize) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{}}}"#, object(members)).into()
}

fn reader(handle: RouteHandle<'_>) -> PatternReader {
    let head = RestHead {
        segments: &Segments::split("/things"),
        query: None,
        headers: &HeaderMap::new(),
    };
    read_rest_call(handle.route(), head, context(&handle.plan.limits)).unwrap()
}

fn text(rope: Rope) -> String {
    String::from_utf8(rope.into_bytes().to_vec()).unwrap()
}

/// Parses and translates texts of `members` members in both directions.
async fn translate_both_ways(worker: &Worker, members: usize) {
    let runtime_plan = worker.runtime_plan();
    let plan = &runtime_plan.plan;
    let handle = RouteHandle { plan, index: 0 };
    let (limits, value) = (&plan.limits, object(members));

    let read = parse_messages(worker, &message(members), limits)
        .await
        .unwrap();
    let Ok(Incoming::Single(MessageItem::Call(call))) = read else {
        panic!("{read:?}");
    };
    let rest = to_rest_call(worker, handle, &call, &HeaderMap::new())
        .await
        .unwrap();
    assert_eq!(rest.body.map(text).as_deref(), Some(&*value));
    let reply = RestReply {
        status: 200,
        headers: HeaderMap::from_iter([(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static("application/json"),
        )]),
        body: value.clone().into(),
    };
    let (translated, validity) = translate_to_rpc(worker, handle, &rest.bindings, &reply)
        .await
        .unwrap();
    validity.unwrap();
    let RpcAnswer::Result(answer) = translated.answer else {
        panic!("{translated:?}");
    };
    assert_eq!(text(answer), value);

    let body = Bytes::from(value.clone());
    let body = parse_json(worker, json(ContentEncoding::Identity), body, limits, None).await;
    let rpc = to_rpc_call(worker, handle, reader(handle), body.unwrap())
        .await
        .unwrap();
    assert_eq!(
        (&*rpc.method, text(rpc.params)),
        ("things.put", value.clone())
    );
    let read = parse_response(worker, &result(members), limits.depth).await;
    assert!(matches!(
        read.unwrap().unwrap().reply,
        jsonrpc::ResponseReply::Result(_)
    ));
    let response = UpstreamResponse {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body: result(members),
    };
    let reply = RpcReply::plain(response, 7);
    let answer = translate_to_rest(worker, handle, &rpc.bindings, &reply).await;
    let (translated, code) = answer.unwrap();
    assert_eq!((translated.answer.status, code), (200, None));
    assert_eq!(text(translated.answer.body), value);
}

/// Returns the encoding of a JSON body with this content coding.
fn json(coding: ContentEncoding) -> BodyEncoding {
    BodyEncoding {
        coding,
        form_type: None,
    }
}

#[tokio::test]
async fn long_texts_give_the_same_results_as_short_ones() {
    let worker = worker(Offload::for_workers(1));
    translate_both_ways(&worker, FEW).await;
    translate_both_ways(&worker, MANY).await;
}

#[test]
fn short_texts_are_parsed_on_the_worker() {
    translate_both_ways(&worker(Offload::stopped()), FEW)
        .now_or_never()
        .unwrap();
}

#[test]
fn long_texts_are_not_parsed_on_the_worker() {
    let worker = worker(Offload::stopped());
    let runtime_plan = worker.runtime_plan();
    let plan = &runtime_plan.plan;
    let (handle, limits) = (RouteHandle { plan, index: 0 }, &plan.limits);

    assert!(
        parse_messages(&worker, &message(MANY), limits)
            .now_or_never()
            .is_none()
    );
    assert!(
        parse_response(&worker, &result(MANY), 9)
            .now_or_never()
            .is_none()
    );
    let value = Bytes::from(object(MANY));
    for (coding, body) in [
        (ContentEncoding::Identity, value.clone()),
        (ContentEncoding::Gzip, value.slice(..2000)),
    ] {
        let parsed = parse_json(&worker, json(coding), body, limits, None).now_or_never();
        assert!(parsed.is_none());
    }

    let body = Json::parse(value.clone(), 9).unwrap();
    let bindings = reader(handle).bindings;
    let rpc = to_rpc_call(&worker, handle, reader(handle), Some(body)).now_or_never();
    assert!(rpc.is_none());
    let Ok(Incoming::Single(MessageItem::Call(call))) =
        jsonrpc::parse(&message(MANY), limits.message())
    else {
        panic!("it is a call");
    };
    assert!(
        to_rest_call(&worker, handle, &call, &HeaderMap::new())
            .now_or_never()
            .is_none()
    );
    let reply = RestReply {
        status: 200,
        headers: HeaderMap::new(),
        body: value,
    };
    let answer = translate_to_rpc(&worker, handle, &bindings, &reply).now_or_never();
    assert!(answer.is_none());
    let response = UpstreamResponse {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body: result(MANY),
    };
    let reply = RpcReply::plain(response, 7);
    let answer = translate_to_rest(&worker, handle, &bindings, &reply).now_or_never();
    assert!(answer.is_none());
}
