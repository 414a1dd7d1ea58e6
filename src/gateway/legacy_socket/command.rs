//! A command frame of a client: one call, from its record to the reply.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Version, request};

use super::call::{failure, open};
use super::connections::{PendingReply, SocketReply, SocketRequest};
use crate::domain::failure::{Blame, Failure, Reason};
use crate::domain::frame::{self, answer_to_frame, command_to_rpc, failure_to_frame};
use crate::domain::json::Json;
use crate::domain::outcome::RpcAnswer;
use crate::domain::rejections;
use crate::domain::rollout::{self, DecisionReason};
use crate::domain::route::Route;
use crate::domain::side::Side;
use crate::gateway::identity::identify;
use crate::gateway::record::{Record, RequestLine};
use crate::gateway::request_body::no_room;
use crate::gateway::rest::decide;
use crate::gateway::translate::{context, response, send_rpc};
use crate::gateway::{RequestOrigin, RuntimePlan, Worker, sessions};
use crate::telemetry::clock;
use crate::upstream::{BudgetExhausted, LegacySocketUpstream, Upstream};

/// The client that sent a frame.
pub(in crate::gateway) struct FrameClient<'a> {
    pub(in crate::gateway) worker: &'a Rc<Worker>,
    /// The head of the handshake, as if each message were posted.
    pub(in crate::gateway) head: &'a request::Parts,
    pub(in crate::gateway) arrival: &'a RequestOrigin,
    /// The number of the client's socket.
    pub(in crate::gateway) socket: u64,
}

/// A frame to serve.
struct FrameInfo<'a> {
    frame: Json,
    /// The text as received.
    text: Bytes,
    /// The result of reserving memory for the frame.
    room: Result<(), BudgetExhausted>,
    route: Option<(usize, &'a Route)>,
}

/// The outcome of serving a frame.
pub(in crate::gateway) enum FrameOutcome {
    /// The reply to the client, if any.
    Replied(Option<Bytes>),
    /// The frame was forwarded unchanged.
    Forwarded(Box<PassthroughFrame>),
}

/// Serves one frame until it is answered or forwarded; refuses it if there is no memory for it.
pub(in crate::gateway) async fn command(
    who: &FrameClient<'_>,
    (frame, text): (Json, Bytes),
    room: Result<(), BudgetExhausted>,
) -> FrameOutcome {
    let installed = who.worker.installed();
    let line = RequestLine {
        method: Method::GET,
        version: Version::HTTP_11,
        ..RequestLine::within(who.head, who.arrival)
    };
    let mut record = Record::begin(who.worker, &installed, Side::Rest, line);
    let routes = &installed.plan.routes;
    let selected = routes.select_frame(&frame);
    let told = FrameInfo {
        frame: frame.clone(),
        text,
        room,
        route: selected.map(|index| (index, routes.route(index))),
    };
    match serve(&mut record, who, told, &installed).await {
        Ok(Disposition::Replied(text)) => FrameOutcome::Replied(text),
        // The record continues with the server's reply.
        Ok(Disposition::Forwarded(door, upstream, limit)) => {
            FrameOutcome::Forwarded(Box::new(PassthroughFrame {
                record,
                route: selected,
                frame,
                door,
                upstream,
                limit,
            }))
        }
        Err(failure) => {
            record.failed(failure.reason.row().status, &failure);
            FrameOutcome::Replied(failed(&installed, (selected, &frame), &failure))
        }
    }
}

/// Formats a failure for the client, if an outcome of the route can express it.
fn failed(
    installed: &RuntimePlan,
    (route, frame): (Option<usize>, &Json),
    failure: &Failure,
) -> Option<Bytes> {
    let plan = &installed.plan;
    let route = plan.routes.route(route?);
    let call = route.unread(frame);
    let terms = context(&plan.limits);
    let failure = (failure, &plan.face.failure_codes);
    spoken(failure_to_frame(route, failure, &call, terms).answer)
}

fn spoken(said: frame::FrameReply) -> Option<Bytes> {
    match said {
        frame::FrameReply::Frame(frame) => Some(frame.into_bytes()),
        frame::FrameReply::Silence | frame::FrameReply::NoRow => None,
    }
}

/// The same, before the record moves into it.
enum Disposition {
    Replied(Option<Bytes>),
    Forwarded(PendingReply, Rc<LegacySocketUpstream>, Duration),
}

async fn serve(
    record: &mut Record,
    who: &FrameClient<'_>,
    told: FrameInfo<'_>,
    installed: &RuntimePlan,
) -> Result<Disposition, Failure> {
    let plan = &installed.plan;
    let headers = &who.head.headers;
    let identity = identify(record, headers, who.arrival);
    let caller = identity.caller(&plan.rollout.clients);
    record.admit()?;
    told.room.map_err(no_room)?;
    if let Some(said) = plan.locals.frame(&told.frame, context(&plan.limits)) {
        record.handle_locally(DecisionReason::Local);
        record.answered_here(200, None);
        return Ok(Disposition::Replied(spoken(said)));
    }
    let selected = told.route.map(|(index, _)| index);
    let session = sessions::of_socket((&*record, installed), caller, who.socket);
    let stage = decide(record, plan, (caller, headers, session), selected);
    match (stage.control(), told.route) {
        (None, Some((index, _))) => Err(record.unserved_failure(plan, index)),
        (Some(rollout::Path::New), Some((_, route))) => {
            translate(record, who, (route, told.frame)).await
        }
        (Some(rollout::Path::Old), _) | (_, None) => pass(record, who, told).await,
    }
}

/// Translates a command, and sends it to the RPC upstream.
async fn translate(
    record: &mut Record,
    who: &FrameClient<'_>,
    (route, frame): (&Route, Json),
) -> Result<Disposition, Failure> {
    let terms = context(&record.installed().plan.limits);
    let call = command_to_rpc(route, frame, terms).map_err(rejections::bind)?;
    record.dropped(call.dropped);
    let said = (&*call.method, call.params);
    let Some((reply, id)) = send_rpc(record, route, said, (who.head, who.arrival)).await? else {
        record.answered(202);
        return Ok(Disposition::Replied(None));
    };
    let (reply, code) = response(record, route, (&reply, id))?;
    let answered = answer_to_frame(route, (reply, &call.call), terms);
    record.dropped(answered.dropped);
    if answered.answer == frame::FrameReply::NoRow {
        let message = "no outcome of the route maps the server's answer to a frame";
        let cause = match code {
            Some(code) => format!("an error with the code {code}"),
            None => "a result".to_owned(),
        };
        return Err(Failure::new(Reason::UpstreamNotProtocol, message).because(cause));
    }
    note(record, code);
    Ok(Disposition::Replied(spoken(answered.answer)))
}

/// Forwards a frame unchanged over the client's socket at the server. Frames are written in order of arrival.
async fn pass(
    record: &mut Record,
    who: &FrameClient<'_>,
    told: FrameInfo<'_>,
) -> Result<Disposition, Failure> {
    let index = told.route.map(|(index, _)| index);
    let installed = record.installed().clone();
    let upstream = match index {
        Some(_) => record.upstream(Side::Rest),
        None => installed.default_frames_upstream(),
    };
    let upstream = upstream.and_then(Upstream::frames);
    let upstream = upstream
        .ok_or_else(|| rejections::no_frame(&told.frame))?
        .clone();
    let own = told.route.and_then(|(_, route)| route.timeout);
    let limit = own.unwrap_or(upstream.plan().timeout);
    let question = SocketRequest::Passed {
        frame: told.frame,
        text: told.text,
    };
    let door = open(record, who.arrival, (&upstream, question), limit)?;
    Ok(Disposition::Forwarded(door, upstream, limit))
}

/// A forwarded frame. Dropping it means that the client has left.
pub(in crate::gateway) struct PassthroughFrame {
    record: Box<Record>,
    route: Option<usize>,
    frame: Json,
    door: PendingReply,
    upstream: Rc<LegacySocketUpstream>,
    limit: Duration,
}

impl PassthroughFrame {
    /// Records the outcome. The server's reply reaches the client as a server message; this returns a message only if
    /// the frame was never sent.
    pub(in crate::gateway) async fn settle(self) -> Option<Bytes> {
        let mut record = self.record;
        let since = clock::now();
        let told = self.door.answer().await?;
        record.add_upstream_time(since);
        let why = match told {
            Ok(SocketReply::Told) => {
                record.answered(202);
                return None;
            }
            Ok(SocketReply::Answer(answered)) => {
                let code = match answered.answer {
                    RpcAnswer::Result(_) => None,
                    RpcAnswer::Error(error) => Some(error.code),
                };
                note(&mut record, code);
                return None;
            }
            Err(why) => why,
        };
        let failure = failure(why, self.upstream.plan(), self.limit);
        record.failed(failure.reason.row().status, &failure);
        let unbegun = failure.reason == Reason::UpstreamBusy;
        let said = unbegun.then(|| failed(record.installed(), (self.route, &self.frame), &failure));
        said.flatten()
    }
}

/// Records an answer of the server.
pub(super) fn note(record: &mut Record, code: Option<i64>) {
    match code {
        None => record.answered(200),
        Some(code) => record.answered_error(200, code, Blame::of_code(code)),
    }
}
