//! The pipeline of a call: admit → answer locally → route → decide → check the origin → attach the shadow call.
//!
//! [`choose_way`] serves REST calls, JSON-RPC calls, legacy frames and requests for event streams. Each adapter
//! first identifies the caller. After the choice it sends the call on the chosen way.
//!
//! Used by `gateway` and the adapters of its protocols.

use http::request;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::request_origin::RequestOrigin;
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Requester, Stage, Way};
use dualgauge_model::routing;
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

/// One call of a protocol, as the pipeline serves it.
pub(super) trait ProtocolCall {
    /// The reply that the proxy itself gives to a call.
    type Reply;

    /// Returns the proxy's own reply, if the call has one. Fails when the call is refused whatever its route.
    fn answer_locally(&mut self, record: &mut AccessRecord)
    -> Result<Option<Self::Reply>, Failure>;

    /// Returns the index of the route; `None` for an unrouted call.
    async fn select_route(&mut self, context: &mut CallContext) -> Result<Option<usize>, Failure>;

    /// Returns the stage, which is recorded by then.
    fn decide(&mut self, context: &mut CallContext, route: Option<usize>) -> Stage;

    /// Fails when the `Origin` of the client allows only calls that pass through unchanged.
    fn check_origin(&self) -> Result<(), Failure>;

    /// Attaches a second run to the call, if it may have one.
    fn attach_shadow(&mut self, record: &AccessRecord, stage: Stage);

    /// Returns the failure of a call that neither way serves.
    fn unserved(&self, context: &CallContext, route: usize) -> Failure;
}

/// The way of a call.
pub(super) enum ChosenWay<R> {
    /// The proxy itself replies.
    Local(R),
    /// The call is translated for the other side, by the route (or the event stream) with this index.
    Translate(usize),
    /// The call passes through, with the index of its route (or event stream), if it has one.
    PassThrough(Option<usize>),
}

/// Chooses the way of a call whose caller is identified.
pub(super) async fn choose_way<C: ProtocolCall>(
    record: &mut AccessRecord,
    call: &mut C,
) -> Result<ChosenWay<C::Reply>, Failure> {
    record.context.admit()?;
    if let Some(reply) = call.answer_locally(record)? {
        return Ok(ChosenWay::Local(reply));
    }
    let route = call.select_route(&mut record.context).await?;
    let stage = call.decide(&mut record.context, route);
    if stage.control() != Some(Way::Old) {
        call.check_origin()?;
    }
    call.attach_shadow(record, stage);
    match (stage.control(), route) {
        (None, Some(index)) => Err(call.unserved(&record.context, index)),
        (Some(Way::New), Some(index)) => Ok(ChosenWay::Translate(index)),
        (Some(Way::Old), _) | (_, None) => Ok(ChosenWay::PassThrough(route)),
    }
}

/// Decides the stage of a call by its flags, and records it. Unrouted calls pass through.
pub(super) fn decide(
    context: &mut CallContext,
    plan: &Plan,
    requester: Requester<'_>,
    selected: Option<usize>,
) -> Stage {
    let decision = routing::decide(
        plan,
        requester,
        selected,
        context.side(),
        context.wall_time(),
    );
    let stage = decision.stage;
    context.set_decision(selected, decision);
    stage
}
