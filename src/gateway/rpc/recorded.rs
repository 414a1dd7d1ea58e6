//! JSON-RPC calls from a recording: alone, or in a batch. Used by `replay`.

use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use http_body_util::Full;

use super::reading::{self, RpcBody};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::identity::{identify, identify_by_message};
use crate::gateway::recorded_call::{NotRun, Preparation, PreparedCall};
use crate::gateway::request_body;
use crate::gateway::rest;
use crate::gateway::rpc_request::{BatchContext, RpcCaller, RpcRequest};
use crate::gateway::shadow::ReplayableCall;
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{Call, Incoming, MessageItem};
use dualgauge_model::rollout::{Decision, DecisionReason, Stage};
use dualgauge_model::routing::RequestHead;
use dualgauge_patterns::json::Json;

/// Finds the routes of the calls in a request, and returns each call ready to be sent.
pub(in crate::gateway) async fn prepare(
    mut record: Box<AccessRecord>,
    preparation: Preparation<'_>,
) -> Vec<PreparedCall> {
    if preparation.head.method != Method::POST {
        return vec![PreparedCall::refused(record, NotRun::NoCall)];
    }
    let (body, old) = match read(&record, preparation).await {
        Ok(read) => read,
        Err(failure) => return vec![PreparedCall::refused(record, failure)],
    };
    if let Some(old) = old {
        // A message of an old dialect is a call of the REST side.
        record.context.set_side_to_rest();
        let preparation = Preparation {
            body: &old,
            ..preparation
        };
        return vec![rest::recorded::prepare(record, preparation).await];
    }
    let rpc_caller = identify_caller(&mut record, preparation, &body);
    let RpcBody::Messages(body, incoming) = body else {
        if let Some(route) = frame_route(&record, preparation.body) {
            // It belongs to the session of its socket.
            record.context.set_side_to_rest();
            let decision = Decision::plain(preparation.stage, DecisionReason::Default);
            record.set_decision(Some(route), decision);
            return vec![PreparedCall::refused(record, Skip::Stream)];
        }
        let message = "the body is not a JSON-RPC 2.0 message";
        let failure = Failure::new(Reason::InvalidRequest, message);
        return vec![PreparedCall::refused(record, failure)];
    };
    let (head, origin) = (preparation.head.clone(), preparation.origin.clone());
    let request = RpcRequest::new(&record, Box::new(head), body, origin, rpc_caller);
    match incoming {
        Incoming::Single(item) => {
            vec![request.prepare(record, item, BatchContext::Single, preparation.stage)]
        }
        Incoming::Batch(items) => {
            record.discard();
            let remaining = std::cell::Cell::new(usize::MAX);
            let items = items.into_iter().map(|item| {
                let batch = BatchContext::Batch(&remaining);
                request.prepare(request.begin_record(), item, batch, preparation.stage)
            });
            items.collect()
        }
    }
}

/// Returns the route of an old message that was recorded on a socket.
fn frame_route(record: &AccessRecord, body: &Bytes) -> Option<usize> {
    let plan = &record.context.runtime_plan().plan;
    let frame = Json::read(body.clone(), plan.limits.depth).ok()?;
    plan.routes.select_frame(&frame)
}

/// Reads the body, and returns it with the message of an old dialect, if it is one.
async fn read(
    record: &AccessRecord,
    preparation: Preparation<'_>,
) -> Result<(RpcBody, Option<Bytes>), Failure> {
    let headers = &preparation.head.headers;
    let body = preparation.body.clone();
    let fault = request_body::message_fault(headers, &Full::new(body.clone()));
    let read = reading::parse(&record.context, headers, body, fault).await?;
    let head = RequestHead::new(preparation.head);
    let old = read.old_message(&record.context, head).await?;
    Ok((read, old))
}

fn identify_caller(
    record: &mut AccessRecord,
    preparation: Preparation<'_>,
    body: &RpcBody,
) -> Rc<RpcCaller> {
    let runtime_plan = record.context.runtime_plan().clone();
    let (headers, origin) = (&preparation.head.headers, preparation.origin);
    let identity = identify(record, headers, origin);
    let declared = || body.client_info();
    let by_message = identify_by_message(record, headers, origin, declared);
    RpcCaller::new(by_message.unwrap_or(identity), &runtime_plan.plan)
}

impl RpcRequest {
    /// Finds the route of one message, and returns it ready to be sent with `stage`.
    fn prepare(
        &self,
        mut record: Box<AccessRecord>,
        item: MessageItem,
        batch: BatchContext<'_>,
        stage: Stage,
    ) -> PreparedCall {
        let MessageItem::Call(call) = item else {
            return PreparedCall::refused(record, NotRun::NoCall);
        };
        record.set_rpc_method(&call.method);
        let call = self.route_and_store(&mut record, &call, batch, stage);
        PreparedCall { record, call }
    }

    fn route_and_store(
        &self,
        record: &mut AccessRecord,
        call: &Call,
        batch: BatchContext<'_>,
        stage: Stage,
    ) -> Result<Box<dyn ReplayableCall>, NotRun> {
        let plan = &self.runtime_plan.plan;
        if plan.locals.rpc(&call.method).is_some() {
            return Err(NotRun::Local);
        }
        let route = plan.select_rpc(&call.method, call.params.as_ref());
        let route = route.ok_or(NotRun::Unrouted)?;
        let decision = Decision::plain(stage, DecisionReason::Default);
        record.set_decision(Some(route), decision);
        self.may_repeat(call)?;
        Ok(Box::new(match batch {
            BatchContext::Single => self.replayable(call, batch),
            // The recorded response is that of the whole batch.
            BatchContext::Batch(_) => self.replayable_batch_item(call),
        }))
    }
}
