//! The connection state of a link task: down, opening, open or closing. Used by `link::task`.

use std::future::pending;
use std::pin::Pin;

use super::transport::{Event, Link};

/// The state of the link.
pub(super) enum LinkConnection<L> {
    Down,
    Opening(Pin<Box<dyn Future<Output = Result<L, String>>>>),
    Open(L),
    Closing(Pin<Box<dyn Future<Output = ()>>>),
}

/// An event of [`LinkState::next`].
pub(super) enum LinkEvent<L> {
    Opened(Result<L, String>),
    Event(Event),
    Gone,
}

impl<L: Link + 'static> LinkConnection<L> {
    /// Waits for the next event, with or without reading messages; cancel-safe, because the futures are stored in the
    /// state.
    pub(super) async fn next(&mut self, reads: bool) -> LinkEvent<L> {
        match self {
            LinkConnection::Down => pending().await,
            LinkConnection::Opening(opening) => LinkEvent::Opened(opening.await),
            LinkConnection::Open(link) => LinkEvent::Event(match reads {
                true => link.event().await,
                false => link.event_while_unread().await,
            }),
            LinkConnection::Closing(leaving) => {
                leaving.await;
                LinkEvent::Gone
            }
        }
    }

    /// Starts to close the link.
    pub(super) fn close(&mut self) {
        *self = match std::mem::replace(self, LinkConnection::Down) {
            LinkConnection::Open(link) => LinkConnection::Closing(Box::pin(link.close())),
            // A dropped opening leaves nothing behind.
            LinkConnection::Opening(_) | LinkConnection::Down => LinkConnection::Down,
            leaving @ LinkConnection::Closing(_) => leaving,
        };
    }

    pub(super) async fn end(&mut self) {
        self.close();
        if let LinkConnection::Closing(leaving) = self {
            leaving.await;
        }
    }
}
