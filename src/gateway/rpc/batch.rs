//! Batches: one message if the whole batch passes to one upstream, else a map over the single call (JSON-RPC 2.0 §6).
//!
//! Laws: each item has its own record in both cases; answers that the proxy assembles keep the order of the calls.
//!
//! Used by `rpc`.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream;
use http::{Response, request};

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::{CallResponse, FullResponse, rpc_message};
use crate::gateway::passthrough::InterimResponses;
use crate::gateway::request_origin::ClientRequest;
use crate::gateway::response::{self, ResponseAnnotations};
use crate::gateway::response_body::ResponseBody;
use crate::gateway::response_observer::Observer;
use crate::gateway::rpc_request::{BatchContext, ItemReply, RpcRequest};
use crate::gateway::serve::{IdentifiedRequest, ProtocolCall, TwoWayCall, serve};
use crate::gateway::shadow;
use crate::upstream::HttpUpstream;
use dualgauge_model::batch::{self, BatchMember, PassthroughBatch};
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, MessageItem};
use dualgauge_model::posted::{Handling, MessageFault, Poster, takes_envelopes};
use dualgauge_model::rollout::{Identity, Stage};
use dualgauge_model::routing::RequestHead;
use dualgauge_patterns::rope::Rope;

/// An item of a batch that passes as one message.
struct BatchItem {
    record: Box<AccessRecord>,
    member: BatchMember,
    /// The observer of the response, if the item has one.
    observer: Option<Observer>,
}

impl RpcRequest {
    /// Serves a batch. Assembled answers belong to no single call, so their HTTP headers carry no annotations.
    pub(super) async fn serve_batch(
        &self,
        request_record: Box<AccessRecord>,
        items: Vec<MessageItem>,
    ) -> Response<ResponseBody> {
        if let Some((upstream, passthrough)) =
            self.passthrough_batch(&request_record.context, &items)
        {
            request_record.discard();
            return self.forward_batch(&upstream, passthrough).await;
        }
        if let Err(fault) = self.check_valid() {
            let mut request_record = request_record;
            request_record.set_fault(MessageFault::Invalid, Handling::Refused);
            return self.add_cors_headers(response::render_failure(request_record, fault, None));
        }
        request_record.discard();
        match self.serve_items(items).await {
            Some(reply) => self.respond(reply.full, reply.observers),
            None => self.no_reply_response(),
        }
    }

    /// Serves the items separately. Returns the assembled answers, or `None` if no item is answered.
    pub(super) async fn serve_items(&self, items: Vec<MessageItem>) -> Option<BatchReply> {
        let plan = &self.runtime_plan.plan;
        let remaining = Cell::new(plan.limits.answer);
        let calls = stream::iter(items)
            .map(|item| self.serve_batch_item(item, BatchContext::Batch(&remaining)));
        let replies: Vec<(ItemReply, ResponseAnnotations)> =
            calls.buffered(plan.face.batch_concurrency).collect().await;
        assemble_replies(replies.into_iter().map(|(reply, _)| reply))
    }

    /// Serves one item with its own record.
    async fn serve_batch_item(
        &self,
        item: MessageItem,
        batch: BatchContext<'_>,
    ) -> (ItemReply, ResponseAnnotations) {
        self.serve_message(self.begin_record(), item, batch).await
    }

    /// Returns the upstream and the items of a batch that passes as one message.
    fn passthrough_batch(
        &self,
        context: &CallContext,
        items: &[MessageItem],
    ) -> Option<(Rc<HttpUpstream>, PassthroughBatch)> {
        let plan = &self.runtime_plan.plan;
        let (caller, headers) = (self.caller(), &self.head.headers);
        let poster = Poster {
            caller,
            head: RequestHead::new(&self.head),
            at: context.wall_time(),
            past: Some((
                self.runtime_plan.flag_history(),
                context.worker().sessions().now(),
            )),
        };
        let passthrough = batch::passing(plan, poster, items, |call, route| {
            self.sessions().for_rpc(headers, call, route)
        })?;
        let upstream = self
            .runtime_plan
            .upstream_at(passthrough.upstream_index)?
            .http()?;
        let is_valid = self.fault.is_none() || takes_envelopes(plan, upstream.plan());
        is_valid.then(|| (upstream.clone(), passthrough))
    }

    /// Sends the batch as one message, and forwards the response.
    async fn forward_batch(
        &self,
        upstream: &Rc<HttpUpstream>,
        passthrough: PassthroughBatch,
    ) -> Response<ResponseBody> {
        let mut items: Vec<BatchItem> = passthrough
            .members
            .into_iter()
            .map(|member| self.batch_item(member))
            .collect();
        let has_candidate = |BatchItem { member, .. }: &BatchItem| {
            member.decision.stage.candidate().is_some() && member.id.is_some()
        };
        // A candidate is compared with one item of the answer, so the answer streams through that item's record.
        let first = items.iter().position(has_candidate).unwrap_or(0);
        let BatchItem { record, member, .. } = items.swap_remove(first);
        let mut call = PassedBatch {
            request: self,
            upstream,
            first,
            member,
            observer: None,
            others: PassedItems::hold(items),
        };
        serve(record, self.client_request(), &mut call).await
    }

    /// Starts the record of an item of a batch that passes as one message.
    fn batch_item(&self, member: BatchMember) -> BatchItem {
        let mut record = self.begin_record();
        if let Some(call) = &member.call {
            record.set_rpc_method(&call.method);
            self.count_era(&record.context, call);
        }
        record.set_decision(member.route, member.decision.clone());
        record.set_batch_id(member.id.clone());
        let fault = self.fault.as_ref().map(|_| MessageFault::Invalid);
        if let Some(fault) = member.fault.or(fault) {
            record.set_fault(fault, Handling::Forwarded);
        }
        BatchItem {
            record,
            member,
            observer: None,
        }
    }

    /// Returns the candidate of an item; counts the reason if it has none or `skip` is set.
    fn candidate(
        &self,
        record: &AccessRecord,
        member: &BatchMember,
        skip: Option<Skip>,
    ) -> Option<Observer> {
        let call = member.call.as_ref()?;
        let may_repeat = self.may_repeat(call);
        let may_repeat = may_repeat.and(skip.map_or(Ok(()), Err));
        let fault = member.fault.map(|_| {
            let why = "the message is not valid JSON-RPC 2.0";
            Rc::new(Failure::new(Reason::InvalidRequest, why))
        });
        if !shadow::may_attach(&record.context, member.decision.stage, may_repeat) {
            return None;
        }
        let request = RpcRequest {
            fault: self.fault.clone().or(fault),
            ..self.clone()
        };
        shadow::candidate(record, Box::new(request.replayable_batch_item(call)))
    }

    /// Replies to a batch of notifications with no body, and discards the server's response.
    async fn discard_replies(
        &self,
        upstream: &Rc<HttpUpstream>,
        mut record: Box<AccessRecord>,
        items: Vec<BatchItem>,
        answer: CallResponse,
    ) -> Response<ResponseBody> {
        let status = self.no_reply_status().as_u16();
        if let CallResponse::Streaming(stream) = &answer {
            let upstream_status = stream.response.status().as_u16();
            for BatchItem {
                record: mut other, ..
            } in items
            {
                other.set_response(upstream_status);
                other.copy_upstream_time(&record);
                other.set_client_status(status);
            }
        }
        match self.discard(&mut record, upstream, answer).await {
            Ok(_) => record.set_client_status(status),
            Err(failure) => record.set_failure(status, &failure),
        }
        self.no_reply_response()
    }

    /// Fails the whole batch: each call gets an error.
    fn fail_batch(&self, items: Vec<BatchItem>, failure: &Failure) -> Response<ResponseBody> {
        let failed = items.into_iter().map(|item| {
            let id = item.member.id.as_ref();
            self.fail(item.record, failure.clone(), id, item.observer)
        });
        match assemble_replies(failed) {
            Some(reply) => self.respond(reply.full, reply.observers),
            None => self.no_reply_response(),
        }
    }
}

/// A batch that passes as one message, in the pipeline: as the call of its first item.
struct PassedBatch<'a> {
    request: &'a RpcRequest,
    upstream: &'a Rc<HttpUpstream>,
    /// The place of the first item in the batch.
    first: usize,
    member: BatchMember,
    /// The observer of the response, if the first item has one.
    observer: Option<Observer>,
    others: PassedItems,
}

impl<'a> TwoWayCall for PassedBatch<'a> {
    type Head = &'a request::Parts;
    type Answer = CallResponse;

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        _: ClientRequest<'_, &'a request::Parts>,
        _: Option<usize>,
    ) -> Result<CallResponse, Failure> {
        let (body, interims) = (self.request.body.clone(), InterimResponses::Forwarded);
        self.request
            .forward(record, self.upstream, body, interims)
            .await
    }
}

impl ProtocolCall for PassedBatch<'_> {
    type Response = Response<ResponseBody>;

    /// The caller was identified for all messages of the request.
    fn identify<'h>(&mut self, _: &mut AccessRecord, _: ClientRequest<'h>) -> Identity<'h>
    where
        Self: 'h,
    {
        self.request.rpc_caller.identity.borrowed()
    }

    async fn select_route(
        &mut self,
        _: &mut CallContext,
        _: &IdentifiedRequest<'_>,
    ) -> Result<Option<usize>, Failure> {
        Ok(self.member.route)
    }

    /// The decision was recorded when the batch was found to pass.
    fn decide(
        &mut self,
        _: &mut AccessRecord,
        _: &IdentifiedRequest<'_>,
        _: Option<usize>,
    ) -> Stage {
        self.member.decision.stage
    }

    fn attach_shadow(&mut self, record: &AccessRecord, _: &IdentifiedRequest<'_>, _: Stage) {
        self.observer = self.request.candidate(record, &self.member, None);
        for BatchItem { record, member, .. } in &self.others.0 {
            // Counts the skip: no item but the first has a candidate.
            self.request
                .candidate(record, member, Some(Skip::BatchLimit));
        }
    }

    fn attach_recorder(&mut self, record: &AccessRecord, _: &IdentifiedRequest<'_>) {
        let text = || self.request.body.clone();
        self.request
            .attach_recorder(record, text, &mut self.observer);
    }

    async fn respond(
        &mut self,
        record: Box<AccessRecord>,
        result: Result<CallResponse, Failure>,
    ) -> Response<ResponseBody> {
        let mut items = self.others.take();
        let observer = self.observer.take();
        let answer = match result {
            Ok(answer) => answer,
            Err(failure) => {
                items.push(BatchItem {
                    record,
                    member: self.member.clone(),
                    observer,
                });
                // Restores the order of the items.
                let last = items.len() - 1;
                items.swap(self.first, last);
                return self.request.fail_batch(items, &failure);
            }
        };
        let expects_reply = |member: &BatchMember| member.id.is_some() || member.call.is_none();
        let mut members = items.iter().map(|item| &item.member);
        if !expects_reply(&self.member) && !members.any(expects_reply) {
            let replies = self
                .request
                .discard_replies(self.upstream, record, items, answer);
            return replies.await;
        }
        let status = match &answer {
            CallResponse::Streaming(stream) => stream.response.status(),
            CallResponse::Full(full) => full.status,
            CallResponse::Upgrade(tunnel) => tunnel.head.status,
        };
        let mut others = Vec::with_capacity(items.len());
        for mut other in items {
            other.record.set_response(status.as_u16());
            other.record.copy_upstream_time(&record);
            others.push(*other.record);
        }
        let response = response::render_response(record, answer, observer);
        response::hold_records(response, others)
    }
}

/// The other items of a batch in transit, which counts as one call in progress. Dropping them untaken means that
/// the client has left.
struct PassedItems(Vec<BatchItem>);

impl PassedItems {
    fn hold(items: Vec<BatchItem>) -> PassedItems {
        for BatchItem { record, .. } in &items {
            record
                .context
                .worker()
                .count_call_end(record.context.peer());
        }
        PassedItems(items)
    }

    fn take(&mut self) -> Vec<BatchItem> {
        let items = std::mem::take(&mut self.0);
        for BatchItem { record, .. } in &items {
            record
                .context
                .worker()
                .count_call_start(record.context.peer());
        }
        items
    }
}

impl Drop for PassedItems {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// The answers of a batch, assembled by the proxy.
pub(super) struct BatchReply {
    pub(super) full: FullResponse,
    /// The observers of the single answers.
    pub(super) observers: Vec<Observer>,
}

impl BatchReply {
    /// Returns the reply to a message outside a batch; `None` if it has no answer.
    pub(super) fn from_single(reply: ItemReply) -> Option<BatchReply> {
        match reply {
            ItemReply::Message(full, observer) => Some(BatchReply {
                full: *full,
                observers: observer.into_iter().collect(),
            }),
            ItemReply::Forwarded(_) | ItemReply::Nothing => None,
        }
    }
}

/// Assembles the replies of several items; returns `None` if no item is answered.
fn assemble_replies(replies: impl Iterator<Item = ItemReply>) -> Option<BatchReply> {
    let mut observers = Vec::new();
    let mut messages: Vec<Rope> = Vec::new();
    for reply in replies {
        if let ItemReply::Message(full, observer) = reply {
            messages.push(full.body);
            observers.extend(observer);
        }
    }
    if messages.is_empty() {
        return None;
    }
    Some(BatchReply {
        full: rpc_message(jsonrpc::batch(messages)),
        observers,
    })
}
