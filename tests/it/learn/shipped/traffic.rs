//! Calls of a route with varied values, made of its examples.

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::translated::{Translated, reads, translated};
use dualgauge_model::check::Message;
use dualgauge_model::jsonrpc::{ErrorObject, ResponseReply};
use dualgauge_model::outcome::RestReply;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::{Example, ExampleReply, ExampleWay};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// The number of calls that are made of an example, besides the example itself.
const VARIANTS: usize = 4;

/// Members without which the server refuses the call, although the shipped pattern, which has a default, reads it.
const REQUIRED: [(&str, &str); 1] = [("tools.call", "arguments")];

/// A call of a route in both languages, with the reply of the server of each side.
#[derive(Debug)]
pub(super) struct RouteCall {
    pub(super) rest: Message,
    pub(super) rpc: Message,
    pub(super) rest_reply: Option<Message>,
    pub(super) rpc_reply: Option<Message>,
    /// The side from which the example holds.
    way: ExampleWay,
}

impl RouteCall {
    pub(super) const fn call(&self, side: Side) -> &Message {
        match side {
            Side::Rest => &self.rest,
            Side::Rpc => &self.rpc,
        }
    }

    /// Returns the reply of the server of a side.
    pub(super) const fn reply(&self, side: Side) -> Option<&Message> {
        match side {
            Side::Rest => self.rest_reply.as_ref(),
            Side::Rpc => self.rpc_reply.as_ref(),
        }
    }

    /// Returns true if clients of this side make the call.
    pub(super) fn comes_from(&self, side: Side) -> bool {
        match self.way {
            ExampleWay::Both => true,
            ExampleWay::From(only) => only == side,
        }
    }
}

/// Returns the calls of a route: each example, with other values in its holes, and without its optional members.
pub(super) fn calls(plan: &Plan, index: usize) -> Vec<RouteCall> {
    let route = plan.routes.route(index);
    let mut calls = Vec::new();
    for example in &route.examples {
        let (rest, rpc) = (rest_call(example), rpc_call(example));
        let covers = |side| match example.way {
            ExampleWay::Both => route.enters_from(side),
            ExampleWay::From(only) => only == side && route.enters_from(side),
        };
        let from = if covers(Side::Rest) {
            Side::Rest
        } else {
            Side::Rpc
        };
        let seed = match from {
            Side::Rest => rest,
            Side::Rpc => rpc,
        };
        for sent in varied(plan, index, &seed) {
            let Some(Translated { message: other, .. }) = translated(plan, &sent) else {
                panic!("`{}` does not translate {sent}", route.name);
            };
            let (rest, rpc) = match from {
                Side::Rest => (sent, other),
                Side::Rpc => (other, sent),
            };
            calls.push(RouteCall {
                rest,
                rpc,
                rest_reply: example.reply.as_ref().map(rest_reply),
                rpc_reply: example.reply.as_ref().map(rpc_reply),
                way: match route.enters_from(from.other()) {
                    true => example.way,
                    false => ExampleWay::From(from),
                },
            });
        }
    }
    calls
}

/// Returns the call and its variants that select the same route.
fn varied(plan: &Plan, index: usize, seed: &Message) -> Vec<Message> {
    let route = plan.routes.route(index);
    let is_accepted = |message: &Message| match message {
        Message::RestCall {
            body: Some(body), ..
        } => {
            let mut required = REQUIRED.iter().filter(|(name, _)| *name == route.name);
            required.all(|(_, member)| body.has(member))
        }
        Message::RestCall { .. }
        | Message::RpcCall { .. }
        | Message::RestReply(_)
        | Message::RpcReply(_) => true,
    };
    let fits = |message: &Message| {
        is_accepted(message)
            && reads(plan, message) == Some(index)
            && translated(plan, message).is_some()
    };
    let mut found = vec![seed.clone()];
    for number in 1..=VARIANTS {
        let mut call = seed.clone();
        for place in 0..places(&call) {
            let changed = changed(&call, place, Some(number));
            call = Some(changed).filter(&fits).unwrap_or(call);
        }
        found.push(call);
    }
    for place in 0..places(seed) {
        let without = changed(seed, place, None);
        found.extend(Some(without).filter(&fits));
    }
    let mut distinct: Vec<Message> = Vec::new();
    for message in found {
        if distinct.iter().all(|known| !known.same(&message)) {
            distinct.push(message);
        }
    }
    distinct
}

/// Returns the number of values of a call that may vary.
fn places(call: &Message) -> usize {
    match call {
        Message::RestCall { target, body, .. } => {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            path.matches('/').count() + query.split('&').count() + leaves(body.as_ref())
        }
        Message::RpcCall { params, .. } => leaves(params.as_ref()),
        Message::RestReply(_) | Message::RpcReply(_) => 0,
    }
}

/// Returns a call with another value at one place, or without this member if `number` is `None`.
fn changed(call: &Message, place: usize, number: Option<usize>) -> Message {
    let mut call = call.clone();
    match &mut call {
        Message::RestCall { target, body, .. } => {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let mut segments: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
            let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
            if let Some(segment) = segments.get_mut(place) {
                *segment = number.map_or_else(|| segment.clone(), |it| other_text(segment, it));
            } else if place - segments.len() < pairs.len() {
                let at = place - segments.len();
                match (pairs[at].split_once('='), number) {
                    (Some((name, value)), Some(number)) => {
                        pairs[at] = format!("{name}={}", other_text(value, number));
                    }
                    (None, _) | (_, None) => {
                        pairs.remove(at);
                    }
                }
            } else if let Some(body) = body {
                *body = changed_json(body, place - segments.len() - pairs.len(), number);
            }
            pairs.retain(|pair| !pair.is_empty());
            let mark = if pairs.is_empty() { "" } else { "?" };
            *target = format!("/{}{mark}{}", segments.join("/"), pairs.join("&"));
        }
        Message::RpcCall { params, .. } => {
            if let Some(params) = params {
                *params = changed_json(params, place, number);
            }
        }
        Message::RestReply(_) | Message::RpcReply(_) => {}
    }
    call
}

fn changed_json(json: &Json, place: usize, number: Option<usize>) -> Json {
    let mut value = value(json);
    let pointer = leaf_pointers(&value).swap_remove(place);
    match number {
        Some(number) => {
            let leaf = value.pointer_mut(&pointer).unwrap();
            *leaf = other_leaf(leaf, number);
        }
        None => {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            if let Some(Value::Object(members)) = value.pointer_mut(parent) {
                members.remove(name);
            }
        }
    }
    parsed(&value)
}

/// Returns the pointers of all members and elements without members or elements of their own.
fn leaf_pointers(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            let members = members.iter();
            members.map(|(name, it)| (name.clone(), it)).collect()
        }
        Value::Array(elements) => {
            let elements = elements.iter().enumerate();
            elements.map(|(at, it)| (at.to_string(), it)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut found = Vec::new();
    for (name, it) in inner {
        let below = leaf_pointers(it);
        if below.is_empty() {
            found.push(format!("/{name}"));
        }
        found.extend(below.into_iter().map(|below| format!("/{name}{below}")));
    }
    found
}

fn other_leaf(leaf: &Value, number: usize) -> Value {
    match leaf {
        Value::Bool(is) => json!(*is ^ (number % 2 == 1)),
        Value::Number(it) => it
            .as_i64()
            .map_or(json!(0.5), |it| json!(it + number as i64)),
        Value::String(text) => json!(other_text(text, number)),
        Value::Null | Value::Array(_) | Value::Object(_) => leaf.clone(),
    }
}

/// Returns another value of the same kind: a number, `true` or `false`, or a text.
fn other_text(text: &str, number: usize) -> String {
    const WORDS: [&str; VARIANTS] = ["north", "south", "east", "west"];
    match (text, text.parse::<u64>()) {
        (_, Ok(value)) => (value + number as u64).to_string(),
        ("true" | "false", _) => ((text == "true") ^ (number % 2 == 1)).to_string(),
        (_, Err(_)) => format!("{text}-{}", WORDS[number - 1]),
    }
}

fn leaves(json: Option<&Json>) -> usize {
    json.map_or(0, |json| leaf_pointers(&value(json)).len())
}

fn parsed(value: &Value) -> Json {
    Json::parse(value.to_string().into(), 128).unwrap()
}

fn rest_call(example: &Example) -> Message {
    let (method, target) = example.call.split_once(' ').unwrap();
    Message::RestCall {
        method: Method::from_bytes(method.as_bytes()).unwrap(),
        target: target.to_owned(),
        headers: HeaderMap::new(),
        body: example.body.clone(),
    }
}

fn rpc_call(example: &Example) -> Message {
    Message::RpcCall {
        method: example.method.clone(),
        params: Some(example.params.clone().unwrap_or(Json::literal("{}"))),
        headers: HeaderMap::new(),
    }
}

fn rest_reply(reply: &ExampleReply) -> Message {
    let mut headers = HeaderMap::new();
    for (name, value) in &reply.headers {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let (kind, body) = match (&reply.body, &reply.text) {
        (Some(body), _) => ("application/json", body.clone().into_bytes()),
        (None, Some(text)) => ("text/plain", text.clone().into()),
        (None, None) => ("", Default::default()),
    };
    if !kind.is_empty() {
        headers.insert(http::header::CONTENT_TYPE, kind.parse().unwrap());
    }
    Message::RestReply(RestReply {
        status: reply.status,
        headers,
        body,
    })
}

fn rpc_reply(reply: &ExampleReply) -> Message {
    Message::RpcReply(match &reply.rpc {
        Ok(result) => ResponseReply::Result(result.clone()),
        Err(error) => ResponseReply::Error(ErrorObject {
            code: serde_json::from_slice(error.member("code").unwrap().as_bytes()).unwrap(),
            message: error.member("message").unwrap(),
            data: error.member("data"),
        }),
    })
}

pub(super) fn value(json: &Json) -> Value {
    serde_json::from_slice(json.as_bytes()).unwrap()
}
