//! Request bodies that are read whole: what they say they are, within their limit and time.

use std::pin::pin;

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use tokio::time::timeout;

use super::exchange::aborted_upload;
use super::offloaded_parsing;
use super::worker::Worker;
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::json::Json;
use crate::domain::plan::Limits;
use crate::domain::rejections;
use crate::upstream::{
    BodyCopy, BudgetExhausted, CollectError, ContentEncoding, DecodeError, IncomingBody,
    MemoryBudget, UploadBreak, collect_accounted,
};

/// What bounds a body: by itself, and with all others.
pub(super) type BodyLimits<'b> = (&'b Limits, &'b MemoryBudget);

/// The body of a request that is looked into.
pub(super) enum RequestBody {
    /// It is on its way, and copied where somebody wants it again.
    Coming(IncomingBody, Option<BodyCopy>),
    /// It was read to find the route, as it came.
    Read(Bytes),
}

impl RequestBody {
    /// The same, copied as it is read.
    pub(super) fn copy_within(self, tap: Option<BodyCopy>) -> RequestBody {
        match self {
            RequestBody::Coming(body, _) => RequestBody::Coming(body, tap),
            RequestBody::Read(body) => RequestBody::Read(body),
        }
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            RequestBody::Coming(body, _) => hyper::body::Body::is_end_stream(body),
            RequestBody::Read(body) => body.is_empty(),
        }
    }

    /// Whether some of it may have to be waited for.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            RequestBody::Coming(body, _) => body.is_awaited(),
            RequestBody::Read(_) => false,
        }
    }
}

/// Reads a body that must be JSON, if there is one. A second run of a call has a purse of its own.
pub(super) async fn json(
    headers: &HeaderMap,
    body: RequestBody,
    (limits, worker): (&Limits, &Worker),
    purse: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    match body {
        RequestBody::Coming(body, tap) => {
            let coding = coding(headers)?;
            let body = whole(headers, body, (limits, worker)).await?;
            if let Some(tap) = tap {
                tap.is_copying(&body);
            }
            offloaded_parsing::json(worker, (coding, body), limits, purse).await
        }
        RequestBody::Read(body) => read_json(headers, body, (limits, worker), purse).await,
    }
}

/// All bodies that are held take as much as they may together.
pub(super) fn no_room(full: BudgetExhausted) -> Failure {
    let message = "this proxy holds as many bytes of calls and answers as it may; try again later";
    Failure::new(Reason::MemoryFull, message)
        .advise(Advice::RetryAfter(1))
        .because(full)
}

/// What a body that was read is as JSON.
pub(super) async fn read_json(
    headers: &HeaderMap,
    body: Bytes,
    (limits, worker): (&Limits, &Worker),
    purse: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    if !body.is_empty() {
        rejections::media_type(headers)?;
    }
    offloaded_parsing::json(worker, (coding(headers)?, body), limits, purse).await
}

/// Returns the value of a body that was read, without its content coding; none for an empty one.
pub(super) fn decoded(
    coding: ContentEncoding,
    body: Bytes,
    (limits, memory): BodyLimits<'_>,
    purse: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    let decoded = coding.decode_within(body, limits.body, (memory, purse));
    let body = decoded.map_err(|error| match (&error, purse) {
        (DecodeError::Malformed(_), _) => Failure::new(Reason::MalformedBody, error.to_string()),
        (DecodeError::TooLarge(_), _) => Failure::new(Reason::BodyTooLarge, error.to_string()),
        (DecodeError::NoRoom, None) => no_room(BudgetExhausted),
        // What is read only to compare takes no room of what is answered.
        (DecodeError::NoRoom, Some(_)) => rejections::large_body(limits.body),
    })?;
    if body.is_empty() {
        return Ok(None);
    }
    let parsed = Json::read(body, limits.depth);
    parsed.map(Some).map_err(rejections::no_json)
}

/// Why translation does not take the body of an RPC request, whatever it says: its content type or its coding.
pub(super) fn message_fault(headers: &HeaderMap, body: &IncomingBody) -> Option<Failure> {
    match coding(headers) {
        Ok(ContentEncoding::Identity) if hyper::body::Body::is_end_stream(body) => None,
        Ok(ContentEncoding::Identity) => rejections::media_type(headers).err(),
        Ok(ContentEncoding::Gzip | ContentEncoding::Brotli) => Some(rejections::coded_message()),
        Err(failure) => Some(failure),
    }
}

/// The text of an RPC request whose body was read, without its content coding, where that is one that is read.
pub(super) fn message_text(
    headers: &HeaderMap,
    body: &Bytes,
    (limits, memory): BodyLimits<'_>,
) -> Result<Option<Bytes>, Failure> {
    match coding(headers) {
        Ok(ContentEncoding::Identity) => Ok(Some(body.clone())),
        Ok(coding) => match coding.decode(body.clone(), limits.body, |_| true) {
            Ok(text) => memory.account(text).map(Some).map_err(no_room),
            Err(_) => Ok(None),
        },
        Err(_) => Ok(None),
    }
}

fn coding(headers: &HeaderMap) -> Result<ContentEncoding, Failure> {
    ContentEncoding::from_headers(headers).map_err(|name| {
        let message = format!(
            "the content coding `{}` is not read; send gzip, br, or the body as it is",
            name.escape_default()
        );
        Failure::new(Reason::UnsupportedMediaType, message)
    })
}

/// Reads a body that says that it is JSON.
async fn whole(
    headers: &HeaderMap,
    body: IncomingBody,
    bounds: (&Limits, &Worker),
) -> Result<Bytes, Failure> {
    if !hyper::body::Body::is_end_stream(&body) {
        rejections::media_type(headers)?;
    }
    raw(body, bounds).await
}

/// Reads a body, whatever it is. One that is not complete when calls end at the end of a drain is given up.
pub(super) async fn raw(
    body: IncomingBody,
    (limits, worker): (&Limits, &Worker),
) -> Result<Bytes, Failure> {
    let mut read = pin!(collect_accounted(body, limits.body, worker.memory()));
    let read = match read.as_mut().now_or_never() {
        // It was here: no clock and no timer is set for it.
        Some(read) => read,
        None => {
            // Dropped at its limit, the body closes the connection behind the answer.
            let read = timeout(limits.body_timeout, read);
            let read = worker.body_unless_it_ends(read).await?;
            read.map_err(|_| {
                let message = format!("the body was not complete within {:?}", limits.body_timeout);
                Failure::new(Reason::RequestTimeout, message)
            })?
        }
    };
    read.map_err(|fault| match fault {
        CollectError::TooLarge(limit) => rejections::large_body(limit),
        CollectError::NoRoom(full) => no_room(full),
        CollectError::Cut(error) => aborted_upload(UploadBreak::new(&error)).because(error),
    })
}
