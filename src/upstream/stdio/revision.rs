//! Which revision of MCP a child speaks: one that begins with `initialize`, or one without (2026-07-28).
//!
//! Each child is asked once, before its first call, by `server/discover`. Whatever it says that is no sign of a revision
//! without a handshake means one with. Laws: a child that does not answer the question costs its upstream that much once,
//! and children that end at it cost it that twice at most in a row; to the conduct of the link both kinds look alike.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::{RunningChild, Stdio};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{PeerMessage, parse_response};
use crate::domain::local_reply::STATELESS;
use crate::domain::mcp::{
    DiscoverResult, McpMessage, Revision, annotated, answered, discover, greeting, verdict,
};
use crate::upstream::link::{Event, Link, Transport};

/// How long a child may take to answer the question. Some never answer what they do not know.
const PROBE: Duration = Duration::from_secs(10);
/// How many other things it may say meanwhile that are heard.
const HEARD: usize = 16;
/// The id of the question, which no call has.
const ID: u64 = 0;

/// How children of an upstream have taken the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeHistory {
    /// They answer it, as far as is known.
    Answers,
    /// The last one that was asked has ended at it, which may have been for another reason.
    Ended,
    /// One has not, and no more are asked.
    Silent,
}

/// A child, and how it is spoken to.
#[derive(Debug)]
pub struct Child {
    running: RunningChild,
    era: ChildRevision,
    /// What has happened and was not told yet.
    told: VecDeque<Event>,
    depth: u16,
}

/// How a child is spoken to.
#[derive(Debug)]
enum ChildRevision {
    /// As the link is conducted.
    Handshake,
    /// By this revision, with what the child says of itself.
    Stateless(&'static str, Json),
}

/// What the question came to.
enum ProbeResult {
    Said(DiscoverResult),
    /// No answer came in time.
    Nothing,
    /// The child has ended.
    Ended,
}

impl Transport for Stdio {
    type Link = Child;

    async fn open(&self) -> Result<Child, String> {
        let mut child = Child {
            running: self.begin()?,
            era: ChildRevision::Handshake,
            told: VecDeque::new(),
            depth: self.plan.link.settings.depth,
        };
        let found = match (self.plan.revision, self.manners.get()) {
            (None | Some(Revision::Sessions(_)), _)
            | (Some(Revision::Auto), ProbeHistory::Silent) => {
                return Ok(child);
            }
            (Some(Revision::Auto | Revision::Stateless(_)), _) => self.discover(&mut child).await?,
        };
        match (found, self.plan.revision) {
            (DiscoverResult::Stateless(version, presented), _) => {
                child.era = ChildRevision::Stateless(version, presented);
                Ok(child)
            }
            (DiscoverResult::Unknown(versions), _) => Err(format!(
                "it speaks the revisions {}, and none that is known here",
                versions.escape_debug()
            )),
            (DiscoverResult::Sessions, Some(Revision::Stateless(wanted))) => Err(format!(
                "it does not say that it speaks the revision {wanted}"
            )),
            (DiscoverResult::Sessions, None | Some(Revision::Auto | Revision::Sessions(_))) => {
                Ok(child)
            }
        }
    }
}

impl Stdio {
    /// Asks a child for its revisions. One that ends at that is replaced by one that is not asked.
    async fn discover(&self, child: &mut Child) -> Result<DiscoverResult, String> {
        let limit = PROBE.min(self.plan.link.settings.start_timeout / 2);
        let asked = timeout(limit, child.probe()).await;
        let upstream = &*self.name;
        let asked = asked.unwrap_or(ProbeResult::Nothing);
        let manners = match (&asked, self.manners.get()) {
            (ProbeResult::Said(found), _) => {
                self.manners.set(ProbeHistory::Answers);
                return Ok(found.clone());
            }
            (ProbeResult::Ended, ProbeHistory::Answers) => {
                tracing::warn!(
                    upstream,
                    "a child has ended at `server/discover`; it is replaced, and the next one is asked once more"
                );
                ProbeHistory::Ended
            }
            (ProbeResult::Ended, ProbeHistory::Ended | ProbeHistory::Silent) => {
                tracing::warn!(
                    upstream,
                    "a second child in a row ended at `server/discover`, and none is asked again"
                );
                ProbeHistory::Silent
            }
            (ProbeResult::Nothing, _) => {
                tracing::info!(
                    upstream,
                    "a child does not answer `server/discover`, and none is asked again"
                );
                ProbeHistory::Silent
            }
        };
        self.manners.set(manners);
        if let ProbeResult::Ended = asked {
            child.running = self.begin()?;
            child.told.clear();
        }
        Ok(DiscoverResult::Sessions)
    }
}

impl Child {
    /// Asks for the revisions, in the newest one.
    async fn probe(&mut self) -> ProbeResult {
        let [.., newest] = STATELESS;
        let asked = Bytes::from(discover(ID));
        let asked = annotated(&asked, "server/discover", newest, self.depth).body;
        self.running.write(asked);
        loop {
            let message = match self.running.event().await {
                Event::Message(message) => message,
                Event::Lost(_) => return ProbeResult::Ended,
                Event::Overlong
                | Event::Aside(..)
                | Event::Written
                | Event::Sign
                | Event::Failed(..)
                | Event::Forgotten(_)
                | Event::Unwritten(_) => continue,
            };
            match PeerMessage::new(&message, self.depth) {
                PeerMessage::Answer(ID) => {
                    let answer = parse_response(&message, self.depth);
                    let found = answer.map(|answer| verdict(&answer.reply));
                    return ProbeResult::Said(found.unwrap_or(DiscoverResult::Sessions));
                }
                // Nothing else was asked.
                PeerMessage::Unaddressed | PeerMessage::Misnumbered(None | Some(ID)) => {
                    return ProbeResult::Said(DiscoverResult::Sessions);
                }
                PeerMessage::Answer(_)
                | PeerMessage::Misnumbered(Some(_))
                | PeerMessage::Request { .. }
                | PeerMessage::Notification { .. }
                | PeerMessage::Noise => {
                    if self.told.len() < HEARD {
                        self.told.push_back(Event::Message(message));
                    }
                }
            }
        }
    }
}

impl Link for Child {
    async fn event(&mut self) -> Event {
        match self.told.pop_front() {
            Some(event) => event,
            None => self.running.event().await,
        }
    }

    fn write(&mut self, message: Bytes) {
        let ChildRevision::Stateless(version, presented) = &self.era else {
            return self.running.write(message);
        };
        match McpMessage::new(&message, self.depth) {
            // The link greets itself: the child knows no handshake.
            McpMessage::Initialize(id) => {
                let answer = greeting(id, presented).into();
                self.told.extend([Event::Written, Event::Message(answer)]);
            }
            McpMessage::Initialized => self.told.push_back(Event::Written),
            McpMessage::Call { id, method } => {
                match answered((id, &method), &message, self.depth) {
                    Some(answer) => {
                        let answer = Event::Message(answer.into());
                        self.told.extend([Event::Written, answer]);
                    }
                    None => {
                        let body = annotated(&message, &method, version, self.depth).body;
                        self.running.write(body);
                    }
                }
            }
            McpMessage::Cancelled(_) | McpMessage::Notice | McpMessage::Response => {
                self.running.write(message);
            }
        }
    }

    fn ping(&mut self) {
        self.running.ping();
    }

    async fn close(self) {
        self.running.close().await;
    }
}
