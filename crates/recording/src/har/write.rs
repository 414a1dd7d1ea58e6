//! Writes a HAR file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::extension::Extension;
use crate::recording::{Headers, RecordedBody, RecordedCall, RecordedRequest, RecordedResponse};

/// A writer of a file, call by call.
#[derive(Debug)]
pub struct Writer {
    /// The scheme and authority of calls without a `host` header.
    origin: String,
    has_entry: bool,
}

impl Writer {
    /// Creates a writer, and returns it with the begin of the file. `origin` is the scheme and authority of calls whose
    /// `host` header is not recorded.
    #[must_use]
    pub fn begin(origin: &str, program: &str, version: &str) -> (Writer, Vec<u8>) {
        let creator = json!({ "name": program, "version": version });
        let begin = format!(
            "{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"pages\":[],\"entries\":["
        );
        let writer = Writer {
            origin: origin.to_owned(),
            has_entry: false,
        };
        (writer, begin.into_bytes())
    }

    /// Returns the text of a call.
    #[must_use]
    pub fn entry(&mut self, call: &RecordedCall) -> Vec<u8> {
        let separator = if self.has_entry { ",\n" } else { "\n" };
        self.has_entry = true;
        format!("{separator}{}", self.value(call)).into_bytes()
    }

    /// Returns the end of the file.
    #[must_use]
    pub fn end(self) -> Vec<u8> {
        b"\n]}}\n".to_vec()
    }

    fn value(&self, call: &RecordedCall) -> Value {
        let latency = call.response.as_ref().map(|response| response.latency_us);
        let milliseconds = latency.unwrap_or_default();
        let milliseconds = std::time::Duration::from_micros(milliseconds).as_secs_f64() * 1000.0;
        json!({
            "startedDateTime": call.time,
            "time": milliseconds,
            "request": self.request(&call.request),
            "response": response(call.response.as_ref()),
            "cache": {},
            "timings": { "send": 0, "wait": milliseconds, "receive": 0 },
            "_dualgauge": extension(call),
        })
    }

    fn request(&self, request: &RecordedRequest) -> Value {
        let is_host = |text: &str| !text.is_empty() && !text.contains(['/', '?', '#', '\\', ' ']);
        let hosts = request.headers.iter();
        let mut host = hosts.filter(|(name, host)| name == "host" && is_host(host));
        let origin = host.next().map(|(_, host)| format!("http://{host}"));
        let origin = origin.as_ref().unwrap_or(&self.origin);
        let mut value = json!({
            "method": request.method,
            "url": format!("{origin}{}", request.target),
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": headers(&request.headers),
            "queryString": query(&request.target),
            "headersSize": -1,
            "bodySize": size(&request.body),
        });
        if let (Some((text, encoding)), Some(members)) =
            (text(&request.body), value.as_object_mut())
        {
            let mut data = json!({ "mimeType": media_type(&request.headers), "text": text });
            mark(&mut data, encoding);
            members.insert("postData".to_owned(), data);
        }
        value
    }
}

fn response(response: Option<&RecordedResponse>) -> Value {
    let Some(response) = response else {
        // As browsers write a call that was cancelled.
        return json!({
            "status": 0, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [],
            "content": { "size": 0, "mimeType": "" }, "redirectURL": "", "headersSize": -1, "bodySize": -1,
        });
    };
    let mut content = json!({
        "size": size(&response.body),
        "mimeType": media_type(&response.headers),
    });
    if let (Some((text, encoding)), Some(members)) = (text(&response.body), content.as_object_mut())
    {
        members.insert("text".to_owned(), text.into());
        mark(&mut content, encoding);
    }
    let mut location = response
        .headers
        .iter()
        .filter(|(name, _)| name == "location");
    json!({
        "status": response.status,
        "statusText": "",
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": headers(&response.headers),
        "content": content,
        "redirectURL": location.next().map_or("", |(_, value)| value),
        "headersSize": -1,
        "bodySize": size(&response.body),
    })
}

fn extension(call: &RecordedCall) -> Option<Value> {
    let response = call.response.as_ref();
    let extension = Extension {
        side: call.side.as_str().to_owned(),
        route: call.route.clone(),
        client: call.client.clone(),
        stage: call.stage.clone(),
        reason: call.reason.clone(),
        from: response.map(|response| response.from),
        failure: response.and_then(|response| response.failure.clone()),
        redacted: call.redacted.clone(),
        complete: call.complete,
        latency_us: response.map(|response| response.latency_us),
    };
    serde_json::to_value(extension).ok()
}

fn headers(headers: &Headers) -> Vec<Value> {
    let pairs = headers.iter();
    pairs
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}

/// Returns the query as it was sent: HAR does not say that its names and values are decoded.
fn query(target: &str) -> Vec<Value> {
    let Some((_, query)) = target.split_once('?') else {
        return Vec::new();
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            json!({ "name": name, "value": value })
        })
        .collect()
}

fn media_type(headers: &Headers) -> &str {
    let mut types = headers.iter().filter(|(name, _)| name == "content-type");
    types.next().map_or("", |(_, value)| value)
}

/// Returns the size of a body; of an omitted one with an unknown size -1.
fn size(body: &RecordedBody) -> i64 {
    match body {
        RecordedBody::Omitted(0) => -1,
        RecordedBody::Omitted(size) => i64::try_from(*size).unwrap_or(-1),
        RecordedBody::Empty
        | RecordedBody::Json(_)
        | RecordedBody::Text(_)
        | RecordedBody::Bytes(_) => {
            let length = body.content().map_or(0, |content| content.len());
            i64::try_from(length).unwrap_or(-1)
        }
    }
}

/// Returns the text of a body, and its encoding; `None` if it is empty or was not recorded.
fn text(body: &RecordedBody) -> Option<(String, Option<&'static str>)> {
    match body {
        RecordedBody::Empty | RecordedBody::Omitted(_) => None,
        RecordedBody::Json(json) => {
            Some((String::from_utf8_lossy(json.as_bytes()).into_owned(), None))
        }
        RecordedBody::Text(text) => Some((text.clone(), None)),
        RecordedBody::Bytes(content) => Some((STANDARD.encode(content), Some("base64"))),
    }
}

fn mark(value: &mut Value, encoding: Option<&str>) {
    let none = &mut Map::new();
    let members = value.as_object_mut().unwrap_or(none);
    if let Some(encoding) = encoding {
        members.insert("encoding".to_owned(), encoding.into());
    }
}
