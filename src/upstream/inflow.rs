//! A body that comes from a connection, of a client or of a server: what ends is whole, and what was cut is a fault.
//!
//! Over HTTP/1.1, the framing tells the one from the other. Over HTTP/2, hyper ends a body in peace where its stream was
//! reset with `NO_ERROR`, and where the connection ends behind a `GOAWAY` that says so; yet whoever sends these has only
//! said that nothing more comes (RFC 9113 §8.1). There, a body is whole where `END_STREAM` came, or as many bytes as were
//! announced.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// The body.
#[derive(Debug)]
pub struct Inflow {
    incoming: Incoming,
    framing: Framing,
    /// Who asks whether it was read to its end.
    read: Option<ReadWhole>,
}

/// Whether the body of a request was read to its end; an extension of one whose body has no length.
#[derive(Debug, Clone, Default)]
pub struct ReadWhole(Arc<AtomicBool>);

impl ReadWhole {
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
enum Framing {
    Http1,
    Http2,
}

/// A body that broke off.
#[derive(Debug, thiserror::Error)]
pub enum Torn {
    /// By a fault of its connection, or of what came.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    /// By one who said that there is no fault.
    #[error("the stream ended without error before its body")]
    Unended,
}

impl Inflow {
    fn of(incoming: Incoming, version: Version) -> Inflow {
        let framing = match version {
            Version::HTTP_2 => Framing::Http2,
            _ => Framing::Http1,
        };
        Inflow {
            incoming,
            framing,
            read: None,
        }
    }

    /// A request as it came.
    #[must_use]
    pub fn of_request(mut request: Request<Incoming>) -> Request<Inflow> {
        let version = request.version();
        let is_endless = request.body().size_hint().exact().is_none();
        let read = is_endless.then(|| request.extensions_mut().remove());
        request.map(|incoming| Inflow {
            read: read.flatten(),
            ..Inflow::of(incoming, version)
        })
    }

    /// An answer as it came.
    #[must_use]
    pub fn of_answer(answer: Response<Incoming>) -> Response<Inflow> {
        let version = answer.version();
        answer.map(|incoming| Inflow::of(incoming, version))
    }

    /// No more comes than what was read.
    fn has_ended(&self) {
        if let Some(read) = &self.read {
            read.is_now();
        }
    }

    /// Whether a body that comes to an end now is not there whole.
    fn is_unended(&self) -> bool {
        let is_whole =
            self.incoming.is_end_stream() || self.incoming.size_hint().exact() == Some(0);
        self.framing == Framing::Http2 && !is_whole
    }
}

impl Body for Inflow {
    type Data = Bytes;
    type Error = Torn;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Torn>>> {
        let inflow = self.get_mut();
        match Pin::new(&mut inflow.incoming).poll_frame(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(frame)) => {
                if frame.as_ref().is_ok_and(Frame::is_trailers) {
                    inflow.has_ended();
                }
                Poll::Ready(Some(frame.map_err(Torn::Broken)))
            }
            Poll::Ready(None) if inflow.is_unended() => Poll::Ready(Some(Err(Torn::Unended))),
            Poll::Ready(None) => {
                inflow.has_ended();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
