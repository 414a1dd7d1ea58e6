//! Batches that pass through to one upstream as one message (JSON-RPC 2.0 §6).
//!
//! Law: a batch is split only when its items get different decisions, or when an item cannot go to the upstream
//! unchanged.
//!
//! Used by `explain::rpc` and `gateway::rpc::batch`.

use super::jsonrpc::{Call, LooseCall, MessageItem, RequestId};
use super::plan::{CANCELLED, Plan};
use super::posted::{
    MessageFault, Poster, may_pass_ambiguous, may_pass_unread, reread, takes_envelopes,
    without_credentials,
};
use super::rejections;
use super::rollout::{Decision, DecisionReason, SessionStart, Stage, Way};
use super::routing;
use dualgauge_patterns::side::Side;

/// An item of a batch that passes through.
#[derive(Debug, Clone)]
pub struct BatchMember {
    /// The call, where one can be read.
    pub call: Option<Call>,
    /// The id for an error reply; `None` for a notification.
    pub id: Option<RequestId>,
    /// The route of the call.
    pub route: Option<usize>,
    /// The decision for this item.
    pub decision: Decision,
    /// The item's deviation from valid JSON-RPC 2.0, if any.
    pub fault: Option<MessageFault>,
}

/// A batch that passes through as one message.
#[derive(Debug)]
pub struct PassthroughBatch {
    /// The index of its upstream.
    pub upstream_index: usize,
    /// Its items, in order.
    pub members: Vec<BatchMember>,
}

/// Returns the batch as one that passes to one upstream, if it is one. `session` finds the session of a routed call.
#[must_use]
pub fn passing<'s>(
    plan: &Plan,
    poster: Poster<'_>,
    items: &[MessageItem],
    session: impl Fn(&Call, Option<usize>) -> Option<SessionStart<'s>>,
) -> Option<PassthroughBatch> {
    let batch = BatchReader { plan, poster };
    let mut members = Vec::with_capacity(items.len());
    let mut to = None;
    for item in items {
        let (upstream_index, member) = batch.member(item, &session)?;
        if *to.get_or_insert(upstream_index) != upstream_index {
            return None;
        }
        members.push(member);
    }
    Some(PassthroughBatch {
        upstream_index: to?,
        members,
    })
}

struct BatchReader<'a> {
    plan: &'a Plan,
    poster: Poster<'a>,
}

impl BatchReader<'_> {
    fn member<'s>(
        &self,
        item: &MessageItem,
        session: impl Fn(&Call, Option<usize>) -> Option<SessionStart<'s>>,
    ) -> Option<(usize, BatchMember)> {
        let invalid = match item {
            MessageItem::Call(call) => {
                let (id, call) = (call.id.clone(), call.clone());
                return self.call(call, id, None, session);
            }
            // A response of the client to a request of the server.
            MessageItem::Response(_) => {
                return Some((self.plan.rpc_over_http_index()?, unrouted(None, None)));
            }
            MessageItem::Invalid(invalid) => invalid,
        };
        let upstream_index = self.plan.rpc_over_http_index()?;
        if !takes_envelopes(self.plan, self.plan.upstreams.all.get(upstream_index)?) {
            return None;
        }
        let id = Some(invalid.id.clone());
        let (passes, fault) = match reread(self.plan, invalid).reading {
            LooseCall::Call(call) => {
                return self.call(*call, id, Some(MessageFault::Invalid), session);
            }
            LooseCall::Unreadable => (
                may_pass_unread(self.plan, self.poster),
                MessageFault::Unreadable,
            ),
            LooseCall::Ambiguous => (may_pass_ambiguous(self.plan), MessageFault::Ambiguous),
        };
        passes.then(|| (upstream_index, unrouted(id, Some(fault))))
    }

    fn call<'s>(
        &self,
        call: Call,
        id: Option<RequestId>,
        fault: Option<MessageFault>,
        session: impl Fn(&Call, Option<usize>) -> Option<SessionStart<'s>>,
    ) -> Option<(usize, BatchMember)> {
        let plan = self.plan;
        rejections::ambiguous_credentials(plan, &call).ok()?;
        routing::check_mcp_headers(plan, self.poster.head.headers, &call).ok()?;
        // The upstream may know the cancelled call by another id.
        let cancels = id.is_none() && *call.method == *CANCELLED;
        if cancels || plan.locals.rpc(&call.method).is_some() {
            return None;
        }
        let route = plan.select_rpc(&call.method, call.params.as_ref());
        let requester = self.poster.requester().with_session(session(&call, route));
        let decision = routing::decide(plan, requester, route, Side::Rpc, self.poster.at);
        if route.is_some() && decision.stage.control() != Some(Way::Old) {
            return None;
        }
        let upstream_index = plan.upstreams.of(route, Side::Rpc)?;
        let upstream = plan.upstreams.all.get(upstream_index)?;
        // A link assigns each call an id of its own.
        if upstream.transport.link().is_some()
            || without_credentials(plan, upstream, &call).is_some()
        {
            return None;
        }
        let member = BatchMember {
            call: Some(call),
            id,
            route,
            decision,
            fault,
        };
        Some((upstream_index, member))
    }
}

fn unrouted(id: Option<RequestId>, fault: Option<MessageFault>) -> BatchMember {
    BatchMember {
        call: None,
        id,
        route: None,
        decision: Decision::plain(Stage::Passthrough, DecisionReason::Unrouted),
        fault,
    }
}
