//! The built-in translation of responses that match no row. Used by `config`, `model`, `gateway` and `upstream`.

use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};

use super::problem::{read_problem, write_problem};
use super::response::{RestAnswer, RestReply, RpcAnswer, is_json};
use super::row::{BodyPattern, OutcomeRow, reports_failure};
use super::status::{asks_for_credentials, forwarded, is_rejection_status};
use crate::failure::{Blame, Failure, Reason, code_of_status, status_of_code};
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::mcp::ResultType;
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::rope::Rope;

/// The limits of reading a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// The deepest nesting of arrays and objects.
    pub depth: u16,
    /// Maximum bytes of non-JSON text in `error.data`.
    pub error_text: usize,
}

/// The meaning of a success without content, if its status promises content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum EmptySuccess {
    /// A fault: the content is missing.
    #[default]
    Fault,
    /// The result `null`.
    Null,
}

impl EmptySuccess {
    /// Derives the meaning from the rows: content is optional if one of them is a success without a body.
    pub(super) fn new(rows: &[OutcomeRow]) -> EmptySuccess {
        let promises = |row: &OutcomeRow| {
            matches!(row.rest.body, BodyPattern::Nothing) && row.rest.status.names_success()
        };
        match rows.iter().any(promises) {
            true => EmptySuccess::Null,
            false => EmptySuccess::Fault,
        }
    }
}

/// Translates a REST response for an RPC client. The second value tells whether the answer may have a result type.
///
/// # Errors
/// A [`Failure`] if the response lacks promised content, or is a redirect.
pub(super) fn rest_to_rpc(
    reply: &RestReply,
    limits: ReplyLimits,
    empty: EmptySuccess,
) -> Result<(RpcAnswer, ResultType), Failure> {
    match reply.status {
        200..=299 => {
            let (result, result_type) = success(reply, limits, empty)?;
            Ok((RpcAnswer::Result(result), result_type))
        }
        300..=399 => Err(redirect(reply)),
        0..=199 => {
            let message = format!(
                "the server answered {}, which is not a final response",
                reply.status
            );
            Err(Failure::new(Reason::UpstreamUpgrade, message))
        }
        _ => {
            let error = RpcAnswer::Error(failure(reply, limits));
            Ok((error, ResultType::Possible))
        }
    }
}

fn success(
    reply: &RestReply,
    limits: ReplyLimits,
    empty: EmptySuccess,
) -> Result<(Rope, ResultType), Failure> {
    let blank = reply.body.iter().all(u8::is_ascii_whitespace);
    match reply.status {
        // No content by definition (RFC 9110 §15.3.5, §15.3.6), or by the rows.
        204 | 205 => return Ok(null()),
        201 | 202 if blank => return Ok(null()),
        206 => {
            let message = "the server answered with partial content, which was not requested";
            return Err(Failure::new(Reason::UpstreamNotProtocol, message));
        }
        _ if blank && empty == EmptySuccess::Null => return Ok(null()),
        status if blank => {
            let message = format!("the server answered {status} without the required content");
            return Err(Failure::new(Reason::UpstreamEmpty, message));
        }
        _ => {}
    }
    let mut result_type = ResultType::Absent;
    let visit = |name: &[u8]| result_type = result_type.with_member(name);
    let json = Json::read_with_names(reply.body.clone(), limits.depth, visit).map_err(|fault| {
        let kind = reply.content_type_words();
        let reason = if fault.is_too_deep() {
            Reason::UpstreamNotProtocol
        } else {
            Reason::UpstreamNotJson
        };
        Failure::new(
            reason,
            format!(
                "the server answered {} {kind}, which is not JSON: {fault}",
                reply.status
            ),
        )
    })?;
    Ok((json.into_bytes().into(), result_type))
}

fn null() -> (Rope, ResultType) {
    let null = Json::literal("null").into_bytes().into();
    (null, ResultType::Absent)
}

/// Returns the failure of a redirect.
#[must_use]
pub fn redirect(reply: &RestReply) -> Failure {
    let status = reply.status;
    let location = reply.location().map_or("null".to_owned(), quoted);
    let mut failure = Failure::new(
        Reason::UpstreamRedirect,
        format!("the server answered {status}, a redirect; the proxy follows none"),
    );
    let detail = format!(r#"{{"status":{status},"location":{location}}}"#);
    failure.detail = Some(Json::written(detail));
    failure
}

fn quoted(text: &str) -> String {
    String::from_utf8_lossy(Json::string(text).as_bytes()).into_owned()
}

/// Converts a REST error response: the proxy's own document is unpacked, any other body goes into `data`.
pub(super) fn failure(reply: &RestReply, limits: ReplyLimits) -> ErrorObject {
    let json = json_of(reply, limits);
    if let Some(error) = proxy_problem(reply, json.as_ref()) {
        return error;
    }
    let title = title_of(reply.status);
    let message = title.map_or_else(|| format!("HTTP status {}", reply.status), str::to_owned);
    let data = envelope_of(reply, json.as_ref(), limits.error_text);
    ErrorObject {
        code: code_of_status(reply.status),
        message: Json::string(&message),
        data: Some(data),
    }
}

fn json_of(reply: &RestReply, limits: ReplyLimits) -> Option<Json> {
    if is_json(reply.content_type().unwrap_or_default()) {
        Json::read(reply.body.clone(), limits.depth).ok()
    } else {
        None
    }
}

/// Returns the RPC error in a problem document of the proxy.
fn proxy_problem(reply: &RestReply, json: Option<&Json>) -> Option<ErrorObject> {
    read_problem(reply.content_type().unwrap_or_default(), json?)
}

fn title_of(status: u16) -> Option<&'static str> {
    let status = StatusCode::from_u16(status).ok()?;
    status.canonical_reason()
}

/// The result of a tool without content: the member is required (MCP, schema, `CallToolResult`).
pub const EMPTY_TOOL_RESULT: &str = r#"{"content":[]}"#;

/// The member of a tool's result that keeps the REST response.
const STORED_RESPONSE: &str = "dualgauge/answer";

/// Converts a REST error response to a tool's result, in the form that MCP clients read (MCP, "Tools", error handling).
/// Returns `None` for a success, or a request for credentials.
pub(super) fn tool_result(reply: &RestReply, limits: ReplyLimits) -> Option<Rope> {
    if !(400..=599).contains(&reply.status) || asks_for_credentials(reply) {
        return None;
    }
    let json = json_of(reply, limits);
    if proxy_problem(reply, json.as_ref()).is_some() {
        return None;
    }
    let mut text = format!("HTTP {}", reply.status);
    if let Some(title) = title_of(reply.status) {
        text.push_str(&format!(" {title}"));
    }
    let words = error_text(reply, json.as_ref(), limits.error_text);
    if !words.is_empty() {
        text.push_str(&format!(": {words}"));
    }
    if let Some(pause) = pause_of(reply) {
        let unit = if is_seconds(pause) { " seconds" } else { "" };
        text.push_str(&format!("; retry after {pause}{unit}"));
    }
    let (text, stored) = (
        quoted(&text),
        envelope_of(reply, json.as_ref(), limits.error_text),
    );
    let stored = String::from_utf8_lossy(stored.as_bytes());
    let result = format!(
        r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true,"_meta":{{"{STORED_RESPONSE}":{stored}}}}}"#
    );
    Some(Json::written(result).into_bytes().into())
}

/// Returns the server's message: the usual error member of a JSON body, else the body, truncated.
fn error_text(reply: &RestReply, json: Option<&Json>, limit: usize) -> String {
    let text = |json: &Json| json.text().and_then(Result::ok);
    let error = json.and_then(|json| json.member("error"));
    let inner = error.as_ref().and_then(|error| error.member("message"));
    let members = ["detail", "message", "error_description"];
    let mut values = members.iter().filter_map(|name| json?.member(name));
    let found = values.find_map(|value| text(&value));
    let found = found.or_else(|| inner.as_ref().and_then(text));
    let found = found.or_else(|| error.as_ref().and_then(text));
    let found = found.unwrap_or_else(|| String::from_utf8_lossy(&reply.body).trim().to_owned());
    found[..found.floor_char_boundary(limit)].to_owned()
}

/// Returns `Retry-After`, if it is text.
fn pause_of(reply: &RestReply) -> Option<&str> {
    let pause = reply.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    (!pause.is_empty()).then_some(pause)
}

fn is_seconds(pause: &str) -> bool {
    pause.len() <= 9 && pause.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the values of `WWW-Authenticate` as a member of the envelope; empty if there are none.
fn challenges_of(reply: &RestReply) -> String {
    let values = reply.headers.get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<String> = values
        .filter_map(|one| one.to_str().ok().map(quoted))
        .collect();
    match challenges.is_empty() {
        true => String::new(),
        false => format!(r#","www_authenticate":[{}]"#, challenges.join(",")),
    }
}

/// Returns a response as a JSON value: status, type and body, with `Retry-After` and the requested credentials. A body
/// that is not JSON becomes text, truncated.
#[must_use]
pub fn envelope_of(reply: &RestReply, json: Option<&Json>, limit: usize) -> Json {
    let (body, cut) = match json {
        Some(json) => (String::from_utf8_lossy(json.as_bytes()).into_owned(), ""),
        None if reply.body.is_empty() => ("null".to_owned(), ""),
        None => {
            let text = String::from_utf8_lossy(&reply.body);
            let end = text.floor_char_boundary(limit);
            (
                quoted(&text[..end]),
                if end < text.len() {
                    r#","truncated":true"#
                } else {
                    ""
                },
            )
        }
    };
    let kind = reply.content_type().map_or("null".to_owned(), quoted);
    let pause = match pause_of(reply) {
        // A JSON number has no leading zeros.
        Some(pause) if is_seconds(pause) && (pause == "0" || !pause.starts_with('0')) => {
            format!(r#","retry_after":{pause}"#)
        }
        Some(pause) => format!(r#","retry_after":{}"#, quoted(pause)),
        None => String::new(),
    };
    let challenges = challenges_of(reply);
    Json::written(format!(
        r#"{{"status":{},"type":{kind},"body":{body}{cut}{pause}{challenges}}}"#,
        reply.status
    ))
}

/// Converts a tool's failed result to an error: its first text becomes the message.
pub(super) fn tool_failure(result: Json) -> ErrorObject {
    let blocks = result.member("content");
    let first = blocks
        .as_ref()
        .and_then(|blocks| Some(blocks.piece(blocks.elements().next()?)));
    let text = first.and_then(|block| block.member("text"));
    let text = text.filter(|text| text.kind() == JsonKind::String);
    ErrorObject {
        code: -32603,
        message: text.unwrap_or(Json::literal("\"the tool failed\"")),
        data: Some(result),
    }
}

/// Translates an RPC response for a REST client.
#[must_use]
pub fn rpc_to_rest(reply: ResponseReply) -> RestAnswer {
    match reply {
        ResponseReply::Result(result) if result.kind() == JsonKind::Null => RestAnswer {
            status: 204,
            content_type: None,
            headers: Vec::new(),
            body: Rope::default(),
        },
        ResponseReply::Result(result) => RestAnswer {
            status: 200,
            content_type: Some("application/json".to_owned()),
            headers: Vec::new(),
            body: result.into_bytes().into(),
        },
        ResponseReply::Error(error) => {
            let restored = error
                .data
                .as_ref()
                .and_then(|data| restore(error.code, data));
            restored.unwrap_or_else(|| unrestored(&error))
        }
    }
}

/// Restores the REST response that [`failure`] stored in `data`.
fn restore(code: i64, data: &Json) -> Option<RestAnswer> {
    let stored = ReplyEnvelope::new(data).filter(|stored| code_of_status(stored.status) == code)?;
    restored(data, &stored)
}

/// Restores the REST response that [`tool_result`] stored in a result.
pub(super) fn restore_tool(result: &Json) -> Option<RestAnswer> {
    if !reports_failure(result) {
        return None;
    }
    let data = result.member("_meta")?.member(STORED_RESPONSE)?;
    restored(&data, &ReplyEnvelope::new(&data)?)
}

/// Returns the status and headers of the REST response that [`tool_result`] stored in a result.
pub(super) fn stored_head(result: &Json) -> Option<(u16, Vec<(HeaderName, HeaderValue)>)> {
    let stored = ReplyEnvelope::new(&result.member("_meta")?.member(STORED_RESPONSE)?)?;
    Some((forwarded(stored.status), stored.headers()))
}

/// Returns the status and headers of the response that an error stores, if a server may reject a call by this status.
#[must_use]
pub fn rejection_head(error: &ErrorObject) -> Option<(u16, Vec<(HeaderName, HeaderValue)>)> {
    let stored = error.data.as_ref().and_then(ReplyEnvelope::new)?;
    let is_rejection = is_rejection_status(stored.status);
    let is_own = is_rejection && code_of_status(stored.status) == error.code;
    is_own.then(|| (stored.status, stored.headers()))
}

/// Returns the party at fault for a tool's failed result that was made from a REST response; `None` if the tool itself
/// failed. A 5xx is the server's fault, and the statuses with which an RPC server may reject a call before the tool
/// count as rejections here as well.
#[must_use]
pub fn blame_behind_tool(result: &Json) -> Option<Blame> {
    let (status, _) = stored_head(result)?;
    let before_tool = status >= 500 || is_rejection_status(status);
    Blame::of_status(status).filter(|_| before_tool)
}

/// The parts of a stored response other than its body.
struct ReplyEnvelope {
    status: u16,
    is_whole: bool,
    pause: Option<HeaderValue>,
    challenges: Vec<HeaderValue>,
}

/// The members that may follow the status, the type and the body, in this order.
const MORE: [&str; 3] = ["truncated", "retry_after", "www_authenticate"];

impl ReplyEnvelope {
    /// Returns `None` if the value was not written by [`envelope_of`] for an error response.
    fn new(data: &Json) -> Option<ReplyEnvelope> {
        if data.kind() != JsonKind::Object {
            return None;
        }
        let members = data.open().ok()?;
        let names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
        let (first, more) = names.split_at_checked(3)?;
        let mut known = MORE.iter();
        let in_order = more.iter().all(|name| known.any(|next| next == name));
        if first != ["status", "type", "body"] || !in_order {
            return None;
        }
        let status = std::str::from_utf8(data.member("status")?.as_bytes())
            .ok()?
            .parse::<u16>()
            .ok()?;
        let pause = data.member("retry_after").map(|pause| match pause.text() {
            Some(text) => text.ok(),
            None => Some(String::from_utf8_lossy(pause.as_bytes()).into_owned()),
        });
        let pause = pause.flatten().and_then(|pause| pause.try_into().ok());
        let challenges = data.member("www_authenticate");
        (400..=599).contains(&status).then_some(ReplyEnvelope {
            status,
            is_whole: !more.contains(&"truncated"),
            pause,
            challenges: challenges.as_ref().map_or_else(Vec::new, texts),
        })
    }

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let pause = self.pause.iter().cloned();
        let pause = pause.map(|pause| (RETRY_AFTER, pause));
        let challenges = self.challenges.iter().cloned();
        let challenges = challenges.map(|one| (WWW_AUTHENTICATE, one));
        pause.chain(challenges).collect()
    }
}

/// Returns the texts of an array as header values.
fn texts(array: &Json) -> Vec<HeaderValue> {
    let texts = array.elements().filter_map(|range| {
        let text = array.piece(range).text()?.ok()?;
        HeaderValue::try_from(text).ok()
    });
    texts.collect()
}

/// Returns the response for an error without a stored body: status and headers come from its data, if the status and
/// the code agree.
fn unrestored(error: &ErrorObject) -> RestAnswer {
    let stored = error.data.as_ref().and_then(ReplyEnvelope::new);
    match stored.filter(|stored| code_of_status(stored.status) == error.code) {
        Some(stored) => RestAnswer {
            headers: stored.headers(),
            ..write_problem(forwarded(stored.status), "", error)
        },
        None => write_problem(status_of_code(error.code), "", error),
    }
}

fn restored(data: &Json, stored: &ReplyEnvelope) -> Option<RestAnswer> {
    if !stored.is_whole {
        return None;
    }
    let content_type = match data.member("type")?.text() {
        Some(text) => Some(text.ok()?),
        None => None,
    };
    let body = data.member("body")?;
    let body: Rope = match (content_type.as_deref(), body.kind()) {
        (Some(kind), _) if is_json(kind) => body.into_bytes().into(),
        (_, JsonKind::String) => bytes::Bytes::from(body.text()?.ok()?).into(),
        (_, JsonKind::Null) => Rope::default(),
        _ => return None,
    };
    Some(RestAnswer {
        status: forwarded(stored.status),
        content_type,
        headers: stored.headers(),
        body,
    })
}
