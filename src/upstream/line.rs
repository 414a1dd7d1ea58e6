//! What carries one call to a server: a connection of HTTP/1.1 for itself, or a stream of HTTP/2 beside others.

use http::{Request, Response};

use super::again::Heads;
use super::connection::Connection;
use super::trunk::Ride;
use super::{Body, Inflow, Outgoing};
use crate::domain::wire::Spelling;

/// What carries a call.
#[derive(Debug)]
pub(super) enum Line {
    /// A connection that no other call uses.
    Own(Box<Connection>),
    /// A part of one that calls share.
    Shared(Ride),
}

/// A call without an answer.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) error: hyper::Error,
    pub(super) left: Left,
}

/// What is left of a call that got no answer.
#[derive(Debug)]
pub(super) enum Left {
    /// Nothing of it was sent.
    Unsent(Request<Body>),
    /// The server has said that it did nothing with it; this is its copy.
    Refused(Request<Body>),
    /// The server may have done something with it. The bytes that were sent, where they were kept.
    Taken(Option<Vec<u8>>),
}

impl Line {
    /// How the names of an answer were written, where that was noted.
    pub(super) fn take_spelling(&mut self) -> Option<Spelling> {
        match self {
            Line::Own(connection) => connection.take_spelling(),
            Line::Shared(_) => None,
        }
    }

    /// Sends a call, over HTTP/1.1 with such heads, and waits for the head of its answer.
    pub(super) async fn offer(
        &mut self,
        outgoing: Outgoing,
        heads: Heads<'_>,
    ) -> Result<Box<Response<Inflow>>, Box<Unanswered>> {
        match self {
            Line::Own(connection) => connection.offer(outgoing, heads).await,
            // Apart, so that a call over HTTP/1.1 does not carry the room for it.
            Line::Shared(ride) => Box::pin(ride.offer(outgoing.into())).await.map(Box::new),
        }
    }
}
