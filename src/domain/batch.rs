//! Batches: which of them pass to one upstream as one message (JSON-RPC 2.0 §6).
//!
//! Law: a batch is split only when its items are decided differently, or when one of them is not for the upstream as it
//! came.

use super::claim;
use super::jsonrpc::{Call, Item, Reading, RequestId};
use super::plan::{CANCELLED, Plan};
use super::posted::{
    MessageFault, Poster, may_pass_ambiguous, may_pass_unread, reread, takes_envelopes, unwelcome,
};
use super::refusal;
use super::rollout::{Decision, Session, Stage, Way, Why};
use super::side::Side;

/// An item of a batch that passes through.
#[derive(Debug)]
pub struct Member {
    /// The call, where one can be read.
    pub call: Option<Call>,
    /// The id of its error; none for a notification.
    pub id: Option<RequestId>,
    /// The route of the call.
    pub route: Option<usize>,
    /// What was decided for it.
    pub decision: Decision,
    /// How it differs from valid JSON-RPC 2.0.
    pub fault: Option<MessageFault>,
}

/// A batch that passes through as one message.
#[derive(Debug)]
pub struct Passing {
    /// The place of its upstream.
    pub place: usize,
    /// Its items, in order.
    pub members: Vec<Member>,
}

/// The batch as one that passes to one upstream, if it is one. `session` finds the session of a call of a route.
#[must_use]
pub fn passing<'s>(
    plan: &Plan,
    poster: Poster<'_>,
    items: &[Item],
    session: impl Fn(&Call, Option<usize>) -> Option<Session<'s>>,
) -> Option<Passing> {
    let batch = Batch { plan, poster };
    let mut members = Vec::with_capacity(items.len());
    let mut to = None;
    for item in items {
        let (place, member) = batch.member(item, &session)?;
        if *to.get_or_insert(place) != place {
            return None;
        }
        members.push(member);
    }
    Some(Passing {
        place: to?,
        members,
    })
}

struct Batch<'a> {
    plan: &'a Plan,
    poster: Poster<'a>,
}

impl Batch<'_> {
    fn member<'s>(
        &self,
        item: &Item,
        session: impl Fn(&Call, Option<usize>) -> Option<Session<'s>>,
    ) -> Option<(usize, Member)> {
        let invalid = match item {
            Item::Call(call) => {
                let (id, call) = (call.id.clone(), call.clone());
                return self.call((call, id), None, session);
            }
            // A response of the client to a request of the server.
            Item::Response(_) => return Some((self.usual()?, unrouted(None, None))),
            Item::Invalid(invalid) => invalid,
        };
        let place = self.usual()?;
        if !takes_envelopes(self.plan, self.plan.upstreams.all.get(place)?) {
            return None;
        }
        let id = Some(invalid.id.clone());
        let (passes, fault) = match reread(self.plan, invalid).reading {
            Reading::Call(call) => {
                return self.call((*call, id), Some(MessageFault::Invalid), session);
            }
            Reading::Unreadable => (
                may_pass_unread(self.plan, self.poster),
                MessageFault::Unreadable,
            ),
            Reading::Ambiguous => (may_pass_ambiguous(self.plan), MessageFault::Ambiguous),
        };
        passes.then(|| (place, unrouted(id, Some(fault))))
    }

    fn call<'s>(
        &self,
        (call, id): (Call, Option<RequestId>),
        fault: Option<MessageFault>,
        session: impl Fn(&Call, Option<usize>) -> Option<Session<'s>>,
    ) -> Option<(usize, Member)> {
        let plan = self.plan;
        let (caller, headers) = (self.poster.caller, self.poster.head.headers);
        refusal::ambiguous_credentials(plan, &call).ok()?;
        claim::mcp(plan, headers, &call).ok()?;
        // A notification that cancels a call may have to name it by another id.
        let cancels = id.is_none() && *call.method == *CANCELLED;
        if cancels || plan.locals.rpc(&call.method).is_some() {
            return None;
        }
        let route = plan.select_rpc(&call.method, call.params.as_ref());
        let asked = (route, Side::Rpc);
        let session = session(&call, route);
        let decision = claim::decide(plan, (caller, headers), asked, self.poster.at, session);
        if route.is_some() && decision.stage.control() != Some(Way::Old) {
            return None;
        }
        let place = plan.upstreams.of(route, Side::Rpc)?;
        let upstream = plan.upstreams.all.get(place)?;
        // A link gives each call an id of its own.
        if upstream.transport.link().is_some() || unwelcome(plan, upstream, &call).is_some() {
            return None;
        }
        let member = Member {
            call: Some(call),
            id,
            route,
            decision,
            fault,
        };
        Some((place, member))
    }

    /// The place of the RPC upstream that takes HTTP requests.
    fn usual(&self) -> Option<usize> {
        self.plan.rpc_over_http()?;
        self.plan.upstreams.of(None, Side::Rpc)
    }
}

fn unrouted(id: Option<RequestId>, fault: Option<MessageFault>) -> Member {
    Member {
        call: None,
        id,
        route: None,
        decision: Decision::plain(Stage::Passthrough, Why::Unrouted),
        fault,
    }
}
