//! An answer of HTTP/2 as its client takes it.
//!
//! The framing takes whatever it is given, waits for one byte of the client's window only, and forgets the stream with its
//! last piece. So large pieces are handed out in small ones, and the last byte of an answer whose length is known alone: the
//! stream stays, and its pace is known. Whose client leaves some of it is told, but of the last piece, which counts as taken
//! when it is handed over: the framing asks for what follows before it has room for what it holds.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

use crate::gateway::AnswerBody;
use crate::telemetry::clock;

/// A body that is told where its client leaves some of it.
pub(super) trait Leavable {
    /// Not all of it was taken, nor will be.
    fn left(&mut self, cause: Option<&str>);
}

impl Leavable for AnswerBody {
    fn left(&mut self, cause: Option<&str>) {
        self.untaken(cause);
    }
}

/// The most that is handed out at once: the largest frame that a client must take (RFC 9113 §4.2).
const PIECE: usize = 16 * 1024;
/// An answer so short is not worth two frames.
const SHORT: usize = 1024;

/// What a client takes of one answer.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Since when a piece of it waits to be taken.
    given: Cell<Option<Instant>>,
    /// Whether it has waited for too long.
    stalled: Cell<bool>,
}

impl Pace {
    /// Waits until the client has taken nothing for so long.
    pub(super) async fn stalls(&self, patience: Duration) {
        loop {
            let since = self.given.get().unwrap_or_else(clock::now);
            sleep_until(since + patience).await;
            if self
                .given
                .get()
                .is_some_and(|given| given + patience <= clock::now())
            {
                self.stalled.set(true);
                return;
            }
        }
    }
}

/// The body of an answer, which notes when the client asks for more of it.
#[derive(Debug)]
pub(super) struct Taken<B: Body<Data = Bytes> + Leavable + Unpin> {
    body: B,
    /// What of the last piece is still to be handed out.
    rest: Bytes,
    /// Whether some of the answer was.
    begun: bool,
    pace: Rc<Pace>,
}

impl<B: Body<Data = Bytes> + Leavable + Unpin> Taken<B> {
    pub(super) fn new(body: B, pace: Rc<Pace>) -> Taken<B> {
        Taken {
            body,
            rest: Bytes::new(),
            begun: false,
            pace,
        }
    }

    /// Cuts off what is handed out next.
    fn cut(&mut self) -> Frame<Bytes> {
        let length = self.rest.len();
        let begun = std::mem::replace(&mut self.begun, true);
        let ends = length > 1 && (begun || length > SHORT) && self.body.is_end_stream();
        let most = if ends { length - 1 } else { length };
        Frame::data(self.rest.split_to(most.min(PIECE)))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => self.rest = piece,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(Ok(self.cut())))
    }
}

impl<B: Body<Data = Bytes> + Leavable + Unpin> Drop for Taken<B> {
    fn drop(&mut self) {
        if self.pace.stalled.get() {
            self.body
                .left(Some("the client took nothing of it for too long"));
        } else if !self.is_end_stream() && self.size_hint().exact() != Some(0) {
            self.body.left(None);
        }
    }
}

impl<B: Body<Data = Bytes> + Leavable + Unpin> Body for Taken<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = self.poll(cx);
        self.pace.given.set(polled.is_ready().then(clock::now));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        let mut all = SizeHint::new();
        all.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            all.set_upper(upper + rest);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt, Full, StreamBody};
    use proptest::prelude::*;

    use super::*;

    impl<D> Leavable for Full<D> {
        fn left(&mut self, _cause: Option<&str>) {}
    }

    impl<S> Leavable for StreamBody<S> {
        fn left(&mut self, _cause: Option<&str>) {}
    }

    type Piece = Result<Frame<Bytes>, Infallible>;

    /// The lengths of what is handed out, and all of it.
    async fn handed_out<B>(body: B) -> (Vec<usize>, Vec<u8>)
    where
        B: Body<Data = Bytes> + Leavable + Unpin,
        B::Error: std::fmt::Debug,
    {
        let mut taken = Taken::new(body, Rc::default());
        let (mut lengths, mut all) = (Vec::new(), Vec::new());
        while !taken.is_end_stream() {
            let Some(frame) = taken.frame().await else {
                break;
            };
            let piece = frame.unwrap().into_data().unwrap();
            lengths.push(piece.len());
            all.extend_from_slice(&piece);
        }
        (lengths, all)
    }

    #[tokio::test]
    async fn a_short_answer_is_one_piece() {
        let body = Full::new(Bytes::from_static(b"[1]"));
        assert_eq!(handed_out(body).await.0, [3]);
    }

    #[tokio::test]
    async fn a_long_answer_is_small_pieces_and_its_last_byte() {
        let body = Full::new(Bytes::from(vec![7; 2 * PIECE + 5]));
        assert_eq!(handed_out(body).await.0, [PIECE, PIECE, 4, 1]);
        let body = Full::new(Bytes::from(vec![7; SHORT + 1]));
        assert_eq!(handed_out(body).await.0, [SHORT, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_nobody_takes_is_waited_for_no_longer_than_may_be() {
        let pace = Rc::<Pace>::default();
        let mut taken = Taken::new(Full::new(Bytes::from(vec![7; 3 * PIECE])), pace.clone());
        let patience = Duration::from_secs(30);
        let began = clock::now();
        for _ in 0..2 {
            taken.frame().await.unwrap().unwrap();
            tokio::time::advance(Duration::from_secs(20)).await;
        }
        pace.stalls(patience).await;
        assert_eq!(clock::now() - began, Duration::from_secs(50));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_length_is_known(
            pieces in prop::collection::vec(0usize..3 * PIECE, 0..6),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let frames: Vec<Piece> = (1u8..)
                .zip(&pieces)
                .map(|(fill, length)| Ok(Frame::data(Bytes::from(vec![fill; *length]))))
                .collect();
            let whole: Vec<u8> = (1u8..)
                .zip(&pieces)
                .flat_map(|(fill, length)| vec![fill; *length])
                .collect();
            let body = StreamBody::new(futures_util::stream::iter(frames));
            let (lengths, all) = runtime.block_on(handed_out(body));
            prop_assert!(lengths.iter().all(|length| *length <= PIECE));
            prop_assert_eq!(&all, &whole);
            let mut taken = Taken::new(Full::new(Bytes::from(whole)), Rc::default());
            for _ in 0..3 {
                let left = taken.size_hint().exact().unwrap();
                let Some(Ok(frame)) = runtime.block_on(taken.frame()) else {
                    break;
                };
                let passed = frame.into_data().unwrap().len() as u64;
                prop_assert_eq!(taken.size_hint().exact(), Some(left - passed));
            }
        }
    }
}
