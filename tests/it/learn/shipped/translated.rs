//! Calls and replies as a route table translates them, with the functions that serve calls.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use dualgauge_model::check::Message;
use dualgauge_model::jsonrpc::ResponseReply;
use dualgauge_model::outcome::{ReplyLimits, RestAnswer, RestReply, RpcAnswer};
use dualgauge_model::plan::Plan;
use dualgauge_model::route::{RestSelection, Segments, Wire};
use dualgauge_model::translate::{
    MethodCall, RestHead, TranslateContext, read_rest_call, rest_to_rpc,
};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;

const CONTEXT: TranslateContext = TranslateContext {
    depth: 128,
    now: || "2026-01-01T12:00:00Z".to_owned(),
};

const LIMITS: ReplyLimits = ReplyLimits {
    depth: 128,
    error_text: usize::MAX,
};

/// A call in the language of the other side.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) index: usize,
    pub(super) message: Message,
    pub(super) bindings: Bindings,
}

/// Returns the route that a call selects.
pub(super) fn reads(plan: &Plan, call: &Message) -> Option<usize> {
    match call {
        Message::RestCall {
            method,
            target,
            headers,
            body,
        } => {
            let (path, query) = cut(target);
            let segments = Segments::split(path);
            let head = RestHead {
                segments: &segments,
                query,
                headers,
            };
            match plan.routes.select_rest(method, &segments, query, headers) {
                RestSelection::Route(index) => Some(index),
                RestSelection::ByBody(group) => {
                    plan.routes.select_by_body(group, head, body.as_ref())
                }
                RestSelection::OtherMethods(_)
                | RestSelection::OtherLiterals
                | RestSelection::Unrouted
                | RestSelection::Near(_) => None,
            }
        }
        Message::RpcCall { method, params, .. } => {
            let call = MethodCall::new(method, params.as_ref());
            plan.routes.select_rpc_to(Wire::Http, call)
        }
        Message::RestReply(_) | Message::RpcReply(_) => None,
    }
}

/// Translates a call; `None` if it selects no route, if its route passes it, or if the route refuses it.
pub(super) fn translated(plan: &Plan, call: &Message) -> Option<Translated> {
    let index = reads(plan, call)?;
    let route = plan.routes.route(index);
    if route.always_passes {
        return None;
    }
    let (message, bindings) = match call {
        Message::RestCall {
            target,
            headers,
            body,
            ..
        } => {
            let (path, query) = cut(target);
            let head = RestHead {
                segments: &Segments::split(path),
                query,
                headers,
            };
            let reading = read_rest_call(route, head, CONTEXT).ok()?;
            let written = rest_to_rpc(route, reading, body.clone(), CONTEXT).ok()?;
            let params = written.params.into_bytes();
            let message = Message::RpcCall {
                method: written.method.into_owned(),
                params: (!params.is_empty()).then(|| Json::written(params)),
                headers: HeaderMap::new(),
            };
            (message, written.bindings)
        }
        Message::RpcCall { method, params, .. } => {
            let call = MethodCall::new(method, params.as_ref());
            let written = plan.routes.write_rest(index, call, CONTEXT).ok()?;
            let message = Message::RestCall {
                method: route.method.clone(),
                target: written.target,
                headers: HeaderMap::new(),
                body: written.body.map(|body| Json::written(body.into_bytes())),
            };
            (message, written.bindings)
        }
        Message::RestReply(_) | Message::RpcReply(_) => return None,
    };
    Some(Translated {
        index,
        message,
        bindings,
    })
}

/// Translates the reply to a call; `None` if the route refuses it.
pub(super) fn replied(plan: &Plan, call: &Translated, reply: &Message) -> Option<Message> {
    let outcomes = &plan.routes.route(call.index).outcomes;
    match reply {
        Message::RestReply(reply) => {
            let answer = outcomes.rest_to_rpc(reply, &call.bindings, LIMITS, CONTEXT);
            let answer = outcomes.completed(answer.ok()?.answer);
            Some(Message::RpcReply(match answer {
                RpcAnswer::Result(result) => {
                    ResponseReply::Result(Json::written(result.into_bytes()))
                }
                RpcAnswer::Error(error) => ResponseReply::Error(error),
            }))
        }
        Message::RpcReply(reply) => {
            let answer = outcomes.answer_rest(reply.clone(), &call.bindings, CONTEXT);
            Some(rest_reply(answer.ok()?.answer))
        }
        Message::RestCall { .. } | Message::RpcCall { .. } => None,
    }
}

fn rest_reply(answer: RestAnswer) -> Message {
    let mut headers: HeaderMap = answer.headers.into_iter().collect();
    if let Some(kind) = answer.content_type {
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
    }
    Message::RestReply(RestReply {
        status: answer.status,
        headers,
        body: answer.body.into_bytes(),
    })
}

fn cut(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}
