//! RPC calls to a server that uses frames.

use std::rc::Rc;
use std::time::Duration;

use super::command::note;
use super::connections::{PendingReply, SocketCallError, SocketReply, SocketRequest};
use crate::domain::failure::Failure;
use crate::domain::json::Json;
use crate::domain::jsonrpc::Call;
use crate::domain::outcome::{RpcAnswer, TranslatedReply};
use crate::domain::pending::RequestError;
use crate::domain::plan::UpstreamPlan;
use crate::domain::rejections;
use crate::domain::rope::Rope;
use crate::domain::route::Route;
use crate::domain::side::Side;
use crate::gateway::exchange::ensure_client_open;
use crate::gateway::record::Record;
use crate::gateway::{RequestOrigin, link_call};
use crate::telemetry::clock;
use crate::upstream::{LegacySocketUpstream, Upstream};

/// Sends a call over the client's socket at the server, and waits for the answer.
pub(in crate::gateway) async fn rpc_call(
    record: &mut Record,
    route: &Route,
    said: &Call,
    arrival: &RequestOrigin,
) -> Result<RpcAnswer, Failure> {
    let upstream = record.upstream(Side::Rest).and_then(Upstream::frames);
    let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
    let upstream = upstream.clone();
    let limit = route.timeout.unwrap_or(upstream.plan().timeout);
    let question = SocketRequest::Call {
        method: (*said.method).to_owned(),
        params: said.params.clone(),
    };
    let since = clock::now();
    let door = open(record, arrival, (&upstream, question), limit);
    let told = match door {
        Ok(door) => record.worker().until_shutdown(door.answer()).await,
        Err(failure) => return Err(failure),
    };
    record.add_upstream_time(since);
    let told = told?.unwrap_or(Err(SocketCallError::Link(RequestError::Cut)));
    match told.map_err(|why| failure(why, upstream.plan(), limit))? {
        SocketReply::Answer(answered) => settle(record, route, answered),
        SocketReply::Told => {
            record.answered(202);
            Ok(RpcAnswer::Result(Rope::from(
                Json::literal("null").into_bytes(),
            )))
        }
    }
}

/// Queues a request on the client's socket at the server.
pub(super) fn open(
    record: &Record,
    arrival: &RequestOrigin,
    (upstream, question): (&Rc<LegacySocketUpstream>, SocketRequest),
    limit: Duration,
) -> Result<PendingReply, Failure> {
    ensure_client_open(record)?;
    arrival.links().record_request(Side::Rest);
    let context = (record.worker(), record.installed());
    let door = arrival.sockets().send(context, upstream, question, limit);
    door.map_err(|why| link_call::unanswered(why, upstream.plan(), limit))
}

/// Records an answer that the server gave in a frame, or by staying silent.
fn settle(
    record: &mut Record,
    route: &Route,
    answered: TranslatedReply<RpcAnswer>,
) -> Result<RpcAnswer, Failure> {
    record.dropped(answered.dropped);
    match &answered.answer {
        RpcAnswer::Result(result) => {
            if route.schema.result.is_some() {
                rejections::unless_valid(route, &Json::sent(result.clone()))?;
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

pub(super) fn failure(why: SocketCallError, upstream: &UpstreamPlan, limit: Duration) -> Failure {
    match why {
        SocketCallError::Link(why) => link_call::unanswered(why, upstream, limit),
        SocketCallError::Misfit(why) => rejections::bind(why),
    }
}
