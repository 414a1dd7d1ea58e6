//! The built-in rows.

use http::StatusCode;

use super::problem::{read_problem, write_problem};
use super::{RestAnswer, RestReply, RpcAnswer, is_json};
use crate::domain::failure::{Failure, Reason, code_of_status, status_of_code};
use crate::domain::json::{Json, Kind};
use crate::domain::jsonrpc::{ErrorObject, Reply};
use crate::domain::pieces::Pieces;

/// What bounds the reading of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// The deepest nesting of arrays and objects.
    pub depth: u16,
    /// How many bytes of a text that is not JSON go into `error.data`.
    pub error_text: usize,
}

/// A REST answer for an RPC client.
///
/// # Errors
/// A [`Failure`] where the answer promises content that it does not have, or is a redirect.
pub fn rest_to_rpc(reply: &RestReply, limits: ReplyLimits) -> Result<RpcAnswer, Failure> {
    match reply.status {
        200..=299 => success(reply, limits).map(RpcAnswer::Result),
        300..=399 => Err(redirect(reply)),
        0..=199 => {
            let message = format!("the server answered {}, which is no answer", reply.status);
            Err(Failure::new(Reason::UpstreamUpgrade, message))
        }
        _ => Ok(RpcAnswer::Error(failure(reply, limits))),
    }
}

fn success(reply: &RestReply, limits: ReplyLimits) -> Result<Pieces, Failure> {
    let blank = reply.body.iter().all(u8::is_ascii_whitespace);
    match reply.status {
        // No content by definition (RFC 9110 §15.3.5, §15.3.6), or none that is promised.
        204 | 205 => return Ok(null()),
        201 | 202 if blank => return Ok(null()),
        206 => {
            let message = "the server answered with a part of the content, which nobody asked for";
            return Err(Failure::new(Reason::UpstreamNotProtocol, message));
        }
        status if blank => {
            let message =
                format!("the server answered {status} without the content that it promises");
            return Err(Failure::new(Reason::UpstreamEmpty, message));
        }
        _ => {}
    }
    let json = Json::parse(reply.body.clone(), limits.depth).map_err(|fault| {
        let kind = reply.content_type().unwrap_or("no content type");
        let reason = if fault.is_too_deep() {
            Reason::UpstreamNotProtocol
        } else {
            Reason::UpstreamNotJson
        };
        Failure::new(
            reason,
            format!(
                "the server answered {} with `{kind}`, which is not JSON: {fault}",
                reply.status
            ),
        )
    })?;
    Ok(json.into_bytes().into())
}

fn null() -> Pieces {
    Json::literal("null").into_bytes().into()
}

fn redirect(reply: &RestReply) -> Failure {
    let status = reply.status;
    let location = reply.location().map_or("null".to_owned(), quoted);
    let mut failure = Failure::new(
        Reason::UpstreamRedirect,
        format!("the server answered {status}, a redirect, which is never followed"),
    );
    let detail = format!(r#"{{"status":{status},"location":{location}}}"#);
    failure.detail = Some(Json::written(detail));
    failure
}

fn quoted(text: &str) -> String {
    String::from_utf8_lossy(Json::string(text).as_bytes()).into_owned()
}

/// A failed REST answer: the proxy's own document is unpacked, anything else goes into `data`.
fn failure(reply: &RestReply, limits: ReplyLimits) -> ErrorObject {
    let content_type = reply.content_type().unwrap_or_default();
    let json = if is_json(content_type) {
        Json::parse(reply.body.clone(), limits.depth).ok()
    } else {
        None
    };
    if let Some(error) = json
        .as_ref()
        .and_then(|json| read_problem(content_type, json))
    {
        return error;
    }
    let title = StatusCode::from_u16(reply.status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let message = title.map_or_else(|| format!("HTTP status {}", reply.status), str::to_owned);
    let data = kept(reply, json.as_ref(), limits.error_text);
    ErrorObject {
        code: code_of_status(reply.status),
        message: Json::string(&message),
        data: Some(data),
    }
}

/// An answer as a value: its status, type and body; a body that is not JSON as text, up to a limit.
#[must_use]
pub fn kept(reply: &RestReply, json: Option<&Json>, limit: usize) -> Json {
    let (body, cut) = match json {
        Some(json) => (String::from_utf8_lossy(json.as_bytes()).into_owned(), ""),
        None if reply.body.is_empty() => ("null".to_owned(), ""),
        None => {
            let text = String::from_utf8_lossy(&reply.body);
            let kept = text.floor_char_boundary(limit);
            (
                quoted(&text[..kept]),
                if kept < text.len() {
                    r#","truncated":true"#
                } else {
                    ""
                },
            )
        }
    };
    let kind = reply.content_type().map_or("null".to_owned(), quoted);
    Json::written(format!(
        r#"{{"status":{},"type":{kind},"body":{body}{cut}}}"#,
        reply.status
    ))
}

/// A tool's result that says that it failed, as the error that it is: its first text is the message.
pub(super) fn tool_failure(result: Json) -> ErrorObject {
    let blocks = result.member("content");
    let first = blocks
        .as_ref()
        .and_then(|blocks| Some(blocks.piece(blocks.elements().next()?)));
    let text = first.and_then(|block| block.member("text"));
    let text = text.filter(|text| text.kind() == Kind::String);
    ErrorObject {
        code: -32603,
        message: text.unwrap_or(Json::literal("\"the tool failed\"")),
        data: Some(result),
    }
}

/// An RPC answer for a REST client.
#[must_use]
pub fn rpc_to_rest(reply: Reply) -> RestAnswer {
    match reply {
        Reply::Result(result) if result.kind() == Kind::Null => RestAnswer {
            status: 204,
            content_type: None,
            headers: Vec::new(),
            body: Pieces::default(),
        },
        Reply::Result(result) => RestAnswer {
            status: 200,
            content_type: Some("application/json".to_owned()),
            headers: Vec::new(),
            body: result.into_bytes().into(),
        },
        Reply::Error(error) => {
            let restored = error
                .data
                .as_ref()
                .and_then(|data| restore(error.code, data));
            restored.unwrap_or_else(|| write_problem(status_of_code(error.code), "", &error))
        }
    }
}

/// The REST answer that [`failure`] has put into `data`, exactly as it was.
fn restore(code: i64, data: &Json) -> Option<RestAnswer> {
    if data.kind() != Kind::Object {
        return None;
    }
    let members = data.open().ok()?;
    let names = members.iter().map(|member| &*member.name);
    if !names.eq(["status", "type", "body"]) {
        return None;
    }
    let status = std::str::from_utf8(data.member("status")?.as_bytes())
        .ok()?
        .parse::<u16>()
        .ok()?;
    if !(400..=599).contains(&status) || code_of_status(status) != code {
        return None;
    }
    let content_type = match data.member("type")?.text() {
        Some(text) => Some(text.ok()?),
        None => None,
    };
    let body = data.member("body")?;
    let body: Pieces = match (content_type.as_deref(), body.kind()) {
        (Some(kind), _) if is_json(kind) => body.into_bytes().into(),
        (_, Kind::String) => bytes::Bytes::from(body.text()?.ok()?).into(),
        (_, Kind::Null) => Pieces::default(),
        _ => return None,
    };
    Some(RestAnswer {
        status,
        content_type,
        headers: Vec::new(),
        body,
    })
}
