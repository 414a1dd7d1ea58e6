//! The line of an owner: down, being opened, open, or being closed.

use std::future::pending;
use std::pin::Pin;

use super::{Event, Link};

/// Whether the server is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listening {
    Listens,
    /// The one client of the link has enough to take.
    Busy,
}

/// The link as it is.
pub(super) enum LinkState<L> {
    Down,
    Opening(Pin<Box<dyn Future<Output = Result<L, String>>>>),
    Open(L),
    Closing(Pin<Box<dyn Future<Output = ()>>>),
}

/// What the line tells.
pub(super) enum LinkEvent<L> {
    Opened(Result<L, String>),
    Event(Event),
    Gone,
}

impl<L: Link + 'static> LinkState<L> {
    /// The next thing that happens; cancel-safe, since each future stays where it is.
    pub(super) async fn next(&mut self, attention: Listening) -> LinkEvent<L> {
        match self {
            LinkState::Down => pending().await,
            LinkState::Opening(opening) => LinkEvent::Opened(opening.await),
            LinkState::Open(link) => LinkEvent::Event(match attention {
                Listening::Listens => link.event().await,
                Listening::Busy => link.event_while_unread().await,
            }),
            LinkState::Closing(leaving) => {
                leaving.await;
                LinkEvent::Gone
            }
        }
    }

    /// Lets go of the link, which ends in its own time.
    pub(super) fn close(&mut self) {
        *self = match std::mem::replace(self, LinkState::Down) {
            LinkState::Open(link) => LinkState::Closing(Box::pin(link.close())),
            // An opening that is dropped leaves nothing behind.
            LinkState::Opening(_) | LinkState::Down => LinkState::Down,
            leaving @ LinkState::Closing(_) => leaving,
        };
    }

    pub(super) async fn end(&mut self) {
        self.close();
        if let LinkState::Closing(leaving) = self {
            leaving.await;
        }
    }
}
