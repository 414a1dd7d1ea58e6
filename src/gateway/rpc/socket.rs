//! A client that speaks JSON-RPC over a WebSocket: each message is served as if it were posted.
//!
//! Calls run side by side, and are answered as they end. Of a client that goes away nothing runs on. When the program ends,
//! no message is taken any more, and the connection closes behind the last answer.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, request};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::underway::{Bounds, Reply, Underway};
use super::{Company, Letter, Said};
use crate::domain::claim::{self, Head};
use crate::domain::failure::Failure;
use crate::domain::jsonrpc::{self, RequestId};
use crate::domain::pieces::Pieces;
use crate::domain::plan::Sockets;
use crate::domain::side::Side;
use crate::domain::{refusal, websocket};
use crate::gateway::caller::identify;
use crate::gateway::candidate::Candidate;
use crate::gateway::headers::strip_hop_by_hop;
use crate::gateway::record::Record;
use crate::gateway::render;
use crate::gateway::{AnswerBody, Arrival, Installed, Worker};
use crate::telemetry::clock;
use crate::upstream::link::Event;
use crate::upstream::{Frames, Intake, accept_key};

/// After so long without a word of the client it is asked for a sign of life, and after as long again it is gone.
const BEAT: Duration = Duration::from_secs(30);

/// How many notifications of a server may wait for a client; more are dropped.
const NOTICES: usize = 64;

/// How many messages are read ahead of those that are served.
const AHEAD: usize = 64;

/// Agrees to a WebSocket, and serves it beside.
pub(super) fn accept(
    mut reading: Record,
    mut request: Request<Incoming>,
    (arrival, sockets): (Arrival, Sockets),
) -> Response<AnswerBody> {
    let installed = reading.installed().clone();
    identify(&mut reading, request.headers(), &arrival);
    let response = match agree(&reading, &installed, &request) {
        Ok(response) => response,
        Err(failure) => {
            let mut response = render::failure(reading, failure);
            let version = HeaderValue::from_static(websocket::VERSION);
            response
                .headers_mut()
                .insert(SEC_WEBSOCKET_VERSION, version);
            return response;
        }
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let worker = reading.worker().clone();
    // From here on each message has a record of its own.
    reading.discard();
    let conversation = Conversation {
        number: worker.sessions().number(),
        head: head(request.into_parts().0),
        arrival,
        sockets,
        worker: worker.clone(),
    };
    let connected = worker.connected();
    worker.tasks().start(async move {
        // A client that is gone by now has said nothing.
        if let Ok(upgraded) = upgrade.await {
            let limit = installed.plan.limits.body;
            let frames = Frames::server(TokioIo::new(upgraded), limit).await;
            Box::pin(Rc::new(conversation).run(frames)).await;
        }
        // Until here the connection is among those that the worker may have.
        drop(connected);
    });
    response
}

fn agree(
    reading: &Record,
    installed: &Installed,
    request: &Request<Incoming>,
) -> Result<Response<AnswerBody>, Failure> {
    reading.admit()?;
    let asked = Head {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
    };
    // A page of any origin may open a WebSocket: nothing but this keeps it off (RFC 6455 §10.2).
    claim::guard(&installed.plan, asked)?;
    let handshake = websocket::handshake(request.headers())?;
    let mut response = Response::new(AnswerBody::written(Pieces::default()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::try_from(accept_key(handshake.key)) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(protocol) = handshake.protocol {
        let protocol = HeaderValue::from_static(protocol);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

/// The head that each message has: that of the handshake, as if the message were posted.
fn head(mut head: request::Parts) -> request::Parts {
    strip_hop_by_hop(&mut head.headers);
    let own = |name: &HeaderName| name.as_str().starts_with("sec-websocket-");
    let own: Vec<HeaderName> = head
        .headers
        .keys()
        .filter(|name| own(name))
        .cloned()
        .collect();
    for name in own {
        head.headers.remove(name);
    }
    let json = HeaderValue::from_static("application/json");
    head.headers.insert(CONTENT_TYPE, json.clone());
    head.headers.entry(ACCEPT).or_insert(json);
    head.method = Method::POST;
    // What belongs to the one request.
    head.extensions = http::Extensions::new();
    head
}

/// A WebSocket of a client.
struct Conversation {
    /// Names it among all of the process.
    number: u64,
    head: request::Parts,
    arrival: Arrival,
    sockets: Sockets,
    worker: Rc<Worker>,
}

/// Whether messages are still taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Open,
    Closed,
}

/// Whether anything is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Open,
    Done,
}

impl Work {
    const fn of(count: usize) -> Work {
        match count {
            0 => Work::Done,
            _ => Work::Open,
        }
    }
}

impl Conversation {
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(self: Rc<Self>, mut frames: Frames<S>) {
        let mut leaving = self.worker.leaving();
        let mut door = Door::Open;
        let (tell, mut notices) = mpsc::channel(NOTICES);
        self.arrival.links().tell(tell);
        let mut silence = Silence::new(self.sockets.idle_timeout);
        let mut underway = Underway::new(self.bounds());
        loop {
            underway.begin(|message| {
                let conversation = self.clone();
                Box::pin(async move { conversation.message(message).await })
            });
            if !frames.is_writing()
                && let Some(reply) = underway.replies.pop_front()
            {
                underway.followed_by = reply.followed_by;
                frames.say(reply.text);
            }
            let work = Work::of(underway.count() + usize::from(frames.is_writing()));
            if (door, work) == (Door::Closed, Work::Done) {
                break;
            }
            let intake = intake(door, &underway);
            let alarm = silence.alarm();
            // Cancel-safe, each of them: what is under way stays where it is.
            tokio::select! {
                event = frames.next(intake) => match event {
                    Event::Message(message) => {
                        silence.used();
                        underway.hear(message);
                    }
                    Event::Written => {
                        silence.used();
                        underway.followed_by.drain(..).for_each(Candidate::start);
                    }
                    Event::Sign => silence.heard(),
                    // The end follows.
                    Event::Overlong => {}
                    // A socket of a client has only the first of these.
                    Event::Lost(_)
                    | Event::Failed(..)
                    | Event::Forgotten(_)
                    | Event::Unwritten(_) => break,
                },
                reply = underway.served() => {
                    underway.answered(reply, Some(&mut notices).filter(|_| door == Door::Open));
                }
                Some(text) = notices.recv(), if door == Door::Open && !frames.is_writing() => {
                    silence.used();
                    underway.replies.push_back(Reply::notice(text));
                }
                () = left(&mut leaving), if door == Door::Open => door = Door::Closed,
                () = sleep_until(alarm) => match silence.ring(intake, work) {
                    Ring::Ask => frames.beat(),
                    Ring::Wait => {}
                    Ring::End => break,
                },
            }
        }
        // Nobody waits for what is still under way.
        drop(underway);
        frames.end().await;
    }

    fn bounds(&self) -> Bounds {
        let limits = &self.worker.installed().plan.limits;
        Bounds {
            concurrency: self.sockets.concurrency,
            ahead: AHEAD,
            bytes: limits.body,
            depth: limits.depth,
        }
    }

    /// One message, from its bytes to its answer, if it has one.
    async fn message(&self, body: Bytes) -> Option<Reply> {
        let installed = self.worker.installed();
        let mut asked = Request::new(());
        *asked.method_mut() = self.head.method.clone();
        *asked.uri_mut() = self.head.uri.clone();
        let mut reading = Record::begin(&self.worker, &installed, Side::Rpc, &asked);
        let identity = identify(&mut reading, &self.head.headers, &self.arrival).into_owned();
        let read = reading.admit().and_then(|()| {
            let limits = installed.plan.limits.message();
            jsonrpc::parse(&body, limits).map_err(refusal::no_message)
        });
        let incoming = match read {
            Ok(incoming) => incoming,
            Err(failure) => {
                let whole = render::rpc_failure(&failure, &RequestId::null());
                reading.failed(whole.status.as_u16(), &failure);
                return Some(Reply {
                    text: whole.body.into_bytes(),
                    followed_by: Vec::new(),
                });
            }
        };
        let since = reading.discard();
        let letter = Letter {
            since,
            worker: self.worker.clone(),
            head: self.head.clone(),
            body,
            arrival: self.arrival.clone(),
            identity: Rc::new(identity),
            candidates: Rc::new(Cell::new(installed.plan.candidates.per_request)),
            socket: Some(self.number),
            installed,
        };
        let (whole, followed_by) = match incoming {
            jsonrpc::Incoming::Single(item) => {
                let room = Cell::new(letter.installed.plan.limits.answer);
                match letter.item(item, Company::Batch(&room)).await.0 {
                    Said::Message(whole, candidate) => (*whole, candidate.into_iter().collect()),
                    Said::Forwarded(_) | Said::Nothing => return None,
                }
            }
            jsonrpc::Incoming::Batch(items) => letter.answers(items).await?,
        };
        Some(Reply {
            text: whole.body.into_bytes(),
            followed_by,
        })
    }
}

/// Whether more is read from the client.
fn intake(door: Door, underway: &Underway) -> Intake {
    match door {
        Door::Open if underway.has_room() => Intake::Open,
        Door::Open | Door::Closed => Intake::Shut,
    }
}

/// Waits for the end of the program.
async fn left(leaving: &mut watch::Receiver<bool>) {
    // The worker that would tell is there for as long as this is.
    let _ = leaving.wait_for(|leaves| *leaves).await;
}

/// What is done about a client that says nothing.
enum Ring {
    /// It is asked for a sign of life.
    Ask,
    /// Nothing.
    Wait,
    /// It is let go.
    End,
}

/// For how long a client has said nothing.
struct Silence {
    /// The last sign of life.
    heard: Instant,
    /// The last message, either way.
    used: Instant,
    asked: Option<Instant>,
    limit: Duration,
}

impl Silence {
    fn new(limit: Duration) -> Silence {
        let now = clock::now();
        Silence {
            heard: now,
            used: now,
            asked: None,
            limit,
        }
    }

    fn heard(&mut self) {
        self.heard = clock::now();
        self.asked = None;
    }

    fn used(&mut self) {
        self.heard();
        self.used = self.heard;
    }

    fn alarm(&self) -> Instant {
        let beat = self.asked.unwrap_or(self.heard) + BEAT;
        beat.min(self.used + self.limit)
    }

    /// A client whose calls are in progress is not idle, but may be gone.
    fn ring(&mut self, intake: Intake, work: Work) -> Ring {
        if intake == Intake::Shut {
            // Signs of life are not read; one that is gone does not take the question, either.
            self.used();
            return Ring::Ask;
        }
        let now = clock::now();
        if self.used + self.limit <= now {
            if work == Work::Done {
                return Ring::End;
            }
            self.used = now;
        }
        match self.asked {
            Some(asked) if asked + BEAT <= now => Ring::End,
            Some(_) => Ring::Wait,
            None if self.heard + BEAT <= now => {
                self.asked = Some(now);
                Ring::Ask
            }
            None => Ring::Wait,
        }
    }
}
