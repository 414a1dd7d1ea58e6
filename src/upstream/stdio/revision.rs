//! Discovery of the MCP revision that a child speaks: one with an `initialize` handshake, or a stateless one
//! (2026-07-28).
//!
//! Each child is sent `server/discover` once, before its first call. Any reply that does not name a stateless revision
//! means a handshake. A child that is slow to start answers late, after `initialize` was written: if it refuses
//! `initialize`, its late answer counts. Laws: a child that does not answer costs its upstream the timeout once, unless it
//! answers late or refuses `initialize` as unsupported; children that exit on the request cost it two restarts in a row at
//! most; the link task sees no difference between the two modes.
//!
//! Used by `stdio`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use tokio::time::timeout;

use super::{RunningChild, Stdio, redacted};
use crate::upstream::link::{Event, Link, Transport};
use dualgauge_model::jsonrpc::{PeerMessage, ResponseReply, parse_response};
use dualgauge_model::local_reply::STATELESS;
use dualgauge_model::mcp::{
    DiscoverResult, McpMessage, Revision, ServerEra, SessionLogLevel, annotated, answer_locally,
    discover, discover_result, initialize_response, is_unsupported,
};
use dualgauge_model::redact::Redaction;
use dualgauge_patterns::json::Json;

/// The time limit for discovery. Some children never answer a method they do not know.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The method of the request that begins a session.
const INITIALIZE: &[u8] = b"\"initialize\"";
/// The number of other messages that are kept during discovery.
const MAX_BUFFERED_MESSAGES: usize = 16;
/// The id of the discovery request, which no call uses.
const PROBE_ID: u64 = 0;
/// The id of requests that set the level of log messages. An answer with it belongs to the discovery first.
const OWN_ID: u64 = 0;

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
    /// The level of log messages of a child with a handshake.
    log_level: SessionLogLevel,
    /// The id of `initialize`, until it is answered.
    greeting: Option<u64>,
    /// The number of requests with [`OWN_ID`] that are not answered.
    own_requests: usize,
    /// The discovery, until `initialize` is answered.
    late: LateDiscovery,
    probe_history: Rc<Cell<ProbeHistory>>,
}

/// A discovery request that was not answered in time.
#[derive(Debug)]
enum LateDiscovery {
    /// There is none, or its answer does not matter.
    None,
    /// The child may still answer.
    Pending,
    /// The child answered late that it speaks this stateless revision.
    Stateless(&'static str, Json),
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

    fn redaction(&self) -> &Redaction {
        &self.plan.link.redaction
    }

    fn last_output(&self) -> Vec<String> {
        let lines = self.last_output.borrow();
        let lines = lines.iter();
        lines
            .map(|line| redacted(line, &self.plan.link.redaction))
            .collect()
    }

    async fn open(&self) -> Result<Child, String> {
        let mut child = Child {
            running: self.begin()?,
            mode: ProtocolMode::Handshake,
            ready_events: VecDeque::new(),
            depth: self.plan.link.settings.depth,
            log_level: SessionLogLevel::default(),
            greeting: None,
            own_requests: 0,
            late: LateDiscovery::None,
            probe_history: self.probe_history.clone(),
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
    /// Asks a child for its revisions. If a handshake is possible too, a child that exits is replaced by one that is not
    /// asked.
    async fn discover(&self, child: &mut Child) -> Result<DiscoverResult, String> {
        let start = self.plan.link.settings.start_timeout;
        let outcome = match self.plan.revision {
            // The link has this limit itself.
            Some(Revision::Stateless(_)) => child.probe().await,
            None | Some(Revision::Auto | Revision::Sessions(_)) => {
                let answered = timeout(PROBE_TIMEOUT.min(start / 2), child.probe()).await;
                answered.unwrap_or(ProbeResult::TimedOut)
            }
        };
        if let (ProbeResult::Exited, Some(Revision::Stateless(_))) = (&outcome, self.plan.revision)
        {
            return Err("it exited at `server/discover`".to_owned());
        }
        let upstream = &*self.name;
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
                    "the child process does not answer `server/discover` in time; `initialize` follows"
                );
                ProbeHistory::Disabled
            }
        };
        self.probe_history.set(next);
        match outcome {
            ProbeResult::Exited => {
                child.running = self.begin()?;
                child.ready_events.clear();
            }
            ProbeResult::TimedOut => child.late = LateDiscovery::Pending,
            ProbeResult::Answered(_) => {}
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
                | Event::Ended(..)
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

impl Child {
    /// Writes a message to a child with a handshake, after the request for the log level that its call needs.
    fn write_with_level(&mut self, message: Bytes) {
        if memmem::find(&message, INITIALIZE).is_some()
            && let McpMessage::Initialize(id) = McpMessage::new(&message, self.depth)
        {
            self.greeting = Some(id);
        }
        let level = self.log_level.concerns(&message).then(|| {
            let outgoing = McpMessage::new(&message, self.depth);
            self.log_level.before(&outgoing, &message, self.depth)
        });
        match level.flatten() {
            Some(level) => {
                self.own_requests += 1;
                self.running.write_both(&level, &message);
            }
            None => self.running.write(message),
        }
    }

    /// Returns true for the response to a request of the transport itself, and for a response to `initialize` that another
    /// one replaces. Reads the log level support of the server from the response to `initialize`.
    fn is_own(&mut self, message: &Bytes) -> bool {
        let is_late = matches!(self.late, LateDiscovery::Pending);
        if self.greeting.is_none() && self.own_requests == 0 && !is_late {
            return false;
        }
        let id = match PeerMessage::new(message, self.depth) {
            // Responses come in the order of the requests: the first one without an id belongs to the discovery.
            PeerMessage::Answer(PROBE_ID)
            | PeerMessage::Unaddressed
            | PeerMessage::Misnumbered(None | Some(PROBE_ID))
                if is_late =>
            {
                self.on_late_answer(message);
                return true;
            }
            PeerMessage::Answer(id) => id,
            PeerMessage::Unaddressed
            | PeerMessage::Misnumbered(_)
            | PeerMessage::Request { .. }
            | PeerMessage::Notification { .. }
            | PeerMessage::NotAMessage => return false,
        };
        if self.greeting == Some(id) {
            self.greeting = None;
            return self.on_greeting(id, message);
        }
        let is_own = id == OWN_ID && self.own_requests > 0;
        self.own_requests -= usize::from(is_own);
        is_own
    }

    /// Keeps a late answer to the discovery until the child answers `initialize`.
    fn on_late_answer(&mut self, message: &Bytes) {
        let answer = parse_response(message, self.depth);
        let found = answer.map(|answer| discover_result(&answer.reply));
        self.late = match (found, self.greeting) {
            (Ok(DiscoverResult::Stateless(version, server_info)), Some(_)) => {
                LateDiscovery::Stateless(version, server_info)
            }
            (Ok(_) | Err(_), _) => LateDiscovery::None,
        };
    }

    /// Reads the response to `initialize`. Returns true if a child without a handshake refused it, and its late answer
    /// replaces the refusal.
    fn on_greeting(&mut self, id: u64, message: &Bytes) -> bool {
        // The answer to the discovery comes before this one, if it comes at all.
        let late = mem::replace(&mut self.late, LateDiscovery::None);
        let answer = parse_response(message, self.depth);
        let Ok(ResponseReply::Error(error)) = answer.map(|answer| answer.reply) else {
            self.log_level = SessionLogLevel::greeted(message, self.depth);
            return false;
        };
        match late {
            LateDiscovery::Stateless(version, server_info) => {
                let answer = initialize_response(id, &server_info).into();
                self.ready_events.push_back(Event::Message(answer));
                self.mode = ProtocolMode::Stateless {
                    version,
                    server_info,
                };
                self.probe_history.set(ProbeHistory::Answered);
                true
            }
            LateDiscovery::None | LateDiscovery::Pending => {
                if is_unsupported(&error) {
                    // The next child is asked again: a handshake is refused.
                    self.probe_history.set(ProbeHistory::Answered);
                }
                false
            }
        }
    }
}

impl Link for Child {
    async fn event(&mut self) -> Event {
        loop {
            if let Some(event) = self.ready_events.pop_front() {
                return event;
            }
            let event = self.running.event().await;
            if let Event::Message(message) = &event
                && self.is_own(message)
            {
                continue;
            }
            return event;
        }
    }

    fn write(&mut self, message: Bytes) {
        let ProtocolMode::Stateless {
            version,
            server_info,
        } = &self.mode
        else {
            return self.write_with_level(message);
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
