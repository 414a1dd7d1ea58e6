//! Keys that child processes, MCP sessions and WebSockets share.
//!
//! Used by `decode::mcp`, `decode::stdio` and `decode::websocket`.

use std::time::Duration;

use crate::config::problem::Spanned;
use crate::config::raw::HandshakeWord;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{ValueError, text, word};
use dualgauge_model::pending::LogMessages;
use dualgauge_patterns::json::{Json, JsonKind};

/// The words of `handshake`.
pub(super) const HANDSHAKES: &[(&str, HandshakeWord)] =
    &[("mcp", HandshakeWord::Mcp), ("none", HandshakeWord::None)];

/// The words of `log_messages`.
const LOG_MESSAGES: &[(&str, LogMessages)] = &[
    ("caller", LogMessages::Drop),
    ("broadcast", LogMessages::AllSubscribers),
];

/// The maximum number of queued calls, if `queue` is absent.
pub(super) const QUEUE: usize = 256;
/// `start_timeout`, if it is absent.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(30);
/// `unanswered`, if it is absent.
pub(super) const UNANSWERED: usize = 8;
/// The default of `withhold`: methods with which one client would stop the child process of all clients.
const WITHHOLD: [&str; 2] = ["shutdown", "exit"];

/// Decodes the recipients of log messages that belong to no call.
pub(super) fn log_messages(table: &mut Table<'_>) -> Option<Spanned<LogMessages>> {
    table.get_or("log_messages", word(LOG_MESSAGES, &[]), LogMessages::Drop)
}

/// Decodes the methods that no client may use.
pub(super) fn withhold(table: &mut Table<'_>) -> Option<Vec<String>> {
    match table.shape("withhold") {
        Shape::Absent => Some(WITHHOLD.map(str::to_owned).to_vec()),
        Shape::Table | Shape::Value => {
            let methods = table.list("withhold", text);
            methods.map(|methods| methods.into_iter().map(|method| method.value).collect())
        }
    }
}

/// Decodes the configured params of the handshake.
pub(super) fn initialize(
    table: &mut Table<'_>,
    handshake: Option<&Spanned<HandshakeWord>>,
) -> Option<Json> {
    let params = table.json("initialize")?;
    if handshake.is_some_and(|word| word.value == HandshakeWord::None) {
        let wrong = ValueError::new("a link without a handshake sends no `initialize`");
        table.report(
            "initialize",
            wrong.hint("write `handshake = \"mcp\"`, or remove it"),
        );
    }
    if params.kind() != JsonKind::Object {
        let shown = params.kind().described();
        table.report(
            "initialize",
            ValueError::new(format!("{shown} is not a table")),
        );
        return None;
    }
    Some(params)
}
