//! One question to an upstream, within its time: the head alone, or the whole answer.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode, response};
use tokio::time::{Instant, timeout, timeout_at};

use super::headers::first_value;
use super::hops::without_secrets;
use super::intake::no_room;
use super::record::Record;
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::outcome::refuses;
use crate::domain::refusal;
use crate::domain::sse;
use crate::telemetry::clock;
use crate::upstream::{
    Break, Exchange, HttpUpstream, Inflow, Manner, Memory, Outgoing, Permit, Progress, ReadFault,
    Repeat, Tap, UpstreamError, chain, pinned, read_charged, read_kept,
};

/// An upstream's answer, whole.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Asks and reads the whole answer within `limit`.
pub(super) async fn whole(
    record: &mut Record,
    upstream: &Rc<HttpUpstream>,
    outgoing: Outgoing,
    repeat: Repeat,
    limit: Duration,
) -> Result<Reply, Failure> {
    let outgoing = without_secrets(record, outgoing);
    let permit = reserve(record, upstream, limit).await?;
    let since = clock::now();
    record.asks(since);
    let limit = record.left(limit);
    let most = record.installed().plan.limits.answer;
    let purse = record.purse().cloned();
    let memory = record.worker().memory().clone();
    let attempt = upstream.attempt(since);
    // Dropped at the limit, the exchange closes its connection: a late answer reaches nobody.
    let asking = pin!(async {
        let exchange = upstream
            .send(&attempt, (permit, outgoing), repeat.into())
            .await;
        let Exchange { response, lease } = exchange.map_err(sent)?;
        let (head, body) = response.into_parts();
        if head.status.is_informational() {
            let message = "the server changed the protocol, which nobody asked for";
            return Err(Failure::new(Reason::UpstreamUpgrade, message));
        }
        if is_event_stream(&head.headers) {
            // Dropped here, the exchange closes its connection: such an answer may have no end.
            return streamed(head);
        }
        let body = match kept(body, most, (purse.as_ref(), &memory)).await {
            Ok(body) => {
                lease.release();
                body
            }
            Err(fault) => unread(fault, head.status)?,
        };
        Ok(Reply {
            status: head.status,
            headers: head.headers,
            body,
        })
    });
    let mut alarm = record.take_alarm();
    let worker = record.worker().clone();
    let asking = pin!(async { worker.unless_it_ends(asking).await.flatten() });
    let asked = alarm.until(since + limit, asking).await;
    record.keep_alarm(alarm);
    over(record, since, asked.as_ref());
    asked.unwrap_or_else(|| {
        Err(held_up(record, Duration::ZERO).unwrap_or_else(|| {
            attempt.late();
            late(limit)
        }))
    })
}

/// Whether an answer is an event stream, whatever its content coding.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = first_value(headers, &CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(sse::is_event_stream)
}

/// Refuses an event stream. Only a status that refuses the call says all by itself.
fn streamed(head: response::Parts) -> Result<Reply, Failure> {
    if !refuses(head.status.as_u16()) {
        return Err(refusal::event_stream(head.status.as_u16()));
    }
    Ok(Reply {
        status: head.status,
        headers: head.headers,
        body: Bytes::new(),
    })
}

/// Reads an answer whole. What is read only to compare takes no room of what is answered.
async fn kept(
    body: Inflow,
    most: usize,
    (purse, memory): (Option<&Tap>, &Memory),
) -> Result<Bytes, ReadFault> {
    match purse {
        None => read_kept(body, most, memory).await,
        Some(purse) => read_charged(body, most, purse).await,
    }
}

/// Sends what nobody waits for. The connection is had before the caller is answered, so that a server that is
/// away or busy is the caller's to know; what it says is read, within the time and the size of an answer, and
/// forgotten.
pub(super) async fn forget(
    record: &mut Record,
    upstream: &Rc<HttpUpstream>,
    outgoing: Outgoing,
    limit: Duration,
) -> Result<(), Failure> {
    let outgoing = without_secrets(record, outgoing);
    let permit = reserve(record, upstream, limit).await?;
    let upstream = upstream.clone();
    let most = record.installed().plan.limits.answer;
    let purse = record.purse().cloned();
    let memory = record.worker().memory().clone();
    record.worker().tasks().clone().start(async move {
        let attempt = upstream.attempt(clock::now());
        // Dropped at the limit, the exchange closes its connection.
        let answered = timeout(limit, async {
            let sent = upstream.send(&attempt, (permit, outgoing), Repeat::Unsent.into());
            if let Ok(Exchange { response, lease }) = sent.await
                && !is_event_stream(response.headers())
                && kept(response.into_body(), most, (purse.as_ref(), &memory))
                    .await
                    .is_ok()
            {
                lease.release();
            }
        });
        if answered.await.is_err() {
            attempt.late();
        }
    });
    Ok(())
}

/// Asks and waits for the head of the answer. While the client uploads, `limit` bounds each pause of it.
pub(super) async fn head(
    record: &mut Record,
    upstream: &Rc<HttpUpstream>,
    outgoing: Outgoing,
    wait: Wait<'_>,
) -> Result<Exchange, Failure> {
    let outgoing = without_secrets(record, outgoing);
    let permit = reserve(record, upstream, wait.limit).await?;
    let since = clock::now();
    record.asks(since);
    if let Some(progress) = wait.progress {
        progress.starts(since);
    }
    let end = record.due();
    let due = || {
        let paused = wait.progress.map_or(since, Progress::last) + wait.limit;
        end.map_or(paused, |(end, _)| paused.min(end))
    };
    let is_broken = || wait.progress.is_some_and(Progress::is_broken);
    let torn = || {
        broken(
            wait.progress
                .and_then(Progress::broken)
                .unwrap_or(Break::Cut),
        )
    };
    let attempt = upstream.attempt(since);
    let mut alarm = record.take_alarm();
    let mut asked = pin!(upstream.send(&attempt, (permit, outgoing), wait.manner));
    let outcome = loop {
        match alarm.until(due(), asked.as_mut()).await {
            Some(Ok(exchange)) => break Ok(exchange),
            Some(Err(_)) | None if is_broken() => break Err(torn()),
            Some(Err(error)) => break Err(sent(error)),
            None if due() > clock::now() => {}
            None if wait.progress.is_some_and(Progress::waits_for_client) => {
                break Err(match end.filter(|(end, _)| *end <= clock::now()) {
                    Some((_, limit)) => overdue(limit),
                    None => paused(wait.limit),
                });
            }
            None => {
                let took = wait.progress.map_or(Duration::ZERO, Progress::client_took);
                break Err(held_up(record, took).unwrap_or_else(|| {
                    attempt.late();
                    late(end.map_or(wait.limit, |(_, all)| wait.limit.min(all)))
                }));
            }
        }
    };
    record.keep_alarm(alarm);
    over(record, since, Some(&outcome));
    outcome
}

/// The upstream is not waited for any more; one that is left alone was not asked.
fn over<T>(record: &mut Record, since: Instant, came: Option<&Result<T, Failure>>) {
    match came {
        Some(Err(failure)) if failure.reason == Reason::UpstreamResting => record.unasked(),
        Some(_) | None => record.spent(since),
    }
}

fn paused(limit: Duration) -> Failure {
    let message = format!("the body of the request did not move for {limit:?}");
    Failure::new(Reason::RequestTimeout, message)
}

/// A call took too long, and its client is waited for.
fn overdue(limit: Duration) -> Failure {
    let message =
        format!("the request was not complete, and {limit:?} are all that a call may take");
    Failure::new(Reason::RequestTimeout, message)
}

/// The time of a call is over before that of its server, because its client took much of it; see [`Record::held_up`].
pub(super) fn held_up(record: &Record, uploading: Duration) -> Option<Failure> {
    let limit = record.held_up(uploading)?;
    let message = format!(
        "the request took so much of the {limit:?} that a call may take that the server could not answer in the rest"
    );
    Some(Failure::new(Reason::RequestTimeout, message))
}

/// Bounds a call as a whole, where it has such a limit. What waits for an upstream keeps within it by itself: here the
/// client is waited for.
pub(super) async fn in_all<T>(
    record: &mut Record,
    call: impl AsyncFnOnce(&mut Record) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some((end, limit)) = record.due() else {
        return call(record).await;
    };
    if end <= clock::now() {
        return Err(overdue(limit));
    }
    let called = timeout_at(end, pinned(|| call(record))).await;
    called.unwrap_or_else(|_| Err(overdue(limit)))
}

/// Waits for a connection that may be used, which is the proxy's own time and no answer's.
async fn reserve(
    record: &Record,
    upstream: &HttpUpstream,
    limit: Duration,
) -> Result<Permit, Failure> {
    let limit = upstream.plan().wait_for_place(in_time(record, limit)?);
    stays(record)?;
    let reserved = record.worker().unless_it_ends(upstream.reserve(limit));
    reserved.await?.map_err(sent)
}

/// Refuses what is asked for a client that is about to be let go: nobody would wait for the answer.
pub(super) fn stays(record: &Record) -> Result<(), Failure> {
    match record.is_let_go() {
        true => {
            let message = "what a server kept for this connection is lost, and it is about to be closed; connect again";
            Err(Failure::new(Reason::UpstreamUnreachable, message))
        }
        false => Ok(()),
    }
}

/// What of a limit is left to a call as a whole; one without any time left is not sent.
pub(super) fn in_time(record: &Record, limit: Duration) -> Result<Duration, Failure> {
    let left = record.left(limit);
    match left.is_zero() {
        true => Err(held_up(record, Duration::ZERO)
            .unwrap_or_else(|| late(record.due().map_or(limit, |(_, all)| all)))),
        false => Ok(left),
    }
}

/// How to wait for a head.
pub(super) struct Wait<'a> {
    pub(super) limit: Duration,
    /// How far the client is with its body, where that comes piece by piece.
    pub(super) progress: Option<&'a Progress>,
    pub(super) manner: Manner<'a>,
}

/// Returns the failure for a client's body that broke off.
pub(super) fn broken(why: Break) -> Failure {
    match why {
        Break::Refused(violation) => Failure::new(violation.reason(), violation.as_str()),
        Break::Cut => Failure::new(
            Reason::BodyCut,
            "the body of the request ended before it was complete",
        ),
        Break::TooSlow(rate) => {
            let message = format!(
                "the body of the request came more slowly than {} bytes a second",
                rate.bytes
            );
            Failure::new(Reason::RequestTimeout, message)
        }
        Break::Contended => Failure::new(
            Reason::RequestTimeout,
            "the body of the request came slowly while other calls waited for the server",
        ),
    }
}

/// The server took too long.
pub(super) fn late(limit: Duration) -> Failure {
    Failure::new(
        Reason::UpstreamTimeout,
        format!("the server did not answer within {limit:?}"),
    )
}

fn sent(error: UpstreamError) -> Failure {
    let (reason, message) = match &error {
        UpstreamError::Unreachable { .. } => {
            (Reason::UpstreamUnreachable, "the server cannot be reached")
        }
        UpstreamError::Resting { again_in, .. } => {
            let message =
                "the server has failed too often and is left alone for a while; try again later";
            let seconds = u32::try_from(again_in.as_secs() + 1).unwrap_or(u32::MAX);
            let resting = Failure::new(Reason::UpstreamResting, message);
            return resting
                .advise(Advice::RetryAfter(seconds))
                .because(chain(&error));
        }
        UpstreamError::Busy { .. } => {
            let message = "as many calls as this proxy sends to the server at a time are there; try again later";
            let busy = Failure::new(Reason::UpstreamBusy, message).advise(Advice::RetryAfter(1));
            return busy.because(chain(&error));
        }
        UpstreamError::Broken(_) => (
            Reason::UpstreamCut,
            "the server closed the connection before it answered",
        ),
        UpstreamError::Malformed(_) | UpstreamError::Unframed(_) | UpstreamError::Padded => (
            Reason::UpstreamMalformedHttp,
            "the server's answer is not valid HTTP",
        ),
    };
    Failure::new(reason, message).because(chain(&error))
}

/// Returns what counts as the body where it was not read: none, if the status refuses the call.
fn unread(fault: ReadFault, status: StatusCode) -> Result<Bytes, Failure> {
    match fault {
        ReadFault::NoRoom(_) => Err(read(fault)),
        ReadFault::TooLarge(_) | ReadFault::Cut(_) if refuses(status.as_u16()) => Ok(Bytes::new()),
        ReadFault::TooLarge(_) | ReadFault::Cut(_) => {
            Err(read(fault).upstream_status(status.as_u16()))
        }
    }
}

fn read(fault: ReadFault) -> Failure {
    match &fault {
        ReadFault::TooLarge(limit) => Failure::new(
            Reason::UpstreamTooLarge,
            format!("the server's answer is longer than {limit} bytes"),
        ),
        ReadFault::NoRoom(full) => no_room(*full),
        ReadFault::Cut(_) if fault.is_malformed() => Failure::new(
            Reason::UpstreamMalformedHttp,
            "the server's answer is not valid HTTP",
        )
        .because(chain(&fault)),
        ReadFault::Cut(_) => Failure::new(Reason::UpstreamCut, "the server's answer broke off")
            .because(chain(&fault)),
    }
}
