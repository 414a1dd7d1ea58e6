//! Request bodies that are read whole: what they say they are, within their limit and time.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::ask::broken;
use super::coding::Coding;
use crate::domain::failure::{Failure, Reason};
use crate::domain::json::Json;
use crate::domain::plan::Limits;
use crate::upstream::{ReadFault, read_whole, violation_of};

/// The body of a request that is looked into.
pub(super) enum Content {
    /// It is on its way.
    Coming(Incoming),
    /// It was read to find the route, as it came.
    Read(Bytes),
}

impl Content {
    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Content::Coming(body) => hyper::body::Body::is_end_stream(body),
            Content::Read(body) => body.is_empty(),
        }
    }
}

/// Reads a body that must be JSON, if there is one.
pub(super) async fn json(
    headers: &HeaderMap,
    body: Content,
    limits: &Limits,
) -> Result<Option<Json>, Failure> {
    match body {
        Content::Coming(body) => {
            coding(headers)?;
            let body = whole(headers, body, limits).await?;
            decoded(headers, body, limits)
        }
        Content::Read(body) => read_json(headers, body, limits),
    }
}

/// What a body that was read is as JSON.
pub(super) fn read_json(
    headers: &HeaderMap,
    body: Bytes,
    limits: &Limits,
) -> Result<Option<Json>, Failure> {
    if !body.is_empty() {
        media_type(headers)?;
    }
    decoded(headers, body, limits)
}

fn decoded(headers: &HeaderMap, body: Bytes, limits: &Limits) -> Result<Option<Json>, Failure> {
    let body = coding(headers)?.decode(body, limits.body)?;
    if body.is_empty() {
        return Ok(None);
    }
    let parsed = Json::parse(body, limits.depth);
    parsed.map(Some).map_err(|fault| {
        let reason = if fault.is_too_deep() {
            Reason::TooDeep
        } else {
            Reason::MalformedJson
        };
        Failure::new(reason, format!("body: {fault}"))
    })
}

/// Reads the body of an RPC request, which must not be coded: it goes on as the bytes that were read.
pub(super) async fn message(
    headers: &HeaderMap,
    body: Incoming,
    limits: &Limits,
) -> Result<Bytes, Failure> {
    match coding(headers)? {
        Coding::Identity => whole(headers, body, limits).await,
        Coding::Gzip | Coding::Brotli => Err(Failure::new(
            Reason::UnsupportedMediaType,
            "a content coding is not read on an RPC path; send the message as it is",
        )),
    }
}

fn coding(headers: &HeaderMap) -> Result<Coding, Failure> {
    // Several lines are one list (RFC 9110 §5.3).
    let lines: Vec<_> = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .map(|line| String::from_utf8_lossy(line.as_bytes()))
        .collect();
    let name = lines.join(", ");
    Coding::parse(&name).ok_or_else(|| {
        let message = format!(
            "the content coding `{}` is not read; send gzip, br, or the body as it is",
            name.escape_default()
        );
        Failure::new(Reason::UnsupportedMediaType, message)
    })
}

/// Reads a body that says that it is JSON.
async fn whole(headers: &HeaderMap, body: Incoming, limits: &Limits) -> Result<Bytes, Failure> {
    if !hyper::body::Body::is_end_stream(&body) {
        media_type(headers)?;
    }
    raw(body, limits).await
}

/// Reads a body, whatever it is.
pub(super) async fn raw(body: Incoming, limits: &Limits) -> Result<Bytes, Failure> {
    // Dropped at its limit, the body closes the connection behind the answer.
    match timeout(limits.body_timeout, read_whole(body, limits.body)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(ReadFault::TooLarge(limit))) => Err(Failure::new(
            Reason::BodyTooLarge,
            format!("the body is longer than {limit} bytes"),
        )),
        Ok(Err(ReadFault::Cut(error))) => Err(broken(violation_of(&error)).because(error)),
        Err(_) => {
            let message = format!("the body was not complete within {:?}", limits.body_timeout);
            Err(Failure::new(Reason::RequestTimeout, message))
        }
    }
}

/// Refuses what is not JSON in UTF-8. A body that does not say what it is, is taken for JSON and will show.
fn media_type(headers: &HeaderMap) -> Result<(), Failure> {
    let unsupported = |message: String| Err(Failure::new(Reason::UnsupportedMediaType, message));
    if headers.get_all(CONTENT_TYPE).iter().nth(1).is_some()
        || headers.get_all(CONTENT_ENCODING).iter().nth(1).is_some()
    {
        return unsupported(
            "`Content-Type` or `Content-Encoding` is given twice; say once what the body is"
                .to_owned(),
        );
    }
    let Some(kind) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    if !matches!(
        essence,
        "application/json" | "application/json-rpc" | "application/jsonrequest"
    ) && !crate::domain::outcome::is_json(essence)
    {
        let shown = essence.escape_default();
        return unsupported(format!(
            "the content type `{shown}` is not read; send `application/json`"
        ));
    }
    let charset = parts.find_map(|parameter| parameter.strip_prefix("charset="));
    match charset.map(|charset| charset.trim_matches('"')) {
        None | Some("utf-8" | "utf8") => Ok(()),
        Some(charset) => unsupported(format!(
            "the charset `{}` is not read; JSON is UTF-8 (RFC 8259 §8.1)",
            charset.escape_default()
        )),
    }
}
