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

use super::call::Called;
use super::own_stream::Followed;
use super::post::{Came, Door, Letter, OTHER, Outcome, SESSION, VERSION};
use super::{Era, Mcp, Mode, OwnStream};
use crate::domain::jsonrpc::{self, parse_response};
use crate::domain::mcp::{Outgoing, agreed, answered, greeting};
use crate::domain::outcome::{ReplyLimits, RestReply, refusal};
use crate::domain::pending::Unanswered;
use crate::domain::pieces::Pieces;
use crate::upstream::link::{Event, Link};

/// How long a server may take to hear that a session is over.
const FAREWELL: Duration = Duration::from_secs(2);

/// An id that no call has: theirs begin with 1.
const NO_CALL: u64 = 0;

/// How many POSTs that the link makes by itself run at a time. Fewer than it has connections for beside those of calls.
const OWN_AT_A_TIME: usize = 8;
/// How many more may wait. They are answers and advice that a server can do without.
const OWN_WAITING: usize = 64;

/// A POST that runs, or the stream of the server's own.
type Posting = Abortable<Posted>;
type Posted = Pin<Box<dyn Future<Output = Done>>>;

/// What has come to its end.
enum Done {
    Post(Errand, Came),
    OwnStream(Followed),
}

/// What a POST is for.
#[derive(Debug, Clone, Copy)]
enum Errand {
    Initialize,
    Initialized,
    Call(u64),
    /// A notification of a caller, who waits until it has arrived.
    Notice,
    /// What the link says by itself, and nobody waits for.
    Own,
}

/// A session with a server, or the like of it where the server's revision has none.
#[derive(Debug)]
pub struct Session {
    mcp: Mcp,
    mode: Mode,
    door: Door,
    ear: mpsc::Receiver<Event>,
    posts: FuturesUnordered<Posting>,
    /// How the POSTs of calls are dropped, by the ids of the calls.
    aborts: BTreeMap<u64, AbortHandle>,
    /// What has happened and was not told yet.
    told: VecDeque<Event>,
    /// What each message but the first bears: the revision, and the session if the server has named one.
    headers: HeaderMap,
    /// How many POSTs of the link itself run, and those that wait.
    own: (usize, VecDeque<Letter>),
}

impl Link for Session {
    async fn event(&mut self) -> Event {
        loop {
            // What was said before an answer is heard before it, also where both came at once.
            if let Ok(event) = self.ear.try_recv() {
                return event;
            }
            if let Some(event) = self.told.pop_front() {
                return event;
            }
            // Cancel-safe, both of them.
            tokio::select! {
                biased;
                Some(event) = self.ear.recv() => return event,
                Some(posted) = self.posts.next(), if !self.posts.is_empty() => self.posted(posted),
            }
        }
    }

    fn write(&mut self, message: Bytes) {
        self.door.forget_idle();
        let outgoing = Outgoing::of(&message, self.mcp.plan.link.settings.depth);
        match &self.mode {
            Mode::Sessions => self.write_in_session(message, outgoing),
            Mode::Stateless(version, _) => self.write_alone(message, outgoing, version),
        }
    }

    /// Each call shows by itself whether the server is there.
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
            // One that does not answer forgets the session in its own time.
            let _ = timeout(FAREWELL, door.delete(headers)).await;
        }
    }
}

impl Session {
    pub(super) fn new(mcp: Mcp, mode: Mode) -> Session {
        let (door, ear) = mcp.door.with_ear();
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

    fn write_in_session(&mut self, message: Bytes, outgoing: Outgoing) {
        let (id, errand) = match outgoing {
            Outgoing::Initialize(id) => (Some(id), Errand::Initialize),
            Outgoing::Initialized => (None, Errand::Initialized),
            Outgoing::Call { id, .. } => (Some(id), Errand::Call(id)),
            Outgoing::Cancelled(id) => {
                // The server is told, and may then leave the answer's way open for good.
                self.abort(id);
                (None, Errand::Own)
            }
            Outgoing::Notice => (None, Errand::Notice),
            Outgoing::Response => (None, Errand::Own),
        };
        let letter = Letter {
            id,
            body: message,
            headers: self.headers.clone(),
        };
        match errand {
            Errand::Own => self.post_own(letter),
            Errand::Initialize | Errand::Initialized | Errand::Call(_) | Errand::Notice => {
                self.post(errand, letter);
            }
        }
    }

    /// Says what nobody waits for, in its turn: a server that asks much and answers nothing keeps no call from its
    /// connection.
    fn post_own(&mut self, letter: Letter) {
        let (running, waiting) = &mut self.own;
        if *running < OWN_AT_A_TIME {
            *running += 1;
            return self.post(Errand::Own, letter);
        }
        if waiting.len() < OWN_WAITING {
            waiting.push_back(letter);
        } else {
            let upstream = &self.door.plan().name;
            tracing::debug!(upstream, "a message of the link itself is dropped");
        }
        self.told.push_back(Event::Written);
    }

    /// A POST of the link itself is over; what waits is next.
    fn posted_own(&mut self) {
        let (running, waiting) = &mut self.own;
        *running -= 1;
        if let Some(letter) = waiting.pop_front() {
            *running += 1;
            let post = self.posting(Errand::Own, letter);
            self.push(post);
        }
    }

    /// Without a session nothing is said but calls and what callers tell: the link greets itself, a call is cancelled
    /// by closing its connection (MCP 2026-07-28, "Cancellation"), and the server asks for nothing.
    fn write_alone(&mut self, message: Bytes, outgoing: Outgoing, version: &'static str) {
        let (id, method) = match outgoing {
            Outgoing::Initialize(id) => {
                self.told.push_back(Event::Written);
                if let Mode::Stateless(_, presented) = &self.mode {
                    let greeting = greeting(id, presented).into();
                    self.told.push_back(Event::Message(greeting));
                }
                return;
            }
            Outgoing::Cancelled(id) => {
                self.abort(id);
                return self.told.push_back(Event::Written);
            }
            Outgoing::Initialized | Outgoing::Response => {
                return self.told.push_back(Event::Written);
            }
            Outgoing::Notice => {
                let mut headers = HeaderMap::new();
                headers.insert(VERSION, HeaderValue::from_static(version));
                let letter = Letter {
                    id: None,
                    body: message,
                    headers,
                };
                return self.post(Errand::Notice, letter);
            }
            Outgoing::Call { id, method } => (id, method),
        };
        let depth = self.mcp.plan.link.settings.depth;
        if let Some(answer) = answered((id, &method), &message, depth) {
            let answer = Event::Message(answer.into());
            return self.told.extend([Event::Written, answer]);
        }
        let called = Called {
            id,
            method,
            message,
            version,
            depth,
        };
        let (door, mirrored) = (self.door.clone(), self.mcp.mirrored.clone());
        let call = async move {
            let came = called.post(door, mirrored).await;
            Done::Post(Errand::Call(id), came)
        };
        self.begin(Errand::Call(id), Box::pin(call));
    }

    fn abort(&mut self, id: u64) {
        if let Some(post) = self.aborts.remove(&id) {
            post.abort();
        }
    }

    fn post(&mut self, errand: Errand, letter: Letter) {
        let post = self.posting(errand, letter);
        self.begin(errand, post);
    }

    fn posting(&self, errand: Errand, letter: Letter) -> Posted {
        let (door, limit) = (self.door.clone(), self.mcp.limit);
        Box::pin(async move {
            let came = match errand {
                // The owner of the link says when these are over.
                Errand::Initialize | Errand::Call(_) => door.post(letter).await,
                Errand::Initialized | Errand::Notice | Errand::Own => {
                    let late = Came {
                        outcome: Outcome::Failed(Unanswered::Late),
                        session: None,
                    };
                    timeout(limit, door.post(letter)).await.unwrap_or(late)
                }
            };
            Done::Post(errand, came)
        })
    }

    fn begin(&mut self, errand: Errand, post: Posted) {
        let (handle, registration) = AbortHandle::new_pair();
        match errand {
            Errand::Call(id) => {
                self.aborts.insert(id, handle);
                self.told.push_back(Event::Written);
            }
            Errand::Initialize | Errand::Own => self.told.push_back(Event::Written),
            // What comes behind them may need that they have arrived.
            Errand::Initialized | Errand::Notice => {}
        }
        self.posts.push(Abortable::new(post, registration));
    }

    /// Hears what the server says by itself, if it has a stream for that.
    fn follow(&mut self) {
        if self.mcp.own_stream.get() == OwnStream::Never {
            return;
        }
        let (door, headers) = (self.door.clone(), self.headers.clone());
        let stream = async move { Done::OwnStream(door.follow(headers).await) };
        self.push(Box::pin(stream));
    }

    /// Asks by a POST whether the server still knows the session: only the answer to a POST ends it.
    fn ask_for_session(&mut self) {
        let params = Pieces::from(Bytes::from_static(b"{}"));
        let letter = Letter {
            id: Some(NO_CALL),
            body: jsonrpc::request(NO_CALL, "ping", params, &[]).into_bytes(),
            headers: self.headers.clone(),
        };
        // The connection of the stream is free for it.
        self.own.0 += 1;
        let post = self.posting(Errand::Own, letter);
        self.push(post);
    }

    /// Waits until the server has heard what the link says by itself.
    async fn last_words(&mut self) {
        while self.own.0 > 0 {
            match self.posts.next().await {
                Some(Ok(Done::Post(Errand::Own, _))) => self.posted_own(),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// What is never dropped before the session is.
    fn push(&mut self, post: Posted) {
        let (_, registration) = AbortHandle::new_pair();
        self.posts.push(Abortable::new(post, registration));
    }

    fn posted(&mut self, posted: Result<Done, Aborted>) {
        let (errand, Came { outcome, session }) = match posted {
            Ok(Done::Post(errand, came)) => (errand, came),
            Ok(Done::OwnStream(Followed::Never)) => {
                return self.mcp.own_stream.set(OwnStream::Never);
            }
            Ok(Done::OwnStream(Followed::Doubtful)) => return self.ask_for_session(),
            Ok(Done::OwnStream(Followed::Refused)) | Err(Aborted) => return,
        };
        match errand {
            Errand::Initialize => self.initialized(outcome, session),
            Errand::Initialized => match outcome {
                Outcome::Accepted | Outcome::Answered(_) => {
                    self.told.push_back(Event::Written);
                    self.follow();
                }
                Outcome::Forgotten | Outcome::Failed(_) | Outcome::Refused(_) => {
                    self.lost("it did not take the end of the handshake");
                }
            },
            Errand::Call(id) => {
                self.aborts.remove(&id);
                self.called(id, outcome);
            }
            Errand::Notice => match outcome {
                Outcome::Accepted | Outcome::Answered(_) => self.told.push_back(Event::Written),
                Outcome::Failed(why) => self.told.push_back(Event::Unwritten(why)),
                Outcome::Refused(reply) => {
                    let why = Unanswered::Unusable(reply.status);
                    self.told.push_back(Event::Unwritten(why));
                }
                Outcome::Forgotten => {
                    self.told.push_back(Event::Unwritten(Unanswered::Cut));
                    self.forgotten(None);
                }
            },
            Errand::Own => {
                self.posted_own();
                if matches!(outcome, Outcome::Forgotten) {
                    self.forgotten(None);
                }
            }
        }
    }

    fn initialized(&mut self, outcome: Outcome, session: Option<HeaderValue>) {
        let message = match outcome {
            Outcome::Answered(message) => message,
            Outcome::Failed(Unanswered::Unusable(status))
            | Outcome::Refused(RestReply { status, .. }) => {
                return self.lost(&format!(
                    "it answered `initialize` with the status {status}"
                ));
            }
            Outcome::Failed(Unanswered::Unreachable | Unanswered::Busy) => {
                return self.lost("it cannot be reached");
            }
            Outcome::Failed(_) | Outcome::Accepted | Outcome::Forgotten => {
                return self.lost("it did not answer `initialize`");
            }
        };
        let answer = parse_response(&message, self.mcp.plan.link.settings.depth);
        let agreed = match answer {
            Ok(answer) => agreed(&answer.reply),
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
                self.mcp.era.set(Era::Sessions);
                self.told.push_back(Event::Message(message));
            }
            Err(why) => self.lost(&why),
        }
    }

    fn called(&mut self, id: u64, outcome: Outcome) {
        match outcome {
            Outcome::Answered(message) => self.told.push_back(Event::Message(message)),
            Outcome::Failed(why) => self.told.push_back(Event::Failed(id, why)),
            Outcome::Refused(reply) => {
                let limits = ReplyLimits {
                    depth: self.mcp.plan.link.settings.depth,
                    error_text: OTHER,
                };
                let message = refusal(id, &reply, limits);
                self.told.push_back(Event::Message(message));
            }
            Outcome::Accepted => {
                let nothing = Unanswered::Unusable(202);
                self.told.push_back(Event::Failed(id, nothing));
            }
            Outcome::Forgotten => self.forgotten(Some(id)),
        }
    }

    /// The session is over for the server, so that it need not be told.
    fn forgotten(&mut self, id: Option<u64>) {
        self.headers.remove(SESSION);
        self.told.push_back(Event::Forgotten(id));
    }

    /// What was found out about the server may have changed.
    fn lost(&mut self, why: &str) {
        self.mcp.era.set(Era::Unknown);
        self.told.push_back(Event::Lost(why.to_owned()));
    }
}
