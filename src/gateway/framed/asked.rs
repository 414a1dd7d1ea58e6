//! An RPC call, answered by a server that speaks in frames.

use std::rc::Rc;
use std::time::Duration;

use super::command::note;
use super::server::{Door, Fault, Question, Said};
use crate::domain::failure::Failure;
use crate::domain::json::Json;
use crate::domain::jsonrpc::Call;
use crate::domain::outcome::{Answered, RpcAnswer};
use crate::domain::pending::Unanswered;
use crate::domain::pieces::Pieces;
use crate::domain::plan::UpstreamPlan;
use crate::domain::refusal;
use crate::domain::route::Route;
use crate::domain::side::Side;
use crate::gateway::ask::stays;
use crate::gateway::record::Record;
use crate::gateway::{Arrival, linked};
use crate::telemetry::clock;
use crate::upstream::{FramesUpstream, Upstream};

/// Asks over the socket that the client's connection has there.
pub(in crate::gateway) async fn rpc_call(
    record: &mut Record,
    route: &Route,
    said: &Call,
    arrival: &Arrival,
) -> Result<RpcAnswer, Failure> {
    let upstream = record.upstream(Side::Rest).and_then(Upstream::frames);
    let upstream = upstream.ok_or_else(|| refusal::no_upstream(Side::Rest))?;
    let upstream = upstream.clone();
    let limit = route.timeout.unwrap_or(upstream.plan().timeout);
    let question = Question::Call {
        method: (*said.method).to_owned(),
        params: said.params.clone(),
    };
    let since = clock::now();
    let door = open(record, arrival, (&upstream, question), limit);
    let told = match door {
        Ok(door) => record.worker().unless_it_ends(door.answer()).await,
        Err(failure) => return Err(failure),
    };
    record.spent(since);
    let told = told?.unwrap_or(Err(Fault::Link(Unanswered::Cut)));
    match told.map_err(|why| failure(why, upstream.plan(), limit))? {
        Said::Answer(answered) => settle(record, route, answered),
        Said::Told => {
            record.answered(202);
            Ok(RpcAnswer::Result(Pieces::from(
                Json::literal("null").into_bytes(),
            )))
        }
    }
}

/// Puts a question on its way.
pub(super) fn open(
    record: &Record,
    arrival: &Arrival,
    (upstream, question): (&Rc<FramesUpstream>, Question),
    limit: Duration,
) -> Result<Door, Failure> {
    stays(record)?;
    arrival.links().asks(Side::Rest);
    let context = (record.worker(), record.installed());
    let door = arrival.sockets().ask(context, upstream, question, limit);
    door.map_err(|why| linked::unanswered(why, upstream.plan(), limit))
}

/// Notes an answer that a server has given in a frame, or by saying nothing.
fn settle(
    record: &mut Record,
    route: &Route,
    answered: Answered<RpcAnswer>,
) -> Result<RpcAnswer, Failure> {
    record.dropped(answered.dropped);
    match &answered.answer {
        RpcAnswer::Result(result) => {
            if route.schema.result.is_some() {
                refusal::unless_valid(route, &Json::sent(result.clone()))?;
            }
            match answered.tool_error {
                true => record.answered_tool_error(200),
                false => note(record, None),
            }
        }
        RpcAnswer::Error(error) => note(record, Some(error.code)),
    }
    Ok(route.outcomes.sent(answered.answer))
}

pub(super) fn failure(why: Fault, upstream: &UpstreamPlan, limit: Duration) -> Failure {
    match why {
        Fault::Link(why) => linked::unanswered(why, upstream, limit),
        Fault::Misfit(why) => refusal::bind(why),
    }
}
