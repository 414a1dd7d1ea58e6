//! Reads an entry of a HAR file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;

use super::extension::Extension;
use crate::recording::{
    Headers, RecordedBody, RecordedCall, RecordedRequest, RecordedResponse, RecordedTime, Responder,
};
use dualgauge_patterns::json::JsonKind;
use dualgauge_patterns::percent::{self, Keep};
use dualgauge_patterns::side::Side;

/// A call of a HAR file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarCall {
    /// The scheme and authority of its URL, such as `https://api.example:8443`.
    pub origin: String,
    /// The call. Its side is `rpc` if its body is a JSON-RPC message, and its `from` is `old`: HAR names neither. A latency
    /// of 0 is unknown.
    pub call: RecordedCall,
    /// False if a recording was written as this entry: it has the headers that were allowed.
    pub has_all_headers: bool,
}

/// The reason why an entry is no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    /// A member is missing or has another type.
    #[error("{0}")]
    Invalid(String),
    /// The URL is not absolute, or not of HTTP.
    #[error("its URL is not one of HTTP")]
    NotHttp,
    /// A body is not valid base64.
    #[error("its {0} body is not valid base64")]
    Base64(&'static str),
}

#[derive(Deserialize)]
#[serde(
    rename_all = "camelCase",
    expecting = "an object with `request` and `response`"
)]
struct Entry {
    started_date_time: Option<String>,
    time: Option<f64>,
    request: Request,
    response: Option<Response>,
    timings: Option<Timings>,
    #[serde(rename = "_dualgauge")]
    extension: Option<Extension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    body_size: Option<i64>,
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    /// Not in HAR 1.2; several programs write it.
    encoding: Option<String>,
    #[serde(default)]
    params: Vec<Param>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Param {
    name: String,
    value: Option<String>,
    file_name: Option<String>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Response {
    status: i64,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    content: Content,
}

#[derive(Deserialize, Default)]
struct Content {
    size: Option<i64>,
    text: Option<String>,
    encoding: Option<String>,
}

#[derive(Deserialize)]
struct Timings {
    wait: Option<f64>,
    receive: Option<f64>,
}

/// Reads an entry.
pub(super) fn read(text: &str) -> Result<HarCall, EntryFault> {
    let entry: Entry =
        serde_json::from_str(text).map_err(|fault| EntryFault::Invalid(described(&fault)))?;
    let (origin, target) = split_url(&entry.request.url).ok_or(EntryFault::NotHttp)?;
    let (origin, target) = (origin.to_owned(), target.to_owned());
    let latency_us = entry.latency_us();
    let Entry {
        started_date_time,
        request,
        response,
        extension,
        ..
    } = entry;
    let has_content = request.method != "HEAD";
    let request = request.read(target)?;
    let (response, is_whole) = match response {
        Some(response) => response.read(has_content)?,
        None => (None, false),
    };
    let is_whole = is_whole && !matches!(request.body, RecordedBody::Omitted(_));
    let time = started_date_time.and_then(|time| RecordedTime::parse(&time));
    let side = match is_message(&request.body) {
        true => Side::Rpc,
        false => Side::Rest,
    };
    let mut call = RecordedCall {
        time: time.unwrap_or_default(),
        side,
        route: None,
        client: None,
        stage: None,
        reason: "har".to_owned(),
        request,
        response,
        redacted: Vec::new(),
        complete: is_whole,
    };
    if let Some(response) = &mut call.response {
        response.latency_us = latency_us;
    }
    let has_all_headers = extension.is_none();
    if let Some(extension) = extension {
        extend(&mut call, extension);
    }
    Ok(HarCall {
        origin,
        call,
        has_all_headers,
    })
}

/// Restores what the writer of this crate knew of a call.
fn extend(call: &mut RecordedCall, extension: Extension) {
    call.side = extension.side().unwrap_or(call.side);
    call.route = extension.route;
    call.client = extension.client;
    call.stage = extension.stage;
    call.reason = extension.reason;
    call.redacted = extension.redacted;
    call.complete = extension.complete;
    if let Some(response) = &mut call.response {
        response.from = extension.from.unwrap_or(response.from);
        response.failure = extension.failure;
        response.latency_us = extension.latency_us.unwrap_or(response.latency_us);
    }
}

impl Entry {
    /// Returns the time from the sent request to the last byte of the response, without that of connecting.
    fn latency_us(&self) -> u64 {
        let spans = self.timings.as_ref().map(|timings| {
            let spans = [timings.wait, timings.receive];
            // A span that does not apply is -1.
            spans
                .into_iter()
                .flatten()
                .filter(|span| *span >= 0.0)
                .sum()
        });
        let milliseconds: f64 = match spans {
            Some(sum) if sum > 0.0 => sum,
            Some(_) | None => self.time.unwrap_or_default(),
        };
        microseconds(milliseconds)
    }
}

/// Converts milliseconds; a time that is not positive or longer than a day is unknown.
fn microseconds(milliseconds: f64) -> u64 {
    const DAY_MS: f64 = 86_400_000.0;
    if !(milliseconds > 0.0 && milliseconds <= DAY_MS) {
        return 0;
    }
    let span = std::time::Duration::from_secs_f64(milliseconds / 1000.0);
    u64::try_from(span.as_micros()).unwrap_or_default()
}

impl Request {
    /// Returns the length of the body. A file of Chromium may have 0 for a body that it lacks, such as a form with a file.
    fn size(&self) -> Option<i64> {
        let mut headers = self.headers.iter();
        let length = headers.find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| header.value.parse().ok());
        let size = self.body_size.filter(|size| *size > 0);
        size.or(length).or(self.body_size)
    }

    fn read(self, target: String) -> Result<RecordedRequest, EntryFault> {
        let size = self.size();
        let body = match self.post_data {
            Some(data) => data.body(size)?,
            None => omitted(size),
        };
        Ok(RecordedRequest {
            method: self.method,
            target,
            headers: headers(self.headers),
            body,
        })
    }
}

impl PostData {
    fn body(self, size: Option<i64>) -> Result<RecordedBody, EntryFault> {
        if let Some(text) = self.text.filter(|text| !text.is_empty()) {
            let content = decoded(text, self.encoding.as_deref());
            return content
                .map(|content| RecordedBody::new(&content))
                .ok_or(EntryFault::Base64("request"));
        }
        let is_form = self
            .mime_type
            .starts_with("application/x-www-form-urlencoded");
        let has_file = self.params.iter().any(|param| param.file_name.is_some());
        match self.params.is_empty() {
            true => Ok(omitted(size)),
            false if is_form && !has_file => {
                let form = form(&self.params);
                Ok(RecordedBody::new(&Bytes::from(form)))
            }
            // The parts of a multipart body do not give its bytes.
            false => Ok(RecordedBody::Omitted(length(size))),
        }
    }
}

impl Response {
    /// Returns the response and whether its body is whole; `None` if the client received none.
    fn read(self, has_content: bool) -> Result<(Option<RecordedResponse>, bool), EntryFault> {
        let Some(status) = u16::try_from(self.status)
            .ok()
            .filter(|status| (100..1000).contains(status))
        else {
            return Ok((None, false));
        };
        let has_content = has_content && !matches!(status, 204 | 304);
        let (body, is_whole) = match has_content {
            true => self.content.body()?,
            false => (RecordedBody::Empty, true),
        };
        let mut headers = headers(self.headers);
        // The text is decoded, and may have another length.
        headers.retain(|(name, _)| !DECODED.contains(&name.as_str()));
        let response = RecordedResponse {
            status,
            from: Responder::Old,
            failure: None,
            headers,
            body,
            latency_us: 0,
        };
        Ok((Some(response), is_whole))
    }
}

/// Headers that describe the body as it was sent, and not as HAR has it.
const DECODED: [&str; 3] = ["content-encoding", "content-length", "transfer-encoding"];

impl Content {
    /// Returns the body, and whether it is whole. Browsers cut the text of long bodies.
    fn body(self) -> Result<(RecordedBody, bool), EntryFault> {
        let Some(text) = self.text else {
            let body = omitted(self.size);
            let is_whole = body.is_empty();
            return Ok((body, is_whole));
        };
        let content = decoded(text, self.encoding.as_deref());
        let content = content.ok_or(EntryFault::Base64("response"))?;
        let is_whole = content.len() as u64 >= length(self.size);
        Ok((RecordedBody::new(&content), is_whole))
    }
}

/// Returns the bytes of a text; `None` if it is not valid base64.
fn decoded(text: String, encoding: Option<&str>) -> Option<Bytes> {
    match encoding {
        Some("base64") => {
            let compact: String = text.split_ascii_whitespace().collect();
            STANDARD.decode(compact).ok().map(Bytes::from)
        }
        Some(_) | None => Some(Bytes::from(text)),
    }
}

/// Returns a body that the file does not have: empty if its size is 0 or not given.
fn omitted(size: Option<i64>) -> RecordedBody {
    match size {
        // -1 is an unknown size.
        Some(size) if size != 0 => RecordedBody::Omitted(length(Some(size))),
        Some(_) | None => RecordedBody::Empty,
    }
}

fn length(size: Option<i64>) -> u64 {
    size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0)
}

fn form(params: &[Param]) -> String {
    let mut form = String::new();
    for param in params {
        if !form.is_empty() {
            form.push('&');
        }
        percent::encode(&param.name, Keep::Nothing, &mut form);
        form.push('=');
        let value = param.value.as_deref().unwrap_or_default();
        percent::encode(value, Keep::Nothing, &mut form);
    }
    form
}

/// Returns headers with names in lower case, without the pseudo-headers of HTTP/2.
fn headers(pairs: Vec<Pair>) -> Headers {
    let pairs = pairs.into_iter().filter(|pair| !pair.name.starts_with(':'));
    pairs
        .map(|pair| (pair.name.to_ascii_lowercase(), pair.value))
        .collect()
}

/// Splits a URL into its origin, and its path with the query. A fragment is not sent.
fn split_url(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        return None;
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let origin = url.get(..scheme.len() + 3 + authority.len())?;
    (!authority.is_empty()).then_some((origin, if target.is_empty() { "/" } else { target }))
}

/// Returns true if a body is a JSON-RPC 2.0 message or a batch of them.
fn is_message(body: &RecordedBody) -> bool {
    let RecordedBody::Json(json) = body else {
        return false;
    };
    match json.kind() {
        JsonKind::Object => json.has("jsonrpc"),
        JsonKind::Array => {
            let first = json.elements().next().map(|range| json.piece(range));
            first.is_some_and(|first| first.kind() == JsonKind::Object && first.has("jsonrpc"))
        }
        JsonKind::String | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => false,
    }
}

/// Returns a fault without its place: an entry is a part of its file.
fn described(fault: &serde_json::Error) -> String {
    let text = fault.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).to_owned()
}
