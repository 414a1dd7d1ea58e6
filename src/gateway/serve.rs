//! The pipeline of a call: admit → answer locally → route → decide → check the origin → attach the shadow call.
//!
//! [`choose_way`] serves REST calls, JSON-RPC calls, legacy frames and requests for event streams. Each adapter
//! first identifies the caller. After the choice it sends the call on the chosen way. The steps are those of its
//! [`ProtocolCall`].
//!
//! Used by `gateway` and the adapters of its protocols.

use http::request;

use super::access_record::AccessRecord;
use super::protocol_call::ProtocolCall;
use super::request_origin::RequestOrigin;
use dualgauge_model::failure::Failure;
use dualgauge_model::rollout::Way;
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
