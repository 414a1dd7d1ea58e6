//! Request bodies sent to an upstream: written by the proxy, or streamed from the client. Used by `http2`.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::Instant;

use super::{BodyCopy, IncomingBody, UploadBreak, boxed};
use crate::clock;
use dualgauge_patterns::rope::{Chunks, Rope};
use dualgauge_transport::upload_rate::MinimumRate;

/// The body of a request. Boxed, because it is moved through many functions together with its head.
#[derive(Debug)]
pub struct Body(Option<Box<BodyKind>>);

#[derive(Debug)]
enum BodyKind {
    /// A body written by the proxy.
    Written {
        /// The chunks that are not sent yet.
        chunks: Chunks,
        /// The length of these chunks in bytes.
        length: usize,
    },
    /// A body streamed from the client.
    Upload(Upload),
}

/// The error of a request whose client body ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body of the request broke off")]
pub struct AbortedUpload;

impl From<Rope> for Body {
    fn from(pieces: Rope) -> Self {
        let length = pieces.len();
        if length == 0 {
            return Body::empty();
        }
        Body::new(BodyKind::Written {
            chunks: pieces.into_iter(),
            length,
        })
    }
}

impl Body {
    /// Returns an empty body.
    #[must_use]
    pub fn empty() -> Body {
        Body(None)
    }

    fn new(kind: BodyKind) -> Body {
        Body(Some(boxed(|| kind)))
    }

    /// Returns true when there is no body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true when the body is streamed from the client.
    pub(super) fn is_streamed(&self) -> bool {
        matches!(self.0.as_deref(), Some(BodyKind::Upload(_)))
    }

    /// Returns a second copy of a body that the proxy wrote; `None` for a streamed one.
    pub(super) fn copy(&self) -> Option<Body> {
        match self.0.as_deref() {
            None => Some(Body::empty()),
            Some(BodyKind::Written { chunks, length }) => Some(Body::new(BodyKind::Written {
                chunks: chunks.clone(),
                length: *length,
            })),
            Some(BodyKind::Upload(_)) => None,
        }
    }

    /// Returns the progress of a streamed body.
    pub(super) fn progress(&self) -> Option<Rc<UploadProgress>> {
        match self.0.as_deref() {
            None | Some(BodyKind::Written { .. }) => None,
            Some(BodyKind::Upload(upload)) => Some(upload.progress.clone()),
        }
    }
}

/// A body on its way from the client to an upstream.
#[derive(Debug)]
pub struct Upload {
    incoming: IncomingBody,
    progress: Rc<UploadProgress>,
    /// The copy that is taken of it, if any.
    copy: Option<BodyCopy>,
}

/// The progress of an upload, shared with the task that waits for the response.
#[derive(Debug)]
pub struct UploadProgress {
    last: Cell<Instant>,
    state: Cell<UploadState>,
    awaited: Cell<WaitingFor>,
    /// The total time spent waiting for the client, before the current wait.
    client_took: Cell<Duration>,
    /// The time of the last change of `awaited`.
    last_change: Cell<Instant>,
    /// The bytes received from the client.
    received: Cell<u64>,
    verdict: Cell<UploadVerdict>,
    /// The waker of the task that waits for the client.
    waker: RefCell<Option<Waker>>,
}

/// A decision that another task makes about an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UploadVerdict {
    None,
    /// The response has begun: the client may send at any rate.
    Answered,
    /// Other calls need the connection: the upload is aborted.
    GivenUp,
}

/// The side that a running upload waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitingFor {
    /// The client, to send more.
    Client,
    /// The upstream, to accept more.
    Upstream,
}

/// The state of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UploadState {
    Running,
    Done,
    Broken(UploadBreak),
}

impl Upload {
    /// Returns the body to send, recorded by `copy`, and its progress. A body that is complete already is sent as a
    /// written one, and has no progress.
    #[must_use]
    pub fn begin(
        mut incoming: IncomingBody,
        copy: Option<BodyCopy>,
    ) -> (Body, Option<Rc<UploadProgress>>) {
        if let Some(whole) = incoming.take_complete() {
            if let Some(copy) = copy {
                copy.store_complete(&whole);
            }
            return (Body::from(Rope::from(whole)), None);
        }
        if http_body::Body::is_end_stream(&incoming) {
            if let Some(copy) = copy {
                copy.finish();
            }
            return (Body::empty(), None);
        }
        let progress = UploadProgress::begin();
        let upload = Upload {
            incoming,
            progress: progress.clone(),
            copy,
        };
        (Body::new(BodyKind::Upload(upload)), Some(progress))
    }
}

impl UploadProgress {
    pub(super) fn begin() -> Rc<UploadProgress> {
        let now = clock::now();
        Rc::new(UploadProgress {
            last: Cell::new(now),
            state: Cell::new(UploadState::Running),
            awaited: Cell::new(WaitingFor::Upstream),
            client_took: Cell::new(Duration::ZERO),
            last_change: Cell::new(now),
            received: Cell::new(0),
            verdict: Cell::new(UploadVerdict::None),
            waker: RefCell::default(),
        })
    }

    /// Counts bytes received from the client.
    pub(super) fn received(&self, bytes: usize) {
        self.received.set(self.received.get() + bytes as u64);
    }

    /// Records that the response has begun, so that the client may send at any rate.
    pub(super) fn answered(&self) {
        if !self.is_given_up() {
            self.verdict.set(UploadVerdict::Answered);
        }
    }

    /// Aborts the upload because other calls need its connection, and wakes the task that waits for the client.
    pub(super) fn abort(&self) {
        self.verdict.set(UploadVerdict::GivenUp);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.verdict.get() == UploadVerdict::GivenUp
    }

    /// Returns by how much a client that is being waited for is behind `rate`; `None` if it is not.
    pub(super) fn time_behind(&self, rate: MinimumRate, now: Instant) -> Option<Duration> {
        if !self.waits_for_client() {
            return None;
        }
        let took = self.client_took.get() + (now - self.last_change.get());
        took.checked_sub(rate.allowance(self.received.get()))
    }

    /// Returns the total time spent waiting for the client.
    #[must_use]
    pub fn client_time(&self) -> Duration {
        self.client_took.get()
    }

    /// Sets the side that the upload waits for, and accounts the wait before.
    pub(super) fn set_waiting_for(&self, awaited: WaitingFor) {
        let now = clock::now();
        let since = self.last_change.replace(now);
        if self.awaited.replace(awaited) == WaitingFor::Client {
            self.client_took.set(self.client_took.get() + (now - since));
        }
    }

    /// Returns the time when the upload last made progress.
    #[must_use]
    pub fn last(&self) -> Instant {
        self.last.get()
    }

    /// Returns true when the client still has to send something.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state.get() == UploadState::Running
    }

    /// Returns true when the upload waits for the client.
    #[must_use]
    pub fn waits_for_client(&self) -> bool {
        self.is_running() && self.awaited.get() == WaitingFor::Client
    }

    /// Restarts the progress time at `now`: the call had to wait before anything of it could be sent.
    pub fn restart_progress(&self, now: Instant) {
        self.last.set(now);
    }

    /// Returns true when the client's body ended early.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(self.state.get(), UploadState::Broken(_))
    }

    /// Returns the reason when the body ended early.
    #[must_use]
    pub fn broken(&self) -> Option<UploadBreak> {
        match self.state.get() {
            UploadState::Broken(why) => Some(why),
            UploadState::Running | UploadState::Done => None,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = AbortedUpload;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AbortedUpload>>> {
        match self.get_mut().0.as_deref_mut() {
            None => Poll::Ready(None),
            Some(BodyKind::Written { chunks, length }) => {
                let next = chunks.next();
                *length -= next.as_ref().map_or(0, Bytes::len);
                Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))))
            }
            Some(BodyKind::Upload(upload)) => upload.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.0.as_deref() {
            None => true,
            Some(BodyKind::Written { length, .. }) => *length == 0,
            Some(BodyKind::Upload(upload)) => upload.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.0.as_deref() {
            None => SizeHint::with_exact(0),
            Some(BodyKind::Written { length, .. }) => SizeHint::with_exact(*length as u64),
            Some(BodyKind::Upload(upload)) => upload.incoming.size_hint(),
        }
    }
}

impl Upload {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, AbortedUpload>>> {
        match self.progress.verdict.get() {
            UploadVerdict::None => {}
            UploadVerdict::Answered => self.incoming.lift_rate(),
            UploadVerdict::GivenUp => {
                self.progress
                    .state
                    .set(UploadState::Broken(UploadBreak::Contended));
                return Poll::Ready(Some(Err(AbortedUpload)));
            }
        }
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        let awaited = if polled.is_ready() {
            WaitingFor::Upstream
        } else {
            WaitingFor::Client
        };
        self.progress.set_waiting_for(awaited);
        if polled.is_ready() {
            self.progress.last.set(clock::now());
        } else {
            self.progress.waker.replace(Some(cx.waker().clone()));
        }
        polled.map(|frame| match frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    self.progress.received(piece.len());
                    if let Some(copy) = &self.copy {
                        copy.record(piece);
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
                    .set(UploadState::Broken(UploadBreak::new(&error)));
                Some(Err(AbortedUpload))
            }
            None => {
                self.done();
                None
            }
        })
    }

    fn done(&self) {
        self.progress.state.set(UploadState::Done);
        if let Some(copy) = &self.copy {
            copy.finish();
        }
    }
}
