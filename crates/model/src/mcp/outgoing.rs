//! Classification of the proxy's outgoing messages, for the request that carries them.
//!
//! Used by `upstream::mcp::session` and `upstream::stdio::revision`.

use bytes::Bytes;

use crate::jsonrpc::PeerMessage;
use dualgauge_patterns::json::Json;

/// An outgoing message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpMessage {
    /// The `initialize` request of a link.
    Initialize(u64),
    /// The notification that ends the handshake.
    Initialized,
    /// A call.
    Call {
        /// Its id.
        id: u64,
        /// The method.
        method: String,
    },
    /// The cancellation of the call with this id.
    Cancelled(u64),
    /// Another notification.
    Notice,
    /// The response to a server's request.
    Response,
}

impl McpMessage {
    /// Classifies a message that the proxy wrote or checked.
    #[must_use]
    pub fn new(message: &Bytes, depth: u16) -> McpMessage {
        match PeerMessage::new(message, depth) {
            PeerMessage::Request { id, method } => match (number(id.as_bytes()), method.as_str()) {
                (Some(id), "initialize") => McpMessage::Initialize(id),
                (Some(id), _) => McpMessage::Call { id, method },
                (None, _) => McpMessage::Notice,
            },
            PeerMessage::Notification { method } => match method.as_str() {
                "notifications/initialized" => McpMessage::Initialized,
                "notifications/cancelled" => {
                    let id = cancelled(message, depth);
                    id.map_or(McpMessage::Notice, McpMessage::Cancelled)
                }
                _ => McpMessage::Notice,
            },
            PeerMessage::Answer(_)
            | PeerMessage::Unaddressed
            | PeerMessage::Misnumbered(_)
            | PeerMessage::NotAMessage => McpMessage::Response,
        }
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn cancelled(message: &Bytes, depth: u16) -> Option<u64> {
    let message = Json::parse(message.clone(), depth).ok()?;
    number(message.member("params")?.member("requestId")?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_of_the_proxy_is_known() {
        for (text, wanted) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
                McpMessage::Initialize(1),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                McpMessage::Initialized,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
                McpMessage::Cancelled(7),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
                McpMessage::Notice,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"s1","result":{}}"#,
                McpMessage::Response,
            ),
            (
                r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":""}}"#,
                McpMessage::Response,
            ),
            (
                r#"{"id":3,"method":"tools/call","params":{}}"#,
                McpMessage::Call {
                    id: 3,
                    method: "tools/call".to_owned(),
                },
            ),
        ] {
            assert_eq!(McpMessage::new(&text.into(), 8), wanted, "{text}");
        }
    }
}
