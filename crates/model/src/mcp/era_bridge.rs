//! The two eras of MCP: revisions with sessions (up to 2025-11-25), and stateless ones (2026-07-28).
//!
//! A link speaks one era; its clients may speak either era. [`BridgeAction`] names each conversion, for metrics.
//!
//! Used by `mcp`, `gateway`, `telemetry` and `upstream`.

use serde_json::{Value, json};

use crate::local_reply::{HANDSHAKES, STATELESS};
use dualgauge_patterns::json::Json;

/// The member of `_meta` with the server information in stateless revisions.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The era of the server behind a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEra {
    /// The link was never ready.
    Unknown,
    /// A revision that begins with `initialize`, or a link without a handshake.
    Sessions,
    /// A stateless revision.
    Stateless,
}

impl ServerEra {
    /// All values, in the order of their numbers.
    const ALL: [ServerEra; 3] = [
        ServerEra::Unknown,
        ServerEra::Sessions,
        ServerEra::Stateless,
    ];

    /// Returns the era with this number.
    #[must_use]
    pub fn from_number(number: u8) -> ServerEra {
        let known = ServerEra::ALL.get(usize::from(number));
        known.copied().unwrap_or(ServerEra::Unknown)
    }
}

/// A conversion between the eras.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeAction {
    /// The error code for a missing resource was replaced.
    MissingResource,
    /// An error code that the client's revision does not have was replaced.
    ForeignCode,
    /// The error "URL elicitation required" became a result that asks for input.
    UrlElicitation,
    /// `server/discover` was answered with the server's response to `initialize`.
    Discovery,
    /// A request to a stateless server got the log level of its client's session.
    LogLevel,
    /// A request of a result that asks for input was sent to the client.
    InputRequest,
    /// The client's input was sent to the server with the call.
    InputResponse,
    /// A request of a server with sessions became a result that asks for input, or was sent to its client.
    ServerRequest,
    /// The client's input was sent to a server with sessions.
    ServerResponse,
    /// A subscription in the form of one era was served by a server of the other.
    Subscription,
}

impl BridgeAction {
    /// All actions.
    pub const ALL: [BridgeAction; 10] = [
        BridgeAction::MissingResource,
        BridgeAction::ForeignCode,
        BridgeAction::UrlElicitation,
        BridgeAction::Discovery,
        BridgeAction::LogLevel,
        BridgeAction::InputRequest,
        BridgeAction::InputResponse,
        BridgeAction::ServerRequest,
        BridgeAction::ServerResponse,
        BridgeAction::Subscription,
    ];

    /// Returns the word used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            BridgeAction::MissingResource => "missing_resource",
            BridgeAction::ForeignCode => "foreign_code",
            BridgeAction::UrlElicitation => "url_elicitation",
            BridgeAction::Discovery => "discovery",
            BridgeAction::LogLevel => "log_level",
            BridgeAction::InputRequest => "input_request",
            BridgeAction::InputResponse => "input_response",
            BridgeAction::ServerRequest => "server_request",
            BridgeAction::ServerResponse => "server_response",
            BridgeAction::Subscription => "subscription",
        }
    }
}

/// The conversions of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BridgeActions(u16);

impl BridgeActions {
    /// Returns the set with one more action.
    #[must_use]
    pub const fn with(self, action: BridgeAction) -> BridgeActions {
        BridgeActions(self.0 | 1 << action as u16)
    }

    /// Returns the words of the actions, separated by commas; `None` without any.
    #[must_use]
    pub fn words(self) -> Option<String> {
        let all = BridgeAction::ALL.into_iter();
        let own = all.filter(|action| self.with(*action) == self);
        let words: Vec<&str> = own.map(BridgeAction::as_str).collect();
        (!words.is_empty()).then(|| words.join(","))
    }
}

/// Returns the result of `server/discover` for a server that answered `initialize` with `result`. It lists the stateless
/// revision, which the proxy speaks for the server, and the one that the server agreed to. Subscriptions to resources
/// and log levels are members of it only as far as the server has them. It must not be cached: the server may change.
#[must_use]
pub fn discover_from_initialize(result: &Json) -> Json {
    let greeting: Value = serde_json::from_slice(result.as_bytes()).unwrap_or_default();
    let [.., newest] = STATELESS;
    let agreed = greeting["protocolVersion"].as_str();
    let agreed = agreed.filter(|version| HANDSHAKES.contains(version));
    let versions: Vec<&str> = agreed.into_iter().chain([newest]).collect();
    let object = |value: &Value| match value.is_object() {
        true => value.clone(),
        false => json!({}),
    };
    let mut discovered = json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": object(&greeting["capabilities"]),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { SERVER_INFO: object(&greeting["serverInfo"]) },
    });
    if greeting["instructions"].is_string() {
        discovered["instructions"] = greeting["instructions"].clone();
    }
    Json::written(discovered.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conversions_of_a_call_have_words() {
        let none = BridgeActions::default();
        assert_eq!(none.words(), None);
        let some = none
            .with(BridgeAction::Subscription)
            .with(BridgeAction::MissingResource)
            .with(BridgeAction::Subscription);
        assert_eq!(
            some.words().as_deref(),
            Some("missing_resource,subscription")
        );
    }

    #[test]
    fn a_server_with_sessions_is_described_as_a_stateless_one() {
        let greeting = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"},"instructions":"i"}"#;
        let discovered = discover_from_initialize(&Json::literal(greeting));
        let discovered: Value = serde_json::from_slice(discovered.as_bytes()).unwrap();
        let wanted = json!({
            "resultType": "complete",
            "supportedVersions": ["2025-06-18", "2026-07-28"],
            "capabilities": { "tools": { "listChanged": true } },
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { SERVER_INFO: { "name": "s", "version": "1" } },
            "instructions": "i",
        });
        assert_eq!(discovered, wanted);
        for poor in ["{}", r#"{"capabilities":1,"protocolVersion":"x"}"#, "[]"] {
            let discovered = discover_from_initialize(&Json::literal(poor));
            let discovered: Value = serde_json::from_slice(discovered.as_bytes()).unwrap();
            assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
            assert_eq!(discovered["capabilities"], json!({}));
        }
    }

    #[test]
    fn the_numbers_of_eras_are_their_places() {
        for (number, era) in ServerEra::ALL.into_iter().enumerate() {
            assert_eq!(era as usize, number);
        }
        for (number, action) in BridgeAction::ALL.into_iter().enumerate() {
            assert_eq!(action as usize, number);
        }
    }
}
