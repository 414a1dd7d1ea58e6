//! What servers say unasked to a client on a WebSocket, and what of it stands before an answer.

use tokio::sync::mpsc;

use super::NOTICES;
use super::underway::{Reply, Underway};
use crate::gateway::Arrival;
use crate::gateway::framed::News;
use crate::upstream::Closing;
use crate::upstream::link::{Hearing, Loss, Through, Tidings, hearing};

/// Codes of RFC 6455 §7.4.1.
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;

/// Where what servers say for the client comes in.
pub(super) struct Ears {
    /// From links.
    links: Hearing,
    /// From sockets of frames.
    news: mpsc::Receiver<News>,
    /// How many of the latter were taken.
    heard: u64,
}

/// What a server says for the client.
pub(super) enum Spoken {
    /// Over a link.
    Link(Tidings),
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
        let (tell, links) = hearing();
        arrival.links().tell(tell);
        let (tell, news) = mpsc::channel(NOTICES);
        arrival.sockets().tell(tell);
        Ears {
            links,
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
            tidings = self.links.next() => Spoken::Link(tidings),
            // The connection keeps the other end for as long as it lasts.
            Some(news) = self.news.recv() => {
                self.heard += 1;
                Spoken::News(news)
            }
        }
    }

    /// What stands before an answer that is served by now: what came before it.
    pub(super) fn before(&mut self, behind: u64) -> Vec<Spoken> {
        let mut before = Vec::new();
        while let Some(tidings) = self.links.before() {
            before.push(Spoken::Link(tidings));
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

/// How a client is told that a link of its own is gone.
pub(super) fn closing(loss: &Loss) -> Closing {
    let upstream = &loss.upstream;
    match loss.through {
        Through::Server => Closing {
            code: Some(GOING_AWAY),
            reason: format!("the connection to the upstream `{upstream}` is lost"),
        },
        Through::Plan => Closing {
            code: Some(GOING_AWAY),
            reason: format!(
                "the upstream `{upstream}` was changed or removed in the configuration"
            ),
        },
        Through::Client => Closing {
            code: Some(POLICY),
            reason: format!("too slow for what the upstream `{upstream}` tells"),
        },
    }
}
