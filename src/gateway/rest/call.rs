//! A REST call in the pipeline: its routes, its decision and its shadow call. Used by `rest`.

use std::mem;

use bytes::Bytes;
use http::request;

use super::replay::{self, ShadowCall};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::CallResponse;
use crate::gateway::protocol_call::ProtocolCall;
use crate::gateway::request_body::{self, BodyHead, RequestBody};
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::sessions::SessionLookup;
use crate::gateway::{cors, local_reply};
use dualgauge_model::dialect::{self, OldCall};
use dualgauge_model::failure::Failure;
use dualgauge_model::rollout::{Caller, Requester, Stage};
use dualgauge_model::routing::{self, RequestHead, RouteMatch};

/// A REST call in the pipeline.
pub(super) struct RestCall<'a> {
    pub(super) runtime_plan: &'a RuntimePlan,
    pub(super) head: RequestHead<'a>,
    pub(super) parts: &'a request::Parts,
    pub(super) origin: &'a RequestOrigin,
    pub(super) caller: Caller<'a>,
    pub(super) content: RequestBody,
    pub(super) shadow_call: ShadowCall,
    /// The route whose server gets the call if it passes, if the body has selected it.
    pub(super) server: Option<usize>,
}

impl RestCall<'_> {
    /// Reads a body that is needed to match the route.
    async fn read_body(&mut self, context: &mut CallContext) -> Result<Bytes, Failure> {
        let content = mem::replace(&mut self.content, RequestBody::Read(Bytes::new()));
        let body = match content {
            RequestBody::Streaming(body, _) => request_body::read_timed(context, body).await?,
            RequestBody::Read(body) => body,
        };
        self.content = RequestBody::Read(body.clone());
        Ok(body)
    }
}

impl ProtocolCall for RestCall<'_> {
    type Reply = CallResponse;

    fn answer_locally(
        &mut self,
        record: &mut AccessRecord,
    ) -> Result<Option<CallResponse>, Failure> {
        let plan = &self.runtime_plan.plan;
        let local = local_reply::answer_rest(record, plan, self.head, self.origin)?;
        Ok(local.or_else(|| cors::answer_preflight(record, plan, self.caller, self.head)))
    }

    async fn select_route(&mut self, context: &mut CallContext) -> Result<Option<usize>, Failure> {
        let plan = &self.runtime_plan.plan;
        match routing::match_route(plan, self.head)? {
            RouteMatch::Route(route) => Ok(Some(route)),
            RouteMatch::Unrouted => Ok(None),
            RouteMatch::Near(nearby) => {
                let headers = &self.parts.headers;
                let at = context.wall_time();
                routing::pass_near(plan, Requester::new(self.caller, headers), &nearby, at)?;
                Ok(None)
            }
            RouteMatch::ByBody(group) => {
                let body = self.read_body(context).await?;
                let worker = context.worker();
                let head = BodyHead {
                    headers: &self.parts.headers,
                    content: plan.routes.body_content(group),
                };
                let json = request_body::read_json(head, body, &plan.limits, worker, None).await;
                let call = OldCall {
                    requester: Requester::new(self.caller, &self.parts.headers),
                    head: self.head,
                    at: context.wall_time(),
                };
                let selected = dialect::by_body(plan, group, call, json.ok().flatten().as_ref())?;
                self.server = selected.server;
                Ok(selected.route)
            }
        }
    }

    fn decide(&mut self, context: &mut CallContext, route: Option<usize>) -> Stage {
        let sessions = SessionLookup {
            table: context.worker().sessions(),
            runtime_plan: self.runtime_plan,
            caller: self.caller,
        };
        let session = sessions.for_rest(self.head, route);
        let requester = Requester::new(self.caller, &self.parts.headers).with_session(session);
        context.decide(&self.runtime_plan.plan, requester, route)
    }

    fn check_origin(&self) -> Result<(), Failure> {
        routing::check_origin(&self.runtime_plan.plan, self.head, self.origin.entry())
    }

    fn attach_shadow(&mut self, record: &AccessRecord, stage: Stage) {
        self.shadow_call =
            replay::shadow_call(record, stage, self.parts, &self.content, self.origin);
    }

    fn unserved(&self, context: &CallContext, route: usize) -> Failure {
        context.unserved_failure(&self.runtime_plan.plan, route)
    }
}
