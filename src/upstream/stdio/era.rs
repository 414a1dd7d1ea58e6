//! Which revision of MCP a child speaks: one that begins with `initialize`, or one without (2026-07-28).
//!
//! Each child is asked once, before its first call, by `server/discover`. Whatever it says that is no sign of a revision
//! without a handshake means one with. Laws: a child that does not answer the question costs its upstream that much once,
//! and children that end at it cost it that twice at most in a row; to the conduct of the link both kinds look alike.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::{Running, Stdio};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{Heard, parse_response};
use crate::domain::local::STATELESS;
use crate::domain::mcp::{
    Outgoing, Revision, Verdict, answered, discover, dressed, greeting, verdict,
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
pub(super) enum Manners {
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
    running: Running,
    era: Era,
    /// What has happened and was not told yet.
    told: VecDeque<Event>,
    depth: u16,
}

/// How a child is spoken to.
#[derive(Debug)]
enum Era {
    /// As the link is conducted.
    Handshake,
    /// By this revision, with what the child says of itself.
    Stateless(&'static str, Json),
}

/// What the question came to.
enum Asked {
    Said(Verdict),
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
            era: Era::Handshake,
            told: VecDeque::new(),
            depth: self.plan.link.settings.depth,
        };
        let found = match (self.plan.revision, self.manners.get()) {
            (None | Some(Revision::Sessions(_)), _) | (Some(Revision::Auto), Manners::Silent) => {
                return Ok(child);
            }
            (Some(Revision::Auto | Revision::Stateless(_)), _) => self.discover(&mut child).await?,
        };
        match (found, self.plan.revision) {
            (Verdict::Stateless(version, presented), _) => {
                child.era = Era::Stateless(version, presented);
                Ok(child)
            }
            (Verdict::Unknown(versions), _) => Err(format!(
                "it speaks the revisions {}, and none that is known here",
                versions.escape_debug()
            )),
            (Verdict::Sessions, Some(Revision::Stateless(wanted))) => Err(format!(
                "it does not say that it speaks the revision {wanted}"
            )),
            (Verdict::Sessions, None | Some(Revision::Auto | Revision::Sessions(_))) => Ok(child),
        }
    }
}

impl Stdio {
    /// Asks a child for its revisions. One that ends at that is replaced by one that is not asked.
    async fn discover(&self, child: &mut Child) -> Result<Verdict, String> {
        let limit = PROBE.min(self.plan.link.settings.start_timeout / 2);
        let asked = timeout(limit, child.ask()).await;
        let upstream = &*self.name;
        let asked = asked.unwrap_or(Asked::Nothing);
        let manners = match (&asked, self.manners.get()) {
            (Asked::Said(found), _) => {
                self.manners.set(Manners::Answers);
                return Ok(found.clone());
            }
            (Asked::Ended, Manners::Answers) => {
                tracing::warn!(
                    upstream,
                    "a child has ended at `server/discover`; it is replaced, and the next one is asked once more"
                );
                Manners::Ended
            }
            (Asked::Ended, Manners::Ended | Manners::Silent) => {
                tracing::warn!(
                    upstream,
                    "a second child in a row ended at `server/discover`, and none is asked again"
                );
                Manners::Silent
            }
            (Asked::Nothing, _) => {
                tracing::info!(
                    upstream,
                    "a child does not answer `server/discover`, and none is asked again"
                );
                Manners::Silent
            }
        };
        self.manners.set(manners);
        if let Asked::Ended = asked {
            child.running = self.begin()?;
            child.told.clear();
        }
        Ok(Verdict::Sessions)
    }
}

impl Child {
    /// Asks for the revisions, in the newest one.
    async fn ask(&mut self) -> Asked {
        let [.., newest] = STATELESS;
        let asked = Bytes::from(discover(ID));
        let asked = dressed(&asked, "server/discover", newest, self.depth).body;
        self.running.write(asked);
        loop {
            let message = match self.running.event().await {
                Event::Message(message) => message,
                Event::Lost(_) => return Asked::Ended,
                Event::Overlong
                | Event::Beside(..)
                | Event::Written
                | Event::Sign
                | Event::Failed(..)
                | Event::Forgotten(_)
                | Event::Unwritten(_) => continue,
            };
            match Heard::of(&message, self.depth) {
                Heard::Answer(ID) => {
                    let answer = parse_response(&message, self.depth);
                    let found = answer.map(|answer| verdict(&answer.reply));
                    return Asked::Said(found.unwrap_or(Verdict::Sessions));
                }
                // Nothing else was asked.
                Heard::Unaddressed | Heard::Misnumbered(None | Some(ID)) => {
                    return Asked::Said(Verdict::Sessions);
                }
                Heard::Answer(_)
                | Heard::Misnumbered(Some(_))
                | Heard::Request { .. }
                | Heard::Notification { .. }
                | Heard::Noise => {
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
        let Era::Stateless(version, presented) = &self.era else {
            return self.running.write(message);
        };
        match Outgoing::of(&message, self.depth) {
            // The link greets itself: the child knows no handshake.
            Outgoing::Initialize(id) => {
                let answer = greeting(id, presented).into();
                self.told.extend([Event::Written, Event::Message(answer)]);
            }
            Outgoing::Initialized => self.told.push_back(Event::Written),
            Outgoing::Call { id, method } => match answered((id, &method), &message, self.depth) {
                Some(answer) => {
                    let answer = Event::Message(answer.into());
                    self.told.extend([Event::Written, answer]);
                }
                None => {
                    let body = dressed(&message, &method, version, self.depth).body;
                    self.running.write(body);
                }
            },
            Outgoing::Cancelled(_) | Outgoing::Notice | Outgoing::Response => {
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
