//! Exchanges with an HTTP upstream within a time limit: the head alone, or the complete response, for translated calls
//! without its content coding.
//!
//! Used throughout `gateway`.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{Response, StatusCode, response};
use tokio::time::{Instant, timeout, timeout_at};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{Received, ReceivedStream, UpstreamResponse};
use super::failures::{
    aborted_upload, from_upstream_error, memory_exhausted, total_timeout, unreadable_response,
    upload_stalled, upstream_timeout,
};
use super::headers::strip_trace_secrets;
use crate::telemetry::clock;
use crate::upstream::HttpUpstream;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::outcome::is_rejection_status;
use dualgauge_model::rejections;
use dualgauge_model::response_stream::StreamTerms;
use dualgauge_model::route::Route;
use dualgauge_model::stream_format::{StreamFormat, StreamFormats, StreamHead};
use dualgauge_net::{
    BodyCopy, BudgetExhausted, CollectError, ContentEncoding, DecodeError, Exchange, IncomingBody,
    MemoryBudget, OutgoingRequest, Permit, RetryPolicy, SendOptions, UploadBreak, UploadProgress,
    collect_accounted, collect_budgeted, pinned,
};

/// The terms of a call whose response is translated.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallTerms<'a> {
    pub(super) retry_policy: RetryPolicy,
    /// The time within which a complete response, or the head of a stream, must arrive.
    pub(super) limit: Duration,
    /// Set if the response may stream.
    pub(super) streams: Option<StreamTerms<'a>>,
}

/// The upstream of a translated call, and the rules of the call.
#[derive(Clone, Copy)]
pub(super) struct CallTarget<'a> {
    pub(super) upstream: &'a Rc<HttpUpstream>,
    pub(super) route: &'a Route,
    pub(super) streams: Option<StreamTerms<'a>>,
}

/// Sends a translated call. A complete response comes decoded.
pub(super) async fn send_translated(
    record: &mut AccessRecord,
    to: CallTarget<'_>,
    outgoing: OutgoingRequest,
) -> Result<Received, Failure> {
    let terms = CallTerms {
        limit: to.route.timeout.unwrap_or(to.upstream.plan().timeout),
        retry_policy: match to.route.effect.may_repeat() {
            true => RetryPolicy::Allowed,
            false => RetryPolicy::Unprocessed,
        },
        streams: to.streams,
    };
    let received = send_and_receive(record, to.upstream, outgoing, terms).await?;
    let mut reply = match received {
        Received::Complete(reply) if reply.headers.contains_key(CONTENT_ENCODING) => reply,
        Received::Complete(_) | Received::Stream(_) => return Ok(received),
    };
    let decoded = decode_body(&record.context, &reply);
    reply.headers.remove(CONTENT_ENCODING);
    let status = reply.status.as_u16();
    reply.body = match decoded {
        Ok(body) => body,
        // A status that refuses the call needs no body.
        Err(_) if is_rejection_status(status) => Bytes::new(),
        Err(failure) => return Err(failure.upstream_status(status)),
    };
    Ok(Received::Complete(reply))
}

/// Decodes the content coding of a response. A server may use one that was not requested (RFC 9110 §12.5.3).
fn decode_body(context: &CallContext, reply: &UpstreamResponse) -> Result<Bytes, Failure> {
    let coding = ContentEncoding::from_headers(&reply.headers).map_err(|name| {
        let message = "the server's answer has an unsupported content coding; supported: gzip, br";
        Failure::new(Reason::UpstreamNotProtocol, message).because(name)
    })?;
    let limit = context.runtime_plan().plan.limits.answer;
    let (memory, budget) = (context.worker().memory(), context.second_run_budget());
    let decoded = coding.decode_within(reply.body.clone(), limit, memory, budget);
    decoded.map_err(|error| match (&error, budget) {
        (DecodeError::Malformed(_), _) => {
            let message = "the server's answer does not match its content coding";
            Failure::new(Reason::UpstreamNotProtocol, message).because(error)
        }
        (DecodeError::NoRoom, None) => memory_exhausted(BudgetExhausted),
        (DecodeError::TooLarge(_), _) | (DecodeError::NoRoom, Some(_)) => {
            let message = format!("the server's answer, decoded, is longer than {limit} bytes");
            Failure::new(Reason::UpstreamTooLarge, message)
        }
    })
}

/// Sends a request and reads the complete response within `limit`.
pub(super) async fn send_and_collect(
    record: &mut AccessRecord,
    upstream: &Rc<HttpUpstream>,
    outgoing: OutgoingRequest,
    retry_policy: RetryPolicy,
    limit: Duration,
) -> Result<UpstreamResponse, Failure> {
    let terms = CallTerms {
        retry_policy,
        limit,
        streams: None,
    };
    match send_and_receive(record, upstream, outgoing, terms).await? {
        Received::Complete(response) => Ok(response),
        Received::Stream(stream) => {
            let status = stream.response.status().as_u16();
            Err(rejections::event_stream(status))
        }
    }
}

/// Sends a request and reads the response: the complete one, or the head if the response streams and may do so.
pub(super) async fn send_and_receive(
    record: &mut AccessRecord,
    upstream: &Rc<HttpUpstream>,
    outgoing: OutgoingRequest,
    terms: CallTerms<'_>,
) -> Result<Received, Failure> {
    let CallTerms {
        retry_policy,
        limit,
        streams,
    } = terms;
    let outgoing = strip_trace_secrets(&record.context, outgoing);
    let permit = reserve(&record.context, upstream, limit).await?;
    let since = clock::now();
    record.start_upstream_time(since);
    let limit = record.context.time_left(limit);
    let reading = ResponseBudget::new(&record.context);
    let tracker = upstream.pool().track_call(since);
    // Dropping the exchange at the limit closes its connection, so that a late response is discarded.
    let exchange = pin!(async {
        let exchange = upstream
            .pool()
            .send(&tracker, permit, outgoing, retry_policy.into())
            .await;
        let Exchange { response, lease } = exchange.map_err(from_upstream_error)?;
        if response.status().is_informational() {
            return Err(rejections::unrequested_upgrade());
        }
        match reading_of(&response, streams) {
            ResponseReading::Complete => {}
            ResponseReading::Streaming(formats) => {
                return Ok(received_stream(Exchange { response, lease }, formats));
            }
            // Returning drops the exchange and closes its connection: an event stream may never end.
            ResponseReading::Refused => return event_stream_response(response.into_parts().0),
        }
        let (head, body) = response.into_parts();
        let body = match collect_response(body, &reading).await {
            Ok(body) => {
                lease.release();
                body
            }
            Err(fault) => unread_body(fault, head.status)?,
        };
        Ok(Received::Complete(UpstreamResponse {
            status: head.status,
            headers: head.headers,
            body,
        }))
    });
    let mut timer = record.context.take_timer();
    let worker = record.context.worker().clone();
    let exchange = pin!(async { worker.until_shutdown(exchange).await.flatten() });
    let outcome = timer.until(since + limit, exchange).await;
    record.context.store_timer(timer);
    finish_timing(record, since, outcome.as_ref());
    outcome.unwrap_or_else(|| {
        Err(
            client_timeout_failure(&record.context, Duration::ZERO).unwrap_or_else(|| {
                tracker.record_timeout();
                upstream_timeout(limit)
            }),
        )
    })
}

/// The limits of reading a complete response.
struct ResponseBudget {
    max_body: usize,
    /// The budget of a second run, which does not use the memory of client calls.
    second_run: Option<BodyCopy>,
    memory: MemoryBudget,
}

impl ResponseBudget {
    fn new(context: &CallContext) -> ResponseBudget {
        ResponseBudget {
            max_body: context.runtime_plan().plan.limits.answer,
            second_run: context.second_run_budget().cloned(),
            memory: context.worker().memory().clone(),
        }
    }
}

/// The way in which a response is read.
enum ResponseReading {
    /// To its end.
    Complete,
    /// As it arrives.
    Streaming(StreamFormats),
    /// Not at all: it is an event stream that the client does not get.
    Refused,
}

/// Returns the way in which a response is read: to its end, unless it streams and may do so.
fn reading_of(
    response: &Response<IncomingBody>,
    streams: Option<StreamTerms<'_>>,
) -> ResponseReading {
    let Some(head) = StreamFormat::of_head(response.headers()) else {
        return ResponseReading::Complete;
    };
    let formats = streams.and_then(|streams| streams.formats(head, response.status()));
    match (formats, head.format) {
        (Some(formats), _) => ResponseReading::Streaming(formats),
        (None, StreamFormat::EventStream) => ResponseReading::Refused,
        (None, StreamFormat::JsonLines) => ResponseReading::Complete,
    }
}

#[cold]
fn received_stream(exchange: Exchange, formats: StreamFormats) -> Received {
    let Exchange { response, lease } = exchange;
    Received::Stream(Box::new(ReceivedStream {
        response,
        lease,
        formats,
    }))
}

/// Rejects an event stream, unless its status alone refuses the call.
#[cold]
fn event_stream_response(head: response::Parts) -> Result<Received, Failure> {
    if !is_rejection_status(head.status.as_u16()) {
        return Err(rejections::event_stream(head.status.as_u16()));
    }
    Ok(Received::Complete(UpstreamResponse {
        status: head.status,
        headers: head.headers,
        body: Bytes::new(),
    }))
}

/// Reads a complete response. Second runs are charged to their own budget, not to the memory of client calls.
async fn collect_response(
    body: IncomingBody,
    reading: &ResponseBudget,
) -> Result<Bytes, CollectError> {
    match &reading.second_run {
        None => collect_accounted(body, reading.max_body, &reading.memory).await,
        Some(budget) => collect_budgeted(body, reading.max_body, budget).await,
    }
}

/// Sends a notification. A connection is reserved before returning, so that the caller learns of an unreachable or busy
/// server. The response is read in the background, within the time and size limits, and discarded.
pub(super) async fn send_notification(
    context: &CallContext,
    upstream: &Rc<HttpUpstream>,
    outgoing: OutgoingRequest,
    limit: Duration,
) -> Result<(), Failure> {
    let outgoing = strip_trace_secrets(context, outgoing);
    let permit = reserve(context, upstream, limit).await?;
    let upstream = upstream.clone();
    let reading = ResponseBudget::new(context);
    context.worker().tasks().clone().start(async move {
        let tracker = upstream.pool().track_call(clock::now());
        // Dropping the exchange at the limit closes its connection.
        let response = timeout(limit, async {
            let sent =
                upstream
                    .pool()
                    .send(&tracker, permit, outgoing, RetryPolicy::Unprocessed.into());
            if let Ok(Exchange { response, lease }) = sent.await
                && !StreamFormat::of_head(response.headers())
                    .is_some_and(StreamHead::is_event_stream)
                && collect_response(response.into_body(), &reading)
                    .await
                    .is_ok()
            {
                lease.release();
            }
        });
        if response.await.is_err() {
            tracker.record_timeout();
        }
    });
    Ok(())
}

/// Sends a request and waits for the head of the response. While the client uploads, `limit` applies to each pause.
pub(super) async fn send_and_wait_head(
    record: &mut AccessRecord,
    upstream: &Rc<HttpUpstream>,
    outgoing: OutgoingRequest,
    wait: HeadDeadline<'_>,
) -> Result<Exchange, Failure> {
    let outgoing = strip_trace_secrets(&record.context, outgoing);
    let permit = reserve(&record.context, upstream, wait.limit).await?;
    let since = clock::now();
    record.start_upstream_time(since);
    if let Some(progress) = wait.progress {
        progress.restart_progress(since);
    }
    let deadline = record.context.deadline();
    let next_deadline = || {
        let paused = wait.progress.map_or(since, UploadProgress::last) + wait.limit;
        deadline.map_or(paused, |(deadline, _)| paused.min(deadline))
    };
    let is_broken = || wait.progress.is_some_and(UploadProgress::is_broken);
    let upload_error = || {
        aborted_upload(
            wait.progress
                .and_then(UploadProgress::broken)
                .unwrap_or(UploadBreak::Cut),
        )
    };
    let pool = upstream.pool();
    let tracker = pool.track_call(since);
    let mut timer = record.context.take_timer();
    let mut sending = pin!(pool.send(&tracker, permit, outgoing, wait.options));
    let outcome = loop {
        match timer.until(next_deadline(), sending.as_mut()).await {
            Some(Ok(exchange)) => break Ok(exchange),
            Some(Err(_)) | None if is_broken() => break Err(upload_error()),
            Some(Err(error)) => break Err(from_upstream_error(error)),
            None if next_deadline() > clock::now() => {}
            None if wait.progress.is_some_and(UploadProgress::waits_for_client) => {
                break Err(
                    match deadline.filter(|(deadline, _)| *deadline <= clock::now()) {
                        Some((_, limit)) => total_timeout(limit),
                        None => upload_stalled(wait.limit),
                    },
                );
            }
            None => {
                let client_time = wait
                    .progress
                    .map_or(Duration::ZERO, UploadProgress::client_time);
                break Err(
                    client_timeout_failure(&record.context, client_time).unwrap_or_else(|| {
                        tracker.record_timeout();
                        upstream_timeout(
                            deadline.map_or(wait.limit, |(_, total)| wait.limit.min(total)),
                        )
                    }),
                );
            }
        }
    };
    record.context.store_timer(timer);
    finish_timing(record, since, Some(&outcome));
    outcome
}

/// Stops the upstream time. If the circuit breaker rejected the call, no upstream time is reported.
fn finish_timing<T>(
    record: &mut AccessRecord,
    since: Instant,
    outcome: Option<&Result<T, Failure>>,
) {
    match outcome {
        Some(Err(failure)) if failure.reason == Reason::UpstreamCircuitOpen => {
            record.discard_upstream_time()
        }
        Some(_) | None => record.add_upstream_time(since),
    }
}

/// Returns the failure of a call that exceeded its deadline because of a slow client; see
/// [`AccessRecord::limit_exceeded_by_client`].
pub(super) fn client_timeout_failure(
    context: &CallContext,
    uploading: Duration,
) -> Option<Failure> {
    let limit = context.limit_exceeded_by_client(uploading)?;
    let message = format!(
        "the request took too much of the {limit:?} that a call may take; the server could not answer in the time left"
    );
    Some(Failure::new(Reason::RequestTimeout, message))
}

/// Applies `limits.total_timeout` to `call`, if set. Waits for an upstream already honour the deadline; this covers
/// time spent waiting for the client.
pub(super) async fn with_total_timeout<T>(
    deadline: Option<(Instant, Duration)>,
    call: impl AsyncFnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some((deadline, limit)) = deadline else {
        return call().await;
    };
    if deadline <= clock::now() {
        return Err(total_timeout(limit));
    }
    let result = timeout_at(deadline, pinned(|| call())).await;
    result.unwrap_or_else(|_| Err(total_timeout(limit)))
}

/// Waits for a connection permit. This wait does not count as upstream time.
async fn reserve(
    context: &CallContext,
    upstream: &HttpUpstream,
    limit: Duration,
) -> Result<Permit, Failure> {
    let limit = upstream.plan().slot_wait(remaining_time(context, limit)?);
    ensure_client_open(context)?;
    let reserved = context
        .worker()
        .until_shutdown(upstream.pool().reserve(limit));
    reserved.await?.map_err(from_upstream_error)
}

/// Fails when the client's connection is about to close, because it could not receive the response.
pub(super) fn ensure_client_open(context: &CallContext) -> Result<(), Failure> {
    match context.has_lost_state() {
        true => {
            let message = "the server's state of this connection is lost; the proxy is about to close it; reconnect";
            Err(Failure::new(Reason::UpstreamUnreachable, message))
        }
        false => Ok(()),
    }
}

/// Returns `limit`, shortened to the call's remaining time; fails when none is left.
pub(super) fn remaining_time(context: &CallContext, limit: Duration) -> Result<Duration, Failure> {
    let left = context.time_left(limit);
    match left.is_zero() {
        true => Err(
            client_timeout_failure(context, Duration::ZERO).unwrap_or_else(|| {
                upstream_timeout(context.deadline().map_or(limit, |(_, total)| total))
            }),
        ),
        false => Ok(left),
    }
}

/// The limits of a wait for a response head.
pub(super) struct HeadDeadline<'a> {
    pub(super) limit: Duration,
    /// The progress of the client's upload, if the body is streamed.
    pub(super) progress: Option<&'a UploadProgress>,
    pub(super) options: SendOptions<'a>,
}

/// Returns the body to use if it could not be read: empty, if the status alone refuses the call.
fn unread_body(fault: CollectError, status: StatusCode) -> Result<Bytes, Failure> {
    match fault {
        CollectError::NoRoom(_) => Err(unreadable_response(fault)),
        CollectError::TooLarge(_) | CollectError::Cut(_)
            if is_rejection_status(status.as_u16()) =>
        {
            Ok(Bytes::new())
        }
        CollectError::TooLarge(_) | CollectError::Cut(_) => {
            Err(unreadable_response(fault).upstream_status(status.as_u16()))
        }
    }
}
