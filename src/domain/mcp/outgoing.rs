//! What a message of the proxy is, for the request that carries it.

use bytes::Bytes;

use crate::domain::json::Json;
use crate::domain::jsonrpc::Heard;

/// A message of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// The greeting of a link.
    Initialize(u64),
    /// What ends the greeting.
    Initialized,
    /// A call.
    Call {
        /// Its id.
        id: u64,
        /// What it asks for.
        method: String,
    },
    /// Nobody waits for the call with this id any more.
    Cancelled(u64),
    /// Another notification.
    Notice,
    /// The answer to a request of the server.
    Response,
}

impl Outgoing {
    /// Reads a message that the proxy has written, or checked.
    #[must_use]
    pub fn of(message: &Bytes, depth: u16) -> Outgoing {
        match Heard::of(message, depth) {
            Heard::Request { id, method } => match (number(id.as_bytes()), method.as_str()) {
                (Some(id), "initialize") => Outgoing::Initialize(id),
                (Some(id), _) => Outgoing::Call { id, method },
                (None, _) => Outgoing::Notice,
            },
            Heard::Notification { method } => match method.as_str() {
                "notifications/initialized" => Outgoing::Initialized,
                "notifications/cancelled" => {
                    let id = cancelled(message, depth);
                    id.map_or(Outgoing::Notice, Outgoing::Cancelled)
                }
                _ => Outgoing::Notice,
            },
            Heard::Answer(_) | Heard::Unaddressed | Heard::Misnumbered(_) | Heard::Noise => {
                Outgoing::Response
            }
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
                Outgoing::Initialize(1),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                Outgoing::Initialized,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
                Outgoing::Cancelled(7),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
                Outgoing::Notice,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"s1","result":{}}"#,
                Outgoing::Response,
            ),
            (
                r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":""}}"#,
                Outgoing::Response,
            ),
            (
                r#"{"id":3,"method":"tools/call","params":{}}"#,
                Outgoing::Call {
                    id: 3,
                    method: "tools/call".to_owned(),
                },
            ),
        ] {
            assert_eq!(Outgoing::of(&text.into(), 8), wanted, "{text}");
        }
    }
}
