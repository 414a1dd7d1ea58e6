//! `[rpc]` Used by `decode`.

use std::time::Duration;

use super::envelope::{ENVELOPE, envelope};
use super::failures;
use super::shared::MOST;
use crate::config::key::{
    Key, List, NamedValues, SubTable, TableShape, key, list, named_values, section, table,
};
use crate::config::kind::{PATH, TIMEOUT, boolean, other, whole, words};
use crate::config::raw::RawRpc;
use crate::config::table_reader::Table;
use crate::config::value::{self, RawValue, ValueError};
use dualgauge_model::card_plan::A2aVersion;
use dualgauge_model::outcome::ErrorStatus;

const ERROR_STATUSES: &[(&str, ErrorStatus)] = &[
    ("server", ErrorStatus::OfServer),
    ("always-200", ErrorStatus::Always200),
];

const A2A_VERSIONS: &[(&str, A2aVersion)] = &[("0.3", A2aVersion::V0_3), ("1.0", A2aVersion::V1_0)];

section! {
    /// `[rpc]`
    pub(super) RPC {
        /// Paths for posted JSON-RPC messages; without an RPC upstream only `/rpc`
        PATHS: List<String> = list("paths", PATH).or(&["/", "/rpc", "/jsonrpc", "/mcp"]);
        /// Status of the response to a notification; by default 202 where the `rpc` side speaks MCP, else 204
        NOTIFICATION_STATUS: Key<u16> = key(
            "notification_status",
            other("200, 202 or 204", r#"{ "enum": [200, 202, 204] }"#, notification_status),
        );
        /// First code of the block of proxy failures
        FAILURE_CODES: Key<i32> = key("failure_codes", failures::CODE);
        /// Codes of proxy failures, by reason
        CODES_BY_REASON: NamedValues<i32> = named_values("failure_codes", failures::CODE);
        /// Status of a single call whose REST server sends 401, 403, 429 or 503
        ERROR_STATUS: Key<ErrorStatus> = key("error_status", words(ERROR_STATUSES)).or("server");
        /// REST status for a tool result with `isError: true` that no outcome matches
        TOOL_ERROR_STATUS: Key<u16> = key("tool_error_status", whole(400, 599)).or("422");
        /// Concurrent calls per batch
        BATCH_CONCURRENCY: Key<usize> = key("batch_concurrency", whole(1, MOST)).or("8");
        /// Serves WebSockets of clients on `rpc.paths`; by default with a link or with frames
        WEBSOCKET: Key<bool> = key("websocket", boolean(&[false, true]));
        /// Path for MCP clients over HTTP with SSE (2024-11-05)
        SSE_PATH: Key<String> = key("sse_path", PATH);
        /// Path of the agent card (A2A) that names `listen.public_url`
        AGENT_CARD: Key<String> = key("agent_card", PATH);
        /// Versions of A2A whose clients find the proxy in the agent card of an agent of the other version
        AGENT_CARD_VERSIONS: List<A2aVersion> = list("agent_card_versions", words(A2A_VERSIONS));
        /// Concurrent messages per client WebSocket or event stream
        SOCKET_CONCURRENCY: Key<usize> = key("socket_concurrency", whole(1, MOST)).or("32");
        /// Longest time without a message on a client WebSocket or event stream
        SOCKET_IDLE_TIMEOUT: Key<Duration> = key("socket_idle_timeout", TIMEOUT).or("5m");
        /// Members of a message that carry credentials, each with its header
        OF_RPC: SubTable = table("envelope", &ENVELOPE).of(TableShape::Named);
    }
}

pub(super) fn rpc(table: &mut Table<'_>) -> Option<RawRpc> {
    let paths = table.list(&PATHS);
    if paths.as_ref().is_some_and(Vec::is_empty) {
        table.report(
            PATHS.name,
            ValueError::new("the list is empty; write at least one path"),
        );
    }
    let notification_status = table.get(&NOTIFICATION_STATUS);
    let failure_codes = failures::codes(table, &FAILURE_CODES, &CODES_BY_REASON);
    let error_status = table.get(&ERROR_STATUS);
    let tool_error_status = table.get(&TOOL_ERROR_STATUS);
    let batch_concurrency = table.get(&BATCH_CONCURRENCY);
    let websocket = table.get(&WEBSOCKET);
    let sse_path = table.get(&SSE_PATH);
    let agent_card = table.get(&AGENT_CARD);
    let agent_card_versions = table.list(&AGENT_CARD_VERSIONS);
    let socket_concurrency = table.get(&SOCKET_CONCURRENCY);
    let socket_idle_timeout = table.get(&SOCKET_IDLE_TIMEOUT);
    let envelope = envelope(table, &OF_RPC);
    Some(RawRpc {
        paths: paths?,
        notification_status,
        failure_codes: failure_codes?,
        error_status: error_status?.value,
        tool_error_status: tool_error_status?,
        batch_concurrency: batch_concurrency?,
        websocket,
        sse_path,
        agent_card,
        agent_card_versions: agent_card_versions?,
        socket_concurrency: socket_concurrency?,
        socket_idle_timeout: socket_idle_timeout?,
        envelope: envelope.unwrap_or_default(),
    })
}

fn notification_status(found: RawValue<'_>) -> Result<u16, ValueError> {
    let wrong = |_| {
        let shown = found.describe();
        ValueError::new(format!(
            "{shown} is not allowed here; write 200, 202 or 204"
        ))
    };
    match value::whole(200, 204)(found).map_err(wrong)? {
        status @ (200 | 202 | 204) => Ok(status),
        other => Err(wrong(ValueError::new(other.to_string()))),
    }
}
