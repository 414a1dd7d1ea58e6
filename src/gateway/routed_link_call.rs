//! Calls of routes over a link. Used by `translate`.

use super::access_record::AccessRecord;
use super::link_call;
use super::rpc_reply::RpcReply;
use crate::upstream::link::LinkUpstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{self, ExtraMembers, RequestTemplate};
use dualgauge_model::mcp::{InputCapabilities, LogFilter};
use dualgauge_model::pending::RetryRule;
use dualgauge_model::route::Route;
use dualgauge_patterns::rope::Rope;

/// The parts of a call that is sent over a link.
pub(super) struct LinkCall<'a> {
    pub(super) method: &'a str,
    pub(super) params: Rope,
    pub(super) members: ExtraMembers<'a>,
}

/// Sends a call over a link, with an id that no other call has.
pub(super) async fn send_over_link(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    route: &Route,
    call: LinkCall<'_>,
) -> Result<Option<RpcReply>, Failure> {
    let LinkCall {
        method,
        params,
        members,
    } = call;
    let limit = route.timeout.unwrap_or(link.plan().timeout);
    if !route.expects_reply {
        let message = jsonrpc::notification(method, params, members);
        link_call::send_notification(record, link, method, message.into_bytes(), limit).await?;
        return Ok(None);
    }
    let request = link_call::LinkRequest {
        method,
        call: RequestTemplate::new(method, params, members),
        retry_rule: RetryRule::of(route.effect),
        cancel_signal: None,
        subscription: None,
        logs: LogFilter::All,
        input: InputCapabilities::default(),
    };
    link_call::send(record, link, request, limit)
        .await
        .map(Some)
}
