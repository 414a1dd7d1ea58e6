//! The RPC face: one function serves a call, alone or in a batch.

mod batch;
mod cancels;
mod ears;
mod invalid;
mod kept;
mod methods;
mod reading;
mod repeated;
mod send;
mod socket;
mod telling;
mod underway;

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http::{Method, Response, StatusCode, request};

use crate::domain::claim::{self, Head};
use crate::domain::compare::Skip;
use crate::domain::failure::{Failure, Reason};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{self, Call, Invalid, Item, RequestId};
use crate::domain::plan::Plan;
use crate::domain::posted::{Handling, MessageFault};
use crate::domain::refusal;
use crate::domain::rollout::{Caller, Identity, Way};
use crate::domain::side::Side;
use crate::domain::websocket;
use crate::gateway::ask::in_all;
use crate::gateway::caller::identify;
use crate::gateway::candidate::{self, Candidate, Told};
use crate::gateway::forward::InterimResponses;
use crate::gateway::marks::Marks;
use crate::gateway::record::{Beginning, Record, RequestLine};
use crate::gateway::render::{self, Answer, Whole};
use crate::gateway::rest::decide;
use crate::gateway::{AnswerBody, Arrival, Delivery, Installed, Worker, cors, local, sessions};
use crate::telemetry::clock;
use crate::upstream::{Upstream, pinned};

use batch::full;
use kept::Kept;
use reading::{Read, read};
pub(in crate::gateway) use repeated::Repeated;
pub(in crate::gateway) use telling::Telling;

/// How many of the news of sockets of frames may wait for a client; no more are read then.
const NOTICES: usize = 64;

/// What the messages of one HTTP request have in common.
#[derive(Clone)]
struct Letter {
    worker: Rc<Worker>,
    installed: Rc<Installed>,
    since: Beginning,
    head: Box<request::Parts>,
    /// As it came.
    body: Bytes,
    arrival: Arrival,
    author: Rc<Author>,
    /// The WebSocket that it came over.
    socket: Option<u64>,
    /// What servers behind HTTP call what it cancels, if that was found out when it was read.
    minted: Vec<u64>,
    /// The records of calls that are answered, where their client gets the answers later.
    kept: Option<Rc<Kept>>,
    /// Why translation does not take it, where it is not valid JSON-RPC 2.0, or not sent as such.
    fault: Option<Rc<Failure>>,
}

/// Whose request it is.
struct Author {
    identity: Identity<'static>,
    /// How many more of its calls may have a candidate.
    candidates: Cell<usize>,
}

impl Author {
    fn new(identity: Identity<'_>, plan: &Plan) -> Rc<Author> {
        Rc::new(Author {
            identity: identity.into_owned(),
            candidates: Cell::new(plan.candidates.per_request),
        })
    }
}

/// What a message is answered with.
enum Said {
    /// A response of its own, and what follows when the client has it.
    Message(Box<Whole>, Option<Candidate>),
    /// The upstream's HTTP answer as it comes; only for a message that is alone.
    Forwarded(Response<AnswerBody>),
    /// Nothing: it was a notification, or a response of the client.
    Nothing,
}

/// Whether a message is the only one of its request.
#[derive(Debug, Clone, Copy)]
enum Company<'a> {
    Alone,
    /// In a batch, whose answers have this much room left together, in bytes.
    Batch(&'a Cell<usize>),
}

impl Company<'_> {
    /// Takes room for an answer, if there is enough.
    fn takes(self, length: usize) -> bool {
        match self {
            Company::Alone => true,
            Company::Batch(room) => {
                let left = room.get().checked_sub(length);
                room.set(left.unwrap_or(0));
                left.is_some()
            }
        }
    }

    fn is_full(self) -> bool {
        match self {
            Company::Alone => false,
            Company::Batch(room) => room.get() == 0,
        }
    }
}

/// Serves one HTTP request to an RPC path.
pub(super) async fn serve(delivery: Delivery) -> Response<AnswerBody> {
    let Delivery {
        record: mut reading,
        head,
        body,
        arrival,
    } = delivery;
    let installed = reading.installed().clone();
    if head.method != Method::POST {
        let asks = websocket::is_asked(&head.method, &head.headers);
        if let Some(sockets) = installed.plan.face.sockets.filter(|_| asks) {
            return socket::accept(reading, head, (arrival, sockets));
        }
        return methods::pass(reading, (head, body), arrival).await;
    }
    let identity = identify(&mut reading, &head.headers, &arrival);
    let author = Author::new(identity, &installed.plan);
    let since = body.is_awaited().then(clock::now);
    let read = in_all(&mut reading, async |reading| {
        read(reading, &head.headers, body).await
    });
    let read = match read.await {
        Ok(read) => read,
        Err(failure) => {
            let mut response = render::failure(reading, failure);
            cors::mark(&installed.plan, &head.headers, &mut response);
            return response;
        }
    };
    reading.body_came(since);
    match read {
        Read::Messages(body, incoming) => {
            let letter = Letter::new(&reading, (head, body), arrival, author);
            letter.serve(reading, incoming).await
        }
        Read::Other(content, body) => {
            let context = invalid::Context {
                head,
                arrival,
                author,
            };
            pinned(|| invalid::serve(reading, context, (content, body))).await
        }
    }
}

/// Whether the client of a message gets an answer later than it is made: behind those to others, or, over HTTP/2, when it
/// takes it.
fn keeps(reading: &Record, incoming: &jsonrpc::Incoming) -> bool {
    matches!(incoming, jsonrpc::Incoming::Batch(_)) || reading.waits_for_its_client()
}

impl Letter {
    /// The messages of one request, which came with this head and body.
    fn new(
        reading: &Record,
        (head, body): (Box<request::Parts>, Bytes),
        arrival: Arrival,
        author: Rc<Author>,
    ) -> Letter {
        Letter {
            since: reading.beginning(),
            worker: reading.worker().clone(),
            installed: reading.installed().clone(),
            head,
            body,
            arrival,
            author,
            socket: None,
            minted: Vec::new(),
            kept: None,
            fault: None,
        }
    }

    /// Serves valid messages, and batches of which some are.
    async fn serve(
        self,
        reading: Box<Record>,
        incoming: jsonrpc::Incoming,
    ) -> Response<AnswerBody> {
        let kept = keeps(&reading, &incoming).then(Rc::default);
        let letter = Letter { kept, ..self };
        match incoming {
            jsonrpc::Incoming::Single(item) if telling::is_wanted(&letter, &item) => {
                telling::serve(reading, letter, item).await
            }
            jsonrpc::Incoming::Single(item) => {
                // What was begun for the request is the record of its one message.
                let (said, marks) = letter.answer(reading, item, Company::Alone).await;
                let response = letter.alone(said, marks);
                letter.worker.rooms().keep(letter.head);
                response
            }
            jsonrpc::Incoming::Batch(items) => letter.batch(reading, items).await,
        }
    }

    /// Fails where a message is not one that translation takes.
    fn check_valid(&self) -> Result<(), Failure> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(Failure::clone(fault)),
        }
    }

    fn silence(&self) -> Response<AnswerBody> {
        self.written(render::respond(render::acknowledged(self.silence_status())))
    }

    /// The status of a message that is not answered.
    fn silence_status(&self) -> StatusCode {
        claim::notification_status(&self.installed.plan, &self.head.headers)
    }

    /// A response that the proxy has written: the page that asked may read it.
    fn written(&self, mut response: Response<AnswerBody>) -> Response<AnswerBody> {
        cors::mark(&self.installed.plan, &self.head.headers, &mut response);
        response
    }

    /// Responds, and keeps the records until the client has it, where that is known.
    fn respond(&self, whole: Whole, followed_by: Vec<Candidate>) -> Response<AnswerBody> {
        let response = render::respond_before(whole, followed_by);
        self.written(render::keeping(response, self.given()))
    }

    /// The client gets the answers now: the records of those of which it will be known whether it takes them. The others
    /// are written.
    fn given(&self) -> Vec<Record> {
        self.kept.iter().flat_map(|kept| kept.given()).collect()
    }

    /// The record of a call that is answered: written now, or when its client gets the answer.
    fn answered(&self, record: Box<Record>) {
        match &self.kept {
            None => drop(record),
            Some(kept) => kept.keep(*record),
        }
    }

    fn alone(&self, said: Said, marks: Marks) -> Response<AnswerBody> {
        let mut response = match said {
            Said::Message(whole, candidate) => {
                let followed_by = candidate.into_iter().collect();
                self.respond(*whole, followed_by)
            }
            Said::Forwarded(response) => response,
            Said::Nothing => self.silence(),
        };
        marks.write(&self.installed.plan, response.headers_mut());
        response
    }

    /// The record of one of its messages.
    fn record(&self) -> Box<Record> {
        let line = RequestLine::within(&self.head, &self.arrival);
        let record = Record::begin(&self.worker, &self.installed, Side::Rpc, line);
        let mut record = record.since(self.since);
        record.comes_from(&self.arrival);
        record.traces(&self.head.headers);
        record.names_client(self.caller());
        record
    }

    /// Checks that its messages may ask for what is not passed through.
    fn guard(&self) -> Result<(), Failure> {
        let head = Head::of(&self.head);
        claim::guard(&self.installed.plan, head, self.arrival.entry())
    }

    fn caller(&self) -> Caller<'_> {
        self.author
            .identity
            .caller(&self.installed.plan.rollout.clients)
    }

    /// What is said to one message, and the route that it has taken.
    async fn answer(
        &self,
        mut record: Box<Record>,
        item: Item,
        company: Company<'_>,
    ) -> (Said, Marks) {
        let (id, spoken) = match item {
            Item::Invalid(Invalid { id, why, .. }) => {
                (Some(id), Err(Failure::new(Reason::InvalidRequest, why)))
            }
            Item::Response(text) => (
                Some(RequestId::null()),
                self.client_response(&mut record, text, company).await,
            ),
            Item::Call(call) => {
                record.names_method(&call.method);
                let spoken = self
                    .call(&mut record, &call, (self.caller(), company))
                    .await;
                (call.id, spoken)
            }
        };
        let marks = Marks::of(&record);
        let said = match (spoken, id) {
            (Ok(Spoken::Answer(whole)), Some(_)) if company.takes(whole.body.len()) => {
                let is_sent = matches!(company, Company::Alone) && self.socket.is_none();
                if is_sent && whole.status != StatusCode::OK {
                    record.sent(whole.status.as_u16());
                }
                let candidate = render::beside(&mut record, || Told::whole(&whole));
                self.answered(record);
                Said::Message(whole, candidate)
            }
            (Ok(Spoken::Answer(_)), Some(id)) => {
                if let Some(candidate) = record.take_candidate() {
                    candidate.skip(Skip::Large);
                }
                self.fail(record, full(&self.installed.plan), Some(&id))
            }
            (Ok(Spoken::Answer(_) | Spoken::Nothing), _) => {
                record.sent(self.silence_status().as_u16());
                Said::Nothing
            }
            // Nobody has settled it: it is one that its client has cancelled.
            (Ok(Spoken::Recalled), _) => {
                record.sent(self.silence_status().as_u16());
                Said::Nothing
            }
            (Ok(Spoken::Stream(answer)), _) => Said::Forwarded(render::answer(record, answer)),
            (Err(failure), id) => {
                let is_told = failure.reason.is_told_to_notifications();
                let is_told = is_told && matches!(company, Company::Alone) && self.socket.is_none();
                let id = id.or_else(|| is_told.then(RequestId::null));
                self.fail(record, failure, id.as_ref())
            }
        };
        (said, marks)
    }

    /// A failure for the call that bears an id; a notification gets none, but its record tells.
    fn fail(&self, mut record: Box<Record>, failure: Failure, id: Option<&RequestId>) -> Said {
        let Some(id) = id else {
            record.failed(self.silence_status().as_u16(), &failure);
            return Said::Nothing;
        };
        let mut whole = render::rpc_failure(&failure, &self.installed.plan.face.failure_codes, id);
        if self.socket.is_none() {
            let headers = &self.head.headers;
            let status = claim::rpc_face_status(&self.installed.plan, headers, failure.reason);
            whole.status = render::status(status);
        }
        record.failed(whole.status.as_u16(), &failure);
        let candidate = render::beside(&mut record, || Told::failure(&whole, &failure));
        self.answered(record);
        Said::Message(Box::new(whole), candidate)
    }

    /// A response of the client to a request of the server goes to the server. Only where it is alone is the
    /// server's HTTP answer to it the answer.
    async fn client_response(
        &self,
        record: &mut Record,
        text: Json,
        company: Company<'_>,
    ) -> Result<Spoken, Failure> {
        record.admit()?;
        // A server that is spoken to over a link gets its answers from the link.
        let upstream = self.installed.upstream(None, Side::Rpc);
        let upstream = upstream.and_then(Upstream::http);
        let upstream = upstream.ok_or_else(refusal::response_to_nothing)?;
        let interims = match company {
            Company::Alone => InterimResponses::Forwarded,
            Company::Batch(_) => InterimResponses::Dropped,
        };
        let text = text.into_bytes();
        let answer = self.forward(record, upstream, text, interims).await?;
        match company {
            Company::Alone => Ok(Spoken::Stream(answer)),
            Company::Batch(_) => self.discard(record, upstream, answer).await,
        }
    }

    /// Fails where a message is not one that translation takes, and a local answer is made for its method.
    fn check_for_local(&self, record: &mut Record, call: &Call) -> Result<(), Failure> {
        let Some(fault) = &self.fault else {
            return Ok(());
        };
        record.is_invalid(MessageFault::Invalid, Handling::Refused);
        let local = self.installed.plan.locals.rpc(&call.method);
        local.map_or(Ok(()), |_| Err(Failure::clone(fault)))
    }

    async fn call(
        &self,
        record: &mut Record,
        call: &Call,
        (caller, company): (Caller<'_>, Company<'_>),
    ) -> Result<Spoken, Failure> {
        record.admit()?;
        let plan = &self.installed.plan;
        if company.is_full() {
            // What could not be answered is not asked, either.
            return Err(full(plan));
        }
        refusal::ambiguous_credentials(plan, call)?;
        if self.socket.is_none() {
            // The headers of a socket are those of its handshake, and of no message.
            claim::mcp(plan, &self.head.headers, call)?;
        }
        let cancels = self.cancels(call);
        self.check_for_local(record, call)?;
        if let Some(own) = local::rpc(
            record,
            plan,
            (&*self.head, &self.arrival),
            (call, self.era(call)),
        )? {
            return Ok(Spoken::Answer(Box::new(own)));
        }
        let selected = plan.select_rpc(&call.method, call.params.as_ref());
        let headers = &self.head.headers;
        let context = (&*record, &*self.installed);
        let session = sessions::of_rpc(context, (caller, headers), call, selected)
            .or_else(|| sessions::of_socket(context, caller, self.socket?));
        let stage = decide(record, plan, (caller, headers, session), selected);
        if stage.control() != Some(Way::Old) {
            self.guard()?;
        }
        let repeated = || self.repeated(call, company);
        let is_strict = stage.control() == Some(Way::New);
        let may_repeat = match is_strict && self.fault.is_some() {
            true => Err(Skip::Unread),
            false => self.may_repeat(call),
        };
        candidate::behind_rpc(record, stage, may_repeat, repeated);
        match (stage.control(), selected) {
            (None, Some(index)) => {
                self.check_valid()?;
                Err(record.refused(plan, index))
            }
            (Some(Way::New), Some(index)) => self.translate(record, index, call).await,
            (Some(Way::Old), _) | (_, None) => {
                let Some(upstream) = self.installed.upstream(selected, Side::Rpc) else {
                    self.check_valid()?;
                    return Err(refusal::unknown_method(plan, call));
                };
                match cancels.filter(|_| upstream.http().is_some()) {
                    None => self.pass_on(record, upstream, call, company).await,
                    Some(cancelled) => {
                        let told = (call, cancelled);
                        self.pass_cancelled(record, upstream, told, company).await
                    }
                }
            }
        }
    }
}

/// What a call is answered with, before it is known whether it may be answered.
enum Spoken {
    Answer(Box<Whole>),
    Stream(Answer),
    Nothing,
    /// Nothing: its client has said that it does not want the answer.
    Recalled,
}
