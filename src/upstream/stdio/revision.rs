//! Discovery of the MCP revision that a child speaks: one with an `initialize` handshake, or a stateless one
//! (2026-07-28).
//!
//! Each child is sent `server/discover` once, before its first call. Any reply that does not name a stateless revision
//! means a handshake. Laws: a child that does not answer costs its upstream the timeout once; children that exit on the
//! request cost it two restarts in a row at most; the link task sees no difference between the two modes.
//!
//! Used by `stdio`.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::{RunningChild, Stdio};
use crate::upstream::link::{Event, Link, Transport};
use dualgauge_model::jsonrpc::{PeerMessage, parse_response};
use dualgauge_model::local_reply::STATELESS;
use dualgauge_model::mcp::{
    DiscoverResult, McpMessage, Revision, ServerEra, annotated, answer_locally, discover,
    discover_result, initialize_response,
};
use dualgauge_patterns::json::Json;

/// The time limit for discovery. Some children never answer a method they do not know.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of other messages that are kept during discovery.
const MAX_BUFFERED_MESSAGES: usize = 16;
/// The id of the discovery request, which no call uses.
const PROBE_ID: u64 = 0;

/// The reactions of an upstream's children to discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeHistory {
    /// The last child answered, or none was asked yet.
    Answered,
    /// The last child exited on it, possibly for another reason.
    ExitedOnce,
    /// Discovery is disabled: a child did not answer, or two in a row exited.
    Disabled,
}

/// A child and its protocol mode.
#[derive(Debug)]
pub struct Child {
    running: RunningChild,
    mode: ProtocolMode,
    /// Events that wait to be returned.
    ready_events: VecDeque<Event>,
    depth: u16,
}

/// The protocol mode of a child.
#[derive(Debug)]
enum ProtocolMode {
    /// With a handshake, which the link task performs.
    Handshake,
    /// Stateless with this revision; `server_info` has the form of an `initialize` result.
    Stateless {
        version: &'static str,
        server_info: Json,
    },
}

/// The result of discovery.
enum ProbeResult {
    Answered(DiscoverResult),
    /// No answer arrived in time.
    TimedOut,
    /// The child exited.
    Exited,
}

impl Transport for Stdio {
    type Link = Child;

    async fn open(&self) -> Result<Child, String> {
        let mut child = Child {
            running: self.begin()?,
            mode: ProtocolMode::Handshake,
            ready_events: VecDeque::new(),
            depth: self.plan.link.settings.depth,
        };
        let found = match (self.plan.revision, self.probe_history.get()) {
            (None | Some(Revision::Sessions(_)), _)
            | (Some(Revision::Auto), ProbeHistory::Disabled) => {
                return Ok(child);
            }
            (Some(Revision::Auto | Revision::Stateless(_)), _) => self.discover(&mut child).await?,
        };
        match (found, self.plan.revision) {
            (DiscoverResult::Stateless(version, server_info), _) => {
                child.mode = ProtocolMode::Stateless {
                    version,
                    server_info,
                };
                Ok(child)
            }
            (DiscoverResult::Unknown(versions), _) => Err(format!(
                "it supports the revisions {}, none of which this proxy supports",
                versions.escape_debug()
            )),
            (DiscoverResult::Sessions, Some(Revision::Stateless(wanted))) => {
                Err(format!("it does not list the revision {wanted}"))
            }
            (DiscoverResult::Sessions, None | Some(Revision::Auto | Revision::Sessions(_))) => {
                Ok(child)
            }
        }
    }
}

impl Stdio {
    /// Asks a child for its revisions. A child that exits is replaced by one that is not asked.
    async fn discover(&self, child: &mut Child) -> Result<DiscoverResult, String> {
        let limit = PROBE_TIMEOUT.min(self.plan.link.settings.start_timeout / 2);
        let outcome = timeout(limit, child.probe()).await;
        let upstream = &*self.name;
        let outcome = outcome.unwrap_or(ProbeResult::TimedOut);
        let next = match (&outcome, self.probe_history.get()) {
            (ProbeResult::Answered(found), _) => {
                self.probe_history.set(ProbeHistory::Answered);
                return Ok(found.clone());
            }
            (ProbeResult::Exited, ProbeHistory::Answered) => {
                tracing::warn!(
                    upstream,
                    "the child process exited at `server/discover`; the child after its replacement is probed once more"
                );
                ProbeHistory::ExitedOnce
            }
            (ProbeResult::Exited, ProbeHistory::ExitedOnce | ProbeHistory::Disabled) => {
                tracing::warn!(
                    upstream,
                    "a second child process in a row exited at `server/discover`; probing stops"
                );
                ProbeHistory::Disabled
            }
            (ProbeResult::TimedOut, _) => {
                tracing::info!(
                    upstream,
                    "the child process does not answer `server/discover`; probing stops"
                );
                ProbeHistory::Disabled
            }
        };
        self.probe_history.set(next);
        if let ProbeResult::Exited = outcome {
            child.running = self.begin()?;
            child.ready_events.clear();
        }
        Ok(DiscoverResult::Sessions)
    }
}

impl Child {
    /// Sends the discovery request in the newest revision and waits for the answer.
    async fn probe(&mut self) -> ProbeResult {
        let [.., newest] = STATELESS;
        let request = Bytes::from(discover(PROBE_ID));
        let request = annotated(&request, "server/discover", newest, self.depth).body;
        self.running.write(request);
        loop {
            let message = match self.running.event().await {
                Event::Message(message) => message,
                Event::Lost(_) | Event::Rejected(..) => return ProbeResult::Exited,
                Event::Overlong
                | Event::StreamMessage(..)
                | Event::Written
                | Event::SignOfLife
                | Event::Failed(..)
                | Event::SessionLost(_)
                | Event::Undelivered(_) => continue,
            };
            match PeerMessage::new(&message, self.depth) {
                PeerMessage::Answer(PROBE_ID) => {
                    let answer = parse_response(&message, self.depth);
                    let found = answer.map(|answer| discover_result(&answer.reply));
                    return ProbeResult::Answered(found.unwrap_or(DiscoverResult::Sessions));
                }
                // The request is the only one, so the answer belongs to it.
                PeerMessage::Unaddressed | PeerMessage::Misnumbered(None | Some(PROBE_ID)) => {
                    return ProbeResult::Answered(DiscoverResult::Sessions);
                }
                PeerMessage::Answer(_)
                | PeerMessage::Misnumbered(Some(_))
                | PeerMessage::Request { .. }
                | PeerMessage::Notification { .. }
                | PeerMessage::NotAMessage => {
                    if self.ready_events.len() < MAX_BUFFERED_MESSAGES {
                        self.ready_events.push_back(Event::Message(message));
                    }
                }
            }
        }
    }
}

impl Link for Child {
    async fn event(&mut self) -> Event {
        match self.ready_events.pop_front() {
            Some(event) => event,
            None => self.running.event().await,
        }
    }

    fn write(&mut self, message: Bytes) {
        let ProtocolMode::Stateless {
            version,
            server_info,
        } = &self.mode
        else {
            return self.running.write(message);
        };
        match McpMessage::new(&message, self.depth) {
            // The handshake is answered locally: a stateless child does not know it.
            McpMessage::Initialize(id) => {
                let answer = initialize_response(id, server_info).into();
                self.ready_events
                    .extend([Event::Written, Event::Message(answer)]);
            }
            McpMessage::Initialized => self.ready_events.push_back(Event::Written),
            McpMessage::Call { id, method } => {
                match answer_locally(id, &method, &message, self.depth) {
                    Some(answer) => {
                        let answer = Event::Message(answer.into());
                        self.ready_events.extend([Event::Written, answer]);
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

    fn era(&self) -> ServerEra {
        match self.mode {
            ProtocolMode::Handshake => ServerEra::Sessions,
            ProtocolMode::Stateless { .. } => ServerEra::Stateless,
        }
    }

    fn ping(&mut self) {
        self.running.ping();
    }

    async fn close(self) {
        self.running.close().await;
    }
}
