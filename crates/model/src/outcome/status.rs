//! The HTTP statuses that one side gets for a response of the other side's server.
//!
//! Used by `config`, `model`, `gateway` and `upstream`.

use http::header::WWW_AUTHENTICATE;

use super::response::RestReply;

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

/// Returns whether a REST client gets this HTTP status of an RPC server (RFC 9110 §15.5.2, §15.5.4, §15.6.4; RFC 6585
/// §4).
#[must_use]
pub const fn is_rejection_status(status: u16) -> bool {
    matches!(status, 401 | 403 | 429 | 503)
}
