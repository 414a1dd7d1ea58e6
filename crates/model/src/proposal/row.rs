//! One row from the pairs of a group, and the proof that it makes them equal. Used by `proposal`.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use super::bind::{Bound, Numbers, bind, is_known};
use super::native::{NativePair, RestReplySketch, RpcReplySketch, SketchBody};
use super::no_row::NoRow;
use super::pattern::RowPattern;
use super::report::ReplyGroup;
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::outcome::{Outcomes, ReplyLimits, RestReply, RpcAnswer};
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

const CONTEXT: TranslateContext = TranslateContext {
    depth: 128,
    now: || "1970-01-01T00:00:00Z".to_owned(),
};

const LIMITS: ReplyLimits = ReplyLimits {
    depth: 128,
    error_text: usize::MAX,
};

/// A row as TOML, with the guesses in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedRow {
    rest: RowPattern,
    rpc: RowPattern,
    /// The guesses, for people.
    pub guesses: Vec<String>,
    /// Paths for `compare.ignore`: values that no row can write.
    pub missing: Vec<String>,
    caller: Side,
    pairs: Vec<NativePair>,
}

/// Proposes a row for a group.
///
/// # Errors
/// [`NoRow`]
pub fn propose(group: &ReplyGroup) -> Result<ProposedRow, NoRow> {
    let caller = group.caller().ok_or(NoRow::Unreadable)?;
    let pairs = group.samples.iter().map(|sample| group.native(sample));
    let pairs = pairs.collect::<Result<Vec<NativePair>, NoRow>>()?;
    let first = pairs.first().ok_or(NoRow::Unreadable)?;
    let code = first.rpc.code();
    let numbers = Numbers {
        status: first.rest.status,
        code,
    };
    let is_one = pairs.iter().all(|pair| {
        pair.rest.status == numbers.status
            && pair.rpc.code() == code
            && pair.rest.content.kind() == first.rest.content.kind()
    });
    if !is_one {
        return Err(NoRow::StillDiffers(
            "one kind of response for several ones".to_owned(),
        ));
    }
    let rest: Vec<Value> = pairs.iter().map(|pair| pair.rest.content.value()).collect();
    let rpc: Vec<Value> = pairs.iter().map(|pair| pair.rpc.value()).collect();
    let bound = match caller {
        Side::Rest => bind(&rest, &rpc, &numbers),
        Side::Rpc => bind(&rpc, &rest, &numbers),
    };
    let is_success = code.is_none() && first.rest.status < 300;
    if is_success && group.control == group.candidate && !bound.is_wrapper() {
        return Err(NoRow::Values);
    }
    let has_no_body = caller == Side::Rest && bound.written == RowPattern::Object(Vec::new());
    if let [place, ..] = &bound.missing[..]
        && (is_success || has_no_body)
    {
        return Err(NoRow::Unknown(path(caller, code.is_some(), place)));
    }
    let missing = bound.missing.iter();
    let missing = missing.map(|place| path(caller, code.is_some(), place));
    let missing = missing.collect();
    let guesses = bound.guesses.clone();
    let (rest, rpc) = sides(caller, first, bound);
    Ok(ProposedRow {
        rest,
        rpc,
        guesses,
        missing,
        caller,
        pairs,
    })
}

/// Returns the path of a written value, as comparison rules name it.
fn path(caller: Side, is_error: bool, place: &str) -> String {
    let part = match (caller, is_error) {
        (Side::Rest, _) => "/body",
        (Side::Rpc, true) => "/error",
        (Side::Rpc, false) => "/result",
    };
    format!("{part}{place}")
}

/// Returns the patterns of both sides.
fn sides(caller: Side, first: &NativePair, bound: Bound) -> (RowPattern, RowPattern) {
    let (body, reply) = match caller {
        Side::Rest => (Some(bound.written), bound.read),
        Side::Rpc => (bound.read, Some(bound.written)),
    };
    let any = || RowPattern::Hole("_".to_owned());
    let mut rest = vec![("status", RowPattern::Literal(json!(first.rest.status)))];
    match (&first.rest.content, body) {
        (SketchBody::Nothing, _) => {}
        (SketchBody::Json(_), body) => rest.push(("body", body.unwrap_or_else(any))),
        (SketchBody::Text(_), Some(text)) => rest.push(("text", text)),
        (SketchBody::Text(_), None) => rest.push(("body", any())),
    }
    let rpc = match &first.rpc {
        RpcReplySketch::Result(result) => {
            let mut reply = reply.unwrap_or_else(|| match is_known(result) {
                true => RowPattern::Literal(result.clone()),
                false => any(),
            });
            if let RowPattern::Object(members) = &mut reply
                && result["isError"] == true
                && members.iter().all(|(name, _)| name != "isError")
            {
                members.push(("isError".to_owned(), RowPattern::Literal(json!(true))));
            }
            vec![("result", reply)]
        }
        RpcReplySketch::Error { code, .. } => {
            let mut error = vec![("code".to_owned(), RowPattern::Literal(json!(code)))];
            if let Some(RowPattern::Object(members)) = reply {
                error.extend(members);
            }
            vec![("error", RowPattern::Object(error))]
        }
    };
    (RowPattern::object(rest), RowPattern::object(rpc))
}

impl Bound {
    /// Returns true if one of the responses is a part of the other.
    fn is_wrapper(&self) -> bool {
        let is_whole =
            |pattern: &RowPattern| matches!(pattern, RowPattern::Hole(name) if name != "_");
        let is_same = is_whole(&self.written) && self.read.as_ref().is_some_and(is_whole);
        let is_part = is_whole(&self.written) || self.read.as_ref().is_some_and(is_whole);
        self.missing.is_empty() && is_part && !is_same
    }
}

impl SketchBody {
    fn kind(&self) -> u8 {
        match self {
            SketchBody::Nothing => 0,
            SketchBody::Json(_) => 1,
            SketchBody::Text(_) => 2,
        }
    }

    fn value(&self) -> Value {
        match self {
            SketchBody::Nothing => Value::Null,
            SketchBody::Json(value) => value.clone(),
            SketchBody::Text(text) => json!(text),
        }
    }
}

impl RpcReplySketch {
    fn value(&self) -> Value {
        match self {
            RpcReplySketch::Result(result) => result.clone(),
            RpcReplySketch::Error { message, data, .. } => {
                let mut value = json!({ "message": message });
                if let Some(data) = data {
                    value["data"] = data.clone();
                }
                value
            }
        }
    }
}

impl ProposedRow {
    /// Returns `rest` of the row.
    #[must_use]
    pub fn rest(&self) -> String {
        self.rest.toml()
    }

    /// Returns `rpc` of the row.
    #[must_use]
    pub fn rpc(&self) -> String {
        self.rpc.toml()
    }

    /// Returns the row as an inline table.
    #[must_use]
    pub fn toml(&self) -> String {
        format!("{{ rest = {}, rpc = {} }}", self.rest(), self.rpc())
    }

    /// Translates the other response of each pair with the rows of a route, and compares it with that of the caller's
    /// side.
    ///
    /// # Errors
    /// The first difference.
    pub fn try_with(&self, outcomes: &Outcomes) -> Result<(), NoRow> {
        for pair in &self.pairs {
            let (wanted, found) = match self.caller {
                Side::Rest => (rest_form(&pair.rest), written_rest(outcomes, &pair.rpc)?),
                Side::Rpc => (rpc_form(&pair.rpc), written_rpc(outcomes, &pair.rest)?),
            };
            let (mut wanted, mut found) = (wanted, found);
            for place in &self.missing {
                remove(&mut wanted, place);
                remove(&mut found, place);
            }
            if wanted != found {
                let differing = ["status", "type", "body", "text", "result", "error"];
                let mut names = differing.iter();
                let name = names.find(|name| wanted.get(**name) != found.get(**name));
                let name = name.copied().unwrap_or("something");
                return Err(NoRow::StillDiffers(format!("another `{name}`")));
            }
        }
        Ok(())
    }
}

fn rest_form(reply: &RestReplySketch) -> Value {
    let mut value = json!({ "status": reply.status });
    match &reply.content {
        SketchBody::Nothing => return value,
        SketchBody::Json(body) => value["body"] = body.clone(),
        SketchBody::Text(text) => value["text"] = json!(text),
    }
    value["type"] = json!(reply.kind);
    value
}

fn rpc_form(reply: &RpcReplySketch) -> Value {
    match reply {
        RpcReplySketch::Result(result) => json!({ "result": result }),
        RpcReplySketch::Error { code, .. } => {
            let mut error = reply.value();
            error["code"] = json!(code);
            json!({ "error": error })
        }
    }
}

fn parsed(value: &Value) -> Json {
    Json::written(value.to_string())
}

fn written_rest(outcomes: &Outcomes, reply: &RpcReplySketch) -> Result<Value, NoRow> {
    let reply = match reply {
        RpcReplySketch::Result(result) => ResponseReply::Result(parsed(result)),
        RpcReplySketch::Error {
            code,
            message,
            data,
        } => ResponseReply::Error(ErrorObject {
            code: *code,
            message: parsed(&json!(message)),
            data: data.as_ref().map(parsed),
        }),
    };
    let answer = outcomes.answer_rest(reply, &Bindings::default(), CONTEXT);
    let answer = answer.map_err(|failure| NoRow::StillDiffers(failure.to_string()))?;
    let answer = answer.answer;
    let body = answer.body.into_bytes();
    let kind = answer.content_type.unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let content = match serde_json::from_slice(&body) {
        _ if body.is_empty() => SketchBody::Nothing,
        Ok(value) if !kind.starts_with("text/") => SketchBody::Json(value),
        Ok(_) | Err(_) => SketchBody::Text(String::from_utf8_lossy(&body).into_owned()),
    };
    Ok(rest_form(&RestReplySketch {
        status: answer.status,
        kind: Some(kind),
        content,
    }))
}

fn written_rpc(outcomes: &Outcomes, reply: &RestReplySketch) -> Result<Value, NoRow> {
    let mut headers = HeaderMap::new();
    let kind = reply.kind.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(kind)) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    let body = match &reply.content {
        SketchBody::Nothing => Bytes::new(),
        SketchBody::Json(value) => value.to_string().into(),
        SketchBody::Text(text) => text.clone().into(),
    };
    let reply = RestReply {
        status: reply.status,
        headers,
        body,
    };
    let answer = outcomes.rest_to_rpc(&reply, &Bindings::default(), LIMITS, CONTEXT);
    let answer = answer.map_err(|failure| NoRow::StillDiffers(failure.to_string()))?;
    let json = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap_or_default();
    Ok(match outcomes.completed(answer.answer) {
        RpcAnswer::Result(result) => json!({ "result": json(&bytes_of(result)) }),
        RpcAnswer::Error(error) => {
            let mut value = json!({
                "code": error.code,
                "message": json(error.message.as_bytes()),
            });
            if let Some(data) = &error.data {
                value["data"] = json(data.as_bytes());
            }
            json!({ "error": value })
        }
    })
}

fn bytes_of(rope: Rope) -> Cow<'static, [u8]> {
    Cow::Owned(rope.into_bytes().to_vec())
}

/// Removes the value at a pointer.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    if let Some(Value::Object(members)) = value.pointer_mut(parent) {
        members.remove(&name);
    }
}
