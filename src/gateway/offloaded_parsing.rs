//! Parsing and translation of bodies: short ones on the worker, long ones on other threads (see [`super::offload`]).
//!
//! Used by both sides and by the translation of calls. Law: a long text is parsed and translated exactly like a short
//! one.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use super::failures::memory_exhausted;
use super::offload::{is_long, is_long_coded};
use super::rpc_reply::{RpcReply, context, no_response, read_response};
use super::worker::Worker;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::form::FormType;
use dualgauge_model::jsonrpc::{self, Call, Incoming, MessageError};
use dualgauge_model::outcome::RestReply;
use dualgauge_model::plan::{Limits, Plan};
use dualgauge_model::rejections;
use dualgauge_model::reply::{self, RestResult, RpcResult};
use dualgauge_model::route::Route;
use dualgauge_model::translate::{self, MethodCall, ToRest, ToRpc};
use dualgauge_net::{
    BodyCopy, BudgetExhausted, ContentEncoding, DecodeError, MemoryBudget, pinned,
};
use dualgauge_patterns::json::{Json, unmarked};
use dualgauge_patterns::pattern::{Bindings, PatternReader};

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

/// The encoding of a request body: its content coding, and the format of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BodyEncoding {
    pub(super) coding: ContentEncoding,
    /// The type of a form; `None` for JSON.
    pub(super) form_type: Option<FormType>,
}

/// Parses the messages of a body.
///
/// # Errors
///
/// Fails when the parsing thread fails; a malformed body is an inner error.
pub(super) async fn parse_messages(
    worker: &Worker,
    body: &Bytes,
    limits: &Limits,
) -> Result<Result<Incoming, MessageError>, Failure> {
    let limits = limits.message();
    if !is_long(body.len()) {
        return Ok(jsonrpc::parse(body, limits));
    }
    let body = body.clone();
    let job = move || jsonrpc::parse(&body, limits);
    pinned(|| worker.offload().run(job)).await
}

/// Parses a text; `None` if it is not JSON.
///
/// # Errors
///
/// Fails when the parsing thread fails.
pub(super) async fn parse_text(
    worker: &Worker,
    text: &Bytes,
    depth: u16,
) -> Result<Option<Json>, Failure> {
    // RFC 8259 §8.1 lets a reader ignore a byte order mark.
    let text = unmarked(text.clone());
    if !is_long(text.len()) {
        return Ok(Json::parse(text, depth).ok());
    }
    let job = move || Json::parse(text, depth).ok();
    pinned(|| worker.offload().run(job)).await
}

/// Parses a response of an RPC server.
///
/// # Errors
///
/// Fails when the parsing thread fails; a malformed response is an inner error.
pub(super) async fn parse_response(
    worker: &Worker,
    body: &Bytes,
    depth: u16,
) -> Result<Result<jsonrpc::Response, jsonrpc::ResponseFault>, Failure> {
    if !is_long(body.len()) {
        return Ok(jsonrpc::parse_response(body, depth));
    }
    let body = body.clone();
    let job = move || jsonrpc::parse_response(&body, depth);
    pinned(|| worker.offload().run(job)).await
}

/// Parses the response to a call that was sent under an id of the proxy, and checks that it has this id.
pub(super) async fn parse_reply(
    worker: &Worker,
    reply: &RpcReply,
    limits: &Limits,
) -> Result<jsonrpc::Response, Failure> {
    let response = parse_response(worker, &reply.response.body, limits.depth).await?;
    let response =
        response.map_err(|fault| no_response(&reply.response, fault, limits.error_text))?;
    reply::check_id(&response, reply.id)?;
    Ok(response)
}

/// Decodes and parses a body that must be JSON or a form; `None` for an empty one. Second runs charge the memory to `budget`.
///
/// # Errors
///
/// Fails when the body is not JSON or not a form, or exceeds a limit.
pub(super) async fn parse_json(
    worker: &Worker,
    encoding: BodyEncoding,
    body: Bytes,
    limits: &Limits,
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    let is_coded = encoding.coding != ContentEncoding::Identity;
    let may_be_long = is_long(body.len()) || (is_coded && is_long_coded(body.len()));
    // Decoding charges the budget, which cannot leave this thread.
    let needs_budget = is_coded && budget.is_some();
    if !may_be_long || needs_budget {
        return decode_json(&encoding, body, limits, worker.memory(), budget);
    }
    let (limits, memory) = (*limits, worker.memory().clone());
    let job = move || decode_json(&encoding, body, &limits, &memory, None);
    pinned(|| worker.offload().run(job)).await?
}

/// Decodes and parses a body; `None` for an empty one.
fn decode_json(
    encoding: &BodyEncoding,
    body: Bytes,
    limits: &Limits,
    memory: &MemoryBudget,
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    let decoded = encoding
        .coding
        .decode_within(body, limits.body, memory, budget);
    let body = decoded.map_err(|error| match (&error, budget) {
        (DecodeError::Malformed(_), _) => Failure::new(Reason::MalformedBody, error.to_string()),
        (DecodeError::TooLarge(_), _) => Failure::new(Reason::BodyTooLarge, error.to_string()),
        (DecodeError::NoRoom, None) => memory_exhausted(BudgetExhausted),
        // A second run has its own budget; exhausting that does not mean that the proxy is out of memory.
        (DecodeError::NoRoom, Some(_)) => rejections::large_body(limits.body),
    })?;
    let parsed = rejections::parse_body(body, encoding.form_type.as_ref(), limits.depth)?;
    match (parsed, &encoding.form_type) {
        // The object of a form is a copy, and may be larger than the form.
        (Some(parsed), Some(_)) => {
            let text = memory.account(parsed.into_bytes());
            text.map(|text| Some(Json::written(text)))
                .map_err(memory_exhausted)
        }
        (parsed, _) => Ok(parsed),
    }
}

/// Translates a REST call to an RPC call.
///
/// # Errors
///
/// Fails when a value does not fit the route.
pub(super) async fn to_rpc_call<'p>(
    worker: &Worker,
    handle: RouteHandle<'p>,
    reader: PatternReader,
    body: Option<Json>,
) -> Result<ToRpc<'p>, Failure> {
    let context = context(&handle.plan.limits);
    let length = body.as_ref().map_or(0, |body| body.as_bytes().len());
    if !is_long(length) {
        let call = translate::rest_to_rpc(handle.route(), reader, body, context);
        return call.map_err(rejections::bind_failure);
    }
    let (plan, index) = (handle.plan.clone(), handle.index);
    let job = move || {
        let call = translate::rest_to_rpc(plan.routes.route(index), reader, body, context)?;
        Ok(ToRpc {
            method: Cow::<'static, str>::Owned(call.method.into_owned()),
            params: call.params,
            headers: call.headers,
            bindings: call.bindings,
            dropped: call.dropped,
        })
    };
    let call = pinned(|| worker.offload().run(job)).await?;
    call.map_err(rejections::bind_failure)
}

/// Translates an RPC call to a REST call.
///
/// # Errors
///
/// Fails when a value does not fit the route.
pub(super) async fn to_rest_call(
    worker: &Worker,
    handle: RouteHandle<'_>,
    call: &Call,
    headers: &HeaderMap,
) -> Result<ToRest, Failure> {
    let context = context(&handle.plan.limits);
    let length = call
        .params
        .as_ref()
        .map_or(0, |params| params.as_bytes().len());
    if !is_long(length) {
        let rpc_call = MethodCall::new(&call.method, call.params.as_ref()).with_headers(headers);
        let rest_call = handle
            .plan
            .routes
            .write_rest(handle.index, rpc_call, context);
        return rest_call.map_err(rejections::bind_failure);
    }
    let (plan, index) = (handle.plan.clone(), handle.index);
    let (method, params) = (call.method.clone(), call.params.clone());
    let headers = headers.clone();
    let job = move || {
        let rpc_call = MethodCall::new(&method, params.as_ref()).with_headers(&headers);
        plan.routes.write_rest(index, rpc_call, context)
    };
    let rest_call = pinned(|| worker.offload().run(job)).await?;
    rest_call.map_err(rejections::bind_failure)
}

/// Translates the response of an RPC server for a REST client.
///
/// # Errors
///
/// Fails when the server's response is invalid, has another id, or violates the schema of the route.
pub(super) async fn translate_to_rest(
    worker: &Worker,
    handle: RouteHandle<'_>,
    call: &Bindings,
    reply: &RpcReply,
) -> Result<RestResult, Failure> {
    let limits = &handle.plan.limits;
    if !is_long(reply.response.body.len()) {
        let (response, code) = read_response(limits, handle.route(), reply)?;
        let outcomes = &handle.route().outcomes;
        let translated = outcomes.answer_rest(response, call, context(limits))?;
        return Ok((translated, code));
    }
    let (plan, index) = (handle.plan.clone(), handle.index);
    let (call, reply) = (call.clone(), reply.clone());
    let job = move || {
        let route = plan.routes.route(index);
        let (response, code) = read_response(&plan.limits, route, &reply)?;
        let context = context(&plan.limits);
        let translated = route.outcomes.answer_rest(response, &call, context)?;
        Ok((translated, code))
    };
    pinned(|| worker.offload().run(job)).await?
}

/// Translates the response of a REST server for an RPC client.
///
/// # Errors
///
/// Fails when the response cannot be represented in JSON-RPC.
pub(super) async fn translate_to_rpc(
    worker: &Worker,
    handle: RouteHandle<'_>,
    call: &Bindings,
    reply: &RestReply,
) -> Result<RpcResult, Failure> {
    if !is_long(reply.body.len()) {
        return translate_rest_response(handle, call, reply);
    }
    let (plan, index) = (handle.plan.clone(), handle.index);
    let (call, reply) = (call.clone(), reply.clone());
    let job = move || {
        let handle = RouteHandle { plan: &plan, index };
        translate_rest_response(handle, &call, &reply)
    };
    pinned(|| worker.offload().run(job)).await?
}

fn translate_rest_response(
    handle: RouteHandle<'_>,
    call: &Bindings,
    reply: &RestReply,
) -> Result<RpcResult, Failure> {
    let limits = &handle.plan.limits;
    reply::to_rpc(handle.route(), reply, call, limits.reply(), context(limits))
}

#[cfg(test)]
mod tests;
