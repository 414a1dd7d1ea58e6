//! REST calls from a recording. Used by `replay` and `rpc::recorded`.

use super::RestCall;
use super::replay::{RestReplay, may_repeat};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::identity::identify;
use crate::gateway::recorded_call::{NotRun, Preparation, PreparedCall};
use crate::gateway::request_body::RequestBody;
use crate::gateway::serve::{IdentifiedRequest, ProtocolCall};
use crate::gateway::shadow::ReplayableCall;
use dualgauge_model::dialect;
use dualgauge_model::rollout::{Decision, DecisionReason};
use dualgauge_model::routing::RequestHead;

/// Finds the route of a call, and returns the call ready to be sent.
pub(in crate::gateway) async fn prepare(
    mut record: Box<AccessRecord>,
    preparation: Preparation<'_>,
) -> PreparedCall {
    let call = route_and_store(&mut record, preparation).await;
    PreparedCall { record, call }
}

async fn route_and_store(
    record: &mut AccessRecord,
    preparation: Preparation<'_>,
) -> Result<Box<dyn ReplayableCall>, NotRun> {
    let Preparation {
        head,
        body,
        origin,
        stage,
    } = preparation;
    let runtime_plan = record.context.runtime_plan().clone();
    let identity = identify(record, &head.headers, origin);
    let request = IdentifiedRequest {
        head,
        origin,
        caller: identity.caller(&runtime_plan.plan.rollout.clients),
        runtime_plan: &runtime_plan,
    };
    let in_query = match body.is_empty() {
        true => dialect::message_in_query(&runtime_plan.plan, RequestHead::new(head)),
        false => None,
    };
    let body = in_query.as_ref().unwrap_or(body);
    let mut call = RestCall {
        content: RequestBody::Read(body.clone()),
        passed: None,
        observer: None,
        socket: None,
        is_in_batch: false,
        batch: None,
        old: None,
        origin,
        cors_origin: None,
    };
    if call.answer_locally(record, &request)?.is_some() {
        return Err(NotRun::Local);
    }
    let route = call.select_route(&mut record.context, &request).await?;
    let route = route.ok_or(NotRun::Unrouted)?;
    let decision = Decision::plain(stage, DecisionReason::Default);
    record.set_decision(Some(route), decision);
    may_repeat(head)?;
    let copy = record.context.worker().shadow_runner().new_copy();
    copy.store_complete(body);
    Ok(Box::new(RestReplay::new(head, copy, origin)))
}
