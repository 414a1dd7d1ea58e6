//! Challenges of an MCP server that name its protected resource metadata (RFC 9728 §5.1).
//!
//! Used by `link_call` and `passthrough`.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::call_context::CallContext;
use dualgauge_model::mcp::{ResourceNaming, name_metadata};
use dualgauge_model::routing;

/// Makes the challenges of a response name the metadata at the proxy, if the plan has its URL. Clients read them in
/// responses with the status 401 or 403 (MCP, "Authorization").
pub(super) fn name_proxy(context: &CallContext, status: StatusCode, headers: &mut HeaderMap) {
    let is_read = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let plan = &context.runtime_plan().plan;
    let Some(public) = plan.public_url.as_ref().filter(|_| is_read) else {
        return;
    };
    if !headers.contains_key(WWW_AUTHENTICATE) {
        return;
    }
    let url = public.metadata(routing::public_rpc_path(plan, context.path()));
    let challenges: Vec<HeaderValue> = headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect();
    headers.remove(WWW_AUTHENTICATE);
    for challenge in challenges {
        let named = name_metadata(&challenge, &url);
        if named.is_some() {
            let worker = context.worker();
            worker.count(|shard| shard.named_resource(ResourceNaming::ChallengeRewritten));
            tracing::debug!(url, "a challenge names the metadata at the proxy");
        }
        headers.append(WWW_AUTHENTICATE, named.unwrap_or(challenge));
    }
}
