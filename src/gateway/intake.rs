//! Request bodies that are read whole: what they say they are, within their limit and time.

use std::pin::pin;

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use tokio::time::timeout;

use super::ask::broken;
use super::long_texts;
use super::worker::Worker;
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::json::Json;
use crate::domain::plan::Limits;
use crate::domain::refusal;
use crate::upstream::{
    Break, Coding, CodingError, Full, Inflow, Memory, ReadFault, Tap, read_kept,
};

/// What bounds a body: by itself, and with all others.
pub(super) type Bounds<'b> = (&'b Limits, &'b Memory);

/// The body of a request that is looked into.
pub(super) enum Content {
    /// It is on its way, and copied where somebody wants it again.
    Coming(Inflow, Option<Tap>),
    /// It was read to find the route, as it came.
    Read(Bytes),
}

impl Content {
    /// The same, copied as it is read.
    pub(super) fn copied(self, tap: Option<Tap>) -> Content {
        match self {
            Content::Coming(body, _) => Content::Coming(body, tap),
            Content::Read(body) => Content::Read(body),
        }
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Content::Coming(body, _) => hyper::body::Body::is_end_stream(body),
            Content::Read(body) => body.is_empty(),
        }
    }

    /// Whether some of it may have to be waited for.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Content::Coming(body, _) => body.is_awaited(),
            Content::Read(_) => false,
        }
    }
}

/// Reads a body that must be JSON, if there is one. A second run of a call has a purse of its own.
pub(super) async fn json(
    headers: &HeaderMap,
    body: Content,
    (limits, worker): (&Limits, &Worker),
    purse: Option<&Tap>,
) -> Result<Option<Json>, Failure> {
    match body {
        Content::Coming(body, tap) => {
            let coding = coding(headers)?;
            let body = whole(headers, body, (limits, worker)).await?;
            if let Some(tap) = tap {
                tap.keeps(&body);
            }
            long_texts::json(worker, (coding, body), limits, purse).await
        }
        Content::Read(body) => read_json(headers, body, (limits, worker), purse).await,
    }
}

/// All bodies that are held take as much as they may together.
pub(super) fn no_room(full: Full) -> Failure {
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
    purse: Option<&Tap>,
) -> Result<Option<Json>, Failure> {
    if !body.is_empty() {
        refusal::media_type(headers)?;
    }
    long_texts::json(worker, (coding(headers)?, body), limits, purse).await
}

/// Returns the value of a body that was read, without its content coding; none for an empty one.
pub(super) fn decoded(
    coding: Coding,
    body: Bytes,
    (limits, memory): Bounds<'_>,
    purse: Option<&Tap>,
) -> Result<Option<Json>, Failure> {
    let decoded = coding.decode_within(body, limits.body, (memory, purse));
    let body = decoded.map_err(|error| match (&error, purse) {
        (CodingError::Malformed(_), _) => Failure::new(Reason::MalformedBody, error.to_string()),
        (CodingError::TooLarge(_), _) => Failure::new(Reason::BodyTooLarge, error.to_string()),
        (CodingError::NoRoom, None) => no_room(Full),
        // What is read only to compare takes no room of what is answered.
        (CodingError::NoRoom, Some(_)) => refusal::large_body(limits.body),
    })?;
    if body.is_empty() {
        return Ok(None);
    }
    let parsed = Json::read(body, limits.depth);
    parsed.map(Some).map_err(refusal::no_json)
}

/// Why translation does not take the body of an RPC request, whatever it says: its content type or its coding.
pub(super) fn message_fault(headers: &HeaderMap, body: &Inflow) -> Option<Failure> {
    match coding(headers) {
        Ok(Coding::Identity) if hyper::body::Body::is_end_stream(body) => None,
        Ok(Coding::Identity) => refusal::media_type(headers).err(),
        Ok(Coding::Gzip | Coding::Brotli) => Some(refusal::coded_message()),
        Err(failure) => Some(failure),
    }
}

/// The text of an RPC request whose body was read, without its content coding, where that is one that is read.
pub(super) fn message_text(
    headers: &HeaderMap,
    body: &Bytes,
    (limits, memory): Bounds<'_>,
) -> Result<Option<Bytes>, Failure> {
    match coding(headers) {
        Ok(Coding::Identity) => Ok(Some(body.clone())),
        Ok(coding) => match coding.decode(body.clone(), limits.body, |_| true) {
            Ok(text) => memory.keep(text).map(Some).map_err(no_room),
            Err(_) => Ok(None),
        },
        Err(_) => Ok(None),
    }
}

fn coding(headers: &HeaderMap) -> Result<Coding, Failure> {
    Coding::of(headers).map_err(|name| {
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
    body: Inflow,
    bounds: (&Limits, &Worker),
) -> Result<Bytes, Failure> {
    if !hyper::body::Body::is_end_stream(&body) {
        refusal::media_type(headers)?;
    }
    raw(body, bounds).await
}

/// Reads a body, whatever it is. One that is not complete when calls end at the end of a drain is given up.
pub(super) async fn raw(
    body: Inflow,
    (limits, worker): (&Limits, &Worker),
) -> Result<Bytes, Failure> {
    let mut read = pin!(read_kept(body, limits.body, worker.memory()));
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
        ReadFault::TooLarge(limit) => refusal::large_body(limit),
        ReadFault::NoRoom(full) => no_room(full),
        ReadFault::Cut(error) => broken(Break::of(&error)).because(error),
    })
}
