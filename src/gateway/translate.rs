//! Translation of calls: rewrites a request for the upstream of the other side, and the response back. This file sends
//! calls to RPC upstreams, [`to_rest`] to REST upstreams.
//!
//! Used throughout `gateway`.

pub(super) mod to_rest;

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{
    CallResponse, FullResponse, Received, ReceivedStream, UpstreamResponse, acknowledgement, status,
};
use super::exchange::{self, CallTarget, send_translated};
use super::headers::{self, HasBody, IdentityFields, translated_headers};
use super::link_call::{RoutedCall, send_over_link};
use super::offloaded_parsing::{self, RouteHandle};
use super::request_body::{self, BodyHead, RequestBody};
use super::request_origin::ClientRequest;
use super::rpc_reply::{RpcReply, context, read_response, rest_reply};
use super::stream_headers;
use super::streamed_call;
use super::subscribed_call::{self, Subscribed};
use crate::telemetry::clock;
use crate::upstream::Upstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc;
use dualgauge_model::outcome::is_rejection_status;
use dualgauge_model::rejections;
use dualgauge_model::reply::blame_of_rpc_error;
use dualgauge_model::response_stream::{StreamClient, StreamTerms, StreamedCall};
use dualgauge_model::route::{Route, Segments};
use dualgauge_model::routing::RequestHead;
use dualgauge_model::subscription::SubscriptionRule;
use dualgauge_model::translate::{self, ToRpc};
use dualgauge_net::{Body, OutgoingRequest, boxed, pinned};
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// Serves a REST call from the RPC upstream.
pub(super) async fn serve_rest_call(
    record: &mut AccessRecord,
    index: usize,
    request: ClientRequest<'_>,
    body: RequestBody,
) -> Result<CallResponse, Failure> {
    let head = request.head;
    let runtime_plan = record.context.runtime_plan().clone();
    let route = runtime_plan.plan.routes.route(index);
    let limits = &runtime_plan.plan.limits;
    // Everything that can reject the call without its body runs before the body is read, and before `100 Continue`.
    let context = context(limits);
    let segments = Segments::split(head.uri.path());
    let rest_head = RequestHead::new(head).rest(&segments);
    let reader =
        translate::read_rest_call(route, rest_head, context).map_err(rejections::bind_failure)?;
    if !route.has_request_body() && !body.is_empty() {
        return Err(rejections::bind_failure(translate::no_body(route)));
    }
    let since = body.is_awaited().then(clock::now);
    let body_head = BodyHead {
        headers: &head.headers,
        content: route.body_content(),
    };
    let body = request_body::collect_json(
        body_head,
        body,
        limits,
        record.context.worker(),
        record.context.second_run_budget(),
    )
    .await?;
    record.context.add_body_time(since);
    let handle = RouteHandle {
        plan: &runtime_plan.plan,
        index,
    };
    let call =
        offloaded_parsing::to_rpc_call(record.context.worker(), handle, reader, body).await?;
    record.add_dropped(call.dropped);
    if let Some(rule) = &route.subscription {
        return pinned(|| subscribe(record, handle, rule, call, &head.headers)).await;
    }
    let sent = RpcCallParts::new(&call.method, call.params, call.headers);
    match send_rpc(record, route, sent, request).await? {
        RpcSent::Reply(reply) if route.pass.includes(reply.response.status.as_u16()) => Ok(
            CallResponse::Full(passed_response(record, route, reply.response)),
        ),
        RpcSent::Reply(reply) => {
            let response = render_rest_response(record, handle, &call.bindings, reply).await;
            let mut response = response?;
            stream_headers::complete_as_event(record, route, &head.headers, &mut response);
            Ok(CallResponse::Full(response))
        }
        RpcSent::Acknowledged => Ok(acknowledge(record)),
        RpcSent::Stream(stream, upstream_id) => {
            let call = StreamedCall {
                bindings: call.bindings,
                client: StreamClient::Rest { upstream_id },
            };
            stream_response(&record.context, *stream, call, index)
        }
    }
}

/// Returns the response to a call whose upstream streams.
fn stream_response(
    context: &CallContext,
    stream: ReceivedStream,
    call: StreamedCall,
    index: usize,
) -> Result<CallResponse, Failure> {
    let upstream = require_upstream(context, Side::Rpc)?;
    let response = streamed_call::respond(context, upstream.plan(), stream, call, index);
    Ok(CallResponse::Streaming(Box::new(response)))
}

/// Returns the response to a call that becomes a notification.
fn acknowledge(record: &mut AccessRecord) -> CallResponse {
    record.set_response(StatusCode::ACCEPTED.as_u16());
    CallResponse::Full(Box::new(acknowledgement(StatusCode::ACCEPTED)))
}

/// Serves a REST call that opens a subscription. The caller boxes the future, because few calls need it.
async fn subscribe(
    record: &mut AccessRecord,
    handle: RouteHandle<'_>,
    rule: &Arc<SubscriptionRule>,
    call: ToRpc<'_>,
    client: &HeaderMap,
) -> Result<CallResponse, Failure> {
    match subscribed_call::send(record, handle, rule, call, client).await? {
        Subscribed::Stream(response) => Ok(response),
        Subscribed::Refused(reply, bindings) => {
            let response = render_rest_response(record, handle, &bindings, reply).await;
            response.map(CallResponse::Full)
        }
    }
}

/// The result of a call to an RPC upstream.
pub(super) enum RpcSent {
    /// The response.
    Reply(RpcReply),
    /// The response streams; the upstream knows the call by this id.
    Stream(Box<ReceivedStream>, u64),
    /// The route expects no reply.
    Acknowledged,
}

/// The parts of a call to an RPC upstream.
pub(super) struct RpcCallParts<'a> {
    pub(super) method: &'a str,
    pub(super) params: Rope,
    /// The headers that the route wrote; a link has none.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// Sends a call to the RPC upstream of a route over its transport. Returns the response with the id that the call had.
/// The response may stream only if the client accepts that.
pub(super) async fn send_rpc(
    record: &mut AccessRecord,
    route: &Route,
    call: RpcCallParts<'_>,
    request: ClientRequest<'_>,
) -> Result<RpcSent, Failure> {
    let RpcCallParts {
        method,
        params,
        headers: written,
    } = call;
    let head = request.head;
    let depth = record.context.runtime_plan().plan.limits.depth;
    let upstream = require_upstream(&record.context, Side::Rpc)?;
    let members = headers::credentials(upstream.plan(), &head.headers, depth);
    let upstream = match &upstream {
        Upstream::Http(http) => http,
        Upstream::Link(link) => {
            let call = RoutedCall {
                method,
                params,
                members: &members,
            };
            let reply = send_over_link(record, link, route, call).await?;
            return Ok(reply.map_or(RpcSent::Acknowledged, RpcSent::Reply));
        }
        // Frames belong to the REST side.
        Upstream::Frames(_) => return Err(rejections::no_upstream(Side::Rpc)),
    };
    let id = record.context.worker().next_request_id();
    let message = if route.expects_reply {
        jsonrpc::request(id, method, params, &members)
    } else {
        jsonrpc::notification(method, params, &members)
    };
    let mut headers = translated_headers(&record.context, request, upstream.plan(), HasBody::Yes);
    route.pass.copy(&head.headers, &mut headers);
    headers::set(&mut headers, written);
    headers::withhold_credentials(&mut headers, upstream.plan());
    let streams = StreamTerms::for_rest_client(route, &head.headers);
    // The response to a batch is one array.
    let streams = streams.filter(|_| !record.is_in_old_batch());
    if let Some(streams) = streams {
        streams.ask(&mut headers);
    }
    // Last, so that no header of the client or of a pattern replaces one that tells who calls.
    if let Some(identity_fields) =
        IdentityFields::new(&record.context, &head.headers, request.origin)
    {
        identity_fields.write(&mut headers);
    }
    let target = upstream.plan().path.clone().into();
    let outgoing = OutgoingRequest::new(Method::POST, target, headers, Body::from(message));
    if !route.expects_reply {
        let limit = route.timeout.unwrap_or(upstream.plan().timeout);
        exchange::send_notification(&record.context, upstream, outgoing, limit).await?;
        return Ok(RpcSent::Acknowledged);
    }
    let to = CallTarget {
        upstream,
        route,
        streams,
    };
    Ok(match send_translated(record, to, outgoing).await? {
        Received::Complete(response) => RpcSent::Reply(RpcReply::plain(response, id)),
        Received::Stream(stream) => RpcSent::Stream(stream, id),
    })
}

/// Parses the response of an RPC upstream to a call of a route; the code is set if it is an error.
pub(super) fn parse_reply(
    context: &CallContext,
    route: &Route,
    reply: &RpcReply,
) -> Result<(jsonrpc::ResponseReply, Option<i64>), Failure> {
    read_response(&context.runtime_plan().plan.limits, route, reply)
}

/// Translates an RPC response to a REST response.
async fn render_rest_response(
    record: &mut AccessRecord,
    handle: RouteHandle<'_>,
    call: &Bindings,
    reply: RpcReply,
) -> Result<Box<FullResponse>, Failure> {
    let (translated, code) = if is_rejection_status(reply.response.status.as_u16()) {
        let context = context(&handle.plan.limits);
        let outcomes = &handle.route().outcomes;
        let refused = outcomes.refused(&rest_reply(&reply.response), call, context);
        (refused.answered, refused.code)
    } else {
        offloaded_parsing::translate_to_rest(record.context.worker(), handle, call, &reply).await?
    };
    record.add_dropped(translated.dropped);
    let client_status = translated.answer.status;
    match code {
        None if translated.tool_error => record.set_tool_error(client_status),
        None => record.set_response(client_status),
        Some(code) if translated.row.is_some() && client_status < 400 => {
            record.set_row_response(client_status, code);
        }
        Some(code) => {
            let blame = blame_of_rpc_error(&translated, code);
            record.set_error(client_status, code, blame);
        }
    }
    let answer = translated.answer;
    let mut headers = headers::from_response(reply.response.headers);
    if let Some(kind) = answer
        .content_type
        .and_then(|kind| HeaderValue::try_from(kind).ok())
    {
        headers.insert(CONTENT_TYPE, kind);
    }
    headers::set(&mut headers, answer.headers);
    Ok(boxed(|| FullResponse {
        status: status(answer.status),
        headers,
        body: answer.body,
    }))
}

impl<'a> RpcCallParts<'a> {
    /// Creates the parts.
    pub(super) fn new(
        method: &'a str,
        params: Rope,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> RpcCallParts<'a> {
        RpcCallParts {
            method,
            params,
            headers,
        }
    }
}

fn require_upstream(context: &CallContext, side: Side) -> Result<Upstream, Failure> {
    let upstream = context.upstream(side).cloned();
    upstream.ok_or_else(|| rejections::no_upstream(side))
}

/// Returns a response that means the same to the clients of both dialects.
fn passed_response(
    record: &mut AccessRecord,
    route: &Route,
    reply: UpstreamResponse,
) -> Box<FullResponse> {
    record.set_response(reply.status.as_u16());
    Box::new(FullResponse {
        status: reply.status,
        headers: route.pass.response_headers(&reply.headers),
        body: Rope::from(reply.body),
    })
}
