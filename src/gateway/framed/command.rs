//! A frame that a client has sent: one call, from its record to what the client is told.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, request};

use super::asked::{failure, open};
use super::server::{Door, Question, Said};
use crate::domain::failure::{Blame, Failure, Reason};
use crate::domain::frame::{self, answer_to_frame, command_to_rpc, failure_to_frame};
use crate::domain::json::Json;
use crate::domain::outcome::RpcAnswer;
use crate::domain::refusal;
use crate::domain::rollout::Way;
use crate::domain::route::Route;
use crate::domain::side::Side;
use crate::gateway::caller::identify;
use crate::gateway::record::Record;
use crate::gateway::rest::decide;
use crate::gateway::translated::{carried, response, terms};
use crate::gateway::{Arrival, Installed, Worker, sessions};
use crate::telemetry::clock;
use crate::upstream::{FramesUpstream, Upstream};

/// Who sends frames.
pub(in crate::gateway) struct Commander<'a> {
    pub(in crate::gateway) worker: &'a Rc<Worker>,
    /// The head of the handshake, as if each message were posted.
    pub(in crate::gateway) head: &'a request::Parts,
    pub(in crate::gateway) arrival: &'a Arrival,
    /// Names the socket.
    pub(in crate::gateway) socket: u64,
}

/// What is known of a frame.
struct Told<'a> {
    frame: Json,
    /// As it came.
    text: Bytes,
    route: Option<(usize, &'a Route)>,
}

/// Serves one frame; gives what the client is told, if it is told something here.
pub(in crate::gateway) async fn command(
    who: &Commander<'_>,
    (frame, text): (Json, Bytes),
) -> Option<Bytes> {
    let installed = who.worker.installed();
    let mut asked = Request::new(());
    *asked.method_mut() = Method::GET;
    *asked.uri_mut() = who.head.uri.clone();
    let mut record = Record::begin(who.worker, &installed, Side::Rest, &asked);
    let routes = &installed.plan.routes;
    let selected = routes.select_frame(&frame);
    let told = Told {
        frame: frame.clone(),
        text,
        route: selected.map(|index| (index, routes.route(index))),
    };
    let served = serve(&mut record, who, told, &installed).await;
    let failure = match served {
        Ok(Served::Said(text)) => return text,
        // The record goes on with what the server says.
        Ok(Served::Passes(passing)) => {
            let passes = passing.settle(record);
            who.worker.tasks().start(passes);
            return None;
        }
        Err(failure) => failure,
    };
    record.failed(failure.reason.row().status, &failure);
    let route = routes.route(selected?);
    let call = route.unread(&frame);
    let terms = terms(&installed.plan.limits);
    spoken(failure_to_frame(route, (&failure, &call), terms).answer)
}

fn spoken(said: frame::Said) -> Option<Bytes> {
    match said {
        frame::Said::Frame(frame) => Some(frame.into_bytes()),
        frame::Said::Silence | frame::Said::Unsaid => None,
    }
}

/// How a frame is served.
enum Served {
    /// The client is told this.
    Said(Option<Bytes>),
    /// It went on as it came.
    Passes(Passing),
}

async fn serve(
    record: &mut Record,
    who: &Commander<'_>,
    told: Told<'_>,
    installed: &Installed,
) -> Result<Served, Failure> {
    let plan = &installed.plan;
    let headers = &who.head.headers;
    let identity = identify(record, headers, who.arrival);
    let caller = identity.caller(&plan.rollout.clients);
    record.admit()?;
    let selected = told.route.map(|(index, _)| index);
    let session = sessions::of_socket((&*record, installed), caller, who.socket);
    let stage = decide(record, plan, (caller, headers, session), selected);
    match (stage.control(), told.route) {
        (None, Some((index, _))) => Err(record.refused(plan, index)),
        (Some(Way::New), Some((_, route))) => translate(record, who, (route, told.frame)).await,
        (Some(Way::Old), _) | (_, None) => pass(record, who, told).await,
    }
}

/// A command, answered by the RPC upstream.
async fn translate(
    record: &mut Record,
    who: &Commander<'_>,
    (route, frame): (&Route, Json),
) -> Result<Served, Failure> {
    let terms = terms(&record.installed().plan.limits);
    let call = command_to_rpc(route, frame, terms).map_err(refusal::bind)?;
    record.dropped(call.dropped);
    let said = (&*call.method, call.params);
    let Some((reply, id)) = carried(record, route, said, (who.head, who.arrival)).await? else {
        record.answered(202);
        return Ok(Served::Said(None));
    };
    let (reply, code) = response(record, route, (&reply, id))?;
    let answered = answer_to_frame(route, (reply, &call.call), terms);
    record.dropped(answered.dropped);
    if answered.answer == frame::Said::Unsaid {
        let message = "no outcome of the route says in frames what the server answered";
        let cause = match code {
            Some(code) => format!("an error with the code {code}"),
            None => "a result".to_owned(),
        };
        return Err(Failure::new(Reason::UpstreamNotProtocol, message).because(cause));
    }
    note(record, code);
    Ok(Served::Said(spoken(answered.answer)))
}

/// A frame goes on as it came, over the socket that the client has at the server. It is written in the order of coming.
async fn pass(record: &mut Record, who: &Commander<'_>, told: Told<'_>) -> Result<Served, Failure> {
    let index = told.route.map(|(index, _)| index);
    let installed = record.installed().clone();
    let upstream = match index {
        Some(_) => record.upstream(Side::Rest),
        None => installed.usual_of_frames(),
    };
    let upstream = upstream.and_then(Upstream::frames);
    let upstream = upstream.ok_or_else(|| no_route(&told.frame))?.clone();
    let own = told.route.and_then(|(_, route)| route.timeout);
    let limit = own.unwrap_or(upstream.plan().timeout);
    let question = Question::Passed {
        frame: told.frame,
        text: told.text,
    };
    let door = open(record, who.arrival, (&upstream, question), limit)?;
    Ok(Served::Passes(Passing {
        door,
        upstream,
        limit,
    }))
}

/// No route takes a frame, and nobody is there to take it as it is.
fn no_route(frame: &Json) -> Failure {
    let shown: String = String::from_utf8_lossy(frame.as_bytes())
        .chars()
        .take(60)
        .collect();
    let message = format!("no route takes the frame `{}`", shown.escape_debug());
    Failure::new(Reason::RouteNotFound, message)
}

/// A frame that is on its way as it came.
struct Passing {
    door: Door,
    upstream: Rc<FramesUpstream>,
    limit: Duration,
}

impl Passing {
    /// Notes what the server says to it, which the client hears from the server. Where it leaves, nothing is noted.
    async fn settle(self, mut record: Record) {
        let since = clock::now();
        let Some(told) = self.door.answer().await else {
            return;
        };
        record.spent(since);
        match told {
            Ok(Said::Told) => record.answered(202),
            Ok(Said::Answer(answered)) => {
                let code = match answered.answer {
                    RpcAnswer::Result(_) => None,
                    RpcAnswer::Error(error) => Some(error.code),
                };
                note(&mut record, code);
            }
            Err(why) => {
                let failure = failure(why, self.upstream.plan(), self.limit);
                record.failed(failure.reason.row().status, &failure);
            }
        }
    }
}

/// Notes how the server has answered.
pub(super) fn note(record: &mut Record, code: Option<i64>) {
    match code {
        None => record.answered(200),
        Some(code) => record.answered_error(200, code, Blame::of_code(code)),
    }
}
