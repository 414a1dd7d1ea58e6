//! One link to an MCP server.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, Aborted};
use futures_util::stream::FuturesUnordered;
use http::{HeaderMap, HeaderValue};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::call::McpCall;
use super::get_stream::StreamEnd;
use super::post::{OTHER, OutboundPost, PostClient, PostOutcome, PostResult, SESSION, VERSION};
use super::{GetStream, Mcp, ServerRevision, SessionMode};
use crate::domain::jsonrpc::{self, parse_response};
use crate::domain::mcp::{McpMessage, agreed_revision, answer_locally, initialize_response};
use crate::domain::outcome::{ReplyLimits, RestReply, refusal};
use crate::domain::pending::RequestError;
use crate::domain::rope::Rope;
use crate::upstream::link::{Event, Link};

/// The time limit for telling the server that a session is over.
const FAREWELL: Duration = Duration::from_secs(2);

/// An id that no call uses: those start at 1.
const NO_CALL: u64 = 0;

/// The maximum number of concurrent POSTs of the link itself, below the number of connections reserved for them.
const OWN_AT_A_TIME: usize = 8;
/// The maximum number of queued POSTs of the link itself. A server can do without these replies and notifications.
const OWN_WAITING: usize = 64;

/// A running POST, or the GET stream.
type RunningPost = Abortable<PostFuture>;
type PostFuture = Pin<Box<dyn Future<Output = Completed>>>;

/// A completed [`RunningPost`].
enum Completed {
    Post(PostKind, PostResult),
    OwnStream(StreamEnd),
}

/// The purpose of a POST.
#[derive(Debug, Clone, Copy)]
enum PostKind {
    Initialize,
    Initialized,
    Call(u64),
    /// A notification of a caller, who waits for its delivery.
    Notice,
    /// A message of the link itself, which has no waiting caller.
    Own,
}

/// A session with a server, or its counterpart for a stateless server.
#[derive(Debug)]
pub struct Session {
    mcp: Mcp,
    mode: SessionMode,
    door: PostClient,
    ear: mpsc::Receiver<Event>,
    posts: FuturesUnordered<RunningPost>,
    /// The abort handles of the POSTs of calls, by call id.
    aborts: BTreeMap<u64, AbortHandle>,
    /// Events that wait to be returned.
    told: VecDeque<Event>,
    /// The headers of each message after the first: the revision, and the session if the server named one.
    headers: HeaderMap,
    /// The number of running POSTs of the link itself, and the queued ones.
    own: (usize, VecDeque<OutboundPost>),
}

impl Link for Session {
    async fn event(&mut self) -> Event {
        loop {
            // Messages sent before a response are delivered before it, even if both arrived at the same time.
            if let Ok(event) = self.ear.try_recv() {
                return event;
            }
            if let Some(event) = self.told.pop_front() {
                return event;
            }
            // Both branches are cancel-safe.
            tokio::select! {
                biased;
                Some(event) = self.ear.recv() => return event,
                Some(posted) = self.posts.next(), if !self.posts.is_empty() => self.posted(posted),
            }
        }
    }

    fn write(&mut self, message: Bytes) {
        self.door.forget_idle();
        let outgoing = McpMessage::new(&message, self.mcp.plan.link.settings.depth);
        match &self.mode {
            SessionMode::Sessions => self.write_in_session(message, outgoing),
            SessionMode::Stateless(version, _) => self.write_alone(message, outgoing, version),
        }
    }

    /// Does nothing: each call shows if the server is alive.
    fn ping(&mut self) {}

    async fn close(mut self) {
        for post in std::mem::take(&mut self.aborts).into_values() {
            post.abort();
        }
        let _ = timeout(FAREWELL, self.last_words()).await;
        let Session {
            door,
            headers,
            posts,
            ..
        } = self;
        drop(posts);
        if headers.contains_key(SESSION) {
            // Without the DELETE, the session expires at the server in its own time.
            let _ = timeout(FAREWELL, door.delete(headers)).await;
        }
    }
}

impl Session {
    pub(super) fn new(mcp: Mcp, mode: SessionMode) -> Session {
        let (door, ear) = mcp.door.with_notifications();
        Session {
            mcp,
            mode,
            door,
            ear,
            posts: FuturesUnordered::new(),
            aborts: BTreeMap::new(),
            told: VecDeque::new(),
            headers: HeaderMap::new(),
            own: (0, VecDeque::new()),
        }
    }

    fn write_in_session(&mut self, message: Bytes, outgoing: McpMessage) {
        let (id, errand) = match outgoing {
            McpMessage::Initialize(id) => (Some(id), PostKind::Initialize),
            McpMessage::Initialized => (None, PostKind::Initialized),
            McpMessage::Call { id, .. } => (Some(id), PostKind::Call(id)),
            McpMessage::Cancelled(id) => {
                // The notification tells the server, which may then never complete the response.
                self.abort(id);
                (None, PostKind::Own)
            }
            McpMessage::Notice => (None, PostKind::Notice),
            McpMessage::Response => (None, PostKind::Own),
        };
        let letter = OutboundPost {
            id,
            body: message,
            headers: self.headers.clone(),
        };
        match errand {
            PostKind::Own => self.post_own(letter),
            PostKind::Initialize | PostKind::Initialized | PostKind::Call(_) | PostKind::Notice => {
                self.post(errand, letter);
            }
        }
    }

    /// Posts a message that no caller waits for, or queues it, so that a server which sends many requests and reads no
    /// responses cannot take the connections of calls.
    fn post_own(&mut self, letter: OutboundPost) {
        let (running, waiting) = &mut self.own;
        if *running < OWN_AT_A_TIME {
            *running += 1;
            return self.post(PostKind::Own, letter);
        }
        if waiting.len() < OWN_WAITING {
            waiting.push_back(letter);
        } else {
            let upstream = &self.door.plan().name;
            tracing::debug!(upstream, "dropped a message of the link itself");
        }
        self.told.push_back(Event::Written);
    }

    /// Records the end of a POST of the link itself and starts the next queued one.
    fn posted_own(&mut self) {
        let (running, waiting) = &mut self.own;
        *running -= 1;
        if let Some(letter) = waiting.pop_front() {
            *running += 1;
            let post = self.posting(PostKind::Own, letter);
            self.spawn(post);
        }
    }

    /// Writes a message to a stateless server. Only calls and notifications of callers are sent: the handshake is
    /// answered locally, a call is cancelled by closing its connection (MCP 2026-07-28, "Cancellation"), and the server
    /// sends no requests.
    fn write_alone(&mut self, message: Bytes, outgoing: McpMessage, version: &'static str) {
        let (id, method) = match outgoing {
            McpMessage::Initialize(id) => {
                self.told.push_back(Event::Written);
                if let SessionMode::Stateless(_, presented) = &self.mode {
                    let greeting = initialize_response(id, presented).into();
                    self.told.push_back(Event::Message(greeting));
                }
                return;
            }
            McpMessage::Cancelled(id) => {
                self.abort(id);
                return self.told.push_back(Event::Written);
            }
            McpMessage::Initialized | McpMessage::Response => {
                return self.told.push_back(Event::Written);
            }
            McpMessage::Notice => {
                let mut headers = HeaderMap::new();
                headers.insert(VERSION, HeaderValue::from_static(version));
                let letter = OutboundPost {
                    id: None,
                    body: message,
                    headers,
                };
                return self.post(PostKind::Notice, letter);
            }
            McpMessage::Call { id, method } => (id, method),
        };
        let depth = self.mcp.plan.link.settings.depth;
        if let Some(answer) = answer_locally((id, &method), &message, depth) {
            let answer = Event::Message(answer.into());
            return self.told.extend([Event::Written, answer]);
        }
        let called = McpCall {
            id,
            method,
            message,
            version,
            depth,
        };
        let (door, mirrored) = (self.door.clone(), self.mcp.mirrored.clone());
        let call = async move {
            let came = called.post(door, mirrored).await;
            Completed::Post(PostKind::Call(id), came)
        };
        self.begin(PostKind::Call(id), Box::pin(call));
    }

    fn abort(&mut self, id: u64) {
        if let Some(post) = self.aborts.remove(&id) {
            post.abort();
        }
    }

    fn post(&mut self, errand: PostKind, letter: OutboundPost) {
        let post = self.posting(errand, letter);
        self.begin(errand, post);
    }

    fn posting(&self, errand: PostKind, letter: OutboundPost) -> PostFuture {
        let (door, limit) = (self.door.clone(), self.mcp.limit);
        Box::pin(async move {
            let came = match errand {
                // The link task enforces the time limits of these.
                PostKind::Initialize | PostKind::Call(_) => door.post(letter).await,
                PostKind::Initialized | PostKind::Notice | PostKind::Own => {
                    let late = PostResult {
                        outcome: PostOutcome::Failed(RequestError::Late),
                        session: None,
                    };
                    timeout(limit, door.post(letter)).await.unwrap_or(late)
                }
            };
            Completed::Post(errand, came)
        })
    }

    fn begin(&mut self, errand: PostKind, post: PostFuture) {
        let (handle, registration) = AbortHandle::new_pair();
        match errand {
            PostKind::Call(id) => {
                self.aborts.insert(id, handle);
                self.told.push_back(Event::Written);
            }
            PostKind::Initialize | PostKind::Own => self.told.push_back(Event::Written),
            // Later messages may depend on their delivery, so `Written` is reported only then.
            PostKind::Initialized | PostKind::Notice => {}
        }
        self.posts.push(Abortable::new(post, registration));
    }

    /// Follows the GET stream, unless the server is known to have none.
    fn follow(&mut self) {
        if self.mcp.own_stream.get() == GetStream::Never {
            return;
        }
        let (door, headers) = (self.door.clone(), self.headers.clone());
        let stream = async move { Completed::OwnStream(door.follow(headers).await) };
        self.spawn(Box::pin(stream));
    }

    /// Sends a `ping` by POST to learn if the server still knows the session: only a response to a POST can end it.
    fn ask_for_session(&mut self) {
        let params = Rope::from(Bytes::from_static(b"{}"));
        let letter = OutboundPost {
            id: Some(NO_CALL),
            body: jsonrpc::request(NO_CALL, "ping", params, &[]).into_bytes(),
            headers: self.headers.clone(),
        };
        // It bypasses the limit: the connection of the ended stream is free for it.
        self.own.0 += 1;
        let post = self.posting(PostKind::Own, letter);
        self.spawn(post);
    }

    /// Waits until the link's own messages are delivered.
    async fn last_words(&mut self) {
        while self.own.0 > 0 {
            match self.posts.next().await {
                Some(Ok(Completed::Post(PostKind::Own, _))) => self.posted_own(),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Starts a POST that only the end of the session drops.
    fn spawn(&mut self, post: PostFuture) {
        let (_, registration) = AbortHandle::new_pair();
        self.posts.push(Abortable::new(post, registration));
    }

    fn posted(&mut self, posted: Result<Completed, Aborted>) {
        let (errand, PostResult { outcome, session }) = match posted {
            Ok(Completed::Post(errand, came)) => (errand, came),
            Ok(Completed::OwnStream(StreamEnd::Never)) => {
                return self.mcp.own_stream.set(GetStream::Never);
            }
            Ok(Completed::OwnStream(StreamEnd::Doubtful)) => return self.ask_for_session(),
            Ok(Completed::OwnStream(StreamEnd::Refused)) | Err(Aborted) => return,
        };
        match errand {
            PostKind::Initialize => self.initialized(outcome, session),
            PostKind::Initialized => match outcome {
                PostOutcome::Accepted | PostOutcome::Answered(_) => {
                    self.told.push_back(Event::Written);
                    self.follow();
                }
                PostOutcome::Forgotten | PostOutcome::Failed(_) | PostOutcome::Refused(_) => {
                    self.lost("it rejected `notifications/initialized`");
                }
            },
            PostKind::Call(id) => {
                self.aborts.remove(&id);
                self.called(id, outcome);
            }
            PostKind::Notice => match outcome {
                PostOutcome::Accepted | PostOutcome::Answered(_) => {
                    self.told.push_back(Event::Written)
                }
                PostOutcome::Failed(why) => self.told.push_back(Event::Unwritten(why)),
                PostOutcome::Refused(reply) => {
                    let why = RequestError::Unusable(reply.status);
                    self.told.push_back(Event::Unwritten(why));
                }
                PostOutcome::Forgotten => {
                    self.told.push_back(Event::Unwritten(RequestError::Cut));
                    self.forgotten(None);
                }
            },
            PostKind::Own => {
                self.posted_own();
                if matches!(outcome, PostOutcome::Forgotten) {
                    self.forgotten(None);
                }
            }
        }
    }

    fn initialized(&mut self, outcome: PostOutcome, session: Option<HeaderValue>) {
        let message = match outcome {
            PostOutcome::Answered(message) => message,
            PostOutcome::Failed(RequestError::Unusable(status))
            | PostOutcome::Refused(RestReply { status, .. }) => {
                return self.lost(&format!(
                    "it answered `initialize` with the status {status}"
                ));
            }
            PostOutcome::Failed(RequestError::Unreachable | RequestError::Busy) => {
                return self.lost("it cannot be reached");
            }
            PostOutcome::Failed(_) | PostOutcome::Accepted | PostOutcome::Forgotten => {
                return self.lost("it did not answer `initialize`");
            }
        };
        let answer = parse_response(&message, self.mcp.plan.link.settings.depth);
        let agreed = match answer {
            Ok(answer) => agreed_revision(&answer.reply),
            Err(fault) => Err(fault.to_string()),
        };
        match agreed {
            Ok(version) => {
                self.headers
                    .insert(VERSION, HeaderValue::from_static(version));
                if let Some(mut session) = session {
                    session.set_sensitive(true);
                    self.headers.insert(SESSION, session);
                }
                self.mcp.era.set(ServerRevision::Sessions);
                self.told.push_back(Event::Message(message));
            }
            Err(why) => self.lost(&why),
        }
    }

    fn called(&mut self, id: u64, outcome: PostOutcome) {
        match outcome {
            PostOutcome::Answered(message) => self.told.push_back(Event::Message(message)),
            PostOutcome::Failed(why) => self.told.push_back(Event::Failed(id, why)),
            PostOutcome::Refused(reply) => {
                let limits = ReplyLimits {
                    depth: self.mcp.plan.link.settings.depth,
                    error_text: OTHER,
                };
                let message = refusal(id, &reply, limits);
                self.told.push_back(Event::Message(message));
            }
            PostOutcome::Accepted => {
                let nothing = RequestError::Unusable(202);
                self.told.push_back(Event::Failed(id, nothing));
            }
            PostOutcome::Forgotten => self.forgotten(Some(id)),
        }
    }

    /// Forgets the session id, since the server no longer knows the session and needs no DELETE.
    fn forgotten(&mut self, id: Option<u64>) {
        self.headers.remove(SESSION);
        self.told.push_back(Event::Forgotten(id));
    }

    /// Reports the loss, and resets the discovered revision, which may have changed.
    fn lost(&mut self, why: &str) {
        self.mcp.era.set(ServerRevision::Unknown);
        self.told.push_back(Event::Lost(why.to_owned()));
    }
}
