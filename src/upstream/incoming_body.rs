//! A body that comes from a connection, of a client or of a server: what ends is whole, and what was cut is a fault.
//!
//! Over HTTP/1.1, the framing tells the one from the other. Over HTTP/2, hyper ends a body in peace where its stream was
//! reset with `NO_ERROR`, and where the connection ends behind a `GOAWAY` that says so; yet whoever sends these has only
//! said that nothing more comes (RFC 9113 §8.1). There, a body is whole where `END_STREAM` came, or as many bytes as were
//! announced.

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::connection_driver::ConnectionDriver;
use super::upload_pace::UploadPace;
use super::{InlineBody, WakeFilter};
use crate::domain::upload_rate::MinimumRate;

/// The body.
#[derive(Debug)]
pub struct IncomingBody {
    source: BodySource,
    /// Who asks whether it was read to its end.
    read: Option<FullyRead>,
}

/// Where it comes from.
enum BodySource {
    Connection(HyperBody),
    /// It is here; empty where it was read.
    Here(Bytes),
}

impl fmt::Debug for BodySource {
    /// What a body says is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodySource::Connection(coming) => coming.fmt(f),
            BodySource::Here(body) => f.debug_tuple("Here").field(&body.len()).finish(),
        }
    }
}

/// By whom more of it is read.
#[derive(Debug)]
enum ReadBy {
    /// Somebody else.
    Other,
    /// A task that this bell wakes, and that does nothing else meanwhile.
    Bell(WakeFilter),
    /// Whoever asks for it.
    Asker(ConnectionDriver),
}

/// A body that the HTTP library reads.
#[derive(Debug)]
struct HyperBody {
    incoming: Incoming,
    framing: BodyFraming,
    by: ReadBy,
    /// How fast it must come, if it is a client's.
    pace: Option<Box<UploadPace>>,
}

/// Whether a body was read to its end.
#[derive(Debug, Clone, Default)]
pub struct FullyRead(Arc<AtomicBool>);

impl FullyRead {
    /// Whether it was.
    #[must_use]
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn is_now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// By what a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFraming {
    Http1,
    Http2,
}

/// A body that broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyReadError {
    /// By a fault of its connection, or of what came.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    /// By one who said that there is no fault.
    #[error("the stream ended without error before its body")]
    Unended,
    /// By a client that sent too slowly.
    #[error("the body came more slowly than {} bytes a second", .0.bytes)]
    TooSlow(MinimumRate),
}

impl IncomingBody {
    fn new(
        incoming: Incoming,
        version: Version,
        whole: Option<Bytes>,
        by: impl FnOnce() -> ReadBy,
    ) -> IncomingBody {
        let source = match whole {
            Some(whole) => BodySource::Here(whole),
            None => BodySource::Connection(HyperBody::new(incoming, version, by)),
        };
        IncomingBody { source, read: None }
    }

    /// A request as it came, by a connection that this bell wakes. Its body may have come with its head.
    #[must_use]
    pub fn from_request(
        mut request: Request<Incoming>,
        bell: Option<&WakeFilter>,
        (whole, rate): (Option<InlineBody>, Option<MinimumRate>),
    ) -> Request<IncomingBody> {
        let version = request.version();
        let whole = whole.map(|whole| whole.restore(request.headers_mut()));
        let by = || bell.map_or(ReadBy::Other, |bell| ReadBy::Bell(bell.clone()));
        request.map(|incoming| {
            let mut inflow = IncomingBody::new(incoming, version, whole, by);
            inflow.require_rate(rate);
            inflow
        })
    }

    /// Sets the rate at which a body must come that is not here.
    fn require_rate(&mut self, rate: Option<MinimumRate>) {
        if let (BodySource::Connection(coming), Some(rate)) = (&mut self.source, rate)
            && !coming.incoming.is_end_stream()
        {
            coming.pace = Some(Box::new(UploadPace::new(rate)));
        }
    }

    /// Lets the rest of the body come at any rate.
    pub(super) fn lift_rate(&mut self) {
        if let BodySource::Connection(coming) = &mut self.source {
            coming.pace = None;
        }
    }

    /// An answer as it came, by a connection that is polled so. Its body may have come with its head.
    pub(super) fn from_response(
        mut answer: Response<Incoming>,
        driver: Option<&ConnectionDriver>,
        whole: Option<InlineBody>,
    ) -> Response<IncomingBody> {
        let version = answer.version();
        let whole = whole.map(|whole| whole.restore(answer.headers_mut()));
        let by = || driver.map_or(ReadBy::Other, |driver| ReadBy::Asker(driver.clone()));
        answer.map(|incoming| IncomingBody::new(incoming, version, whole, by))
    }

    /// What tells when the body was read to its end.
    pub fn signals_end(&mut self) -> FullyRead {
        self.read.get_or_insert_default().clone()
    }

    /// Whether some of it may have to be waited for.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        matches!(self.source, BodySource::Connection(_)) && !self.is_end_stream()
    }

    /// Whether it came at once with its head, by the one length that is told there.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.source, BodySource::Here(_))
    }

    /// All of it, where it is here and not empty.
    pub(super) fn take_complete(&mut self) -> Option<Bytes> {
        let BodySource::Here(body) = &mut self.source else {
            return None;
        };
        let body = mem::take(body);
        self.has_ended();
        Some(body).filter(|body| !body.is_empty())
    }

    /// No more comes than what was read.
    fn has_ended(&self) {
        if let Some(read) = &self.read {
            read.is_now();
        }
    }

    /// The next piece, or the end, as hyper has it.
    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyReadError>>> {
        match &mut self.source {
            BodySource::Connection(coming) => coming.poll_in_time(cx),
            BodySource::Here(body) => {
                let body = mem::take(body);
                Poll::Ready((!body.is_empty()).then(|| Ok(Frame::data(body))))
            }
        }
    }

    /// Whether a body that comes to an end now is not there whole.
    fn is_unended(&self) -> bool {
        match &self.source {
            BodySource::Connection(coming) => coming.is_unended(),
            BodySource::Here(_) => false,
        }
    }
}

impl HyperBody {
    fn new(incoming: Incoming, version: Version, by: impl FnOnce() -> ReadBy) -> HyperBody {
        let framing = match version {
            Version::HTTP_2 => BodyFraming::Http2,
            _ => BodyFraming::Http1,
        };
        // Nobody asks for more of a body that is not there.
        let by = match incoming.is_end_stream() {
            true => ReadBy::Other,
            false => by(),
        };
        HyperBody {
            incoming,
            framing,
            by,
            pace: None,
        }
    }

    /// Takes the next piece, which must not be too long in coming.
    fn poll_in_time(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyReadError>>> {
        let polled = self.poll_piece(cx).map_err(BodyReadError::Broken);
        let Some(pace) = &mut self.pace else {
            return polled;
        };
        match &polled {
            Poll::Pending => {
                ready!(pace.poll_too_slow(cx));
                Poll::Ready(Some(Err(BodyReadError::TooSlow(pace.rate()))))
            }
            Poll::Ready(frame) => {
                let frame = frame.as_ref().and_then(|frame| frame.as_ref().ok());
                let data = frame.and_then(Frame::data_ref);
                pace.received(data.map_or(0, Bytes::len));
                polled
            }
        }
    }

    /// Takes the next piece. The connection is not woken where it was the last one.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut incoming = Pin::new(&mut self.incoming);
        let polled = match &self.by {
            ReadBy::Other => incoming.as_mut().poll_frame(cx),
            ReadBy::Bell(bell) => {
                let held = bell.suppress();
                let polled = incoming.as_mut().poll_frame(cx);
                if incoming.is_end_stream() {
                    held.discard();
                }
                polled
            }
            ReadBy::Asker(driver) => {
                let polled = driver.poll_for_call(cx, |own| incoming.as_mut().poll_frame(own));
                if incoming.is_end_stream() {
                    driver.clear_wake();
                }
                polled
            }
        };
        if incoming.is_end_stream() || matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            // From now on, the connection may be another call's.
            self.by = ReadBy::Other;
        }
        polled
    }

    fn is_unended(&self) -> bool {
        let is_whole =
            self.incoming.is_end_stream() || self.incoming.size_hint().exact() == Some(0);
        self.framing == BodyFraming::Http2 && !is_whole
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = BodyReadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyReadError>>> {
        let inflow = self.get_mut();
        match inflow.poll_source(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(frame)) => {
                if frame.as_ref().is_ok_and(Frame::is_trailers) {
                    inflow.has_ended();
                }
                Poll::Ready(Some(frame))
            }
            Poll::Ready(None) if inflow.is_unended() => {
                Poll::Ready(Some(Err(BodyReadError::Unended)))
            }
            Poll::Ready(None) => {
                inflow.has_ended();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            BodySource::Connection(coming) => coming.incoming.is_end_stream(),
            BodySource::Here(body) => body.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Connection(coming) => coming.incoming.size_hint(),
            BodySource::Here(body) => SizeHint::with_exact(body.len() as u64),
        }
    }
}
