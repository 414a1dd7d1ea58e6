//! Batches: one message if the whole batch passes to one upstream, else a map over the single call (JSON-RPC 2.0 §6).
//!
//! Laws: each item has its own record in both cases; answers that the proxy assembles keep the order of the calls.
//!
//! Used by `rpc`.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream;
use http::Response;

use super::{ItemReply, RpcRequest};
use crate::gateway::passthrough::InterimResponses;
use crate::gateway::record::Record;
use crate::gateway::response::{self, CallResponse, FullResponse};
use crate::gateway::response_annotations::ResponseAnnotations;
use crate::gateway::shadow::{self, Candidate};
use crate::gateway::{ResponseBody, sessions};
use crate::upstream::HttpUpstream;
use dualgauge_model::batch::{self, BatchMember, PassthroughBatch};
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, MessageItem};
use dualgauge_model::plan::Plan;
use dualgauge_model::posted::{Handling, MessageFault, Poster, takes_envelopes};
use dualgauge_model::routing::RequestHead;
use dualgauge_patterns::rope::Rope;

/// The batch of a message, if it is in one.
#[derive(Debug, Clone, Copy)]
pub(super) enum BatchContext<'a> {
    Single,
    /// A member of a batch; the cell holds the bytes left for the answers of the whole batch.
    Batch(&'a Cell<usize>),
}

impl BatchContext<'_> {
    /// Reserves `length` bytes for an answer; returns false if fewer are left.
    pub(super) fn reserve_answer(self, length: usize) -> bool {
        match self {
            BatchContext::Single => true,
            BatchContext::Batch(remaining) => {
                let left = remaining.get().checked_sub(length);
                remaining.set(left.unwrap_or(0));
                left.is_some()
            }
        }
    }

    pub(super) fn is_full(self) -> bool {
        match self {
            BatchContext::Single => false,
            BatchContext::Batch(remaining) => remaining.get() == 0,
        }
    }
}

/// An item of a batch that passes as one message, with its record.
type BatchItem = (Box<Record>, BatchMember);

impl RpcRequest {
    /// Serves a batch. Assembled answers belong to no single call, so their HTTP headers carry no annotations.
    pub(super) async fn serve_batch(
        &self,
        request_record: Box<Record>,
        items: Vec<MessageItem>,
    ) -> Response<ResponseBody> {
        if let Some((upstream, passthrough)) = self.passthrough_batch(&request_record, &items) {
            request_record.discard();
            return self.forward_batch(&upstream, passthrough).await;
        }
        if let Err(fault) = self.check_valid() {
            let mut request_record = request_record;
            request_record.set_fault(MessageFault::Invalid, Handling::Refused);
            return self.add_cors_headers(response::render_failure(request_record, fault));
        }
        request_record.discard();
        match self.serve_items(items).await {
            Some((full, candidates)) => self.respond(full, candidates),
            None => self.no_reply_response(),
        }
    }

    /// Serves the items separately. Returns the assembled answers and the candidates to run once the client has them,
    /// or `None` if no item is answered.
    pub(super) async fn serve_items(
        &self,
        items: Vec<MessageItem>,
    ) -> Option<(FullResponse, Vec<Candidate>)> {
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
        request_record: &Record,
        items: &[MessageItem],
    ) -> Option<(Rc<HttpUpstream>, PassthroughBatch)> {
        let plan = &self.runtime_plan.plan;
        let (caller, headers) = (self.caller(), &self.head.headers);
        let poster = Poster {
            caller,
            head: RequestHead::new(&self.head),
            at: request_record.wall_time(),
            past: Some((
                self.runtime_plan.flag_history(),
                request_record.worker().sessions().now(),
            )),
        };
        let context = (request_record, &*self.runtime_plan);
        let passthrough = batch::passing(plan, poster, items, |call, route| {
            sessions::for_rpc(context, (caller, headers), call, route)
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
        let has_candidate = |item: &BatchItem| {
            let (_, member) = item;
            member.decision.stage.candidate().is_some() && member.id.is_some()
        };
        // A candidate is compared with one item of the answer, so the answer streams through that item's record.
        let first = items.iter().position(has_candidate).unwrap_or(0);
        let (mut record, member) = items.swap_remove(first);
        self.attach_candidate(&mut record, &member, None);
        for (record, member) in &mut items {
            self.attach_candidate(record, member, Some(Skip::BatchLimit));
        }
        let mut others = PassedItems::hold(items);
        let admitted = record.admit();
        let sent = match admitted {
            Ok(()) => {
                let (body, interims) = (self.body.clone(), InterimResponses::Forwarded);
                self.forward(&mut record, upstream, body, interims).await
            }
            Err(failure) => Err(failure),
        };
        let mut items = others.take();
        let answer = match sent {
            Ok(answer) => answer,
            Err(failure) => {
                items.push((record, member));
                // Restores the order of the items.
                let last = items.len() - 1;
                items.swap(first, last);
                return self.fail_batch(items, &failure);
            }
        };
        let expects_reply = |member: &BatchMember| member.id.is_some() || member.call.is_none();
        let is_answered = expects_reply(&member) || items.iter().any(|item| expects_reply(&item.1));
        if !is_answered {
            return self
                .discard_replies(upstream, (record, items), answer)
                .await;
        }
        let status = match &answer {
            CallResponse::Streaming(stream) => stream.response.status(),
            CallResponse::Full(full) => full.status,
            CallResponse::Upgrade(tunnel) => tunnel.head.status,
        };
        let mut others = Vec::with_capacity(items.len());
        for (mut other, _) in items {
            other.set_response(status.as_u16());
            other.copy_upstream_time(&record);
            others.push(*other);
        }
        response::hold_records(response::render_response(record, answer), others)
    }

    /// Starts the record of an item of a batch that passes as one message.
    fn batch_item(&self, member: BatchMember) -> BatchItem {
        let mut record = self.begin_record();
        if let Some(call) = &member.call {
            record.set_rpc_method(&call.method);
        }
        record.set_decision(member.route, member.decision.clone());
        record.set_batch_id(member.id.clone());
        let fault = self.fault.as_ref().map(|_| MessageFault::Invalid);
        if let Some(fault) = member.fault.or(fault) {
            record.set_fault(fault, Handling::Forwarded);
        }
        (record, member)
    }

    /// Attaches a candidate to an item, unless `skip` is set.
    fn attach_candidate(&self, record: &mut Record, member: &BatchMember, skip: Option<Skip>) {
        let Some(call) = &member.call else { return };
        let may_repeat = self.may_repeat(call);
        let may_repeat = may_repeat.and(skip.map_or(Ok(()), Err));
        let fault = member.fault.map(|_| {
            let why = "the message is not valid JSON-RPC 2.0";
            Rc::new(Failure::new(Reason::InvalidRequest, why))
        });
        let replayable = || {
            let request = RpcRequest {
                fault: self.fault.clone().or(fault),
                ..self.clone()
            };
            request.replayable_batch_item(call)
        };
        shadow::attach_rpc(record, member.decision.stage, may_repeat, replayable);
    }

    /// Replies to a batch of notifications with no body, and discards the server's response.
    async fn discard_replies(
        &self,
        upstream: &Rc<HttpUpstream>,
        (mut record, items): (Box<Record>, Vec<BatchItem>),
        answer: CallResponse,
    ) -> Response<ResponseBody> {
        let status = self.runtime_plan.plan.face.notification_status.as_u16();
        if let CallResponse::Streaming(stream) = &answer {
            let upstream_status = stream.response.status().as_u16();
            for (mut other, _) in items {
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
        let failed = items.into_iter().map(|(record, member)| {
            let id = member.id.as_ref();
            self.fail(record, failure.clone(), id)
        });
        match assemble_replies(failed) {
            Some((full, candidates)) => self.respond(full, candidates),
            None => self.no_reply_response(),
        }
    }
}

/// The other items of a batch in transit, which counts as one call in progress. Dropping them untaken means that
/// the client has left.
struct PassedItems(Vec<BatchItem>);

impl PassedItems {
    fn hold(items: Vec<BatchItem>) -> PassedItems {
        for (record, _) in &items {
            record.worker().count_call_end(record.peer());
        }
        PassedItems(items)
    }

    fn take(&mut self) -> Vec<BatchItem> {
        let items = std::mem::take(&mut self.0);
        for (record, _) in &items {
            record.worker().count_call_start(record.peer());
        }
        items
    }
}

impl Drop for PassedItems {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Assembles the replies of several items; returns `None` if no item is answered.
fn assemble_replies(
    replies: impl Iterator<Item = ItemReply>,
) -> Option<(FullResponse, Vec<Candidate>)> {
    let mut candidates = Vec::new();
    let mut messages: Vec<Rope> = Vec::new();
    for reply in replies {
        if let ItemReply::Message(full, candidate) = reply {
            messages.push(full.body);
            candidates.extend(candidate);
        }
    }
    if messages.is_empty() {
        return None;
    }
    Some((response::rpc_message(jsonrpc::batch(messages)), candidates))
}

/// Returns the failure for a batch whose answers exceed `limits.answer` together.
pub(super) fn answers_too_large(plan: &Plan) -> Failure {
    let limit = plan.limits.answer;
    let message = format!(
        "the answers of this batch exceed {limit} bytes in total; send fewer calls per batch"
    );
    Failure::new(Reason::BatchTooLarge, message)
}
