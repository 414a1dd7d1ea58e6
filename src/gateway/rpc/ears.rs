//! What servers say unasked to a client on a WebSocket, and what of it stands before an answer.

use std::future::pending;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::NOTICES;
use super::underway::{Reply, Underway};
use crate::gateway::Arrival;
use crate::gateway::framed::News;

/// Where what servers say for the client comes in.
pub(super) struct Ears {
    /// From links.
    notices: mpsc::Receiver<Bytes>,
    /// From sockets of frames.
    news: mpsc::Receiver<News>,
    /// How many of these were taken.
    heard: u64,
}

/// What a server says for the client.
pub(super) enum Spoken {
    /// Over a link.
    Notice(Bytes),
    /// In frames.
    News(News),
}

/// What there is for the client.
pub(super) enum Said {
    /// A message is served, and this is its answer, if it has one.
    Answer(Option<Reply>),
    /// Nobody has asked for it.
    Unasked(Spoken),
}

/// Whether what nobody has asked for is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attention {
    Listens,
    Busy,
}

impl Ears {
    pub(super) fn of(arrival: &Arrival) -> Ears {
        let (tell, notices) = mpsc::channel(NOTICES);
        arrival.links().tell(tell);
        let (tell, news) = mpsc::channel(NOTICES);
        arrival.sockets().tell(tell);
        Ears {
            notices,
            news,
            heard: 0,
        }
    }

    /// What comes next; an answer that is there before anything else, since what came before it is found by
    /// [`Ears::before`]. Cancel-safe.
    pub(super) async fn next(&mut self, underway: &mut Underway, attention: Attention) -> Said {
        tokio::select! {
            biased;
            reply = underway.served() => Said::Answer(reply),
            spoken = self.unasked(), if attention == Attention::Listens => Said::Unasked(spoken),
        }
    }

    /// What is said next; cancel-safe, since what is not taken stays where it is.
    async fn unasked(&mut self) -> Spoken {
        tokio::select! {
            Some(text) = self.notices.recv() => Spoken::Notice(text),
            Some(news) = self.news.recv() => {
                self.heard += 1;
                Spoken::News(news)
            }
            // The connection keeps the other ends for as long as it lasts.
            else => pending().await,
        }
    }

    /// What stands before an answer: of what sockets of frames say what came before it, and all that links have said.
    pub(super) fn before(&mut self, behind: u64) -> Vec<Spoken> {
        let mut before = Vec::new();
        while let Ok(text) = self.notices.try_recv() {
            before.push(Spoken::Notice(text));
        }
        while self.heard < behind
            && let Ok(news) = self.news.try_recv()
        {
            self.heard += 1;
            before.push(Spoken::News(news));
        }
        before
    }
}
