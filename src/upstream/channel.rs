//! What carries one call to a server: a connection of HTTP/1.1 for itself, or a stream of HTTP/2 beside others.

use http::{Request, Response};

use super::http1::Http1Connection;
use super::http2::Http2Stream;
use super::retry::HeaderCasing;
use super::{Body, IncomingBody, OutgoingRequest};
use crate::domain::wire::HeaderCase;

/// What carries a call.
#[derive(Debug)]
pub(super) enum Channel {
    /// A connection that no other call uses.
    Http1(Box<Http1Connection>),
    /// A part of one that calls share.
    Http2(Http2Stream),
}

/// A call without an answer.
#[derive(Debug)]
pub(super) struct SendError {
    pub(super) error: hyper::Error,
    pub(super) request: RequestDisposition,
}

/// What is left of a call that got no answer.
#[derive(Debug)]
pub(super) enum RequestDisposition {
    /// Nothing of it was sent.
    Unsent(Request<Body>),
    /// The server has said that it did nothing with it; this is its copy.
    Refused(Request<Body>),
    /// The server may have done something with it. The bytes that were sent, where they were kept.
    Sent(Option<Vec<u8>>),
}

impl Channel {
    /// How the names of an answer were written, where that was noted.
    pub(super) fn take_header_case(&mut self) -> Option<HeaderCase> {
        match self {
            Channel::Http1(connection) => connection.take_header_case(),
            Channel::Http2(_) => None,
        }
    }

    /// Sends a call, over HTTP/1.1 with such heads, and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        outgoing: OutgoingRequest,
        heads: HeaderCasing<'_>,
    ) -> Result<Box<Response<IncomingBody>>, Box<SendError>> {
        match self {
            Channel::Http1(connection) => connection.offer(outgoing, heads).await,
            // Apart, so that a call over HTTP/1.1 does not carry the room for it.
            Channel::Http2(ride) => Box::pin(ride.offer(outgoing.into())).await.map(Box::new),
        }
    }
}
