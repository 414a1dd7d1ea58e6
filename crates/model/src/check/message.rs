//! Whole calls and replies as plain values, to be compared and shown.
//!
//! This module knows nothing of patterns. Law: two messages are the same if no client and no server can distinguish
//! them by anything that a pattern may name. The spelling of escapes and the order of members and query names do not
//! count.
//!
//! Used by `check`.

use std::fmt;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::outcome::{RestAnswer, RestReply, RpcAnswer};
use crate::translate::MethodCall;
use dualgauge_patterns::json::{Json, JsonKind, encode};
use dualgauge_patterns::percent::{Plus, decode, normalise};

/// A whole call or reply.
#[derive(Debug, Clone)]
pub enum Message {
    /// A REST call.
    RestCall {
        /// The HTTP method.
        method: Method,
        /// Path and query.
        target: String,
        /// The headers that the route names.
        headers: HeaderMap,
        /// The body, if there is one.
        body: Option<Json>,
    },
    /// An RPC call.
    RpcCall {
        /// The method.
        method: String,
        /// The params, if there are any.
        params: Option<Json>,
        /// The headers that the route names.
        headers: HeaderMap,
    },
    /// An answer of a REST server.
    RestReply(RestReply),
    /// An answer of an RPC server.
    RpcReply(ResponseReply),
}

/// The content type of a JSON body. It adds nothing to the body.
const JSON: &str = "application/json";

/// Collects the written headers; those with the same name are all kept.
pub(super) fn header_map(headers: Vec<(HeaderName, HeaderValue)>) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        map.append(name, value);
    }
    map
}

impl Message {
    /// Returns the answer of a REST server that gives its client this answer.
    pub(super) fn from_rest_answer(answer: RestAnswer) -> Message {
        let mut headers = header_map(answer.headers);
        if let Some(kind) = answer.content_type
            && let Ok(kind) = HeaderValue::try_from(kind)
        {
            headers.insert(CONTENT_TYPE, kind);
        }
        Message::RestReply(RestReply {
            status: answer.status,
            headers,
            body: answer.body.into_bytes(),
        })
    }

    /// Returns the answer of an RPC server that gives its client this answer.
    pub(super) fn from_rpc_answer(answer: RpcAnswer) -> Message {
        Message::RpcReply(match answer {
            RpcAnswer::Result(result) => {
                ResponseReply::Result(Json::written(result.into_bytes().to_vec()))
            }
            RpcAnswer::Error(error) => ResponseReply::Error(error),
        })
    }

    /// Returns the call of an RPC message.
    pub(super) fn method_call(&self) -> Option<MethodCall<'_>> {
        match self {
            Message::RpcCall {
                method,
                params,
                headers,
            } => Some(MethodCall::new(method, params.as_ref()).with_headers(headers)),
            Message::RestCall { .. } | Message::RestReply(_) | Message::RpcReply(_) => None,
        }
    }

    /// Returns true when no client and no server can distinguish the two.
    #[must_use]
    pub fn same(&self, other: &Message) -> bool {
        match (self, other) {
            (
                Message::RestCall {
                    method,
                    target,
                    headers,
                    body,
                },
                Message::RestCall {
                    method: other_method,
                    target: other_target,
                    headers: other_headers,
                    body: other_body,
                },
            ) => {
                method == other_method
                    && same_target(target, other_target)
                    && same_headers(headers, other_headers)
                    && same_json(body.as_ref(), other_body.as_ref())
            }
            (
                Message::RpcCall {
                    method,
                    params,
                    headers,
                },
                Message::RpcCall {
                    method: other_method,
                    params: other_params,
                    headers: other_headers,
                },
            ) => {
                method == other_method
                    && same_json(params.as_ref(), other_params.as_ref())
                    && same_headers(headers, other_headers)
            }
            (Message::RestReply(one), Message::RestReply(other)) => same_reply(one, other),
            (Message::RpcReply(one), Message::RpcReply(other)) => match (one, other) {
                (ResponseReply::Result(one), ResponseReply::Result(other)) => one.same(other),
                (ResponseReply::Error(one), ResponseReply::Error(other)) => {
                    one.code == other.code
                        && one.message.same(&other.message)
                        && same_json(one.data.as_ref(), other.data.as_ref())
                }
                (ResponseReply::Result(_), ResponseReply::Error(_))
                | (ResponseReply::Error(_), ResponseReply::Result(_)) => false,
            },
            (
                Message::RestCall { .. }
                | Message::RpcCall { .. }
                | Message::RestReply(_)
                | Message::RpcReply(_),
                _,
            ) => false,
        }
    }
}

impl Message {
    /// Returns true when this is the message of an example: the same call, or a reply with at least the same members,
    /// since an example may omit what is only written.
    pub(super) fn shows(&self, example: &Message) -> bool {
        match (self, example) {
            (Message::RestReply(found), Message::RestReply(example)) => {
                let named = |name: &HeaderName| {
                    let values =
                        |map: &HeaderMap| Vec::from_iter(map.get_all(name).iter().cloned());
                    values(&found.headers) == values(&example.headers)
                };
                let parsed = |reply: &RestReply| Json::parse(reply.body.clone(), u16::MAX).ok();
                let bodies = match (parsed(found), parsed(example)) {
                    (Some(found), Some(example)) => holds(&found, &example),
                    (_, _) => found.body == example.body,
                };
                found.status == example.status && example.headers.keys().all(named) && bodies
            }
            (
                Message::RpcReply(ResponseReply::Result(found)),
                Message::RpcReply(ResponseReply::Result(example)),
            ) => holds(found, example),
            (
                Message::RpcReply(ResponseReply::Error(found)),
                Message::RpcReply(ResponseReply::Error(example)),
            ) => {
                let data = match (&found.data, &example.data) {
                    (Some(found), Some(example)) => holds(found, example),
                    (_, example) => example.is_none(),
                };
                found.code == example.code && found.message.same(&example.message) && data
            }
            (
                Message::RestCall { .. }
                | Message::RpcCall { .. }
                | Message::RestReply(_)
                | Message::RpcReply(_),
                _,
            ) => self.same(example),
        }
    }
}

/// Returns true when a value has every member of another one, at every depth.
fn holds(found: &Json, example: &Json) -> bool {
    match (found.kind(), example.kind()) {
        (JsonKind::Object, JsonKind::Object) => {
            let names = example.open().unwrap_or_default();
            names.iter().all(|member| {
                let twin = found.member(&member.name);
                let wanted = example.piece(member.value.clone());
                twin.is_some_and(|twin| holds(&twin, &wanted))
            })
        }
        (JsonKind::Array, JsonKind::Array) => {
            let pieces = |list: &Json| -> Vec<Json> {
                let places = list.elements();
                places.map(|place| list.piece(place)).collect()
            };
            let (found, example) = (pieces(found), pieces(example));
            let mut pairs = found.iter().zip(&example);
            found.len() == example.len() && pairs.all(|(found, example)| holds(found, example))
        }
        (
            JsonKind::Object
            | JsonKind::Array
            | JsonKind::String
            | JsonKind::Number
            | JsonKind::Boolean
            | JsonKind::Null,
            _,
        ) => found.same(example),
    }
}

fn same_json(one: Option<&Json>, other: Option<&Json>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.same(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Compares paths by their decoded segments, and queries by their decoded pairs.
fn same_target(one: &str, other: &str) -> bool {
    let cut = |target: &str| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let segments = path
            .split('/')
            .map(|segment| normalise(segment).into_owned());
        let pairs = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let text = |text: &str| {
                    decode(text, Plus::Space)
                        .map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
                };
                (text(name), text(value))
            });
        let (segments, mut pairs) = (Vec::from_iter(segments), Vec::from_iter(pairs));
        // Order matters only among the values of one name.
        pairs.sort_by(|one, other| one.0.cmp(&other.0));
        (segments, pairs)
    };
    cut(one) == cut(other)
}

fn same_headers(one: &HeaderMap, other: &HeaderMap) -> bool {
    one.keys().chain(other.keys()).all(|name| {
        let values = |map: &HeaderMap| Vec::from_iter(map.get_all(name).iter().cloned());
        values(one) == values(other)
    })
}

fn same_reply(one: &RestReply, other: &RestReply) -> bool {
    let named = |reply: &RestReply| {
        let mut headers = reply.headers.clone();
        if reply.content_type() == Some(JSON) {
            headers.remove(CONTENT_TYPE);
        }
        headers
    };
    let parsed = |reply: &RestReply| Json::parse(reply.body.clone(), u16::MAX).ok();
    let same_body = one.body == other.body
        || parsed(one)
            .zip(parsed(other))
            .is_some_and(|(one, other)| one.same(&other));
    one.status == other.status && same_headers(&named(one), &named(other)) && same_body
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::RestCall {
                method,
                target,
                headers,
                body,
            } => {
                write!(f, "{method} {target}")?;
                write_headers(headers, f)?;
                body.iter()
                    .try_for_each(|body| write!(f, " {}", shown(body.as_bytes())))
            }
            Message::RpcCall {
                method,
                params,
                headers,
            } => {
                f.write_str(method)?;
                write_headers(headers, f)?;
                params
                    .iter()
                    .try_for_each(|params| write!(f, " {}", shown(params.as_bytes())))
            }
            Message::RestReply(reply) => {
                write!(f, "{}", reply.status)?;
                let mut headers = reply.headers.clone();
                if reply.content_type() == Some(JSON) {
                    headers.remove(CONTENT_TYPE);
                }
                write_headers(&headers, f)?;
                write_content(&reply.body, f)
            }
            Message::RpcReply(ResponseReply::Result(result)) => {
                write!(f, "result {}", shown(result.as_bytes()))
            }
            Message::RpcReply(ResponseReply::Error(error)) => write_error(error, f),
        }
    }
}

fn write_error(error: &ErrorObject, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let message = shown(error.message.as_bytes());
    write!(f, "error {} {message}", error.code)?;
    error
        .data
        .iter()
        .try_for_each(|data| write!(f, " {}", shown(data.as_bytes())))
}

fn write_headers(headers: &HeaderMap, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        write!(f, " [{name}: {}]", value.escape_debug())?;
    }
    Ok(())
}

/// Writes JSON as it is, and a text in quotes.
fn write_content(body: &Bytes, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if body.is_empty() {
        return Ok(());
    }
    if Json::parse(body.clone(), u16::MAX).is_ok() {
        return write!(f, " {}", shown(body));
    }
    let mut quoted = Vec::new();
    encode(&String::from_utf8_lossy(body), &mut quoted);
    write!(f, " text {}", shown(&quoted))
}

fn shown(text: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(text)
}
