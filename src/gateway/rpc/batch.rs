//! Batches: one message if the whole batch passes to one upstream, else a map over the single call (JSON-RPC 2.0 §6).
//!
//! Laws: each item has its own record in both cases; answers that the proxy assembles keep the order of the calls.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream;
use http::Response;

use super::{ItemReply, RpcRequest};
use crate::domain::batch::{self, BatchMember, PassthroughBatch};
use crate::domain::compare::Skip;
use crate::domain::failure::{Failure, Reason};
use crate::domain::jsonrpc::{self, MessageItem};
use crate::domain::plan::Plan;
use crate::domain::posted::{Handling, MessageFault, Poster, takes_envelopes};
use crate::domain::rope::Rope;
use crate::domain::routing::RequestHead;
use crate::gateway::passthrough::InterimResponses;
use crate::gateway::record::Record;
use crate::gateway::response::{self, CallResponse, FullResponse};
use crate::gateway::response_annotations::ResponseAnnotations;
use crate::gateway::shadow::{self, Candidate};
use crate::gateway::{ResponseBody, sessions};
use crate::upstream::HttpUpstream;

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
            BatchContext::Batch(room) => {
                let left = room.get().checked_sub(length);
                room.set(left.unwrap_or(0));
                left.is_some()
            }
        }
    }

    pub(super) fn is_full(self) -> bool {
        match self {
            BatchContext::Single => false,
            BatchContext::Batch(room) => room.get() == 0,
        }
    }
}

/// An item of a batch that passes as one message, with its record.
type BatchItem = (Box<Record>, BatchMember);

impl RpcRequest {
    /// Serves a batch. Assembled answers belong to no single call, so their HTTP headers carry no annotations.
    pub(super) async fn batch(
        &self,
        reading: Box<Record>,
        items: Vec<MessageItem>,
    ) -> Response<ResponseBody> {
        if let Some((upstream, passing)) = self.passing(&reading, &items) {
            reading.discard();
            return self.pass_whole(&upstream, passing).await;
        }
        if let Err(fault) = self.check_valid() {
            let mut reading = reading;
            reading.set_fault(MessageFault::Invalid, Handling::Refused);
            return self.written(response::failure(reading, fault));
        }
        reading.discard();
        match self.answers(items).await {
            Some((whole, followed_by)) => self.respond(whole, followed_by),
            None => self.no_reply(),
        }
    }

    /// Serves the items separately. Returns the assembled answers and the candidates to run once the client has them,
    /// or `None` if no item is answered.
    pub(super) async fn answers(
        &self,
        items: Vec<MessageItem>,
    ) -> Option<(FullResponse, Vec<Candidate>)> {
        let plan = &self.installed.plan;
        let room = Cell::new(plan.limits.answer);
        let calls = stream::iter(items).map(|item| self.item(item, BatchContext::Batch(&room)));
        let said: Vec<(ItemReply, ResponseAnnotations)> =
            calls.buffered(plan.face.batch_concurrency).collect().await;
        together(said.into_iter().map(|(said, _)| said))
    }

    /// Serves one item with its own record.
    async fn item(
        &self,
        item: MessageItem,
        company: BatchContext<'_>,
    ) -> (ItemReply, ResponseAnnotations) {
        self.answer(self.record(), item, company).await
    }

    /// Returns the upstream and the items of a batch that passes as one message.
    fn passing(
        &self,
        reading: &Record,
        items: &[MessageItem],
    ) -> Option<(Rc<HttpUpstream>, PassthroughBatch)> {
        let plan = &self.installed.plan;
        let (caller, headers) = (self.caller(), &self.head.headers);
        let poster = Poster {
            caller,
            head: RequestHead::new(&self.head),
            at: reading.at(),
            past: Some((
                self.installed.flag_history(),
                reading.worker().sessions().now(),
            )),
        };
        let context = (reading, &*self.installed);
        let passing = batch::passing(plan, poster, items, |call, route| {
            sessions::of_rpc(context, (caller, headers), call, route)
        })?;
        let upstream = self.installed.upstream_at(passing.upstream_index)?.http()?;
        let is_valid = self.fault.is_none() || takes_envelopes(plan, upstream.plan());
        is_valid.then(|| (upstream.clone(), passing))
    }

    /// Sends the batch as one message, and forwards the response.
    async fn pass_whole(
        &self,
        upstream: &Rc<HttpUpstream>,
        passing: PassthroughBatch,
    ) -> Response<ResponseBody> {
        let mut parts: Vec<BatchItem> = passing
            .members
            .into_iter()
            .map(|one| self.part(one))
            .collect();
        let compares = |part: &BatchItem| {
            let (_, member) = part;
            member.decision.stage.candidate().is_some() && member.id.is_some()
        };
        // A candidate is compared with one item of the answer, so the answer streams through that item's record.
        let first = parts.iter().position(compares).unwrap_or(0);
        let (mut record, member) = parts.swap_remove(first);
        self.compare(&mut record, &member, None);
        for (record, member) in &mut parts {
            self.compare(record, member, Some(Skip::BatchLimit));
        }
        let mut others = PassedItems::hold(parts);
        let admitted = record.admit();
        let sent = match admitted {
            Ok(()) => {
                let (body, interims) = (self.body.clone(), InterimResponses::Forwarded);
                self.forward(&mut record, upstream, body, interims).await
            }
            Err(failure) => Err(failure),
        };
        let mut parts = others.take();
        let answer = match sent {
            Ok(answer) => answer,
            Err(failure) => {
                parts.push((record, member));
                // Restores the order of the items.
                let last = parts.len() - 1;
                parts.swap(first, last);
                return self.fail_whole(parts, &failure);
            }
        };
        let asks = |member: &BatchMember| member.id.is_some() || member.call.is_none();
        let is_answered = asks(&member) || parts.iter().any(|part| asks(&part.1));
        if !is_answered {
            return self.no_replies(upstream, (record, parts), answer).await;
        }
        let status = match &answer {
            CallResponse::Streaming(stream) => stream.response.status(),
            CallResponse::Full(whole) => whole.status,
            CallResponse::Upgrade(tunnel) => tunnel.head.status,
        };
        let mut others = Vec::with_capacity(parts.len());
        for (mut other, _) in parts {
            other.answered(status.as_u16());
            other.was_sent_with(&record);
            others.push(*other);
        }
        response::holding(response::answer(record, answer), others)
    }

    /// Starts the record of an item of a batch that passes as one message.
    fn part(&self, member: BatchMember) -> BatchItem {
        let mut record = self.record();
        if let Some(call) = &member.call {
            record.names_method(&call.method);
        }
        record.decided(member.route, member.decision.clone());
        record.set_batch_id(member.id.clone());
        let fault = self.fault.as_ref().map(|_| MessageFault::Invalid);
        if let Some(fault) = member.fault.or(fault) {
            record.set_fault(fault, Handling::Forwarded);
        }
        (record, member)
    }

    /// Attaches a candidate to an item, unless `skip` is set.
    fn compare(&self, record: &mut Record, member: &BatchMember, skip: Option<Skip>) {
        let Some(call) = &member.call else { return };
        let may_repeat = self.may_repeat(call);
        let may_repeat = may_repeat.and(skip.map_or(Ok(()), Err));
        let fault = member.fault.map(|_| {
            let why = "the message is not valid JSON-RPC 2.0";
            Rc::new(Failure::new(Reason::InvalidRequest, why))
        });
        let repeated = || {
            let letter = RpcRequest {
                fault: self.fault.clone().or(fault),
                ..self.clone()
            };
            letter.replayable_part(call)
        };
        shadow::attach_rpc(record, member.decision.stage, may_repeat, repeated);
    }

    /// Replies to a batch of notifications with no body, and discards the server's response.
    async fn no_replies(
        &self,
        upstream: &Rc<HttpUpstream>,
        (mut record, parts): (Box<Record>, Vec<BatchItem>),
        answer: CallResponse,
    ) -> Response<ResponseBody> {
        let status = self.installed.plan.face.notification_status.as_u16();
        if let CallResponse::Streaming(stream) = &answer {
            let said = stream.response.status().as_u16();
            for (mut other, _) in parts {
                other.answered(said);
                other.was_sent_with(&record);
                other.sent(status);
            }
        }
        match self.discard(&mut record, upstream, answer).await {
            Ok(_) => record.sent(status),
            Err(failure) => record.failed(status, &failure),
        }
        self.no_reply()
    }

    /// Fails the whole batch: each call gets an error.
    fn fail_whole(&self, parts: Vec<BatchItem>, failure: &Failure) -> Response<ResponseBody> {
        let failed = parts.into_iter().map(|(record, member)| {
            let id = member.id.as_ref();
            self.fail(record, failure.clone(), id)
        });
        match together(failed) {
            Some((whole, followed_by)) => self.respond(whole, followed_by),
            None => self.no_reply(),
        }
    }
}

/// The other items of a batch in transit, which counts as one call in progress. Dropping them untaken means that
/// the client has left.
struct PassedItems(Vec<BatchItem>);

impl PassedItems {
    fn hold(parts: Vec<BatchItem>) -> PassedItems {
        for (record, _) in &parts {
            record.worker().ended(record.peer());
        }
        PassedItems(parts)
    }

    fn take(&mut self) -> Vec<BatchItem> {
        let parts = std::mem::take(&mut self.0);
        for (record, _) in &parts {
            record.worker().begun(record.peer());
        }
        parts
    }
}

impl Drop for PassedItems {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Assembles the replies of several items; returns `None` if no item is answered.
fn together(said: impl Iterator<Item = ItemReply>) -> Option<(FullResponse, Vec<Candidate>)> {
    let mut followed_by = Vec::new();
    let mut messages: Vec<Rope> = Vec::new();
    for said in said {
        if let ItemReply::Message(whole, candidate) = said {
            messages.push(whole.body);
            followed_by.extend(candidate);
        }
    }
    if messages.is_empty() {
        return None;
    }
    Some((response::rpc_message(jsonrpc::batch(messages)), followed_by))
}

/// Returns the failure for a batch whose answers exceed `limits.answer` together.
pub(super) fn full(plan: &Plan) -> Failure {
    let limit = plan.limits.answer;
    let message = format!(
        "the answers of this batch exceed {limit} bytes in total; send fewer calls per batch"
    );
    Failure::new(Reason::BatchTooLarge, message)
}
