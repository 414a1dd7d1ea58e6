//! REST calls that open a subscription over a link: the response streams its notifications as events.
//!
//! Used by `translate`.

use std::sync::Arc;

use http::HeaderMap;

use super::access_record::AccessRecord;
use super::call_response::CallResponse;
use super::headers::credentials;
use super::link_call::{self, SubscribeRequest};
use super::offloaded_parsing::RouteHandle;
use super::rpc_reply::{RpcReply, no_response};
use super::streamed_call;
use super::subscription_events::SubscriptionEvents;
use crate::upstream::Upstream;
use crate::upstream::link::LinkReply;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, RequestTemplate};
use dualgauge_model::pending::RetryRule;
use dualgauge_model::rejections;
use dualgauge_model::response_stream::{StreamClient, StreamTerms, StreamedCall};
use dualgauge_model::subscription::SubscriptionRule;
use dualgauge_model::translate::ToRpc;
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::side::Side;

/// The result of a call that opens a subscription.
pub(super) enum Subscribed {
    /// The response streams.
    Stream(CallResponse),
    /// The server has refused the call.
    Refused(RpcReply, Bindings),
}

/// Sends the call over the link of the route's RPC upstream.
pub(super) async fn send(
    record: &mut AccessRecord,
    handle: RouteHandle<'_>,
    rule: &Arc<SubscriptionRule>,
    call: ToRpc<'_>,
    headers: &HeaderMap,
) -> Result<Subscribed, Failure> {
    let route = handle.route();
    let upstream = record.context.upstream(Side::Rpc).cloned();
    let Some(Upstream::Link(link)) = &upstream else {
        // The configuration requires a link.
        return Err(rejections::no_upstream(Side::Rpc));
    };
    let members = credentials(link.plan(), headers, handle.plan.limits.depth);
    let bindings = call.bindings;
    let call = RequestTemplate::new(&call.method, call.params, &members);
    let terms = StreamTerms::for_rest_client(route, headers);
    if !terms.is_some_and(StreamTerms::is_accepted) {
        // The server is not asked for a subscription that the client does not read.
        return Err(rejections::event_stream(200));
    }
    let request = SubscribeRequest {
        call,
        rule: rule.clone(),
        retry_rule: RetryRule::of(route.effect),
    };
    let limit = route.timeout.unwrap_or(link.plan().timeout);
    let (notifications, reply) = link_call::open_subscription(record, link, request, limit).await?;
    let limits = &record.context.runtime_plan().plan.limits;
    match reply {
        LinkReply::Subscribed(id, _) => {
            let depth = limits.depth;
            let events = SubscriptionEvents::new(notifications, rule.clone(), id, depth);
            let call = StreamedCall {
                bindings,
                client: StreamClient::Rest { upstream_id: id },
            };
            let response = streamed_call::subscribed(&record.context, events, call, handle.index);
            Ok(Subscribed::Stream(CallResponse::Streaming(Box::new(
                response,
            ))))
        }
        LinkReply::Answer(id, body) => {
            let reply = link_call::answered(&record.context, id, body)?;
            let response = jsonrpc::parse_response(&reply.response.body, limits.depth);
            let response =
                response.map_err(|fault| no_response(&reply.response, fault, limits.error_text))?;
            match response.reply {
                jsonrpc::ResponseReply::Error(_) => Ok(Subscribed::Refused(reply, bindings)),
                jsonrpc::ResponseReply::Result(_) => Err(no_subscription(rule)),
            }
        }
        LinkReply::Sent | LinkReply::Ended | LinkReply::ServerRequest(_) => {
            Err(rejections::missing_answer())
        }
    }
}

/// Returns the failure for a result without a subscription.
fn no_subscription(rule: &SubscriptionRule) -> Failure {
    let message = "the server's answer has no subscription id, or one that is in use";
    let cause = format!(
        "the notifications of `{}` could not be told apart; `subscription.result` of the route names the place of the id",
        rule.method
    );
    Failure::new(Reason::UpstreamNotProtocol, message).because(cause)
}
