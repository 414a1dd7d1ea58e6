//! An MCP upstream over Streamable HTTP, and its link. Used by `compile::upstreams`.

use std::sync::Arc;
use std::time::Duration;

use super::headers;
use super::redaction::redaction;
use super::stdio::attributed;
use crate::config::problem::Problem;
use crate::config::raw::{RawConfig, RawHeaders, RawMcp};
use dualgauge_model::mcp::{Revision, accepted_revisions};
use dualgauge_model::pending::{AnswerOrder, Backoff, LinkClients, LinkSettings};
use dualgauge_model::plan::{LinkPlan, McpAuthorization, McpPlan, McpTransport};
use dualgauge_patterns::side::Side;

/// Waits before a session is opened again. A session that the server forgot is not a failure, so the first wait is
/// short.
const BACKOFF: Backoff = Backoff {
    least: Duration::from_millis(20),
    most: Duration::from_secs(30),
    steady: Duration::from_secs(10),
};

/// Checks the parts that decoding leaves open, other than the address.
pub(super) fn check(server: &RawMcp, side: Side, problems: &mut Vec<Problem>) {
    if side == Side::Rest {
        let message = "MCP is JSON-RPC, but this upstream is on the `rest` side";
        let problem = server.url.problem(message);
        problems.push(problem.hint("write `side = \"rpc\"`"));
    }
    if let (McpTransport::Sse, Revision::Stateless(_)) =
        (server.transport.value, server.revision.value)
    {
        let message = "HTTP with SSE has sessions, which this revision does not have";
        let hint = "remove `revision`, or name one up to 2025-11-25";
        problems.push(server.revision.problem(message).hint(hint));
    }
    check_authorization(server, problems);
    headers::check(&server.headers, problems);
}

/// Reports credentials of the proxy beside those of clients, and an event stream, which would need one for each client.
fn check_authorization(server: &RawMcp, problems: &mut Vec<Problem>) {
    if server.authorization.value == McpAuthorization::Own {
        return;
    }
    if server.transport.value == McpTransport::Sse {
        let message = "HTTP with SSE has no sessions for the `Authorization` of single clients";
        let hint = "remove `authorization`, or use Streamable HTTP";
        problems.push(server.authorization.problem(message).hint(hint));
    }
    let RawHeaders(own) = &server.headers;
    let names = own.iter().map(|(name, _)| &name.value);
    if names
        .into_iter()
        .any(|name| name.eq_ignore_ascii_case("authorization"))
    {
        let message = "the clients' `Authorization` is sent, but `headers` has one as well";
        let hint = "remove it from `headers`";
        problems.push(server.authorization.problem(message).hint(hint));
    }
}

pub(super) fn plan(server: &RawMcp, config: &RawConfig) -> McpPlan {
    let requests = server.server_requests.value;
    let initialize = server.revision.value.initialize(requests);
    let revisions = match server.transport.value {
        // The session checks the negotiated revision itself.
        McpTransport::Streamable => Vec::new(),
        McpTransport::Sse => accepted_revisions(&initialize),
    };
    let settings = LinkSettings {
        login: None,
        order: AnswerOrder::Pipelined(server.in_flight.value),
        pause: Duration::ZERO,
        queue: server.queue.value,
        initialize_params: Some(initialize),
        revisions,
        start_timeout: server.start_timeout.value,
        backoff: BACKOFF,
        max_consecutive_timeouts: 0,
        heartbeat: None,
        log_messages: match server.transport.value {
            McpTransport::Streamable => server.log_messages.value,
            McpTransport::Sse => attributed(server.log_messages.value),
        },
        server_requests: server.server_requests.value,
        // Several clients may have the same `Authorization`.
        clients: LinkClients::Several,
        depth: u16::try_from(config.limits.depth.value).unwrap_or(u16::MAX),
    };
    McpPlan {
        headers: headers::plan(&server.headers),
        transport: server.transport.value,
        authorization: server.authorization.value,
        revision: server.revision.value,
        message_limit: server.message_limit.value,
        link: LinkPlan {
            redaction: Arc::new(redaction(config)),
            settings,
            login: None,
            blocked_methods: Vec::new(),
        },
    }
}
