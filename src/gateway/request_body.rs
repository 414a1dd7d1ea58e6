//! Request bodies that are read completely: media type, content coding, size and time limits.
//!
//! Used throughout `gateway`.

use std::pin::pin;

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use tokio::time::timeout;

use super::call_context::CallContext;
use super::failures::{aborted_upload, memory_exhausted};
use super::offloaded_parsing::{self, BodyEncoding};
use super::worker::Worker;
use crate::telemetry::clock;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::plan::Limits;
use dualgauge_model::rejections;
use dualgauge_model::route::BodyContent;
use dualgauge_net::{
    BodyCopy, CollectError, ContentEncoding, IncomingBody, MemoryBudget, UploadBreak,
    collect_accounted,
};
use dualgauge_patterns::json::Json;

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

/// The facts of a request that decide how its body is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyHead<'h> {
    pub(super) headers: &'h HeaderMap,
    /// The content that the route expects.
    pub(super) content: BodyContent,
}

impl BodyHead<'_> {
    /// Returns the encoding of a body; fails if the route does not accept it. The type of an empty body is ignored.
    fn encoding(self, is_empty: bool) -> Result<BodyEncoding, Failure> {
        let coding = coding(self.headers)?;
        let form_type = match self.content {
            BodyContent::Typed(format) if !is_empty => rejections::body_type(self.headers, format)?,
            BodyContent::Typed(_) | BodyContent::OldMessage => None,
        };
        Ok(BodyEncoding { coding, form_type })
    }
}

/// Reads a body that must be JSON or a form, if there is one. Second runs charge the memory to `budget`.
pub(super) async fn collect_json(
    head: BodyHead<'_>,
    body: RequestBody,
    limits: &Limits,
    worker: &Worker,
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    match body {
        RequestBody::Streaming(body, copy) => {
            let encoding = head.encoding(hyper::body::Body::is_end_stream(&body))?;
            let body = read_raw(body, limits, worker).await?;
            if let Some(copy) = copy {
                copy.store_complete(&body);
            }
            offloaded_parsing::parse_json(worker, encoding, body, limits, budget).await
        }
        RequestBody::Read(body) => read_json(head, body, limits, worker, budget).await,
    }
}

/// Parses a body that was already read, as JSON or a form.
pub(super) async fn read_json(
    head: BodyHead<'_>,
    body: Bytes,
    limits: &Limits,
    worker: &Worker,
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    let encoding = head.encoding(body.is_empty())?;
    offloaded_parsing::parse_json(worker, encoding, body, limits, budget).await
}

/// Returns why translation rejects the body of an RPC request from its headers alone: content type or content coding.
pub(super) fn message_fault(headers: &HeaderMap, body: &impl hyper::body::Body) -> Option<Failure> {
    match coding(headers) {
        Ok(ContentEncoding::Identity) if body.is_end_stream() => None,
        Ok(ContentEncoding::Identity) => rejections::media_type(headers).err(),
        Ok(ContentEncoding::Gzip | ContentEncoding::Brotli) => Some(rejections::coded_message()),
        Err(failure) => Some(failure),
    }
}

/// Reads a body of any type. Fails when calls end at the end of a drain before the body is complete.
pub(super) async fn read_raw(
    body: IncomingBody,
    limits: &Limits,
    worker: &Worker,
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

/// Reads a body of any type, and counts the time as that of the client.
pub(super) async fn read_timed(
    context: &mut CallContext,
    body: IncomingBody,
) -> Result<Bytes, Failure> {
    let (runtime_plan, worker) = (context.runtime_plan().clone(), context.worker().clone());
    let since = body.is_awaited().then(clock::now);
    let body = read_raw(body, &runtime_plan.plan.limits, &worker).await?;
    context.add_body_time(since);
    Ok(body)
}

/// Returns the decoded text of an RPC request body; `None` if it cannot be decoded.
pub(super) fn message_text(
    headers: &HeaderMap,
    body: &Bytes,
    limits: &Limits,
    memory: &MemoryBudget,
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

/// Returns the content coding of a request; fails if it is not supported.
fn coding(headers: &HeaderMap) -> Result<ContentEncoding, Failure> {
    ContentEncoding::from_headers(headers).map_err(|name| {
        let message = format!(
            "the content coding `{}` is not supported; send gzip, br or an unencoded body",
            name.escape_default()
        );
        Failure::new(Reason::UnsupportedMediaType, message)
    })
}
