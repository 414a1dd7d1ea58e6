//! The HTTP status that an RPC client gets with the answer of a REST server.

use http::header::WWW_AUTHENTICATE;

use super::table::Outcomes;
use super::{RestReply, RpcAnswer, ToolResult};

/// Which HTTP status an RPC client gets where a REST server answers 401, 403, 429 or 503.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorStatus {
    /// The server's.
    #[default]
    OfServer,
    /// 200.
    Always200,
}

/// Returns the status that a REST client gets where the answer of an RPC server asks for this one. 407 is the proxy's own
/// to say (RFC 9110 §15.5.8), so it becomes 502.
pub(super) const fn forwarded(status: u16) -> u16 {
    match status {
        407 => 502,
        other => other,
    }
}

/// Whether the server asks for credentials, which a client of MCP looks for in the HTTP head (MCP, "Authorization").
pub(super) fn asks_for_credentials(reply: &RestReply) -> bool {
    match reply.status {
        401 => true,
        403 => reply.headers.contains_key(WWW_AUTHENTICATE),
        _ => false,
    }
}

impl Outcomes {
    /// The HTTP status of this answer where its call is alone in a request of HTTP.
    #[must_use]
    pub fn rpc_status(&self, reply: &RestReply, answer: &RpcAnswer, errors: ErrorStatus) -> u16 {
        let keeps = match (answer, errors) {
            (RpcAnswer::Result(_), _) | (_, ErrorStatus::Always200) => false,
            (RpcAnswer::Error(_), ErrorStatus::OfServer) => match self.tool() {
                ToolResult::Succeeded => asks_for_credentials(reply),
                ToolResult::Any => matches!(reply.status, 401 | 403 | 429 | 503),
            },
        };
        if keeps { reply.status } else { 200 }
    }
}
