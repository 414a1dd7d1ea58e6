//! Parsing and translation of bodies: short ones on the worker, long ones on other threads (see [`super::offload`]).
//!
//! Used by both sides and by the translation of calls. Law: a long text is parsed and translated exactly like a short
//! one.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::exchange::UpstreamResponse;
use super::offload::{is_long, is_long_coded};
use super::request_body::{self, BodyLimits};
use super::translate::{context, read_response};
use super::worker::Worker;
use crate::domain::failure::Failure;
use crate::domain::json::Json;
use crate::domain::jsonrpc::{self, Call, Incoming, MessageError};
use crate::domain::outcome::{RestAnswer, RestReply, RpcAnswer, TranslatedReply};
use crate::domain::pattern::{Bindings, PatternReader};
use crate::domain::plan::{Limits, Plan};
use crate::domain::rejections;
use crate::domain::route::Route;
use crate::domain::translate::{self, ToRest, ToRpc};
use crate::upstream::{BodyCopy, ContentEncoding, pinned};

/// A route of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteHandle<'p> {
    pub(super) plan: &'p Arc<Plan>,
    pub(super) index: usize,
}

impl<'p> RouteHandle<'p> {
    pub(super) fn route(self) -> &'p Route {
        self.plan.routes.route(self.index)
    }
}

/// Parses the messages of a body.
///
/// # Errors
///
/// Fails when the parsing thread fails; a malformed body is an inner error.
pub(super) async fn messages(
    worker: &Worker,
    body: &Bytes,
    limits: &Limits,
) -> Result<Result<Incoming, MessageError>, Failure> {
    let limits = limits.message();
    if !is_long(body.len()) {
        return Ok(jsonrpc::parse(body, limits));
    }
    let body = body.clone();
    let work = move || jsonrpc::parse(&body, limits);
    pinned(|| worker.offload().run(work)).await
}

/// Parses a response of an RPC server.
///
/// # Errors
///
/// Fails when the parsing thread fails; a malformed response is an inner error.
pub(super) async fn response(
    worker: &Worker,
    body: &Bytes,
    depth: u16,
) -> Result<Result<jsonrpc::Response, jsonrpc::ResponseFault>, Failure> {
    if !is_long(body.len()) {
        return Ok(jsonrpc::parse_response(body, depth));
    }
    let body = body.clone();
    let work = move || jsonrpc::parse_response(&body, depth);
    pinned(|| worker.offload().run(work)).await
}

/// Decodes and parses a body that must be JSON; `None` for an empty one. Second runs charge the memory to `purse`.
///
/// # Errors
///
/// Fails when the body is not JSON, or exceeds a limit.
pub(super) async fn json(
    worker: &Worker,
    (coding, body): (ContentEncoding, Bytes),
    limits: &Limits,
    purse: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    let is_coded = coding != ContentEncoding::Identity;
    let may_be_long = is_long(body.len()) || (is_coded && is_long_coded(body.len()));
    // Decoding charges the purse, which cannot leave this thread.
    let needs_purse = is_coded && purse.is_some();
    if !may_be_long || needs_purse {
        let bounds: BodyLimits<'_> = (limits, worker.memory());
        return request_body::decoded(coding, body, bounds, purse);
    }
    let (limits, memory) = (*limits, worker.memory().clone());
    let work = move || request_body::decoded(coding, body, (&limits, &memory), None);
    pinned(|| worker.offload().run(work)).await?
}

/// Translates a REST call to an RPC call.
///
/// # Errors
///
/// Fails when a value does not fit the route.
pub(super) async fn to_rpc<'p>(
    worker: &Worker,
    of: RouteHandle<'p>,
    (reading, body): (PatternReader, Option<Json>),
) -> Result<ToRpc<'p>, Failure> {
    let terms = context(&of.plan.limits);
    let length = body.as_ref().map_or(0, |body| body.as_bytes().len());
    if !is_long(length) {
        let call = translate::rest_to_rpc(of.route(), reading, body, terms);
        return call.map_err(rejections::bind);
    }
    let (plan, index) = (of.plan.clone(), of.index);
    let work = move || {
        let call = translate::rest_to_rpc(plan.routes.route(index), reading, body, terms)?;
        Ok(ToRpc {
            method: Cow::<'static, str>::Owned(call.method.into_owned()),
            params: call.params,
            call: call.call,
            dropped: call.dropped,
        })
    };
    let call = pinned(|| worker.offload().run(work)).await?;
    call.map_err(rejections::bind)
}

/// Translates an RPC call to a REST call.
///
/// # Errors
///
/// Fails when a value does not fit the route.
pub(super) async fn to_rest(
    worker: &Worker,
    of: RouteHandle<'_>,
    call: &Call,
) -> Result<ToRest, Failure> {
    let terms = context(&of.plan.limits);
    let length = call
        .params
        .as_ref()
        .map_or(0, |params| params.as_bytes().len());
    if !is_long(length) {
        let called = (&*call.method, call.params.as_ref());
        let written = of.plan.routes.write_rest(of.index, called, terms);
        return written.map_err(rejections::bind);
    }
    let (plan, index) = (of.plan.clone(), of.index);
    let (method, params) = (call.method.clone(), call.params.clone());
    let work = move || {
        let called = (&*method, params.as_ref());
        plan.routes.write_rest(index, called, terms)
    };
    let written = pinned(|| worker.offload().run(work)).await?;
    written.map_err(rejections::bind)
}

/// A response for a REST client, and the code of the RPC error it was translated from.
pub(super) type RestResult = (TranslatedReply<RestAnswer>, Option<i64>);

/// Translates the response of an RPC server for a REST client.
///
/// # Errors
///
/// Fails when the server's response is invalid, has another id, or violates the schema of the route.
pub(super) async fn rest_answer(
    worker: &Worker,
    of: RouteHandle<'_>,
    call: &Bindings,
    (reply, id): (&UpstreamResponse, u64),
) -> Result<RestResult, Failure> {
    let limits = &of.plan.limits;
    if !is_long(reply.body.len()) {
        let (response, code) = read_response(limits, of.route(), (reply, id))?;
        let answered = of
            .route()
            .outcomes
            .rpc_to_rest(response, call, context(limits));
        return Ok((answered, code));
    }
    let (plan, index) = (of.plan.clone(), of.index);
    let (call, reply) = (call.clone(), reply.clone());
    let work = move || {
        let route = plan.routes.route(index);
        let (response, code) = read_response(&plan.limits, route, (&reply, id))?;
        let answered = route
            .outcomes
            .rpc_to_rest(response, &call, context(&plan.limits));
        Ok((answered, code))
    };
    pinned(|| worker.offload().run(work)).await?
}

/// A response for an RPC client, and whether its result fits the schema of the route.
pub(super) type RpcResult = (TranslatedReply<RpcAnswer>, Result<(), Failure>);

/// Translates the response of a REST server for an RPC client.
///
/// # Errors
///
/// Fails when the response cannot be represented in JSON-RPC.
pub(super) async fn rpc_answer(
    worker: &Worker,
    of: RouteHandle<'_>,
    call: &Bindings,
    reply: &RestReply,
) -> Result<RpcResult, Failure> {
    if !is_long(reply.body.len()) {
        return answer_of_rest(of, call, reply);
    }
    let (plan, index) = (of.plan.clone(), of.index);
    let (call, reply) = (call.clone(), reply.clone());
    let work = move || {
        let of = RouteHandle { plan: &plan, index };
        answer_of_rest(of, &call, &reply)
    };
    pinned(|| worker.offload().run(work)).await?
}

fn answer_of_rest(
    of: RouteHandle<'_>,
    call: &Bindings,
    reply: &RestReply,
) -> Result<RpcResult, Failure> {
    let (route, limits) = (of.route(), &of.plan.limits);
    let bounds = (limits.reply(), context(limits));
    let mut answered = route.outcomes.rest_to_rpc(reply, call, bounds)?;
    answered.answer = route.outcomes.sent(answered.answer);
    // The schema of a tool's result does not apply to a result translated from an HTTP error.
    let fits = match &answered.answer {
        RpcAnswer::Result(_) if answered.tool_error && reply.status >= 400 => Ok(()),
        RpcAnswer::Result(result) if route.schema.result.is_some() => {
            rejections::unless_valid(route, &Json::sent(result.clone()))
        }
        RpcAnswer::Result(_) | RpcAnswer::Error(_) => Ok(()),
    };
    Ok((answered, fits))
}

#[cfg(test)]
mod tests;
