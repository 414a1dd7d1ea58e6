//! The line of an owner: down, being opened, open, or being closed.

use std::future::pending;
use std::pin::Pin;

use super::{Event, Link};

/// Whether the server is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attention {
    Listens,
    /// The one client of the link has enough to take.
    Busy,
}

/// The link as it is.
pub(super) enum Line<L> {
    Down,
    Opening(Pin<Box<dyn Future<Output = Result<L, String>>>>),
    Open(L),
    Leaving(Pin<Box<dyn Future<Output = ()>>>),
}

/// What the line tells.
pub(super) enum Told<L> {
    Opened(Result<L, String>),
    Event(Event),
    Gone,
}

impl<L: Link + 'static> Line<L> {
    /// The next thing that happens; cancel-safe, since each future stays where it is.
    pub(super) async fn next(&mut self, attention: Attention) -> Told<L> {
        match self {
            Line::Down => pending().await,
            Line::Opening(opening) => Told::Opened(opening.await),
            Line::Open(link) => Told::Event(match attention {
                Attention::Listens => link.event().await,
                Attention::Busy => link.event_unheard().await,
            }),
            Line::Leaving(leaving) => {
                leaving.await;
                Told::Gone
            }
        }
    }

    /// Lets go of the link, which ends in its own time.
    pub(super) fn leave(&mut self) {
        *self = match std::mem::replace(self, Line::Down) {
            Line::Open(link) => Line::Leaving(Box::pin(link.close())),
            // An opening that is dropped leaves nothing behind.
            Line::Opening(_) | Line::Down => Line::Down,
            leaving @ Line::Leaving(_) => leaving,
        };
    }

    pub(super) async fn end(&mut self) {
        self.leave();
        if let Line::Leaving(leaving) = self {
            leaving.await;
        }
    }
}
