//! Requests to an RPC path that pass to an HTTP upstream without being read: those with a method other than POST, and
//! bodies that are not JSON-RPC.
//!
//! Used by `rpc` and `rpc::invalid`.

use std::mem;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, request};

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::CallResponse;
use crate::gateway::identity::identify;
use crate::gateway::local_reply;
use crate::gateway::passthrough::{PassthroughRequest, forward};
use crate::gateway::request_body::RequestBody;
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::request_target::upstream_uri;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::rpc_request::RpcCaller;
use crate::gateway::serve::{IdentifiedRequest, ProtocolCall, TwoWayCall, serve};
use crate::upstream::Upstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::rejections;
use dualgauge_model::rollout::Identity;
use dualgauge_patterns::side::Side;

/// Forwards a request with a method other than POST to the RPC upstream.
pub(super) async fn forward_other_method(
    record: Box<AccessRecord>,
    head: Box<request::Parts>,
    content: RequestBody,
    origin: &RequestOrigin,
) -> Response<ResponseBody> {
    let plan = &record.context.runtime_plan().plan;
    let mut call = UnreadRequest {
        content,
        caller: None,
        upstream: plan.upstreams.of(None, Side::Rpc),
        cors_origin: response::cors_origin(plan, &head.headers),
    };
    serve(record, ClientRequest { head, origin }, &mut call).await
}

/// Forwards a request whose body is not JSON-RPC to the upstream with this index.
pub(super) async fn forward_unread(
    record: Box<AccessRecord>,
    request: ClientRequest<'_, Box<request::Parts>>,
    content: RequestBody,
    caller: &RpcCaller,
    upstream: usize,
) -> Response<ResponseBody> {
    let plan = &record.context.runtime_plan().plan;
    let mut call = UnreadRequest {
        content,
        caller: Some(caller),
        upstream: Some(upstream),
        cors_origin: response::cors_origin(plan, &request.head.headers),
    };
    serve(record, request, &mut call).await
}

/// A request that passes without being read. It has no route.
struct UnreadRequest<'a> {
    content: RequestBody,
    /// The caller, if it is identified.
    caller: Option<&'a RpcCaller>,
    /// The index of the upstream.
    upstream: Option<usize>,
    /// The origin of the page that sent the request, if the plan configures CORS.
    cors_origin: Option<HeaderValue>,
}

impl TwoWayCall for UnreadRequest<'_> {
    type Head = Box<request::Parts>;
    type Answer = CallResponse;

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Box<request::Parts>>,
        _: Option<usize>,
    ) -> Result<CallResponse, Failure> {
        let runtime_plan = record.context.runtime_plan().clone();
        let ClientRequest { mut head, origin } = request;
        let upstream = self.upstream.and_then(|at| runtime_plan.upstream_at(at));
        let upstream = upstream.and_then(Upstream::http);
        let upstream = upstream.ok_or_else(|| match head.method {
            Method::POST => rejections::no_upstream(Side::Rpc),
            _ => rejections::not_posted(&head.method),
        })?;
        head.uri = upstream_uri(&upstream.plan().path, head.uri.query())?;
        let content = mem::replace(&mut self.content, RequestBody::Read(Bytes::new()));
        let passthrough = PassthroughRequest::unchanged(head, content);
        forward(record, upstream, passthrough, origin).await
    }
}

impl ProtocolCall for UnreadRequest<'_> {
    type Response = Response<ResponseBody>;

    fn identify<'h>(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'h>,
    ) -> Identity<'h>
    where
        Self: 'h,
    {
        match self.caller {
            Some(caller) => caller.identity.borrowed(),
            None => identify(record, &request.head.headers, request.origin),
        }
    }

    fn answer_locally(
        &mut self,
        record: &mut AccessRecord,
        request: &IdentifiedRequest<'_>,
    ) -> Result<Option<CallResponse>, Failure> {
        let (plan, caller) = (request.plan(), request.caller);
        Ok(local_reply::answer_preflight(
            record,
            plan,
            caller,
            request.head(),
        ))
    }

    /// Renders the response. A failure, which the proxy writes, gets the CORS headers.
    async fn respond(
        &mut self,
        record: Box<AccessRecord>,
        result: Result<CallResponse, Failure>,
    ) -> Response<ResponseBody> {
        let runtime_plan = record.context.runtime_plan().clone();
        let is_failure = result.is_err();
        let mut response = response::render(record, result, None);
        if let Some(cors) = runtime_plan.plan.cors.as_ref().filter(|_| is_failure) {
            cors.mark(self.cors_origin.as_ref(), response.headers_mut());
        }
        response
    }
}
