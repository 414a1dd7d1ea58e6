//! Bodies of requests to an upstream: written by the proxy, or streamed from the client.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::Instant;

use super::{Break, Inflow, Tap, placed};
use crate::domain::pieces::{Given, Pieces};
use crate::domain::upload_rate::MinimumRate;
use crate::telemetry::clock;

/// The body of a request. It goes through many hands together with its head: all of it that is moved is where it is.
#[derive(Debug)]
pub struct Body(Option<Box<Kind>>);

#[derive(Debug)]
enum Kind {
    /// Written by the proxy.
    Written {
        /// What is still to be sent.
        chunks: Given,
        /// Its length in bytes.
        length: usize,
    },
    /// Streamed from the client.
    Upload(Upload),
}

/// The client's body broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body of the request broke off")]
pub struct BodyFault;

impl From<Pieces> for Body {
    fn from(pieces: Pieces) -> Self {
        let length = pieces.len();
        if length == 0 {
            return Body::empty();
        }
        Body::of(Kind::Written {
            chunks: pieces.into_iter(),
            length,
        })
    }
}

impl Body {
    /// None.
    #[must_use]
    pub fn empty() -> Body {
        Body(None)
    }

    fn of(kind: Kind) -> Body {
        Body(Some(placed(|| kind)))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it comes from the client piece by piece.
    pub(super) fn is_streamed(&self) -> bool {
        matches!(self.0.as_deref(), Some(Kind::Upload(_)))
    }

    /// The same body once more, where it does not stream.
    pub(super) fn copy(&self) -> Option<Body> {
        match self.0.as_deref() {
            None => Some(Body::empty()),
            Some(Kind::Written { chunks, length }) => Some(Body::of(Kind::Written {
                chunks: chunks.clone(),
                length: *length,
            })),
            Some(Kind::Upload(_)) => None,
        }
    }

    /// How far it is, where it streams.
    pub(super) fn progress(&self) -> Option<Rc<Progress>> {
        match self.0.as_deref() {
            None | Some(Kind::Written { .. }) => None,
            Some(Kind::Upload(upload)) => Some(upload.progress.clone()),
        }
    }
}

/// A body on its way from the client to an upstream.
#[derive(Debug)]
pub struct Upload {
    incoming: Inflow,
    progress: Rc<Progress>,
    /// Where a copy of it is kept.
    tap: Option<Tap>,
}

/// How far an upload is, for those who wait for its answer.
#[derive(Debug)]
pub struct Progress {
    last: Cell<Instant>,
    state: Cell<UploadState>,
    awaited: Cell<Awaited>,
    /// How long the client was waited for.
    client_took: Cell<Duration>,
    /// Who is waited for was noted then.
    noted: Cell<Instant>,
    /// Bytes that the client has sent.
    received: Cell<u64>,
    verdict: Cell<Verdict>,
    /// Who waits for the client.
    waker: RefCell<Option<Waker>>,
}

/// What was decided of an upload from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    None,
    /// Its answer has begun: the client may take its time.
    Answered,
    /// Others need its connection.
    GivenUp,
}

/// Who is waited for while an upload runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The client, to send more.
    Client,
    /// The upstream, to take more.
    Upstream,
}

/// Where an upload stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UploadState {
    Running,
    Done,
    Broken(Break),
}

impl Upload {
    /// The body, of which a copy may be kept, and where its progress can be read, unless it is there already.
    #[must_use]
    pub fn begin(mut incoming: Inflow, tap: Option<Tap>) -> (Body, Option<Rc<Progress>>) {
        if let Some(whole) = incoming.take_whole() {
            if let Some(tap) = tap {
                tap.keeps(&whole);
            }
            return (Body::from(Pieces::from(whole)), None);
        }
        if http_body::Body::is_end_stream(&incoming) {
            if let Some(tap) = tap {
                tap.ends();
            }
            return (Body::empty(), None);
        }
        let progress = Progress::begin();
        let upload = Upload {
            incoming,
            progress: progress.clone(),
            tap,
        };
        (Body::of(Kind::Upload(upload)), Some(progress))
    }
}

impl Progress {
    pub(super) fn begin() -> Rc<Progress> {
        let now = clock::now();
        Rc::new(Progress {
            last: Cell::new(now),
            state: Cell::new(UploadState::Running),
            awaited: Cell::new(Awaited::Upstream),
            client_took: Cell::new(Duration::ZERO),
            noted: Cell::new(now),
            received: Cell::new(0),
            verdict: Cell::new(Verdict::None),
            waker: RefCell::default(),
        })
    }

    /// The client has sent bytes.
    pub(super) fn received(&self, bytes: usize) {
        self.received.set(self.received.get() + bytes as u64);
    }

    /// The answer has begun, so that the client may send as slowly as it likes.
    pub(super) fn answered(&self) {
        if !self.is_given_up() {
            self.verdict.set(Verdict::Answered);
        }
    }

    /// Ends an upload whose client is waited for, because others need its connection.
    pub(super) fn give_up(&self) {
        self.verdict.set(Verdict::GivenUp);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.verdict.get() == Verdict::GivenUp
    }

    /// Returns by how much time a client that is waited for is behind a rate, if it is.
    pub(super) fn behind(&self, rate: MinimumRate, now: Instant) -> Option<Duration> {
        if !self.waits_for_client() {
            return None;
        }
        let took = self.client_took.get() + (now - self.noted.get());
        took.checked_sub(rate.allowance(self.received.get()))
    }

    /// How long the client was waited for, to send more.
    #[must_use]
    pub fn client_took(&self) -> Duration {
        self.client_took.get()
    }

    /// From now on somebody is waited for.
    pub(super) fn awaits(&self, awaited: Awaited) {
        let now = clock::now();
        let since = self.noted.replace(now);
        if self.awaited.replace(awaited) == Awaited::Client {
            self.client_took.set(self.client_took.get() + (now - since));
        }
    }

    /// When the upload last moved.
    #[must_use]
    pub fn last(&self) -> Instant {
        self.last.get()
    }

    /// Whether the client still has to send something.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state.get() == UploadState::Running
    }

    /// Whether the client is waited for, to send more.
    #[must_use]
    pub fn waits_for_client(&self) -> bool {
        self.is_running() && self.awaited.get() == Awaited::Client
    }

    /// The time counts from now: the call had to wait before anything of it could be sent.
    pub fn starts(&self, now: Instant) {
        self.last.set(now);
    }

    /// Whether the client's body broke off.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(self.state.get(), UploadState::Broken(_))
    }

    /// Returns why the body broke off, where it did.
    #[must_use]
    pub fn broken(&self) -> Option<Break> {
        match self.state.get() {
            UploadState::Broken(why) => Some(why),
            UploadState::Running | UploadState::Done => None,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match self.get_mut().0.as_deref_mut() {
            None => Poll::Ready(None),
            Some(Kind::Written { chunks, length }) => {
                let next = chunks.next();
                *length -= next.as_ref().map_or(0, Bytes::len);
                Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))))
            }
            Some(Kind::Upload(upload)) => upload.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.0.as_deref() {
            None => true,
            Some(Kind::Written { length, .. }) => *length == 0,
            Some(Kind::Upload(upload)) => upload.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.0.as_deref() {
            None => SizeHint::with_exact(0),
            Some(Kind::Written { length, .. }) => SizeHint::with_exact(*length as u64),
            Some(Kind::Upload(upload)) => upload.incoming.size_hint(),
        }
    }
}

impl Upload {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match self.progress.verdict.get() {
            Verdict::None => {}
            Verdict::Answered => self.incoming.take_any_time(),
            Verdict::GivenUp => {
                self.progress
                    .state
                    .set(UploadState::Broken(Break::Contended));
                return Poll::Ready(Some(Err(BodyFault)));
            }
        }
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        let awaited = if polled.is_ready() {
            Awaited::Upstream
        } else {
            Awaited::Client
        };
        self.progress.awaits(awaited);
        if polled.is_ready() {
            self.progress.last.set(clock::now());
        } else {
            self.progress.waker.replace(Some(cx.waker().clone()));
        }
        polled.map(|frame| match frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    self.progress.received(piece.len());
                    if let Some(tap) = &self.tap {
                        tap.passes(piece);
                    }
                }
                if http_body::Body::is_end_stream(&self.incoming) {
                    self.done();
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                self.progress
                    .state
                    .set(UploadState::Broken(Break::of(&error)));
                Some(Err(BodyFault))
            }
            None => {
                self.done();
                None
            }
        })
    }

    fn done(&self) {
        self.progress.state.set(UploadState::Done);
        if let Some(tap) = &self.tap {
            tap.ends();
        }
    }
}
