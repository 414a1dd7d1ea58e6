//! A client that speaks JSON-RPC over a WebSocket, or in frames: each message is served as if it were posted.
//!
//! Where the plan knows frames, the protocol of each message is found out anew, and events come in the form of the first
//! one that was recognised. Calls run side by side, and are answered as they end; what a server says before an answer is
//! told before it. Of a client that goes away nothing runs on. When the program ends, no message is taken any more, and
//! the connection closes behind the last answer, also of a frame that passes as it is.

mod call;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Version, request};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::sleep_until;

use super::ears::{self, Attention, Ears, Spoken, closing};
use super::underway::{Bounds, Ended, Message, Reply, Underway};
use super::{Author, Company, Letter, Said};
use crate::domain::claim::{self, Head};
use crate::domain::event::Form;
use crate::domain::failure::Failure;
use crate::domain::frame::{Heard, Stray};
use crate::domain::json::unmarked;
use crate::domain::jsonrpc::{self, RequestId};
use crate::domain::pending::Heartbeat;
use crate::domain::pieces::Pieces;
use crate::domain::plan::{Sockets, Tongue};
use crate::domain::side::Side;
use crate::domain::wire::Cut;
use crate::domain::{refusal, websocket};
use crate::gateway::caller::identify;
use crate::gateway::framed::{Commander, News, Served, command, told};
use crate::gateway::headers::strip_hop_by_hop;
use crate::gateway::intake::no_room;
use crate::gateway::long_texts;
use crate::gateway::recalls::Scope;
use crate::gateway::record::{Record, RequestLine};
use crate::gateway::render;
use crate::gateway::silence::{Ring, Silence, Work};
use crate::gateway::{AnswerBody, Arrival, Installed, Worker};
use crate::upstream::link::{Event, Tidings};
use crate::upstream::{Closing, Frames, Intake, Upstream, accept_key};

/// After so long without a word of the client it is asked for a sign of life, and after as long again it is gone.
const BEAT: Heartbeat = Heartbeat {
    every: Duration::from_secs(30),
    within: Duration::from_secs(30),
};

/// How many messages are read ahead of those that are served.
const AHEAD: usize = 64;

/// Agrees to a WebSocket, and serves it beside.
pub(super) fn accept(
    mut reading: Box<Record>,
    mut head: Box<request::Parts>,
    (arrival, sockets): (Arrival, Sockets),
) -> Response<AnswerBody> {
    let installed = reading.installed().clone();
    identify(&mut reading, &head.headers, &arrival);
    let response = match agree(&reading, (&installed, &arrival), &head) {
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
    let upgrade = head.extensions.remove::<OnUpgrade>();
    let worker = reading.worker().clone();
    let counted = arrival.counted.clone();
    // From here on each message has a record of its own.
    reading.discard();
    let conversation = Conversation {
        number: worker.sessions().number(),
        head: of_messages(head),
        arrival: arrival.spelled(None),
        sockets,
        worker: worker.clone(),
        form: Cell::new(None),
        closing: Cell::new(None),
    };
    let connected = worker.connected(counted);
    worker.tasks().start(async move {
        // A client that is gone by now has said nothing.
        if let Some(upgrade) = upgrade
            && let Ok(upgraded) = upgrade.await
        {
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
    (installed, arrival): (&Installed, &Arrival),
    head: &request::Parts,
) -> Result<Response<AnswerBody>, Failure> {
    reading.admit()?;
    // A page of any origin may open a WebSocket: nothing but this keeps it off (RFC 6455 §10.2).
    claim::guard(&installed.plan, Head::of(head), arrival.entry())?;
    let handshake = websocket::handshake(&head.headers)?;
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
fn of_messages(mut head: Box<request::Parts>) -> Box<request::Parts> {
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
    head: Box<request::Parts>,
    arrival: Arrival,
    sockets: Sockets,
    worker: Rc<Worker>,
    /// That of the first message that was recognised.
    form: Cell<Option<Form>>,
    /// Why the connection closes, if not because one of both leaves.
    closing: Cell<Option<Closing>>,
}

/// Whether messages are still taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Open,
    /// The client is told why.
    Closed(&'static str),
}

/// Why the door of a client closes: what it was connected for is over, or everything is.
const GONE: &str = "the server is gone";
const OVER: &str = "the program ends";
const FLOOD: &str = "too many control frames or empty fragments";

impl Conversation {
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(self: Rc<Self>, mut frames: Frames<S>) {
        let mut leaving = self.worker.leaving();
        let mut door = Door::Open;
        let mut ears = Ears::of(&self.arrival);
        self.listen(door);
        let mut silence = Silence::new(self.sockets.idle_timeout, Some(BEAT));
        let mut underway = Underway::new(self.bounds());
        loop {
            self.go_on(&mut underway, &mut frames);
            let work = Work::of(underway.count() + usize::from(frames.is_writing()));
            if let (Door::Closed(why), Work::Done) = (door, work) {
                frames.closes(Some(Closing::because(why)));
                break;
            }
            let intake = intake(door, &underway);
            let attention = attention(&frames);
            let alarm = silence.alarm();
            // Cancel-safe, each of them: what is under way stays where it is.
            tokio::select! {
                event = frames.next(intake) => {
                    if self.take(event, (&mut silence, &mut underway), door).is_break() {
                        break;
                    }
                }
                said = ears.next(&mut underway, attention) => match said {
                    ears::Said::Answer(reply) => {
                        let behind = self.arrival.sockets().behind();
                        for spoken in ears.before(behind) {
                            door = self.heed(spoken, &mut underway, door);
                        }
                        underway.replies.extend(reply);
                    }
                    ears::Said::Unasked(spoken) => {
                        silence.used();
                        door = self.heed(spoken, &mut underway, door);
                    }
                },
                () = left(&mut leaving), if door == Door::Open => door = Door::Closed(OVER),
                () = sleep_until(alarm) => match silence.ring_at(intake, work) {
                    Ring::Ask => {
                        frames.beat();
                        self.listen(door);
                    }
                    Ring::Wait => {}
                    Ring::End => break,
                },
            }
        }
        // Nobody waits for what is still under way.
        drop(underway);
        self.close(frames).await;
    }

    /// Takes what came over the socket of the client. Breaks where the connection is lost.
    fn take(
        &self,
        event: Event,
        (silence, underway): (&mut Silence, &mut Underway),
        door: Door,
    ) -> ControlFlow<()> {
        match event {
            Event::Message(message) => {
                silence.used();
                underway.hear(unmarked(message), |id| self.recall(id));
            }
            Event::Written => {
                silence.used();
                underway.written();
            }
            Event::Sign => {
                silence.heard();
                self.listen(door);
            }
            // The end follows.
            Event::Overlong => {}
            // A socket of a client has only the first of these.
            Event::Lost(_)
            | Event::Beside(..)
            | Event::Failed(..)
            | Event::Forgotten(_)
            | Event::Unwritten(_) => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Closes the socket of the client, and says why.
    async fn close<S: AsyncRead + AsyncWrite + Unpin>(&self, mut frames: Frames<S>) {
        if frames.is_flooded() {
            self.worker
                .count(|shard| shard.cut_connection(Cut::Chatter));
            frames.closes(Some(Closing::because(FLOOD)));
        }
        frames.closes(self.closing.take());
        frames.end().await;
    }

    /// Ends the calls of this client that have an id; names those that a server knows by another one.
    fn recall(&self, id: &Bytes) -> Vec<u64> {
        self.worker.recalls().recall(Scope::Socket(self.number), id)
    }

    /// Begins what may run, and the next answer where none is being written.
    fn go_on<S: AsyncRead + AsyncWrite + Unpin>(
        self: &Rc<Self>,
        underway: &mut Underway,
        frames: &mut Frames<S>,
    ) {
        underway.begin(|message| {
            let conversation = self.clone();
            Box::pin(async move { conversation.message(message).await })
        });
        if !frames.is_writing()
            && let Some(reply) = underway.replies.pop_front()
        {
            underway.followed_by = reply.followed_by;
            underway.room = reply.room;
            frames.say(reply.text);
        }
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

    /// The form in which events come to the client.
    fn form(&self) -> Form {
        let first = match self.sockets.tongue {
            Tongue::Rpc => Form::Rpc,
            Tongue::Both => Form::Frame,
        };
        self.form.get().unwrap_or(first)
    }

    /// Opens what a client hears that only listens, where there is one server that it could be and it is not open. A link
    /// that has ended by its age or unused, or found no place, would wait for a call of the client.
    fn listen(&self, door: Door) {
        if door != Door::Open {
            return;
        }
        let installed = self.worker.installed();
        let frames = installed.usual_of_frames().and_then(Upstream::frames);
        match (frames, installed.upstream(None, Side::Rpc)) {
            (Some(frames), None) => {
                self.arrival.links().asks(Side::Rest);
                let sockets = self.arrival.sockets();
                sockets.listen(&self.worker, &installed, frames);
            }
            (None, Some(Upstream::Link(link))) => link.listen(self.arrival.links()),
            (_, Some(_)) | (None, None) => {}
        }
    }

    /// What the client is told of something that a server has said unasked.
    fn event(&self, side: Side, text: Bytes) -> Option<Bytes> {
        match self.sockets.tongue {
            // What is no message of JSON-RPC says nothing to this client.
            Tongue::Rpc => Some(text).filter(is_rpc),
            Tongue::Both if self.arrival.links().hears(side) => {
                let installed = self.worker.installed();
                told((&self.worker, &installed), text, self.form())
            }
            Tongue::Both => None,
        }
    }

    /// Tells the client what a server says, and whether more messages of the client are taken then.
    fn heed(&self, spoken: Spoken, underway: &mut Underway, door: Door) -> Door {
        let mut room = None;
        let text = match spoken {
            Spoken::Link(Tidings::Told(text, own)) => {
                room = Some(own);
                self.event(Side::Rpc, text)
            }
            Spoken::Link(Tidings::Gone(loss)) => {
                // Nothing else tells the client that its server has forgotten it.
                self.closing.set(Some(closing(&loss)));
                return Door::Closed(GONE);
            }
            Spoken::News(News::Answer(text)) => Some(text),
            Spoken::News(News::Event(text)) => self.event(Side::Rest, text),
            Spoken::News(News::Gone) => {
                self.arrival.links().falls_silent(Side::Rest);
                // Nothing else tells a client that its server has forgotten it.
                return Door::Closed(GONE);
            }
        };
        let reply = text.map(|text| Reply {
            room,
            ..Reply::alone(text)
        });
        underway.replies.extend(reply);
        door
    }

    /// One message, from its bytes to its answer, if it has one.
    async fn message(&self, message: Message) -> Ended {
        let body = message.text.clone();
        if self.sockets.tongue == Tongue::Both {
            let depth = self.worker.installed().plan.limits.depth;
            // What is read of it is a part of it, and keeps its room.
            let (kept, room) = match self.worker.memory().keep(body.clone()) {
                Ok(kept) => (kept, Ok(())),
                Err(full) => (body.clone(), Err(full)),
            };
            match Heard::of(&kept, depth) {
                Heard::Rpc(_) => self.recognised(Form::Rpc),
                Heard::Frame(frame) => {
                    self.recognised(Form::Frame);
                    return match command(&self.commander(), (frame, kept), room).await {
                        Served::Said(text) => Ended::Said(text.map(Reply::alone)),
                        Served::Passes(passing) => Ended::Passes(Box::pin(passing.settle())),
                    };
                }
                Heard::Noise(_) => {
                    self.worker.count(|shard| shard.stray(Stray::Noise));
                    return Ended::Said(None);
                }
            }
        }
        Ended::Said(self.call(message).await)
    }

    fn recognised(&self, form: Form) {
        self.form.set(Some(self.form.get().unwrap_or(form)));
    }

    fn commander(&self) -> Commander<'_> {
        Commander {
            worker: &self.worker,
            head: &self.head,
            arrival: &self.arrival,
            socket: self.number,
        }
    }
}

/// Whether a message is one of JSON-RPC.
fn is_rpc(text: &Bytes) -> bool {
    matches!(Heard::of(text, u16::MAX), Heard::Rpc(_))
}

/// Whether more is read from the client.
fn intake(door: Door, underway: &Underway) -> Intake {
    match door {
        Door::Open if underway.has_room() => Intake::Open,
        Door::Open | Door::Closed(_) => Intake::Shut,
    }
}

/// Whether what servers say is taken. Also when the program ends, until the last answer: some come that way, and others
/// stand behind what does.
fn attention<S: AsyncRead + AsyncWrite + Unpin>(frames: &Frames<S>) -> Attention {
    match frames.is_writing() {
        true => Attention::Busy,
        false => Attention::Listens,
    }
}

/// Waits for the end of the program.
async fn left(leaving: &mut watch::Receiver<bool>) {
    // The worker that would tell is there for as long as this is.
    let _ = leaving.wait_for(|leaves| *leaves).await;
}
