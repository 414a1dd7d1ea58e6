//! A body received from a client or a server. A complete body ends; a truncated one fails.
//!
//! Over HTTP/1.1 the framing shows the difference. Over HTTP/2, hyper ends a body without error when its stream was
//! reset with `NO_ERROR`, or when the connection closes after a `GOAWAY` with `NO_ERROR`. But these say only that no
//! more data comes (RFC 9113 §8.1). So an HTTP/2 body is complete only after `END_STREAM`, or after as many bytes as
//! were declared.

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

use super::InlineBody;
use super::connection_driver::ConnectionDriver;
use super::upload_pace::UploadPace;
use dualgauge_transport::upload_rate::MinimumRate;

/// A body that is being received.
#[derive(Debug)]
pub struct IncomingBody {
    source: BodySource,
    /// Set when the body has been read to its end, if a caller asked for it.
    read: Option<FullyRead>,
}

/// The source of a body.
enum BodySource {
    Connection(HyperBody),
    /// A body that is in memory; empty once it was read.
    Buffered(Bytes),
}

impl fmt::Debug for BodySource {
    /// Prints the length only, never the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodySource::Connection(body) => body.fmt(f),
            BodySource::Buffered(body) => f.debug_tuple("Buffered").field(&body.len()).finish(),
        }
    }
}

/// A body that the HTTP library reads.
#[derive(Debug)]
struct HyperBody {
    incoming: Incoming,
    /// True for HTTP/2, where a stream may end before the body is complete.
    is_http2: bool,
    /// Polls the connection for more of the body. Without it, the task of the connection does.
    driver: Option<ConnectionDriver>,
    /// The minimum rate of a client's body, if any.
    pace: Option<Box<UploadPace>>,
}

/// A flag that is set when a body has been read to its end.
#[derive(Debug, Clone, Default)]
pub struct FullyRead(Arc<AtomicBool>);

impl FullyRead {
    /// Returns true when the body has been read to its end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The reason why a body ended early.
#[derive(Debug, thiserror::Error)]
pub enum BodyReadError {
    /// The connection broke, or its bytes are invalid.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    /// The peer ended the stream without reporting an error.
    #[error("the stream ended before its body was complete")]
    Unended,
    /// A client sent too slowly.
    #[error("the body arrived more slowly than {} bytes per second", .0.bytes)]
    TooSlow(MinimumRate),
}

impl IncomingBody {
    fn new(
        incoming: Incoming,
        version: Version,
        whole: Option<Bytes>,
        driver: Option<&ConnectionDriver>,
    ) -> IncomingBody {
        let source = match whole {
            Some(whole) => BodySource::Buffered(whole),
            None => BodySource::Connection(HyperBody::new(incoming, version, driver)),
        };
        IncomingBody { source, read: None }
    }

    /// Returns an empty body.
    #[must_use]
    pub fn empty() -> IncomingBody {
        IncomingBody {
            source: BodySource::Buffered(Bytes::new()),
            read: None,
        }
    }

    /// Converts a request. The body may have come with the head.
    #[must_use]
    pub fn from_request(
        mut request: Request<Incoming>,
        whole: Option<InlineBody>,
        rate: Option<MinimumRate>,
    ) -> Request<IncomingBody> {
        let version = request.version();
        let whole = whole.map(|whole| whole.restore(request.headers_mut()));
        request.map(|incoming| {
            let mut inflow = IncomingBody::new(incoming, version, whole, None);
            inflow.require_rate(rate);
            inflow
        })
    }

    /// Sets the minimum rate of a body that is not in memory.
    fn require_rate(&mut self, rate: Option<MinimumRate>) {
        if let (BodySource::Connection(body), Some(rate)) = (&mut self.source, rate)
            && !body.incoming.is_end_stream()
        {
            body.pace = Some(Box::new(UploadPace::new(rate)));
        }
    }

    /// Lifts the minimum rate for the rest of the body.
    pub(super) fn lift_rate(&mut self) {
        if let BodySource::Connection(body) = &mut self.source {
            body.pace = None;
        }
    }

    /// Converts a response received on a connection that `driver` polls. The body may have come with the head.
    pub(super) fn from_response(
        mut answer: Response<Incoming>,
        driver: Option<&ConnectionDriver>,
        whole: Option<InlineBody>,
    ) -> Response<IncomingBody> {
        let version = answer.version();
        let whole = whole.map(|whole| whole.restore(answer.headers_mut()));
        answer.map(|incoming| IncomingBody::new(incoming, version, whole, driver))
    }

    /// Returns a flag that is set when the body has been read to its end.
    pub fn end_flag(&mut self) -> FullyRead {
        self.read.get_or_insert_default().clone()
    }

    /// Returns true when a read may have to wait.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        matches!(self.source, BodySource::Connection(_)) && !self.is_end_stream()
    }

    /// Returns true when the body came with the head and its single length.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.source, BodySource::Buffered(_))
    }

    /// Takes the complete body if it is in memory and not empty.
    pub(super) fn take_complete(&mut self) -> Option<Bytes> {
        let BodySource::Buffered(body) = &mut self.source else {
            return None;
        };
        let body = mem::take(body);
        self.has_ended();
        Some(body).filter(|body| !body.is_empty())
    }

    /// Records that the body has been read to its end.
    fn has_ended(&self) {
        if let Some(read) = &self.read {
            read.set();
        }
    }

    /// Polls the next frame, or the end, as hyper reports it.
    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyReadError>>> {
        match &mut self.source {
            BodySource::Connection(body) => body.poll_in_time(cx),
            BodySource::Buffered(body) => {
                let body = mem::take(body);
                Poll::Ready((!body.is_empty()).then(|| Ok(Frame::data(body))))
            }
        }
    }

    /// Returns true when a body that ends now is incomplete.
    fn is_unended(&self) -> bool {
        match &self.source {
            BodySource::Connection(body) => body.is_unended(),
            BodySource::Buffered(_) => false,
        }
    }
}

impl HyperBody {
    fn new(incoming: Incoming, version: Version, driver: Option<&ConnectionDriver>) -> HyperBody {
        // A body that has ended is not polled again.
        let driver = driver.filter(|_| !incoming.is_end_stream()).cloned();
        HyperBody {
            incoming,
            is_http2: version == Version::HTTP_2,
            driver,
            pace: None,
        }
    }

    /// Polls the next frame, which must arrive at the minimum rate.
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

    /// Polls the next frame. Suppresses the connection's wake-up if it was the last one.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut incoming = Pin::new(&mut self.incoming);
        let polled = match &self.driver {
            None => incoming.as_mut().poll_frame(cx),
            Some(driver) => {
                let polled = driver.poll_for_call(cx, |cx| incoming.as_mut().poll_frame(cx));
                if incoming.is_end_stream() {
                    driver.clear_wake();
                }
                polled
            }
        };
        if incoming.is_end_stream() || matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            // From now on, the connection may serve another call.
            self.driver = None;
        }
        polled
    }

    fn is_unended(&self) -> bool {
        let is_whole =
            self.incoming.is_end_stream() || self.incoming.size_hint().exact() == Some(0);
        self.is_http2 && !is_whole
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
            BodySource::Connection(body) => body.incoming.is_end_stream(),
            BodySource::Buffered(body) => body.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Connection(body) => body.incoming.size_hint(),
            BodySource::Buffered(body) => SizeHint::with_exact(body.len() as u64),
        }
    }
}
