//! Calls to a server that uses frames, over the client's socket there. Used by `legacy_socket`, `rpc` and `translate`.

use std::rc::Rc;
use std::time::Duration;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::exchange::ensure_client_open;
use super::link_call;
use super::runtime_plan::RuntimePlan;
use super::worker::Worker;
use crate::telemetry::clock;
use crate::upstream::{
    LegacySocketUpstream, PendingReply, SocketCall, SocketCallError, SocketContext, SocketReply,
    SocketRequest, Upstream,
};
use dualgauge_model::failure::{Blame, Failure};
use dualgauge_model::jsonrpc::Call;
use dualgauge_model::outcome::{RpcAnswer, TranslatedReply};
use dualgauge_model::pending::RequestError;
use dualgauge_model::plan::UpstreamPlan;
use dualgauge_model::rejections;
use dualgauge_model::route::Route;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// Sends a call over the client's socket at the server, and waits for the answer.
pub(super) async fn send_rpc_call(
    record: &mut AccessRecord,
    route: &Route,
    call: &Call,
) -> Result<RpcAnswer, Failure> {
    let upstream = record
        .context
        .upstream(Side::Rest)
        .and_then(Upstream::frames);
    let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
    let upstream = upstream.clone();
    let limit = route.timeout.unwrap_or(upstream.plan().timeout);
    let request = SocketRequest::Call {
        method: (*call.method).to_owned(),
        params: call.params.clone(),
    };
    let since = clock::now();
    let pending = queue_request(&record.context, &upstream, request, limit);
    let reply = match pending {
        Ok(pending) => {
            record
                .context
                .worker()
                .until_shutdown(pending.answer())
                .await
        }
        Err(failure) => return Err(failure),
    };
    record.add_upstream_time(since);
    let reply = reply?.unwrap_or(Err(SocketCallError::Link(RequestError::Cut)));
    match reply.map_err(|error| to_failure(error, upstream.plan(), limit))? {
        SocketReply::Answer(answer, _) => record_answer(record, route, answer),
        SocketReply::Sent => {
            record.set_response(202);
            Ok(RpcAnswer::Result(Rope::from(
                Json::literal("null").into_bytes(),
            )))
        }
    }
}

/// Queues a request on the client's socket at the server.
pub(super) fn queue_request(
    context: &CallContext,
    upstream: &Rc<LegacySocketUpstream>,
    request: SocketRequest,
    limit: Duration,
) -> Result<PendingReply, Failure> {
    ensure_client_open(context)?;
    let origin = context.origin();
    let origin = origin.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
    origin.links().record_request(Side::Rest);
    let (worker, runtime_plan) = (context.worker(), context.runtime_plan());
    let call = SocketCall {
        plan: runtime_plan.plan.clone(),
        request,
        limit,
    };
    let context = || socket_context(worker, runtime_plan);
    let pending = origin.sockets().send(context, upstream, call);
    pending.map_err(|error| link_call::request_failure(error, upstream.plan(), limit))
}

/// Returns what the sockets of a worker need of it.
pub(super) fn socket_context(worker: &Rc<Worker>, runtime_plan: &RuntimePlan) -> SocketContext {
    let counter = worker.clone();
    SocketContext {
        plan: runtime_plan.plan.clone(),
        tasks: worker.tasks().clone(),
        count_undelivered: Rc::new(move |reason| {
            counter.count(|shard| shard.count_undelivered(reason));
        }),
    }
}

/// Records an answer that the server gave in a frame, or by staying silent.
fn record_answer(
    record: &mut AccessRecord,
    route: &Route,
    answer: TranslatedReply<RpcAnswer>,
) -> Result<RpcAnswer, Failure> {
    record.add_dropped(answer.dropped);
    match &answer.answer {
        RpcAnswer::Result(result) => {
            if route.schema.result.is_some() {
                rejections::unless_valid(route, &Json::sent(result.clone()))?;
            }
            match answer.tool_error {
                true => record.set_tool_error(200),
                false => record_result(record, None),
            }
        }
        RpcAnswer::Error(error) => record_result(record, Some(error.code)),
    }
    Ok(route.outcomes.completed(answer.answer))
}

pub(super) fn to_failure(
    error: SocketCallError,
    upstream: &UpstreamPlan,
    limit: Duration,
) -> Failure {
    match error {
        SocketCallError::Link(error) => link_call::request_failure(error, upstream, limit),
        SocketCallError::Misfit(error) => rejections::bind_failure(error),
    }
}

/// Records an answer of the server.
pub(super) fn record_result(record: &mut AccessRecord, code: Option<i64>) {
    match code {
        None => record.set_response(200),
        Some(code) => record.set_error(200, code, Blame::of_code(code)),
    }
}
