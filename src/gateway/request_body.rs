//! Request bodies that are read completely: media type, content coding, size and time limits.
//!
//! Used throughout `gateway`.

use std::pin::pin;

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use tokio::time::timeout;

use super::exchange::aborted_upload;
use super::offloaded_parsing;
use super::worker::Worker;
use crate::upstream::{
    BodyCopy, BudgetExhausted, CollectError, ContentEncoding, DecodeError, IncomingBody,
    MemoryBudget, UploadBreak, collect_accounted,
};
use dualgauge_model::failure::{Advice, Failure, Reason};
use dualgauge_model::plan::Limits;
use dualgauge_model::rejections;
use dualgauge_patterns::json::Json;

/// The limits of one body, and the memory budget of all bodies.
pub(super) type BodyLimits<'b> = (&'b Limits, &'b MemoryBudget);

/// The body of a request that the proxy reads.
pub(super) enum RequestBody {
    /// Not read yet; copied while it is read, if a copy is set.
    Streaming(IncomingBody, Option<BodyCopy>),
    /// Already read to find the route, still encoded.
    Read(Bytes),
}

impl RequestBody {
    /// Sets the copy to fill while the body is read.
    pub(super) fn with_copy(self, copy: Option<BodyCopy>) -> RequestBody {
        match self {
            RequestBody::Streaming(body, _) => RequestBody::Streaming(body, copy),
            RequestBody::Read(body) => RequestBody::Read(body),
        }
    }

    /// Returns true when there is no body.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            RequestBody::Streaming(body, _) => hyper::body::Body::is_end_stream(body),
            RequestBody::Read(body) => body.is_empty(),
        }
    }

    /// Returns true when part of the body may not have arrived yet.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            RequestBody::Streaming(body, _) => body.is_awaited(),
            RequestBody::Read(_) => false,
        }
    }
}

/// Reads a body that must be JSON, if there is one. Second runs charge the memory to `budget`.
pub(super) async fn collect_json(
    headers: &HeaderMap,
    body: RequestBody,
    (limits, worker): (&Limits, &Worker),
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    match body {
        RequestBody::Streaming(body, copy) => {
            let coding = coding(headers)?;
            let body = read_json_bytes(headers, body, (limits, worker)).await?;
            if let Some(copy) = copy {
                copy.store_complete(&body);
            }
            offloaded_parsing::parse_json(worker, (coding, body), limits, budget).await
        }
        RequestBody::Read(body) => read_json(headers, body, (limits, worker), budget).await,
    }
}

/// Returns the failure of an exhausted memory budget.
pub(super) fn memory_exhausted(full: BudgetExhausted) -> Failure {
    let message = "memory limit of the proxy for calls and answers reached; retry later";
    Failure::new(Reason::MemoryFull, message)
        .advise(Advice::RetryAfter(1))
        .because(full)
}

/// Parses a body that was already read as JSON.
pub(super) async fn read_json(
    headers: &HeaderMap,
    body: Bytes,
    (limits, worker): (&Limits, &Worker),
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    if !body.is_empty() {
        rejections::media_type(headers)?;
    }
    offloaded_parsing::parse_json(worker, (coding(headers)?, body), limits, budget).await
}

/// Decodes and parses a body; `None` for an empty one.
pub(super) fn decode_json(
    coding: ContentEncoding,
    body: Bytes,
    (limits, memory): BodyLimits<'_>,
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    let decoded = coding.decode_within(body, limits.body, memory, budget);
    let body = decoded.map_err(|error| match (&error, budget) {
        (DecodeError::Malformed(_), _) => Failure::new(Reason::MalformedBody, error.to_string()),
        (DecodeError::TooLarge(_), _) => Failure::new(Reason::BodyTooLarge, error.to_string()),
        (DecodeError::NoRoom, None) => memory_exhausted(BudgetExhausted),
        // A second run has its own budget; exhausting that does not mean that the proxy is out of memory.
        (DecodeError::NoRoom, Some(_)) => rejections::large_body(limits.body),
    })?;
    if body.is_empty() {
        return Ok(None);
    }
    let parsed = Json::read(body, limits.depth);
    parsed.map(Some).map_err(rejections::no_json)
}

/// Returns why translation rejects the body of an RPC request from its headers alone: content type or content coding.
pub(super) fn message_fault(headers: &HeaderMap, body: &IncomingBody) -> Option<Failure> {
    match coding(headers) {
        Ok(ContentEncoding::Identity) if hyper::body::Body::is_end_stream(body) => None,
        Ok(ContentEncoding::Identity) => rejections::media_type(headers).err(),
        Ok(ContentEncoding::Gzip | ContentEncoding::Brotli) => Some(rejections::coded_message()),
        Err(failure) => Some(failure),
    }
}

/// Returns the decoded text of an RPC request body; `None` if it cannot be decoded.
pub(super) fn message_text(
    headers: &HeaderMap,
    body: &Bytes,
    (limits, memory): BodyLimits<'_>,
) -> Result<Option<Bytes>, Failure> {
    match coding(headers) {
        Ok(ContentEncoding::Identity) => Ok(Some(body.clone())),
        Ok(coding) => match coding.decode(body.clone(), limits.body, |_| true) {
            Ok(text) => memory.account(text).map(Some).map_err(memory_exhausted),
            Err(_) => Ok(None),
        },
        Err(_) => Ok(None),
    }
}

fn coding(headers: &HeaderMap) -> Result<ContentEncoding, Failure> {
    ContentEncoding::from_headers(headers).map_err(|name| {
        let message = format!(
            "the content coding `{}` is not supported; send gzip, br or an unencoded body",
            name.escape_default()
        );
        Failure::new(Reason::UnsupportedMediaType, message)
    })
}

/// Reads a body that declares itself as JSON.
async fn read_json_bytes(
    headers: &HeaderMap,
    body: IncomingBody,
    context: (&Limits, &Worker),
) -> Result<Bytes, Failure> {
    if !hyper::body::Body::is_end_stream(&body) {
        rejections::media_type(headers)?;
    }
    read_raw(body, context).await
}

/// Reads a body of any type. Fails when calls end at the end of a drain before the body is complete.
pub(super) async fn read_raw(
    body: IncomingBody,
    (limits, worker): (&Limits, &Worker),
) -> Result<Bytes, Failure> {
    let mut read = pin!(collect_accounted(body, limits.body, worker.memory()));
    let read = match read.as_mut().now_or_never() {
        // The whole body is available, so no clock is read and no timer is set.
        Some(read) => read,
        None => {
            // Dropping the body at its limit closes the connection after the response.
            let read = timeout(limits.body_timeout, read);
            let read = worker.body_until_shutdown(read).await?;
            read.map_err(|_| {
                let message = format!("the body was not complete within {:?}", limits.body_timeout);
                Failure::new(Reason::RequestTimeout, message)
            })?
        }
    };
    read.map_err(|fault| match fault {
        CollectError::TooLarge(limit) => rejections::large_body(limit),
        CollectError::NoRoom(full) => memory_exhausted(full),
        CollectError::Cut(error) => aborted_upload(UploadBreak::new(&error)).because(error),
    })
}
