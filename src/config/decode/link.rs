//! Keys that child processes, MCP sessions and WebSockets share.
//!
//! Used by `decode::mcp`, `decode::stdio` and `decode::websocket`.

use std::time::Duration;

use super::login;
use super::shared::MOST;
use crate::config::key::{Key, List, SubTable, Tree, key, list, section, table, tree_table};
use crate::config::kind::{TEXT, TIMEOUT, whole, words};
use crate::config::problem::Spanned;
use crate::config::table_reader::Table;
use crate::config::value::ValueError;
use dualgauge_model::pending::LogMessages;
use dualgauge_patterns::json::{Json, JsonKind};

/// The words of `handshake`: true if the link has one.
pub(super) const HANDSHAKES: &[(&str, bool)] = &[("mcp", true), ("none", false)];

const LOG_WORDS: &[(&str, LogMessages)] = &[
    ("caller", LogMessages::Drop),
    ("broadcast", LogMessages::AllSubscribers),
];

section! {
    /// Keys of child processes, MCP sessions and WebSockets.
    pub(super) LINK {
        /// Calls that wait for a turn on the link; more get `upstream_busy`
        pub(super) QUEUE: Key<usize> = key("queue", whole(1, MOST)).or("256");
        /// Params of `initialize`, with a handshake
        pub(super) INITIALIZE: Tree = tree_table("initialize");
        /// Call that opens each link, before any other; repeated after each reconnect
        pub(super) OF_LOGIN: SubTable = table("login", &login::LOGIN);
        /// From the start of a link to the end of its handshake
        pub(super) START_TIMEOUT: Key<Duration> = key("start_timeout", TIMEOUT).or("30s");
        /// Receivers of log messages outside a call
        pub(super) LOG_MESSAGES: Key<LogMessages> = key("log_messages", words(LOG_WORDS)).or("caller");
        /// Consecutive timeouts after which the link is opened again; 0 for never
        pub(super) UNANSWERED: Key<usize> = key("unanswered", whole(0, MOST)).or("8");
        /// Methods refused to RPC clients: with them, one client would stop the child process of all clients
        WITHHOLD: List<String> = list("withhold", TEXT).or(&["shutdown", "exit"]);
    }
}

/// Decodes the methods that no client may use.
pub(super) fn withhold(table: &mut Table<'_>) -> Option<Vec<String>> {
    let methods = table.list(&WITHHOLD)?.into_iter();
    Some(methods.map(|method| method.value).collect())
}

/// Decodes the configured params of the handshake.
pub(super) fn initialize(
    table: &mut Table<'_>,
    has_handshake: Option<&Spanned<bool>>,
) -> Option<Json> {
    let params = table.json(&INITIALIZE)?;
    if has_handshake.is_some_and(|word| !word.value) {
        let wrong = ValueError::new("a link without a handshake sends no `initialize`");
        table.report(
            INITIALIZE.name,
            wrong.hint("write `handshake = \"mcp\"`, or remove it"),
        );
    }
    if params.kind() != JsonKind::Object {
        let shown = params.kind().described();
        table.report(
            INITIALIZE.name,
            ValueError::new(format!("{shown} is not a table")),
        );
        return None;
    }
    Some(params)
}
