//! The pipeline of a call: identify → admit → answer locally → route → decide → check the origin → attach the shadow
//! call and the recorder → send → respond.
//!
//! A call is sent on one of two ways: the old way passes it through, the new way translates it for the other side.
//!
//! [`serve`] runs it for REST calls, JSON-RPC calls, batches that pass as one message, requests that pass unread, legacy
//! frames and event streams. Their adapters supply the steps that differ, as [`ProtocolCall`]. [`send_again`] sends a call
//! for its second run.
//!
//! Used by `gateway` and the adapters of its protocols.

use std::ops::Deref;

use http::request;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::exchange::with_total_timeout;
use super::identity::identify;
use super::request_origin::{ClientRequest, RequestOrigin};
use super::runtime_plan::RuntimePlan;
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Caller, Identity, Stage, Way};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_net::IncomingBody;

/// One HTTP request before it is dispatched to an adapter. The client and its connection may already be gone.
pub(super) struct IncomingRequest {
    /// Belongs to the side that the request addresses.
    pub(super) record: Box<AccessRecord>,
    /// Boxed, because it is passed through several functions.
    pub(super) head: Box<request::Parts>,
    pub(super) body: IncomingBody,
    pub(super) origin: RequestOrigin,
}

/// The request of a call, with its caller.
pub(super) struct IdentifiedRequest<'a> {
    pub(super) head: &'a request::Parts,
    pub(super) origin: &'a RequestOrigin,
    pub(super) caller: Caller<'a>,
    pub(super) runtime_plan: &'a RuntimePlan,
}

impl<'a> IdentifiedRequest<'a> {
    /// Returns the plan of the call.
    pub(super) fn plan(&self) -> &'a Plan {
        &self.runtime_plan.plan
    }

    /// Returns the request without its caller.
    pub(super) fn client_request(&self) -> ClientRequest<'a> {
        ClientRequest {
            head: self.head,
            origin: self.origin,
        }
    }

    /// Returns the head, as far as routing needs it.
    pub(super) fn head(&self) -> RequestHead<'a> {
        RequestHead::new(self.head)
    }
}

/// A call that can be sent on either way.
pub(super) trait TwoWayCall {
    /// The head of the request: owned if the way takes it over, borrowed if several calls share it.
    type Head: Deref<Target = request::Parts>;
    /// The result of either way.
    type Answer;

    /// Fails when the `Origin` of the client allows only calls that pass through unchanged.
    fn check_origin(&self, plan: &Plan, request: ClientRequest<'_>) -> Result<(), Failure> {
        routing::check_origin(plan, RequestHead::new(request.head), request.origin.entry())
    }

    /// Sends the call on the new way: translated for the other side, by the route (or the event stream) with this index.
    /// A call without a route is never sent on it.
    async fn translate(
        &mut self,
        record: &mut AccessRecord,
        _: ClientRequest<'_, Self::Head>,
        index: usize,
    ) -> Result<Self::Answer, Failure> {
        let plan = &record.context.runtime_plan().plan;
        Err(record.context.unserved_failure(plan, index))
    }

    /// Sends the call on the old way: unchanged, to the server of its route (or event stream), if it has one.
    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Self::Head>,
        index: Option<usize>,
    ) -> Result<Self::Answer, Failure>;
}

/// One call of a protocol, as the pipeline serves it.
pub(super) trait ProtocolCall: TwoWayCall {
    /// The response to the client, as the adapter sends it.
    type Response;

    /// True if `limits.total_timeout` ends the call while its client still sends the body. Waits for upstreams honour the
    /// deadline in any case.
    const AWAITS_BODY: bool = false;

    /// Identifies the caller, and records it. The messages of one request share their caller.
    fn identify<'h>(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'h>,
    ) -> Identity<'h>
    where
        Self: 'h,
    {
        identify(record, &request.head.headers, request.origin)
    }

    /// Returns the proxy's own reply, if the call has one. Fails when the call is refused whatever its route.
    fn answer_locally(
        &mut self,
        _: &mut AccessRecord,
        _: &IdentifiedRequest<'_>,
    ) -> Result<Option<Self::Answer>, Failure> {
        Ok(None)
    }

    /// Returns the index of the route; `None` for an unrouted call. Calls of some adapters never have a route.
    async fn select_route(
        &mut self,
        _: &mut CallContext,
        _: &IdentifiedRequest<'_>,
    ) -> Result<Option<usize>, Failure> {
        Ok(None)
    }

    /// Decides the stage, and records the decision. A call without a route passes through, as a new record says.
    fn decide(
        &mut self,
        _: &mut AccessRecord,
        _: &IdentifiedRequest<'_>,
        _: Option<usize>,
    ) -> Stage {
        Stage::Passthrough
    }

    /// Attaches a second run to the call, if it may have one.
    fn attach_shadow(&mut self, _: &AccessRecord, _: &IdentifiedRequest<'_>, _: Stage) {}

    /// Attaches the recorder to the call, if it is in the sample of a recording.
    fn attach_recorder(&mut self, _: &AccessRecord, _: &IdentifiedRequest<'_>) {}

    /// Returns the failure of a call that neither way serves.
    fn unserved(
        &self,
        context: &CallContext,
        request: &IdentifiedRequest<'_>,
        route: usize,
    ) -> Failure {
        context.unserved_failure(request.plan(), route)
    }

    /// Prepares the response to a call that failed before it was sent: its body may be needed for that.
    async fn prepare_refusal(&mut self, _: &mut CallContext) {}

    /// Renders the response, and completes or hands on the record.
    async fn respond(
        &mut self,
        record: Box<AccessRecord>,
        result: Result<Self::Answer, Failure>,
    ) -> Self::Response;
}

/// Serves a call.
pub(super) async fn serve<C: ProtocolCall>(
    mut record: Box<AccessRecord>,
    request: ClientRequest<'_, C::Head>,
    call: &mut C,
) -> C::Response {
    let result = if C::AWAITS_BODY {
        let deadline = record.context.deadline();
        with_total_timeout(deadline, async || run(&mut record, request, call).await).await
    } else {
        run(&mut record, request, call).await
    };
    call.respond(record, result).await
}

/// Sends a call a second time, on `way`.
pub(super) async fn send_again<C: TwoWayCall>(
    record: &mut AccessRecord,
    request: ClientRequest<'_, C::Head>,
    call: &mut C,
    way: Way,
) -> Result<C::Answer, Failure> {
    match (way, record.context.route()) {
        (Way::New, Some(route)) => {
            let plan = &record.context.runtime_plan().plan;
            call.check_origin(plan, request.borrowed())?;
            call.translate(record, request, route).await
        }
        (Way::Old, route) | (Way::New, route @ None) => {
            call.pass_through(record, request, route).await
        }
    }
}

/// The chosen way of a call, or the reply that makes sending it unnecessary.
enum ChosenWay<R> {
    /// The proxy itself replies.
    Local(R),
    /// The call is translated for the other side, by the route (or the event stream) with this index.
    Translate(usize),
    /// The call passes through, with the index of its route (or event stream), if it has one.
    PassThrough(Option<usize>),
}

/// Chooses the way of a call, and sends the call on it.
async fn run<C: ProtocolCall>(
    record: &mut AccessRecord,
    request: ClientRequest<'_, C::Head>,
    call: &mut C,
) -> Result<C::Answer, Failure> {
    match choose_way(record, request.borrowed(), call).await {
        Ok(ChosenWay::Local(answer)) => Ok(answer),
        Ok(ChosenWay::Translate(index)) => call.translate(record, request, index).await,
        Ok(ChosenWay::PassThrough(route)) => call.pass_through(record, request, route).await,
        Err(failure) => {
            call.prepare_refusal(&mut record.context).await;
            Err(failure)
        }
    }
}

/// Identifies the caller of a call, and chooses the way.
async fn choose_way<C: ProtocolCall>(
    record: &mut AccessRecord,
    request: ClientRequest<'_>,
    call: &mut C,
) -> Result<ChosenWay<C::Answer>, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let identity = call.identify(record, request);
    let ClientRequest { head, origin } = request;
    let identified = IdentifiedRequest {
        head,
        origin,
        caller: identity.caller(&runtime_plan.plan.rollout.clients),
        runtime_plan: &runtime_plan,
    };
    record.context.admit()?;
    if let Some(reply) = call.answer_locally(record, &identified)? {
        return Ok(ChosenWay::Local(reply));
    }
    let route = call.select_route(&mut record.context, &identified).await?;
    let stage = call.decide(record, &identified, route);
    if stage.control() != Some(Way::Old) {
        call.check_origin(identified.plan(), request)?;
    }
    call.attach_shadow(record, &identified, stage);
    call.attach_recorder(record, &identified);
    match (stage.control(), route) {
        (None, Some(index)) => Err(call.unserved(&record.context, &identified, index)),
        (Some(Way::New), Some(index)) => Ok(ChosenWay::Translate(index)),
        (Some(Way::Old), _) | (_, None) => Ok(ChosenWay::PassThrough(route)),
    }
}
