//! Tracking of an HTTP/2 response until its client has taken it.
//!
//! h2 accepts any chunk, waits only for one byte of the client's window, and drops the body with its last chunk. So
//! large chunks are split, and each one reports when it was written to the socket. The end of a response, or the last
//! byte if its length is known, is held back until everything before it was taken. An error makes h2 drop what it has
//! not written, so the error is delayed in the same way; if it comes first, an empty chunk stands for the head.
//!
//! Law: a response counts as delivered if each byte of it was written to the socket; else its client has left.
//!
//! h2 holds a lock while it drops a chunk. So chunks only count, and the stream's own task ends the call.
//!
//! Used by `http2`.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

use crate::gateway::ResponseBody;
use crate::telemetry::clock;

/// A body that is notified if its client does not take all of it.
pub(super) trait OnAbort: Debug + 'static {
    /// Records that the rest of the body will not be taken.
    fn on_abort(&mut self, cause: Option<&str>);
}

impl OnAbort for ResponseBody {
    fn on_abort(&mut self, cause: Option<&str>) {
        self.mark_undelivered(cause);
    }
}

/// The maximum size of a chunk: the largest frame that every client must accept (RFC 9113 §4.2).
const PIECE: usize = 16 * 1024;
/// The size up to which a response is not split into two frames.
const SHORT: usize = 1024;
/// The number of bytes that the empty chunk for a head counts as.
const HEAD_COST: usize = 1;

/// The cause of an incomplete delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryFailure {
    /// The client has taken nothing for too long.
    Stalled,
    Gone,
}

/// The progress of the delivery of one response.
#[derive(Debug, Default)]
pub(super) struct DeliveryPace {
    /// The number of bytes handed to h2 and not yet written.
    pending: Cell<usize>,
    /// The time since which the first of these chunks waits.
    since: Cell<Option<Instant>>,
    failure: Cell<Option<DeliveryFailure>>,
    /// The waker of the task that waits for the delivery.
    waker: RefCell<Option<Waker>>,
    /// The body, kept after h2 has dropped it.
    body_slot: RefCell<Option<Box<dyn OnAbort>>>,
}

impl DeliveryPace {
    /// Waits until the client has taken no chunk for `limit`.
    pub(super) async fn wait_for_stall(&self, limit: Duration) {
        loop {
            let since = self.since.get().unwrap_or_else(clock::now);
            sleep_until(since + limit).await;
            let since = self.since.get();
            if since.is_some_and(|since| since + limit <= clock::now()) {
                self.failure.set(Some(DeliveryFailure::Stalled));
                return;
            }
        }
    }

    /// Waits until everything handed out has been written. Cancel-safe.
    pub(super) async fn wait_for_delivery(&self) {
        poll_fn(|cx| self.poll_delivered(cx)).await;
    }

    fn poll_delivered(&self, cx: &Context<'_>) -> Poll<()> {
        if self.pending.get() == 0 {
            return Poll::Ready(());
        }
        self.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }

    fn track(self: &Rc<DeliveryPace>, bytes: Bytes) -> TrackedChunk {
        self.add_pending(bytes.len());
        let pace = self.clone();
        TrackedChunk {
            bytes,
            purpose: ChunkPurpose::Data,
            pace,
        }
    }

    /// Returns an empty chunk, which is dropped once everything before it is written.
    fn track_head(self: &Rc<DeliveryPace>) -> TrackedChunk {
        self.add_pending(HEAD_COST);
        let pace = self.clone();
        TrackedChunk {
            bytes: Bytes::new(),
            purpose: ChunkPurpose::Head,
            pace,
        }
    }

    /// Adds bytes that wait.
    fn add_pending(&self, bytes: usize) {
        self.pending.set(self.pending.get() + bytes);
        if self.since.get().is_none() && bytes > 0 {
            self.since.set(Some(clock::now()));
        }
    }

    /// Subtracts bytes that were written; `rest` of the same chunk still wait.
    fn subtract_pending(&self, bytes: usize, rest: usize) {
        let pending = self.pending.get() - bytes;
        self.pending.set(pending);
        if rest == 0 {
            self.since.set((pending > 0).then(clock::now));
        }
        if pending == 0
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }

    fn set_gone(&self) {
        let failure = self.failure.get().unwrap_or(DeliveryFailure::Gone);
        self.failure.set(Some(failure));
    }
}

/// Ends the call when dropped; the body must be dropped before it.
#[derive(Debug)]
pub(super) struct AbortReason(pub(super) Rc<DeliveryPace>);

impl Drop for AbortReason {
    fn drop(&mut self) {
        let Some(mut body) = self.0.body_slot.take() else {
            return;
        };
        if self.0.pending.get() > 0 {
            self.0.set_gone();
        }
        match self.0.failure.get() {
            Some(DeliveryFailure::Stalled) => {
                body.on_abort(Some("the client read nothing for too long"))
            }
            Some(DeliveryFailure::Gone) => body.on_abort(None),
            None => {}
        }
    }
}

/// A chunk of a response, owned by h2.
#[derive(Debug)]
pub(super) struct TrackedChunk {
    bytes: Bytes,
    purpose: ChunkPurpose,
    pace: Rc<DeliveryPace>,
}

/// The purpose of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkPurpose {
    Data,
    Head,
}

impl Buf for TrackedChunk {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if count > 0 {
            self.pace.subtract_pending(count, self.bytes.len());
        }
    }
}

impl Drop for TrackedChunk {
    fn drop(&mut self) {
        if self.purpose == ChunkPurpose::Head {
            self.pace.subtract_pending(HEAD_COST, 0);
        }
        if !self.bytes.is_empty() {
            self.pace.set_gone();
            self.pace.subtract_pending(self.bytes.len(), 0);
        }
    }
}

/// The body of a response that can be aborted.
pub(super) trait AbortableBody:
    Body<Data = Bytes, Error: Debug + Unpin> + OnAbort + Unpin
{
}

impl<B: Body<Data = Bytes, Error: Debug + Unpin> + OnAbort + Unpin> AbortableBody for B {}

/// The next item for h2.
#[derive(Debug)]
enum NextFrame<E> {
    /// The next frame of the body.
    More,
    Rest(Bytes),
    /// The trailers, once everything before them is taken.
    Trailers(HeaderMap),
    /// The error, once everything before it is taken.
    Fault(E),
    Nothing,
}

/// A response body that tracks its delivery.
#[derive(Debug)]
pub(super) struct TrackedBody<B: AbortableBody> {
    /// The body; `Some` until drop.
    body: Option<B>,
    next: NextFrame<B::Error>,
    /// True once any of it was handed out.
    begun: bool,
    pace: Rc<DeliveryPace>,
}

impl<B: AbortableBody> TrackedBody<B> {
    pub(super) fn new(body: B, pace: Rc<DeliveryPace>) -> TrackedBody<B> {
        TrackedBody {
            body: Some(body),
            next: NextFrame::More,
            begun: false,
            pace,
        }
    }

    /// Splits off the next chunk.
    fn cut(&mut self, mut rest: Bytes) -> Frame<TrackedChunk> {
        let length = rest.len();
        let begun = std::mem::replace(&mut self.begun, true);
        let is_last = self.body.as_ref().is_none_or(B::is_end_stream);
        let ends = length > 1 && (begun || length > SHORT) && is_last;
        let most = if ends { length - 1 } else { length };
        let piece = rest.split_to(most.min(PIECE));
        if !rest.is_empty() {
            self.next = NextFrame::Rest(rest);
        }
        Frame::data(self.pace.track(piece))
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<TrackedChunk>, B::Error>>> {
        if let (NextFrame::More, Some(body)) = (&self.next, &mut self.body) {
            let frame = ready!(Pin::new(body).poll_frame(cx));
            self.next = match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => NextFrame::Rest(piece),
                Some(Ok(Err(other))) => other
                    .into_trailers()
                    .map_or(NextFrame::Nothing, NextFrame::Trailers),
                Some(Err(fault)) => NextFrame::Fault(fault),
                None => NextFrame::Nothing,
            };
        }
        if let (NextFrame::Fault(_), false) = (&self.next, self.begun) {
            self.begun = true;
            return Poll::Ready(Some(Ok(Frame::data(self.pace.track_head()))));
        }
        if let NextFrame::Trailers(_) | NextFrame::Fault(_) | NextFrame::Nothing = self.next {
            ready!(self.pace.poll_delivered(cx));
        }
        Poll::Ready(match std::mem::replace(&mut self.next, NextFrame::More) {
            NextFrame::Rest(rest) => Some(Ok(self.cut(rest))),
            NextFrame::Trailers(trailers) => {
                self.next = NextFrame::Nothing;
                Some(Ok(Frame::trailers(trailers)))
            }
            NextFrame::Fault(fault) => {
                self.next = NextFrame::Nothing;
                Some(Err(fault))
            }
            NextFrame::More | NextFrame::Nothing => {
                self.next = NextFrame::Nothing;
                None
            }
        })
    }

    /// Returns true if all of it was handed out.
    fn is_whole(&self) -> bool {
        match self.next {
            NextFrame::Nothing => true,
            NextFrame::More => self.is_end_stream() || self.size_hint().exact() == Some(0),
            NextFrame::Rest(_) | NextFrame::Trailers(_) | NextFrame::Fault(_) => false,
        }
    }
}

impl<B: AbortableBody> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        if !self.is_whole() {
            self.pace.set_gone();
        }
        if let Some(body) = self.body.take() {
            self.pace.body_slot.replace(Some(Box::new(body)));
        }
    }
}

impl<B: AbortableBody> Body for TrackedBody<B> {
    type Data = TrackedChunk;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<TrackedChunk>, B::Error>>> {
        self.poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        let body = self.body.as_ref();
        match self.next {
            NextFrame::More => body.is_none_or(B::is_end_stream),
            NextFrame::Rest(_) | NextFrame::Trailers(_) | NextFrame::Fault(_) => false,
            NextFrame::Nothing => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match &self.next {
            NextFrame::Rest(rest) => rest.len() as u64,
            NextFrame::More | NextFrame::Trailers(_) | NextFrame::Fault(_) | NextFrame::Nothing => {
                0
            }
        };
        let body = self.body.as_ref().map(B::size_hint).unwrap_or_default();
        let mut all = SizeHint::new();
        all.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            all.set_upper(upper + rest);
        }
        all
    }
}

#[cfg(test)]
mod tests;
