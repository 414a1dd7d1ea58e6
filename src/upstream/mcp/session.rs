//! One link to an MCP server.

use std::collections::{BTreeMap, VecDeque};
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
use super::post::{OTHER, PostClient, SESSION, VERSION};
use super::post_outcome::{OutboundPost, OwnPosts, PostOutcome, PostResult};
use super::running_post::{Completed, PostFuture, PostKind, RunningPost, overdue};
use super::{Mcp, ServerRevision, SessionMode};
use crate::upstream::link::{Event, Link};
use dualgauge_model::jsonrpc::{self, parse_response};
use dualgauge_model::mcp::{
    McpMessage, ServerEra, SessionLogLevel, agreed_revision, answer_locally, initialize_response,
};
use dualgauge_model::outcome::{ReplyLimits, RestReply, refusal};
use dualgauge_model::pending::RequestError;
use dualgauge_patterns::rope::Rope;

/// The time limit for telling the server that a session is over.
const FAREWELL: Duration = Duration::from_secs(2);

/// An id that no call uses: those start at 1.
const NO_CALL: u64 = 0;

/// The maximum number of concurrent POSTs of the link itself, below the number of connections reserved for them.
const OWN_AT_A_TIME: usize = 8;
/// The maximum number of queued POSTs of the link itself. A server can do without these replies and notifications.
const OWN_WAITING: usize = 64;
/// The maximum number of cancelled calls whose responses are awaited. They use the other connections of the link itself.
const MOST_ENDING: usize = 4;

/// A session with a server, or its counterpart for a stateless server.
#[derive(Debug)]
pub struct Session {
    mcp: Mcp,
    mode: SessionMode,
    client: PostClient,
    events: mpsc::Receiver<Event>,
    posts: FuturesUnordered<RunningPost>,
    /// The abort handles of the POSTs of calls, by call id.
    aborts: BTreeMap<u64, AbortHandle>,
    /// Events that wait to be returned.
    ready_events: VecDeque<Event>,
    /// The headers of each message after the first: the revision, and the session if the server named one.
    headers: HeaderMap,
    own_posts: OwnPosts,
    log_level: SessionLogLevel,
    /// The number of cancelled calls whose responses are awaited.
    ending: usize,
}

impl Link for Session {
    async fn event(&mut self) -> Event {
        loop {
            // Messages sent before a response are delivered before it, even if both arrived at the same time.
            if let Ok(event) = self.events.try_recv() {
                return event;
            }
            if let Some(event) = self.ready_events.pop_front() {
                return event;
            }
            // Both branches are cancel-safe.
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return event,
                Some(posted) = self.posts.next(), if !self.posts.is_empty() => self.finish_post(posted),
            }
        }
    }

    fn write(&mut self, message: Bytes) {
        self.client.forget_idle();
        let outgoing = McpMessage::new(&message, self.mcp.plan.link.settings.depth);
        match &self.mode {
            SessionMode::Sessions => self.write_in_session(message, outgoing),
            SessionMode::Stateless(version, _) => self.write_alone(message, outgoing, version),
        }
    }

    fn era(&self) -> ServerEra {
        match self.mode {
            SessionMode::Sessions => ServerEra::Sessions,
            SessionMode::Stateless(..) => ServerEra::Stateless,
        }
    }

    /// Does nothing: each call shows if the server is alive.
    fn ping(&mut self) {}

    async fn close(mut self) {
        for post in std::mem::take(&mut self.aborts).into_values() {
            post.abort();
        }
        let _ = timeout(FAREWELL, self.finish_messages()).await;
        let Session {
            client,
            headers,
            posts,
            ..
        } = self;
        drop(posts);
        if headers.contains_key(SESSION) {
            // Without the DELETE, the session expires at the server in its own time.
            let _ = timeout(FAREWELL, client.delete(headers)).await;
        }
    }
}

impl Session {
    pub(super) fn new(mcp: Mcp, mode: SessionMode) -> Session {
        let (client, events) = mcp.client.with_notifications();
        Session {
            mcp,
            mode,
            client,
            events,
            posts: FuturesUnordered::new(),
            aborts: BTreeMap::new(),
            ready_events: VecDeque::new(),
            headers: HeaderMap::new(),
            own_posts: OwnPosts::default(),
            log_level: SessionLogLevel::default(),
            ending: 0,
        }
    }

    fn write_in_session(&mut self, message: Bytes, outgoing: McpMessage) {
        let depth = self.mcp.plan.link.settings.depth;
        let level = self.log_level.before(&outgoing, &message, depth);
        let (id, kind) = match outgoing {
            McpMessage::Initialize(id) => (Some(id), PostKind::Initialize),
            McpMessage::Initialized => (None, PostKind::Initialized),
            McpMessage::Call { id, .. } => (Some(id), PostKind::Call(id)),
            McpMessage::Cancelled(id) => {
                self.await_end(id);
                (None, PostKind::Own)
            }
            McpMessage::Notice => (None, PostKind::Notice),
            McpMessage::Response => (None, PostKind::Own),
        };
        let post = OutboundPost {
            id,
            body: message,
            headers: self.headers.clone(),
        };
        match kind {
            PostKind::Own => self.post_own(post),
            PostKind::Call(_) if level.is_some() => self.post_after_level(kind, post, level),
            PostKind::Initialize | PostKind::Initialized | PostKind::Call(_) | PostKind::Notice => {
                self.post(kind, post);
            }
        }
    }

    /// Posts a call after the log level that it asks for. The server may refuse the level; the call follows anyway.
    fn post_after_level(&mut self, kind: PostKind, post: OutboundPost, level: Option<Bytes>) {
        let set = level.map(|body| OutboundPost {
            id: Some(NO_CALL),
            body,
            headers: self.headers.clone(),
        });
        let (client, call) = (self.client.clone(), self.start_post(kind, post));
        let both = async move {
            if let Some(set) = set {
                client.post(set).await;
            }
            call.await
        };
        self.begin(kind, Box::pin(both));
    }

    /// Posts a message that no caller waits for, or queues it, so that a server which sends many requests and reads no
    /// responses cannot take the connections of calls.
    fn post_own(&mut self, post: OutboundPost) {
        let OwnPosts { running, waiting } = &mut self.own_posts;
        if *running < OWN_AT_A_TIME {
            *running += 1;
            return self.post(PostKind::Own, post);
        }
        if waiting.len() < OWN_WAITING {
            waiting.push_back(post);
        } else {
            let upstream = &self.client.plan().name;
            tracing::debug!(upstream, "dropped a message of the link itself");
        }
        self.ready_events.push_back(Event::Written);
    }

    /// Records the end of a POST of the link itself and starts the next queued one.
    fn finish_own_post(&mut self) {
        let OwnPosts { running, waiting } = &mut self.own_posts;
        *running -= 1;
        if let Some(post) = waiting.pop_front() {
            *running += 1;
            let post = self.start_post(PostKind::Own, post);
            self.spawn(post);
        }
    }

    /// Writes a message to a stateless server. Only calls and notifications of callers are sent: the handshake is
    /// answered locally, a call is cancelled by closing its connection (MCP 2026-07-28, "Cancellation"), and the server
    /// sends no requests.
    fn write_alone(&mut self, message: Bytes, outgoing: McpMessage, version: &'static str) {
        let (id, method) = match outgoing {
            McpMessage::Initialize(id) => {
                self.ready_events.push_back(Event::Written);
                if let SessionMode::Stateless(_, server_info) = &self.mode {
                    let response = initialize_response(id, server_info).into();
                    self.ready_events.push_back(Event::Message(response));
                }
                return;
            }
            McpMessage::Cancelled(id) => {
                self.abort(id);
                return self.ready_events.push_back(Event::Written);
            }
            McpMessage::Initialized | McpMessage::Response => {
                return self.ready_events.push_back(Event::Written);
            }
            McpMessage::Notice => {
                let mut headers = HeaderMap::new();
                headers.insert(VERSION, HeaderValue::from_static(version));
                let post = OutboundPost {
                    id: None,
                    body: message,
                    headers,
                };
                return self.post(PostKind::Notice, post);
            }
            McpMessage::Call { id, method } => (id, method),
        };
        let depth = self.mcp.plan.link.settings.depth;
        if let Some(answer) = answer_locally(id, &method, &message, depth) {
            let answer = Event::Message(answer.into());
            return self.ready_events.extend([Event::Written, answer]);
        }
        let called = McpCall {
            id,
            method,
            message,
            version,
            depth,
        };
        let (client, param_headers) = (self.client.clone(), self.mcp.param_headers.clone());
        let call = async move {
            let result = called.post(client, param_headers).await;
            Completed::Post(PostKind::Call(id), result)
        };
        self.begin(PostKind::Call(id), Box::pin(call));
    }

    /// Waits a little for the response to a call that is being cancelled. The server may never send one. If it does, it
    /// has stopped working on the call, and a request outside the streams of calls can belong only to another.
    fn await_end(&mut self, id: u64) {
        if self.ending >= MOST_ENDING {
            return self.abort(id);
        }
        self.ending += 1;
        self.spawn(overdue(id));
    }

    fn abort(&mut self, id: u64) {
        if let Some(post) = self.aborts.remove(&id) {
            post.abort();
        }
    }

    fn post(&mut self, kind: PostKind, post: OutboundPost) {
        let post = self.start_post(kind, post);
        self.begin(kind, post);
    }

    fn start_post(&self, kind: PostKind, post: OutboundPost) -> PostFuture {
        let (client, limit) = (self.client.clone(), self.mcp.limit);
        Box::pin(async move {
            let result = match kind {
                // The link task enforces the time limits of these.
                PostKind::Initialize | PostKind::Call(_) => client.post(post).await,
                PostKind::Initialized | PostKind::Notice | PostKind::Own => {
                    let late = PostResult {
                        outcome: PostOutcome::Failed(RequestError::Late),
                        session: None,
                    };
                    timeout(limit, client.post(post)).await.unwrap_or(late)
                }
            };
            Completed::Post(kind, result)
        })
    }

    fn begin(&mut self, kind: PostKind, post: PostFuture) {
        let (handle, registration) = AbortHandle::new_pair();
        match kind {
            PostKind::Call(id) => {
                self.aborts.insert(id, handle);
                self.ready_events.push_back(Event::Written);
            }
            PostKind::Initialize | PostKind::Own => self.ready_events.push_back(Event::Written),
            // Later messages may depend on their delivery, so `Written` is reported only then.
            PostKind::Initialized | PostKind::Notice => {}
        }
        self.posts.push(Abortable::new(post, registration));
    }

    /// Follows the GET stream, unless the server is known to have none.
    fn follow(&mut self) {
        if self.mcp.has_no_get_stream.get() {
            return;
        }
        let (client, headers) = (self.client.clone(), self.headers.clone());
        let stream = async move { Completed::OwnStream(client.follow(headers).await) };
        self.spawn(Box::pin(stream));
    }

    /// Sends a `ping` by POST to learn if the server still knows the session: only a response to a POST can end it.
    fn ask_for_session(&mut self) {
        let params = Rope::from(Bytes::from_static(b"{}"));
        let post = OutboundPost {
            id: Some(NO_CALL),
            body: jsonrpc::request(NO_CALL, "ping", params, &[]).into_bytes(),
            headers: self.headers.clone(),
        };
        // It bypasses the limit: the connection of the ended stream is free for it.
        self.own_posts.running += 1;
        let post = self.start_post(PostKind::Own, post);
        self.spawn(post);
    }

    /// Waits until the link's own messages are delivered.
    async fn finish_messages(&mut self) {
        while self.own_posts.running > 0 {
            match self.posts.next().await {
                Some(Ok(Completed::Post(PostKind::Own, _))) => self.finish_own_post(),
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

    fn finish_post(&mut self, posted: Result<Completed, Aborted>) {
        let (kind, PostResult { outcome, session }) = match posted {
            Ok(Completed::Post(kind, result)) => (kind, result),
            Ok(Completed::OwnStream(StreamEnd::Never)) => {
                return self.mcp.has_no_get_stream.set(true);
            }
            Ok(Completed::OwnStream(StreamEnd::Doubtful)) => return self.ask_for_session(),
            Ok(Completed::Overdue(id)) => {
                self.ending -= 1;
                return self.abort(id);
            }
            Ok(Completed::OwnStream(StreamEnd::Refused)) | Err(Aborted) => return,
        };
        match kind {
            PostKind::Initialize => self.initialized(outcome, session),
            PostKind::Initialized => match outcome {
                PostOutcome::Accepted | PostOutcome::Answered(_) => {
                    self.ready_events.push_back(Event::Written);
                    self.follow();
                }
                PostOutcome::SessionLost
                | PostOutcome::Failed(_)
                | PostOutcome::Ended
                | PostOutcome::Refused(_) => {
                    self.report_loss("it rejected `notifications/initialized`");
                }
            },
            PostKind::Call(id) => {
                self.aborts.remove(&id);
                self.finish_call(id, outcome);
            }
            PostKind::Notice => match outcome {
                PostOutcome::Accepted | PostOutcome::Answered(_) => {
                    self.ready_events.push_back(Event::Written)
                }
                PostOutcome::Failed(why) => self.ready_events.push_back(Event::Undelivered(why)),
                PostOutcome::Ended => {
                    let cut = Event::Undelivered(RequestError::Cut);
                    self.ready_events.push_back(cut);
                }
                PostOutcome::Refused(reply) => {
                    let why = RequestError::Unusable(reply.status);
                    self.ready_events.push_back(Event::Undelivered(why));
                }
                PostOutcome::SessionLost => {
                    self.ready_events
                        .push_back(Event::Undelivered(RequestError::Cut));
                    self.forget_session(None);
                }
            },
            PostKind::Own => {
                self.finish_own_post();
                if matches!(outcome, PostOutcome::SessionLost) {
                    self.forget_session(None);
                }
            }
        }
    }

    fn initialized(&mut self, outcome: PostOutcome, session: Option<HeaderValue>) {
        let message = match outcome {
            PostOutcome::Answered(message) => message,
            PostOutcome::Refused(reply) => return self.report_rejection(&reply),
            PostOutcome::Failed(RequestError::Unusable(status)) => {
                return self.report_loss(&format!(
                    "it answered `initialize` with the status {status}"
                ));
            }
            PostOutcome::Failed(RequestError::Unreachable | RequestError::Busy) => {
                return self.report_loss("it cannot be reached");
            }
            PostOutcome::Failed(_)
            | PostOutcome::Ended
            | PostOutcome::Accepted
            | PostOutcome::SessionLost => {
                return self.report_loss("it did not answer `initialize`");
            }
        };
        let depth = self.mcp.plan.link.settings.depth;
        let answer = parse_response(&message, depth);
        let agreed = match answer {
            Ok(answer) => agreed_revision(&answer.reply),
            Err(fault) => Err(fault.to_string()),
        };
        match agreed {
            Ok(version) => {
                self.log_level = SessionLogLevel::greeted(&message, depth);
                self.headers
                    .insert(VERSION, HeaderValue::from_static(version));
                if let Some(mut session) = session {
                    session.set_sensitive(true);
                    self.headers.insert(SESSION, session);
                }
                self.mcp.server_revision.set(ServerRevision::Sessions);
                self.ready_events.push_back(Event::Message(message));
            }
            Err(why) => self.report_loss(&why),
        }
    }

    fn finish_call(&mut self, id: u64, outcome: PostOutcome) {
        match outcome {
            PostOutcome::Answered(message) => self.ready_events.push_back(Event::Message(message)),
            PostOutcome::Failed(why) => self.ready_events.push_back(Event::Failed(id, why)),
            PostOutcome::Ended => self.ready_events.push_back(Event::Ended(id)),
            PostOutcome::Refused(reply) => {
                let message = refusal(id, &reply, self.reply_limits());
                self.ready_events.push_back(Event::Message(message));
            }
            PostOutcome::Accepted => {
                let nothing = RequestError::Unusable(202);
                self.ready_events.push_back(Event::Failed(id, nothing));
            }
            PostOutcome::SessionLost => self.forget_session(Some(id)),
        }
    }

    /// Forgets the session id, since the server no longer knows the session and needs no DELETE.
    fn forget_session(&mut self, id: Option<u64>) {
        self.headers.remove(SESSION);
        self.ready_events.push_back(Event::SessionLost(id));
    }

    /// Reports that the server rejected the handshake by its HTTP status.
    fn report_rejection(&mut self, reply: &RestReply) {
        self.mcp.server_revision.set(ServerRevision::Unknown);
        let message = refusal(NO_CALL, reply, self.reply_limits());
        self.ready_events
            .push_back(Event::Rejected(reply.status, message));
    }

    fn reply_limits(&self) -> ReplyLimits {
        ReplyLimits {
            depth: self.mcp.plan.link.settings.depth,
            error_text: OTHER,
        }
    }

    /// Reports the loss, and resets the discovered revision, which may have changed.
    fn report_loss(&mut self, why: &str) {
        self.mcp.server_revision.set(ServerRevision::Unknown);
        self.ready_events.push_back(Event::Lost(why.to_owned()));
    }
}
