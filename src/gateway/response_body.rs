//! Bodies of responses: complete, or streamed from an upstream.
//!
//! A streamed body owns the call's record and the upstream connection. It ends in one of three ways. Complete: the
//! connection returns to the pool. Cut: the client's connection is closed too, so that the client notices the
//! truncation. Dropped: the client disconnected.
//!
//! Used by `gateway` and `server`.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::access_record::AccessRecord;
use super::progress_stream::ProgressStream;
use super::response_observer::{Observer, notify_sent};
use super::stream_end::GracefulStreamEnd;
use super::upstream_stream::StreamBody;
use crate::telemetry::clock;
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Blame, Failure, Reason};
use dualgauge_net::{BodyReadError, Lease, boxed};
use dualgauge_patterns::rope::{Chunks, Rope};
use dualgauge_transport::wire::HeaderCase;

/// Chunks of this size or more count in `limits.memory` until they are written. Small responses are written at once and
/// skip the accounting.
const ACCOUNTED_FROM: usize = 16 * 1024;

/// The body of a response.
#[derive(Debug)]
pub struct ResponseBody {
    kind: BodyKind,
    /// Records reported at the end of the body: calls whose delivery is observed, and calls that share a streamed
    /// response.
    records: Vec<AccessRecord>,
    /// The case of the header names, unless they are in lower case.
    header_case: Option<HeaderCase>,
}

#[derive(Debug)]
enum BodyKind {
    Full {
        chunks: Chunks,
        length: usize,
        /// Observers of the answers, notified when the client has the whole body.
        observers: Vec<Observer>,
    },
    Streamed(Box<StreamingBody>),
    /// Server messages during a call, followed by the response.
    Progress(Box<ProgressStream>),
    /// The event stream of a client's session.
    Events(mpsc::Receiver<Bytes>),
    /// No body, with the length of the one that is omitted.
    Withheld(u64),
    Over,
}

/// A response body that arrives from an upstream, with its time limits.
pub(super) struct UpstreamBody {
    pub(super) content: StreamBody,
    pub(super) lease: Option<Lease>,
    pub(super) idle_timeout: Duration,
    /// The graceful end of an event stream.
    pub(super) graceful_end: Option<GracefulStreamEnd>,
    /// The deadline of the call, and `limits.total_timeout`.
    pub(super) deadline: Option<(Instant, Duration)>,
    pub(super) observer: Option<Observer>,
}

/// A body that streams from an upstream to the client.
#[derive(Debug)]
struct StreamingBody {
    content: StreamBody,
    record: Box<AccessRecord>,
    observer: Option<Observer>,
    /// Released at the end of the body.
    lease: Option<Lease>,
    idle_timeout: Duration,
    /// Created at the first wait for the upstream; most bodies are available at once.
    timer: Option<Pin<Box<Sleep>>>,
    graceful_end: Option<GracefulStreamEnd>,
    deadline: Option<(Instant, Duration)>,
    /// If there is a deadline: when the client was handed the current frame, and the total time it took for earlier
    /// ones.
    frame_sent_at: Option<Instant>,
    waited: Duration,
    is_first_frame: bool,
}

/// The reason why a response broke off.
#[derive(Debug, thiserror::Error)]
pub enum ResponseBodyError {
    /// The upstream's body broke off.
    #[error("the upstream's answer broke off")]
    Cut(#[source] BodyReadError),
    /// The upstream sent nothing within the idle timeout.
    #[error("the upstream sent nothing for {0:?}")]
    Silent(Duration),
    /// The call exceeded its deadline; the blame says which side was slow.
    #[error("the answer was not complete within {0:?}, the time limit of a call")]
    Overdue(Duration, Blame),
}

impl ResponseBody {
    fn new(kind: BodyKind) -> ResponseBody {
        ResponseBody {
            kind,
            records: Vec::new(),
            header_case: None,
        }
    }

    /// Sets the case of the response's header names.
    pub(super) fn with_header_case(mut self, header_case: Option<HeaderCase>) -> ResponseBody {
        self.header_case = header_case;
        self
    }

    /// Takes the case of the response's header names, unless they are in lower case.
    pub fn take_header_case(&mut self) -> Option<HeaderCase> {
        self.header_case.take()
    }

    /// Keeps the records of calls until the client has received the response.
    pub(super) fn holding_records(mut self, records: Vec<AccessRecord>) -> ResponseBody {
        self.records = records;
        self
    }

    /// Records the status that the client of a streamed body receives, if it differs from the upstream's.
    pub(super) fn set_client_status(&mut self, status: StatusCode) {
        match &mut self.kind {
            BodyKind::Streamed(streamed) => streamed.record.set_client_status(status.as_u16()),
            BodyKind::Full { .. }
            | BodyKind::Progress(_)
            | BodyKind::Events(_)
            | BodyKind::Withheld(_)
            | BodyKind::Over => {}
        }
    }

    /// Records that the client did not receive the whole body.
    pub fn mark_undelivered(&mut self, cause: Option<&str>) {
        match &mut self.kind {
            BodyKind::Streamed(streamed) => streamed.record.mark_undelivered(cause),
            BodyKind::Progress(progress) => progress.mark_undelivered(cause),
            BodyKind::Full { .. }
            | BodyKind::Events(_)
            | BodyKind::Withheld(_)
            | BodyKind::Over => {}
        }
        for record in &mut self.records {
            record.mark_undelivered(cause);
        }
    }

    /// Creates a complete body.
    pub(super) fn full(rope: Rope) -> ResponseBody {
        ResponseBody::observed(rope, Vec::new())
    }

    /// Creates a complete body; `observers` learn when the client has it all.
    pub(super) fn observed(rope: Rope, observers: Vec<Observer>) -> ResponseBody {
        if rope.is_empty() {
            notify_sent(observers);
            return ResponseBody::new(BodyKind::Over);
        }
        let length = rope.len();
        ResponseBody::new(BodyKind::Full {
            chunks: rope.into_iter(),
            length,
            observers,
        })
    }

    /// Creates an empty body that announces `length`, as 304 and responses to HEAD may (RFC 9110 §8.6). hyper would not
    /// write a length that the body does not have.
    pub(super) fn withheld(length: u64) -> ResponseBody {
        ResponseBody::new(BodyKind::Withheld(length))
    }

    /// Creates a body of server messages during a call, followed by the response.
    pub(super) fn with_progress(progress: ProgressStream) -> ResponseBody {
        ResponseBody::new(BodyKind::Progress(Box::new(progress)))
    }

    /// Creates the body of an event stream of a client's session, which ends when the sender of `chunks` is dropped.
    pub(super) fn with_events(chunks: mpsc::Receiver<Bytes>) -> ResponseBody {
        ResponseBody::new(BodyKind::Events(chunks))
    }

    /// Creates a body that streams from an upstream connection.
    pub(super) fn streamed(upstream_body: UpstreamBody, record: Box<AccessRecord>) -> ResponseBody {
        let mut streamed = boxed(|| StreamingBody {
            content: upstream_body.content,
            record,
            observer: upstream_body.observer,
            lease: upstream_body.lease,
            idle_timeout: upstream_body.idle_timeout,
            timer: None,
            graceful_end: upstream_body.graceful_end,
            deadline: upstream_body.deadline,
            frame_sent_at: None,
            waited: Duration::ZERO,
            is_first_frame: true,
        });
        if streamed.content.is_end_stream() || streamed.record.has_no_content() {
            streamed.complete();
            return ResponseBody::new(BodyKind::Over);
        }
        ResponseBody::new(BodyKind::Streamed(streamed))
    }
}

impl StreamingBody {
    fn complete(&mut self) {
        // Unread data on the connection would be read as the next response.
        let is_reusable = !self.content.is_cut_short();
        if let Some(lease) = self.lease.take().filter(|_| is_reusable) {
            lease.release();
        }
        if let Some(observer) = self.observer.take() {
            match self.content.has_failed() {
                false => observer.on_sent(),
                true => observer.on_cut(),
            }
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if let (Some(sent_at), Some((end, _))) = (self.frame_sent_at.take(), self.deadline) {
            // Time after the deadline does not count.
            self.waited += clock::now().min(end).saturating_duration_since(sent_at);
        }
        let polled = self.poll_with_deadlines(cx);
        if self.deadline.is_some() && polled.is_ready() {
            self.frame_sent_at = Some(clock::now());
        }
        polled.map(|frame| frame.map(|frame| frame.map(|frame| self.account(frame))))
    }

    /// Counts a large chunk in the memory budget until the client has received it.
    fn account(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.data_ref() {
            Some(chunk) if chunk.len() >= ACCOUNTED_FROM => {
                frame.map_data(|chunk| self.record.context.worker().memory().carry(chunk))
            }
            Some(_) | None => frame,
        }
    }

    fn poll_with_deadlines(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if let Some(graceful_end) = &mut self.graceful_end
            && graceful_end.poll(cx).is_ready()
        {
            // Unread data remains on the connection, so it is closed.
            self.lease = None;
            // The response has no end that could be compared.
            if let Some(observer) = self.observer.take() {
                observer.skip(Skip::Stream);
            }
            return Poll::Ready(None);
        }
        // A frame that arrived with the head is sent in any case: it may be the whole body.
        if !self.is_first_frame
            && let Some(error) = self.check_deadline()
        {
            return Poll::Ready(Some(Err(error)));
        }
        let polled = self.content.poll_frame(cx, &mut self.record);
        if self.content.take_progressed() {
            self.timer = None;
        }
        match polled {
            Poll::Ready(frame) => {
                self.timer = None;
                let frame = match (frame, &mut self.graceful_end) {
                    (Some(Ok(frame)), Some(graceful_end)) => Some(Ok(graceful_end.pass(frame))),
                    (frame, _) => frame,
                };
                Poll::Ready(frame.map(|frame| frame.map_err(ResponseBodyError::Cut)))
            }
            Poll::Pending => {
                let idle_timeout = self.idle_timeout;
                let deadline = self.deadline;
                let timer = self.timer.get_or_insert_with(|| {
                    let silent = clock::now() + idle_timeout;
                    let first = deadline.map_or(silent, |(end, _)| silent.min(end));
                    Box::pin(tokio::time::sleep_until(first))
                });
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                let fault = self
                    .check_deadline()
                    .unwrap_or(ResponseBodyError::Silent(idle_timeout));
                let failure = || Failure::new(Reason::UpstreamTimeout, fault.to_string());
                match self.content.fail(failure, &mut self.record) {
                    Some(last) => {
                        self.lease.iter().for_each(Lease::record_timeout);
                        Poll::Ready(Some(Ok(last)))
                    }
                    None => Poll::Ready(Some(Err(fault))),
                }
            }
        }
    }

    fn abort(&mut self, fault: &ResponseBodyError) {
        if let Some(observer) = self.observer.take() {
            observer.on_cut();
        }
        if let ResponseBodyError::Overdue(_, Blame::Client) = fault {
            let cause = "the client took its answer too slowly";
            return self.record.cut_because(Reason::RequestTimeout, cause);
        }
        if let ResponseBodyError::Silent(_) | ResponseBodyError::Overdue(..) = fault {
            self.lease.iter().for_each(Lease::record_timeout);
        }
        match fault {
            ResponseBodyError::Overdue(..) => {
                self.record.cut_because(Reason::UpstreamTimeout, fault)
            }
            ResponseBodyError::Cut(_) | ResponseBodyError::Silent(_) => {
                self.record.cut(describe(fault))
            }
        }
    }

    /// Returns the error if the deadline has passed. The upstream is to blame, unless the client used up too much of
    /// the time; see [`AccessRecord::limit_exceeded_by_client`]. Which side was waited for last does not matter.
    fn check_deadline(&self) -> Option<ResponseBodyError> {
        let (end, limit) = self.deadline?;
        let blame = match self.record.context.limit_exceeded_by_client(self.waited) {
            Some(_) => Blame::Client,
            None => Blame::Upstream,
        };
        (end <= clock::now()).then_some(ResponseBodyError::Overdue(limit, blame))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        let this = &mut *self;
        let streamed = match &mut this.kind {
            BodyKind::Over | BodyKind::Withheld(_) => return Poll::Ready(None),
            BodyKind::Full {
                chunks,
                length,
                observers,
            } => {
                let next = chunks.next();
                *length -= next.as_ref().map_or(0, Bytes::len);
                if *length == 0 {
                    notify_sent(std::mem::take(observers));
                }
                return Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))));
            }
            BodyKind::Progress(progress) => return data_frame(progress.poll(cx)),
            BodyKind::Events(chunks) => return data_frame(chunks.poll_recv(cx)),
            BodyKind::Streamed(streamed) => streamed,
        };
        let Poll::Ready(frame) = streamed.poll(cx) else {
            return Poll::Pending;
        };
        if let Some(Ok(chunk)) = &frame
            && let Some(observer) = &mut streamed.observer
            && let Some(chunk) = chunk.data_ref()
        {
            observer.on_chunk(chunk);
        }
        match &frame {
            // hyper does not poll again after trailers.
            Some(Ok(part)) if !part.is_trailers() && !streamed.content.is_end_stream() => {
                streamed.is_first_frame = false;
                return Poll::Ready(frame);
            }
            Some(Ok(only)) if streamed.is_first_frame => {
                let record = &mut streamed.record;
                match only.data_ref() {
                    Some(body) if !record.is_batch_part() => record.inspect_response(body),
                    Some(body) => record.inspect_batch_response(&mut this.records, body),
                    None => {}
                }
                streamed.complete();
            }
            Some(Ok(_)) | None => streamed.complete(),
            Some(Err(fault)) => {
                streamed.abort(fault);
                for record in &mut this.records {
                    record.cut(describe(fault));
                }
            }
        }
        // The record is reported here, at the end of the body, unless delivery is still observed.
        if let BodyKind::Streamed(streamed) = std::mem::replace(&mut this.kind, BodyKind::Over)
            && streamed.record.context.observes_delivery()
        {
            this.records.push(*streamed.record);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Over => true,
            BodyKind::Full { length, .. } => *length == 0,
            BodyKind::Progress(progress) => progress.is_over(),
            BodyKind::Streamed(_) | BodyKind::Events(_) | BodyKind::Withheld(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Over => SizeHint::with_exact(0),
            BodyKind::Withheld(length) => SizeHint::with_exact(*length),
            BodyKind::Full { length, .. } => SizeHint::with_exact(*length as u64),
            BodyKind::Progress(_) | BodyKind::Events(_) => SizeHint::default(),
            BodyKind::Streamed(streamed) => streamed.content.size_hint(),
        }
    }
}

/// Returns a chunk of a body that cannot fail.
fn data_frame(chunk: Poll<Option<Bytes>>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
    chunk.map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let BodyKind::Streamed(streamed) = &mut self.kind {
            // hyper stops polling once the announced length is written, even if the end of the stream has not arrived.
            match streamed.content.size_hint().exact() {
                Some(0) => streamed.complete(),
                Some(_) | None => {
                    streamed.record.mark_cancelled();
                    self.records
                        .iter_mut()
                        .for_each(AccessRecord::mark_cancelled);
                }
            }
        }
    }
}

fn describe(fault: &ResponseBodyError) -> String {
    match fault {
        ResponseBodyError::Cut(error) => format!("{fault}: {error}"),
        ResponseBodyError::Silent(_) | ResponseBodyError::Overdue(_, _) => fault.to_string(),
    }
}
