//! RPC calls that become REST calls, or frames, and the responses to them. Used by `rpc`.

use std::mem;

use http::{HeaderMap, StatusCode};

use super::{passed_response, require_upstream};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::{
    FullResponse, Received, ReceivedStream, StreamingResponse, UpstreamResponse, status,
};
use crate::gateway::exchange::{CallTarget, send_translated};
use crate::gateway::headers::{self, HasBody, IdentityFields, translated_headers};
use crate::gateway::offloaded_parsing::{self, RouteHandle};
use crate::gateway::request_origin::ClientRequest;
use crate::gateway::socket_call::send_rpc_call;
use crate::gateway::streamed_call;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{Call, RequestId};
use dualgauge_model::mcp::{ClientRevision, ResultType};
use dualgauge_model::outcome::{RestReply, RpcAnswer};
use dualgauge_model::plan::Credentials;
use dualgauge_model::rejections;
use dualgauge_model::reply::blame_of_rest_error;
use dualgauge_model::response_stream::{StreamClient, StreamTerms, StreamedCall};
use dualgauge_model::route::Route;
use dualgauge_model::translate::ToRest;
use dualgauge_net::{Body, OutgoingRequest};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::side::Side;

/// The way in which an RPC client gets the response to a translated call.
pub(in crate::gateway) enum RpcServed {
    /// A complete response.
    Answer(TranslatedAnswer),
    /// A response that streams.
    Stream(Box<StreamingResponse>),
    /// An HTTP response that means the same to clients of both dialects.
    Passed(Box<FullResponse>),
}

/// A translated response for an RPC client.
pub(in crate::gateway) struct TranslatedAnswer {
    pub(in crate::gateway) answer: RpcAnswer,
    /// Tells if a result may have the member `resultType`.
    pub(in crate::gateway) result_type: ResultType,
    /// Headers taken over from the server's response.
    pub(in crate::gateway) headers: HeaderMap,
    /// The HTTP status, used if the call is not part of a batch or a WebSocket.
    pub(in crate::gateway) status: StatusCode,
}

/// An RPC call that is translated.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct IncomingRpcCall<'a> {
    pub(in crate::gateway) call: &'a Call,
    pub(in crate::gateway) request: ClientRequest<'a>,
    /// The kind of the client's MCP revision.
    pub(in crate::gateway) revision: ClientRevision,
    /// True for a single call over HTTP, whose response may stream.
    pub(in crate::gateway) is_alone: bool,
}

/// Serves an RPC call from the REST upstream.
pub(in crate::gateway) async fn serve_rpc_call(
    record: &mut AccessRecord,
    index: usize,
    served: IncomingRpcCall<'_>,
) -> Result<RpcServed, Failure> {
    let rpc_call = served.call;
    let runtime_plan = record.context.runtime_plan().clone();
    let routes = &runtime_plan.plan.routes;
    let route = routes.route(index);
    if route.is_frame() {
        let answer = send_rpc_call(record, route, rpc_call).await?;
        return Ok(RpcServed::Answer(TranslatedAnswer {
            answer,
            result_type: ResultType::Possible,
            headers: HeaderMap::new(),
            status: StatusCode::OK,
        }));
    }
    let limits = &runtime_plan.plan.limits;
    let handle = RouteHandle {
        plan: &runtime_plan.plan,
        index,
    };
    let (worker, headers) = (record.context.worker(), &served.request.head.headers);
    let call = offloaded_parsing::to_rest_call(worker, handle, rpc_call, headers);
    let mut call = call.await?;
    record.add_dropped(call.dropped);
    if call.target.len() > limits.target {
        return Err(rejections::long_url(limits.target));
    }
    let upstream = require_upstream(&record.context, Side::Rest)?;
    let upstream = upstream.http();
    let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
    let to = CallTarget {
        upstream,
        route,
        streams: served.streams(route),
    };
    let headers = rest_headers(&record.context, &to, served, &mut call)?;
    let (method, target) = (
        route.method.clone(),
        runtime_plan.target(index, call.target)?,
    );
    let target = upstream.plan().uri_with_base(target);
    let body = call.body.map_or_else(Body::empty, Body::from);
    let outgoing = OutgoingRequest::new(method, target, headers, body);
    match send_translated(record, to, outgoing).await? {
        Received::Complete(reply) if served.passes(route, &reply) => {
            Ok(RpcServed::Passed(passed_response(record, route, reply)))
        }
        Received::Complete(mut reply) => {
            upstream.plan().strip_base(&mut reply.headers);
            let answer = render_rpc_response(record, handle, &call.bindings, reply).await?;
            Ok(RpcServed::Answer(answer))
        }
        Received::Stream(stream) => {
            let call = served.streamed(call.bindings, &stream);
            let plan = upstream.plan();
            let response = streamed_call::respond(&record.context, plan, *stream, call, index);
            Ok(RpcServed::Stream(Box::new(response)))
        }
    }
}

/// Returns the headers of the REST call that an RPC call becomes; those that the route wrote are moved out of `call`.
fn rest_headers(
    context: &CallContext,
    to: &CallTarget<'_>,
    served: IncomingRpcCall<'_>,
    call: &mut ToRest,
) -> Result<HeaderMap, Failure> {
    let upstream = to.upstream.plan();
    let (plan, request) = (&context.runtime_plan().plan, served.request);
    let credentials = match upstream.credentials {
        Credentials::Forward => {
            headers::credentials_of(&plan.face.envelope, served.call, plan.limits.depth)?
        }
        Credentials::Drop => HeaderMap::new(),
    };
    let has_body = HasBody::new(&call.body);
    let mut headers = translated_headers(context, request, upstream, has_body);
    headers.extend(credentials);
    headers::accept_values_of(&mut headers, to.route);
    to.route.pass.copy(&request.head.headers, &mut headers);
    if let Some(streams) = &to.streams {
        streams.ask(&mut headers);
    }
    headers::set(&mut headers, mem::take(&mut call.headers));
    headers::withhold_credentials(&mut headers, upstream);
    if let Some(identity_fields) =
        IdentityFields::new(context, &request.head.headers, request.origin)
    {
        identity_fields.write(&mut headers);
    }
    Ok(headers)
}

impl<'a> IncomingRpcCall<'a> {
    /// Returns true when a response passes to the client of the other dialect.
    fn passes(self, route: &Route, reply: &UpstreamResponse) -> bool {
        self.is_alone && route.pass.includes(reply.status.as_u16())
    }

    /// Returns the terms on which the response may stream.
    fn streams(self, route: &Route) -> Option<StreamTerms<'a>> {
        let is_answered = self.is_alone && self.call.id.is_some();
        let headers = &self.request.head.headers;
        is_answered.then(|| StreamTerms::for_rpc_client(route, headers))?
    }

    /// Returns the call for the translation of its response.
    fn streamed(self, bindings: Bindings, stream: &ReceivedStream) -> StreamedCall {
        StreamedCall {
            bindings,
            client: StreamClient::Rpc {
                id: self.call.id.clone().unwrap_or(RequestId::null()),
                method: self.call.method.clone(),
                revision: self.revision,
                status: stream.response.status().as_u16(),
                headers: stream.response.headers().clone(),
            },
        }
    }
}

/// Translates a REST response to an RPC response.
async fn render_rpc_response(
    record: &mut AccessRecord,
    handle: RouteHandle<'_>,
    call: &Bindings,
    reply: UpstreamResponse,
) -> Result<TranslatedAnswer, Failure> {
    let reply = RestReply {
        status: reply.status.as_u16(),
        headers: reply.headers,
        body: reply.body,
    };
    let (translated, validity) =
        offloaded_parsing::translate_to_rpc(record.context.worker(), handle, call, &reply).await?;
    record.add_dropped(translated.dropped);
    validity?;
    let answer = translated.answer;
    match &answer {
        RpcAnswer::Result(result) if translated.tool_error && reply.status >= 400 => {
            record.set_tool_failure(200, &Json::sent(result.clone()));
            record.set_upstream_status(reply.status);
        }
        RpcAnswer::Result(_) if translated.tool_error => record.set_tool_error(200),
        RpcAnswer::Result(_) => record.set_response(200),
        RpcAnswer::Error(error) => {
            let blame = blame_of_rest_error(reply.status, error.code, translated.row);
            record.set_error(200, error.code, blame);
        }
    }
    let errors = handle.plan.face.error_status;
    let rpc_status = handle.route().outcomes.rpc_status(&reply, &answer, errors);
    Ok(TranslatedAnswer {
        answer,
        result_type: translated.result_type,
        headers: headers::from_response(reply.headers),
        status: status(rpc_status),
    })
}
