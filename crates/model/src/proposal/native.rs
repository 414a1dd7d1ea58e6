//! The two responses of a pair as their servers sent them.
//!
//! A report has both in the form of the caller. The built-in table can be reversed: its problem documents contain the
//! RPC error, and its errors the REST response. A response that a row wrote cannot.
//!
//! Used by `proposal::row`.

use serde_json::{Value, json};

use super::no_row::NoRow;
use super::report::{ReplyGroup, ReplySample};
use dualgauge_patterns::side::Side;

/// The mark of a text that the report does not show.
pub(super) const HIDDEN: char = '\u{1}';

/// The response of a REST server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RestReplySketch {
    pub(super) status: u16,
    pub(super) kind: Option<String>,
    pub(super) content: SketchBody,
}

/// The content of a REST response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SketchBody {
    Nothing,
    Json(Value),
    Text(String),
}

/// The response of an RPC server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RpcReplySketch {
    Result(Value),
    Error {
        code: i64,
        message: String,
        data: Option<Value>,
    },
}

impl RpcReplySketch {
    /// Returns the code of an error.
    pub(super) const fn code(&self) -> Option<i64> {
        match self {
            RpcReplySketch::Error { code, .. } => Some(*code),
            RpcReplySketch::Result(_) => None,
        }
    }
}

/// The responses of both servers to one call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NativePair {
    pub(super) rest: RestReplySketch,
    pub(super) rpc: RpcReplySketch,
}

impl ReplyGroup {
    pub(super) fn caller(&self) -> Option<Side> {
        Side::ALL
            .into_iter()
            .find(|side| side.as_str() == self.side)
    }

    /// Returns the responses of both servers.
    pub(super) fn native(&self, sample: &ReplySample) -> Result<NativePair, NoRow> {
        let (own, translated) = match self.translated.as_str() {
            "candidate" => (&sample.control, &sample.candidate),
            "control" => (&sample.candidate, &sample.control),
            _ => return Err(NoRow::Unreadable),
        };
        let (own, translated) = (marked(own), marked(translated));
        match self.caller().ok_or(NoRow::Unreadable)? {
            Side::Rest => Ok(NativePair {
                rest: rest(&own).ok_or(NoRow::Unreadable)?,
                rpc: rpc_of_rest(&rest(&translated).ok_or(NoRow::Unreadable)?)?,
            }),
            Side::Rpc => Ok(NativePair {
                rest: rest_of_rpc(&rpc(&translated).ok_or(NoRow::Unreadable)?)?,
                rpc: rpc(&own).ok_or(NoRow::Unreadable)?,
            }),
        }
    }
}

/// Returns a sketch with the shown texts in place of their descriptions, and a mark on those that are not shown.
fn marked(sketch: &Value) -> Value {
    let mut found = marked_value(sketch);
    // The media type of the response is no value of it.
    if let (Some(kind), Value::Object(members)) = (sketch.get("type"), &mut found) {
        members.insert("type".to_owned(), kind.clone());
    }
    found
}

fn marked_value(value: &Value) -> Value {
    match value {
        Value::Array(elements) => elements.iter().map(marked_value).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), marked_value(value)));
            members.collect()
        }
        Value::String(description) => json!(shown(description)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Returns a text that the report shows as a whole and without escapes; else its description with a mark.
fn shown(description: &str) -> String {
    let inside = description.strip_prefix('"');
    let inside = inside.and_then(|text| text.strip_suffix('"'));
    match inside.filter(|text| !text.ends_with('…') && !text.contains(['\\', HIDDEN])) {
        Some(text) => text.to_owned(),
        None => format!("{HIDDEN}{description}"),
    }
}

/// Returns true if the report shows that two texts are equal only by chance: all hidden values of one type look the same,
/// and so do all long lists.
pub(super) fn is_opaque(text: &str) -> bool {
    text.starts_with(HIDDEN) && !text.contains('#')
}

fn rest(sketch: &Value) -> Option<RestReplySketch> {
    let status = sketch.get("status")?.as_u64()?;
    let content = match (sketch.get("body"), sketch.get("text")) {
        (Some(body), _) => SketchBody::Json(body.clone()),
        (None, Some(text)) => SketchBody::Text(text.as_str()?.to_owned()),
        (None, None) => SketchBody::Nothing,
    };
    Some(RestReplySketch {
        status: u16::try_from(status).ok()?,
        kind: sketch
            .get("type")
            .and_then(Value::as_str)
            .map(str::to_owned),
        content,
    })
}

fn rpc(sketch: &Value) -> Option<RpcReplySketch> {
    if let Some(result) = sketch.get("result") {
        return Some(RpcReplySketch::Result(result.clone()));
    }
    error(sketch.get("error")?)
}

fn error(error: &Value) -> Option<RpcReplySketch> {
    Some(RpcReplySketch::Error {
        code: error.get("code")?.as_i64()?,
        message: error.get("message")?.as_str()?.to_owned(),
        data: error.get("data").cloned(),
    })
}

/// Reverses the built-in table for REST clients.
fn rpc_of_rest(reply: &RestReplySketch) -> Result<RpcReplySketch, NoRow> {
    let problem = reply.kind.as_deref() == Some("application/problem+json");
    match (&reply.content, reply.status) {
        (SketchBody::Json(body), _) if problem && body.get("rpc").is_some() => {
            if body.get("reason").is_some() {
                return Err(NoRow::Failure);
            }
            let rpc = &body["rpc"];
            if let Some(data) = rpc.get("data").filter(|data| data["isError"] == true) {
                return Ok(RpcReplySketch::Result(data.clone()));
            }
            error(rpc).ok_or(NoRow::Unreadable)
        }
        (SketchBody::Json(body), 200) => Ok(RpcReplySketch::Result(body.clone())),
        (SketchBody::Nothing, 204) => Ok(RpcReplySketch::Result(Value::Null)),
        _ => Err(NoRow::HasRow),
    }
}

/// Reverses the built-in table for RPC clients.
fn rest_of_rpc(reply: &RpcReplySketch) -> Result<RestReplySketch, NoRow> {
    let stored = match reply {
        RpcReplySketch::Error {
            data: Some(data), ..
        } if data.get("reason").is_some() => return Err(NoRow::Failure),
        RpcReplySketch::Error {
            data: Some(data), ..
        } => Some(data),
        RpcReplySketch::Error { data: None, .. } => None,
        RpcReplySketch::Result(result) if result["isError"] == true => {
            Some(&result["_meta"]["dualgauge/answer"])
        }
        // The table keeps no status of a success.
        RpcReplySketch::Result(result) => {
            let content = match result.is_null() {
                true => (204, SketchBody::Nothing),
                false => (200, SketchBody::Json(result.clone())),
            };
            return Ok(json_reply(content.0, content.1));
        }
    };
    let stored = stored.ok_or(NoRow::HasRow)?;
    let status = stored["status"].as_u64().ok_or(NoRow::HasRow)?;
    let status = u16::try_from(status).map_err(|_| NoRow::Unreadable)?;
    let content = match stored.get("body") {
        None | Some(Value::Null) => SketchBody::Nothing,
        Some(Value::String(text)) => SketchBody::Text(text.clone()),
        Some(body) => SketchBody::Json(body.clone()),
    };
    Ok(json_reply(status, content))
}

fn json_reply(status: u16, content: SketchBody) -> RestReplySketch {
    let kind = match content {
        SketchBody::Nothing => None,
        SketchBody::Json(_) => Some("application/json".to_owned()),
        SketchBody::Text(_) => Some("text/plain".to_owned()),
    };
    RestReplySketch {
        status,
        kind,
        content,
    }
}
