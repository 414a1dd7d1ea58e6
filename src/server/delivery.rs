//! An answer of HTTP/2 as its client takes it.
//!
//! The framing takes whatever it is given, waits for one byte of the client's window only, and forgets the body with its
//! last piece. So large pieces are handed out in small ones, and each tells when it has gone into the socket; the end of
//! an answer, or the last byte of one whose length is known, is handed out where there is room for all before it. A fault
//! lets the framing forget what it has not written: it waits for that, and where it is the first that comes, an empty piece
//! stands for the head.
//! Law: an answer was taken where each byte of it went into the socket; else its client has left it.
//!
//! The framing is locked while it lets go of a piece. So pieces count only; the stream's own task ends the call.

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

/// A body that is told where its client leaves some of it.
pub(super) trait OnAbort: Debug + 'static {
    /// Not all of it was taken, nor will be.
    fn left(&mut self, cause: Option<&str>);
}

impl OnAbort for ResponseBody {
    fn left(&mut self, cause: Option<&str>) {
        self.not_delivered(cause);
    }
}

/// The most that is handed out at once: the largest frame that a client must take (RFC 9113 §4.2).
const PIECE: usize = 16 * 1024;
/// An answer so short is not worth two frames.
const SHORT: usize = 1024;
/// As what the empty piece waits that stands for a head.
const MARK: usize = 1;

/// Why a client has not taken all of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// It has taken nothing for too long.
    Stalled,
    Gone,
}

/// What a client takes of one answer.
#[derive(Debug, Default)]
pub(super) struct DeliveryPace {
    /// How many bytes that were handed out are yet to be taken.
    waiting: Cell<usize>,
    /// Since when the first piece of them is.
    since: Cell<Option<Instant>>,
    left: Cell<Option<Delivery>>,
    /// Who is told when nothing waits any more.
    told: RefCell<Option<Waker>>,
    /// The body, once nobody asks for more of it.
    kept: RefCell<Option<Box<dyn OnAbort>>>,
}

impl DeliveryPace {
    /// Waits until the client has taken no piece for so long.
    pub(super) async fn stalls(&self, patience: Duration) {
        loop {
            let since = self.since.get().unwrap_or_else(clock::now);
            sleep_until(since + patience).await;
            let since = self.since.get();
            if since.is_some_and(|since| since + patience <= clock::now()) {
                self.left.set(Some(Delivery::Stalled));
                return;
            }
        }
    }

    /// Waits until nothing that was handed out is yet to be taken; cancel-safe.
    pub(super) async fn is_taken(&self) {
        poll_fn(|cx| self.poll_delivered(cx)).await;
    }

    fn poll_delivered(&self, cx: &Context<'_>) -> Poll<()> {
        if self.waiting.get() == 0 {
            return Poll::Ready(());
        }
        self.told.replace(Some(cx.waker().clone()));
        Poll::Pending
    }

    fn hands_out(self: &Rc<DeliveryPace>, bytes: Bytes) -> TrackedChunk {
        self.waits(bytes.len());
        let pace = self.clone();
        TrackedChunk {
            bytes,
            stands: DeliveryState::ForItself,
            pace,
        }
    }

    /// An empty piece, which is gone when all before it is written.
    fn marks(self: &Rc<DeliveryPace>) -> TrackedChunk {
        self.waits(MARK);
        let pace = self.clone();
        TrackedChunk {
            bytes: Bytes::new(),
            stands: DeliveryState::ForTheHead,
            pace,
        }
    }

    /// So many more bytes wait.
    fn waits(&self, bytes: usize) {
        self.waiting.set(self.waiting.get() + bytes);
        if self.since.get().is_none() && bytes > 0 {
            self.since.set(Some(clock::now()));
        }
    }

    /// So many bytes of a piece wait no more, and so many of it still do.
    fn goes_on(&self, (bytes, rest): (usize, usize)) {
        let waiting = self.waiting.get() - bytes;
        self.waiting.set(waiting);
        if rest == 0 {
            self.since.set((waiting > 0).then(clock::now));
        }
        if waiting == 0
            && let Some(told) = self.told.take()
        {
            told.wake();
        }
    }

    fn leaves(&self) {
        let left = self.left.get().unwrap_or(Delivery::Gone);
        self.left.set(Some(left));
    }
}

/// Ends the call when it is dropped, which the body must be before.
#[derive(Debug)]
pub(super) struct AbortReason(pub(super) Rc<DeliveryPace>);

impl Drop for AbortReason {
    fn drop(&mut self) {
        let Some(mut body) = self.0.kept.take() else {
            return;
        };
        if self.0.waiting.get() > 0 {
            self.0.leaves();
        }
        match self.0.left.get() {
            Some(Delivery::Stalled) => {
                body.left(Some("the client took nothing of it for too long"))
            }
            Some(Delivery::Gone) => body.left(None),
            None => {}
        }
    }
}

/// A piece of an answer in the framing.
#[derive(Debug)]
pub(super) struct TrackedChunk {
    bytes: Bytes,
    stands: DeliveryState,
    pace: Rc<DeliveryPace>,
}

/// What a piece is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    ForItself,
    ForTheHead,
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
            self.pace.goes_on((count, self.bytes.len()));
        }
    }
}

impl Drop for TrackedChunk {
    fn drop(&mut self) {
        if self.stands == DeliveryState::ForTheHead {
            self.pace.goes_on((MARK, 0));
        }
        if !self.bytes.is_empty() {
            self.pace.leaves();
            self.pace.goes_on((self.bytes.len(), 0));
        }
    }
}

/// The body of an answer that a client may leave.
pub(super) trait AbortableBody:
    Body<Data = Bytes, Error: Debug + Unpin> + OnAbort + Unpin
{
}

impl<B: Body<Data = Bytes, Error: Debug + Unpin> + OnAbort + Unpin> AbortableBody for B {}

/// What is handed out next.
#[derive(Debug)]
enum NextFrame<E> {
    /// What the body has.
    More,
    Rest(Bytes),
    /// The end, with trailers or without, when all before it is taken.
    Trailers(HeaderMap),
    /// The answer breaks off, when all before it is taken.
    Fault(E),
    Nothing,
}

/// The body of an answer, which notes what of it the client takes.
#[derive(Debug)]
pub(super) struct TrackedBody<B: AbortableBody> {
    /// There until this is dropped.
    body: Option<B>,
    next: NextFrame<B::Error>,
    /// Whether some of it was handed out.
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

    /// Cuts off what is handed out next.
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
        Frame::data(self.pace.hands_out(piece))
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
            return Poll::Ready(Some(Ok(Frame::data(self.pace.marks()))));
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

    /// Whether all of it was handed out.
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
            self.pace.leaves();
        }
        if let Some(body) = self.body.take() {
            self.pace.kept.replace(Some(Box::new(body)));
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
