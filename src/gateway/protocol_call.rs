//! The steps of the pipeline that differ between protocols.
//!
//! Used by `serve`; implemented by the adapters of `gateway`'s protocols.

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use dualgauge_model::failure::Failure;
use dualgauge_model::rollout::Stage;

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
