//! The connection that carries one call: an HTTP/1.1 connection of its own, or a stream of a shared HTTP/2
//! connection.
//!
//! Used by `endpoints`, `connection_pool`, `open` and `retry`.

use http::Response;

use super::header_casing::HeaderCasing;
use super::http1::Http1Connection;
use super::http2::Http2Stream;
use super::send_error::SendError;
use super::{IncomingBody, OutgoingRequest};
use dualgauge_transport::wire::HeaderCase;

/// The carrier of one call.
#[derive(Debug)]
pub(super) enum Channel {
    /// A connection that no other call uses.
    Http1(Box<Http1Connection>),
    /// A stream of a shared connection.
    Http2(Http2Stream),
}

impl Channel {
    /// Takes the header case of the last response, if it was recorded.
    pub(super) fn take_header_case(&mut self) -> Option<HeaderCase> {
        match self {
            Channel::Http1(connection) => connection.take_header_case(),
            Channel::Http2(_) => None,
        }
    }

    /// Sends a call and waits for the head of its response. `casing` applies to HTTP/1.1 only.
    pub(super) async fn send(
        &mut self,
        outgoing: OutgoingRequest,
        casing: HeaderCasing<'_>,
    ) -> Result<Box<Response<IncomingBody>>, Box<SendError>> {
        match self {
            Channel::Http1(connection) => connection.send(outgoing, casing).await,
            // Boxed, so that the future of an HTTP/1.1 call does not reserve space for it.
            Channel::Http2(stream) => Box::pin(stream.send(outgoing.into())).await.map(Box::new),
        }
    }
}

/// A channel for a lease.
#[derive(Debug)]
pub(super) struct LeasedChannel {
    pub(super) channel: Channel,
    /// True if the connection has served a call before, or is shared with other calls.
    pub(super) is_reused: bool,
}

impl LeasedChannel {
    /// Wraps a channel of a new connection.
    pub(super) const fn new(channel: Channel) -> LeasedChannel {
        LeasedChannel {
            channel,
            is_reused: false,
        }
    }

    /// Wraps a channel of a connection that has served a call before, or is shared with other calls.
    pub(super) const fn reused(channel: Channel) -> LeasedChannel {
        LeasedChannel {
            channel,
            is_reused: true,
        }
    }
}
