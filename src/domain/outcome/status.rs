//! The HTTP status that an RPC client gets for a REST server's response.

use http::header::WWW_AUTHENTICATE;

use super::table::Outcomes;
use super::{RestReply, RpcAnswer, ToolResult};

/// The HTTP status for an RPC client when a REST server responds with 401, 403, 429 or 503.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorStatus {
    /// The server's status.
    #[default]
    OfServer,
    /// 200.
    Always200,
}

/// Returns the status that a REST client gets when an RPC server's response asks for this one. Only the proxy itself
/// may send 407 (RFC 9110 §15.5.8), so it becomes 502.
pub(super) const fn forwarded(status: u16) -> u16 {
    match status {
        407 => 502,
        other => other,
    }
}

/// Returns whether the server asks for credentials, which MCP clients expect in the HTTP head (MCP, "Authorization").
pub(super) fn asks_for_credentials(reply: &RestReply) -> bool {
    match reply.status {
        401 => true,
        403 => reply.headers.contains_key(WWW_AUTHENTICATE),
        _ => false,
    }
}

impl Outcomes {
    /// Returns the HTTP status of a response to a single call (not in a batch).
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
