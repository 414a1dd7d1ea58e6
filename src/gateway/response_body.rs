//! Bodies of responses: complete, or streamed from an upstream.
//!
//! A streamed body owns the call's record and the upstream connection. It ends in one of three ways. Complete: the
//! connection returns to the pool. Cut: the client's connection is closed too, so that the client notices the
//! truncation. Dropped: the client disconnected.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::record::Record;
use super::rpc::ProgressStream;
use super::shadow::Candidate;
use super::stream_end::GracefulStreamEnd;
use super::upstream_stream::StreamBody;
use crate::domain::failure::{Blame, Reason};
use crate::domain::rope::{Chunks, Rope};
use crate::domain::wire::HeaderCase;
use crate::telemetry::clock;
use crate::upstream::{BodyReadError, Lease, boxed};

/// Chunks of this size or more count in `limits.memory` until they are written. Small responses are written at once and
/// skip the accounting.
const COUNTED_FROM: usize = 16 * 1024;

/// The body of a response.
#[derive(Debug)]
pub struct ResponseBody {
    kind: BodyKind,
    /// Records reported at the end of the body: calls whose delivery is observed, and calls that share a streamed
    /// response.
    kept: Vec<Record>,
    /// The case of the header names, unless they are in lower case.
    spelling: Option<HeaderCase>,
}

#[derive(Debug)]
enum BodyKind {
    Written {
        chunks: Chunks,
        length: usize,
        /// Candidates that start when the client has the whole body.
        followed_by: Vec<Candidate>,
    },
    Streamed(Box<StreamingBody>),
    /// Server messages during a call, followed by the response.
    Telling(Box<ProgressStream>),
    /// No body, with the length of the one that is omitted.
    Withheld(u64),
    Over,
}

/// A response body that arrives from an upstream, with its time limits.
pub(super) struct UpstreamBody {
    pub(super) content: StreamBody,
    pub(super) lease: Lease,
    pub(super) silence: Duration,
    /// The graceful end of an event stream.
    pub(super) closing: Option<GracefulStreamEnd>,
    /// The deadline of the call, and `limits.total_timeout`.
    pub(super) due: Option<(Instant, Duration)>,
}

/// A body that streams from an upstream to the client.
#[derive(Debug)]
struct StreamingBody {
    content: StreamBody,
    record: Box<Record>,
    /// Released at the end of the body.
    lease: Option<Lease>,
    silence: Duration,
    /// Created at the first wait for the upstream; most bodies are available at once.
    alarm: Option<Pin<Box<Sleep>>>,
    closing: Option<GracefulStreamEnd>,
    due: Option<(Instant, Duration)>,
    /// If there is a deadline: when the client was handed the current frame, and the total time it took for earlier
    /// ones.
    given: Option<Instant>,
    waited: Duration,
    part: FirstFrame,
}

/// The position in the body: at the first frame or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstFrame {
    First,
    Later,
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
            kept: Vec::new(),
            spelling: None,
        }
    }

    /// Sets the case of the response's header names.
    pub(super) fn with_header_case(mut self, spelling: Option<HeaderCase>) -> ResponseBody {
        self.spelling = spelling;
        self
    }

    /// Takes the case of the response's header names, unless they are in lower case.
    pub fn take_header_case(&mut self) -> Option<HeaderCase> {
        self.spelling.take()
    }

    /// Keeps the records of calls until the client has received the response.
    pub(super) fn holding_records(mut self, records: Vec<Record>) -> ResponseBody {
        self.kept = records;
        self
    }

    /// Records that the client did not receive the whole body.
    pub fn not_delivered(&mut self, cause: Option<&str>) {
        match &mut self.kind {
            BodyKind::Streamed(streamed) => streamed.record.not_delivered(cause),
            BodyKind::Telling(telling) => telling.not_delivered(cause),
            BodyKind::Written { .. } | BodyKind::Withheld(_) | BodyKind::Over => {}
        }
        for record in &mut self.kept {
            record.not_delivered(cause);
        }
    }

    /// Creates a complete body.
    pub(super) fn written(pieces: Rope) -> ResponseBody {
        ResponseBody::followed(pieces, Vec::new())
    }

    /// Creates a complete body, with candidates that start when the client has it all.
    pub(super) fn followed(pieces: Rope, followed_by: Vec<Candidate>) -> ResponseBody {
        if pieces.is_empty() {
            start(followed_by);
            return ResponseBody::new(BodyKind::Over);
        }
        let length = pieces.len();
        ResponseBody::new(BodyKind::Written {
            chunks: pieces.into_iter(),
            length,
            followed_by,
        })
    }

    /// Creates an empty body that announces `length`, as 304 and responses to HEAD may (RFC 9110 §8.6). hyper would not
    /// write a length that the body does not have.
    pub(super) fn withheld(length: u64) -> ResponseBody {
        ResponseBody::new(BodyKind::Withheld(length))
    }

    /// Creates a body of server messages during a call, followed by the response.
    pub(super) fn with_progress(telling: ProgressStream) -> ResponseBody {
        ResponseBody::new(BodyKind::Telling(Box::new(telling)))
    }

    /// Creates a body that streams from an upstream connection.
    pub(super) fn streamed(coming: UpstreamBody, record: Box<Record>) -> ResponseBody {
        let mut streamed = boxed(|| StreamingBody {
            content: coming.content,
            record,
            lease: Some(coming.lease),
            silence: coming.silence,
            alarm: None,
            closing: coming.closing,
            due: coming.due,
            given: None,
            waited: Duration::ZERO,
            part: FirstFrame::First,
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
        if let Some(lease) = self.lease.take() {
            lease.release();
        }
        if let Some(candidate) = self.record.take_candidate() {
            candidate.start();
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if let (Some(given), Some((end, _))) = (self.given.take(), self.due) {
            // Time after the deadline does not count.
            self.waited += clock::now().min(end).saturating_duration_since(given);
        }
        let polled = self.poll_within_its_time(cx);
        if self.due.is_some() && polled.is_ready() {
            self.given = Some(clock::now());
        }
        polled.map(|frame| frame.map(|frame| frame.map(|frame| self.counted(frame))))
    }

    /// Counts a large chunk in the memory budget until the client has received it.
    fn counted(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.data_ref() {
            Some(piece) if piece.len() >= COUNTED_FROM => {
                frame.map_data(|piece| self.record.worker().memory().carry(piece))
            }
            Some(_) | None => frame,
        }
    }

    fn poll_within_its_time(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if let Some(closing) = &mut self.closing
            && closing.poll(cx).is_ready()
        {
            // Unread data remains on the connection, so it is closed.
            self.lease = None;
            return Poll::Ready(None);
        }
        // A frame that arrived with the head is sent in any case: it may be the whole body.
        if self.part == FirstFrame::Later
            && let Some(overdue) = self.overdue()
        {
            return Poll::Ready(Some(Err(overdue)));
        }
        let polled = self.content.poll_frame(cx, &self.record);
        if self.content.take_progressed() {
            self.alarm = None;
        }
        match polled {
            Poll::Ready(frame) => {
                self.alarm = None;
                let frame = match (frame, &mut self.closing) {
                    (Some(Ok(frame)), Some(closing)) => Some(Ok(closing.pass(frame))),
                    (frame, _) => frame,
                };
                Poll::Ready(frame.map(|frame| frame.map_err(ResponseBodyError::Cut)))
            }
            Poll::Pending => {
                let silence = self.silence;
                let due = self.due;
                let alarm = self.alarm.get_or_insert_with(|| {
                    let silent = clock::now() + silence;
                    let first = due.map_or(silent, |(end, _)| silent.min(end));
                    Box::pin(tokio::time::sleep_until(first))
                });
                if alarm.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                let fault = self.overdue().unwrap_or(ResponseBodyError::Silent(silence));
                Poll::Ready(Some(Err(fault)))
            }
        }
    }

    fn abort(&mut self, fault: &ResponseBodyError) {
        if let ResponseBodyError::Overdue(_, Blame::Client) = fault {
            let cause = "the client took its answer too slowly";
            return self.record.overdue(Reason::RequestTimeout, cause);
        }
        if let ResponseBodyError::Silent(_) | ResponseBodyError::Overdue(..) = fault {
            self.lease.iter().for_each(Lease::late);
        }
        match fault {
            ResponseBodyError::Overdue(..) => self.record.overdue(Reason::UpstreamTimeout, fault),
            ResponseBodyError::Cut(_) | ResponseBodyError::Silent(_) => {
                self.record.cut(describe(fault))
            }
        }
    }

    /// Returns the error if the deadline has passed. The upstream is to blame, unless the client used up too much of
    /// the time; see [`Record::exceeded_by_client`]. Which side was waited for last does not matter.
    fn overdue(&self) -> Option<ResponseBodyError> {
        let (end, limit) = self.due?;
        let blame = match self.record.exceeded_by_client(self.waited) {
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
            BodyKind::Written {
                chunks,
                length,
                followed_by,
            } => {
                let next = chunks.next();
                *length -= next.as_ref().map_or(0, Bytes::len);
                if *length == 0 {
                    start(std::mem::take(followed_by));
                }
                return Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))));
            }
            BodyKind::Telling(telling) => {
                let told = telling.poll(cx);
                return told.map(|told| told.map(|told| Ok(Frame::data(told))));
            }
            BodyKind::Streamed(streamed) => streamed,
        };
        let Poll::Ready(frame) = streamed.poll(cx) else {
            return Poll::Pending;
        };
        if let Some(Ok(piece)) = &frame
            && let Some(candidate) = streamed.record.candidate()
            && let Some(piece) = piece.data_ref()
        {
            candidate.on_chunk(piece);
        }
        match &frame {
            // hyper does not poll again after trailers.
            Some(Ok(part)) if !part.is_trailers() && !streamed.content.is_end_stream() => {
                streamed.part = FirstFrame::Later;
                return Poll::Ready(frame);
            }
            Some(Ok(whole)) if streamed.part == FirstFrame::First => {
                match whole.data_ref() {
                    Some(body) if !streamed.record.has_part() => streamed.record.passed(body),
                    Some(body) => streamed.record.passed_together(&mut this.kept, body),
                    None => {}
                }
                streamed.complete();
            }
            Some(Ok(_)) | None => streamed.complete(),
            Some(Err(fault)) => {
                streamed.abort(fault);
                for record in &mut this.kept {
                    record.cut(describe(fault));
                }
            }
        }
        // The record is reported here, at the end of the body, unless delivery is still observed.
        if let BodyKind::Streamed(streamed) = std::mem::replace(&mut this.kind, BodyKind::Over)
            && streamed.record.waits_for_its_client()
        {
            this.kept.push(*streamed.record);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Over => true,
            BodyKind::Written { length, .. } => *length == 0,
            BodyKind::Telling(telling) => telling.is_over(),
            BodyKind::Streamed(_) | BodyKind::Withheld(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Over => SizeHint::with_exact(0),
            BodyKind::Withheld(length) => SizeHint::with_exact(*length),
            BodyKind::Written { length, .. } => SizeHint::with_exact(*length as u64),
            BodyKind::Telling(_) => SizeHint::default(),
            BodyKind::Streamed(streamed) => streamed.content.size_hint(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let BodyKind::Streamed(streamed) = &mut self.kind {
            // hyper stops polling once the announced length is written, even if the end of the stream has not arrived.
            match streamed.content.size_hint().exact() {
                Some(0) => streamed.complete(),
                Some(_) | None => {
                    streamed.record.cancelled();
                    self.kept.iter_mut().for_each(Record::cancelled);
                }
            }
        }
    }
}

fn start(candidates: Vec<Candidate>) {
    for candidate in candidates {
        candidate.start();
    }
}

fn describe(fault: &ResponseBodyError) -> String {
    match fault {
        ResponseBodyError::Cut(error) => format!("{fault}: {error}"),
        ResponseBodyError::Silent(_) | ResponseBodyError::Overdue(_, _) => fault.to_string(),
    }
}
