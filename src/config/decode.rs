//! Decoding of the merged tree into [`crate::config::raw`]: the known keys with their types and defaults.
//!
//! Patterns are not interpreted here, and neither are free-form values.
//!
//! Used by `load` and `other_files`.

mod addresses;
mod candidates;
mod compare;
mod cors;
mod envelope;
mod event;
mod example;
mod failures;
mod frame;
pub(super) mod guard;
mod headers;
pub(super) mod identity;
mod lifecycle;
mod link;
mod local;
mod mcp;
mod metrics;
mod outcome;
mod redact;
mod route;
pub(super) mod shared;
mod stdio;
mod store;
mod stream;
mod trace;
mod upstream;
mod websocket;

use std::net::SocketAddr;
use std::time::Duration;

use crate::config::problem::{SourceMap, Spanned};
use crate::config::raw::{
    IrregularWord, LogFormatWord, RawConfig, RawLimits, RawListen, RawLog, RawRollout, RawRpc,
    RawSet,
};
use crate::config::table_reader::{Shape, Table, unique};
use crate::config::value::{
    RawValue, ValueError, address, boolean, duration, header, key_hash, name, path, size, text,
    timeout, whole, word,
};
use dualgauge_model::forwarding::{ForwardingHeader, TrustForwarded};
use dualgauge_model::outcome::ErrorStatus;
use dualgauge_model::plan::Unrouted;
use dualgauge_model::proxy_protocol::ProxyProtocolUse;
use envelope::envelope;
use shared::{MOST, STAGES, file};

/// The words of `rpc.error_status`.
const ERROR_STATUS: &[(&str, ErrorStatus)] = &[
    ("server", ErrorStatus::OfServer),
    ("always-200", ErrorStatus::Always200),
];
const UNROUTED: &[(&str, Unrouted)] = &[
    ("passthrough", Unrouted::Passthrough),
    ("reject", Unrouted::Reject),
];
const IRREGULAR: &[(&str, IrregularWord)] = &[
    ("pass", IrregularWord::Pass),
    ("reject", IrregularWord::Reject),
];
const PROXY_PROTOCOL: &[(&str, ProxyProtocolUse)] = &[
    ("off", ProxyProtocolUse::Off),
    ("required", ProxyProtocolUse::Required),
];
const FORWARDING_HEADERS: &[(&str, ForwardingHeader)] = &[
    ("forwarded", ForwardingHeader::Forwarded),
    ("x-forwarded-for", ForwardingHeader::For),
    ("x-forwarded-proto", ForwardingHeader::Proto),
    ("x-forwarded-host", ForwardingHeader::Host),
    ("x-real-ip", ForwardingHeader::RealIp),
];
const TRUST_FORWARDED: &[(&str, TrustForwarded)] = &[
    ("trusted", TrustForwarded::Trusted),
    ("everyone", TrustForwarded::Everyone),
];
const LOG_FORMATS: &[(&str, LogFormatWord)] =
    &[("text", LogFormatWord::Text), ("json", LogFormatWord::Json)];
const LOG_LEVELS: &[(&str, &str)] = &[
    ("error", "error"),
    ("warn", "warn"),
    ("info", "info"),
    ("debug", "debug"),
    ("trace", "trace"),
];

/// Time that open sessions keep their former stage after a flag change.
const SESSION_GRACE: Duration = Duration::from_secs(15 * 60);
/// The smallest head limit that hyper accepts.
const LEAST_HEAD: usize = 8 * 1024;
/// A larger number is a typing error, and each worker is a thread.
const MOST_WORKERS: usize = 1024;

/// Decodes the whole configuration.
pub(super) fn config(table: &mut Table<'_>) -> Option<RawConfig> {
    table.list("include", text);
    let listen = table.require_table("listen", listen);
    let admin = table.require_table("admin", admin);
    let upstreams = table.named_tables("upstream", upstream::upstream);
    let rpc = table.require_table("rpc", rpc);
    let limits = table.require_table("limits", limits);
    let rollout = table.require_table("rollout", rollout);
    let unrouted = table.require("unrouted", word(UNROUTED, &[]));
    let unrouted_irregular = table.require("unrouted_irregular", word(IRREGULAR, &[]));
    let ignore_query = table.list("ignore_query", text);
    let clients = table.tables("client", identity::client);
    unique(clients.iter().map(|client| &client.name), table);
    let routes = table.tables("route", route::route);
    let streams = table.tables("stream", stream::stream);
    let events = table.tables("event", event::event);
    let names = routes.iter().map(|route| &route.name);
    unique(
        names.chain(streams.iter().map(|stream| &stream.name)),
        table,
    );
    let sets = table.named_lists("outcomes", outcome::row).into_iter();
    let sets = sets.map(|(name, rows)| RawSet { name, rows });
    let locals = table.tables("local", local::local);
    let cors = table.table("cors", cors::cors);
    let compare = table.table("compare", compare::compare);
    let deprecated = table.table("deprecated", lifecycle::deprecated);
    let trace = table.table("trace", trace::trace);
    let metrics = table.table("metrics", metrics::metrics);
    let log = table.require_table("log", log);
    let admin = admin?;
    Some(RawConfig {
        file: None,
        files: Vec::new(),
        inherited: Vec::new(),
        listen: listen?,
        admin: admin.address,
        admin_tokens: admin.tokens,
        ready: admin.ready,
        upstreams,
        rpc: rpc?,
        limits: limits?,
        rollout: rollout?,
        unrouted: unrouted?,
        unrouted_irregular: unrouted_irregular?,
        ignore_query: ignore_query?,
        clients,
        routes,
        sets: sets.collect(),
        locals,
        streams,
        events,
        cors,
        compare: compare.unwrap_or_default(),
        deprecated,
        trace,
        metrics: metrics.unwrap_or_default(),
        places: SourceMap::default(),
        log: log?,
    })
}

/// `[admin]`, with its tokens by the names of their holders.
struct RawAdmin {
    address: Spanned<SocketAddr>,
    tokens: Vec<(String, [u8; 32])>,
    ready: Vec<Spanned<String>>,
}

fn admin(table: &mut Table<'_>) -> Option<RawAdmin> {
    let address = table.require("address", address);
    let ready = table.list("ready_upstreams", name);
    let tokens = match table.shape("tokens") {
        Shape::Absent => Some(Vec::new()),
        Shape::Table | Shape::Value => table.named_values("tokens", key_hash),
    };
    Some(RawAdmin {
        address: address?,
        tokens: tokens?
            .into_iter()
            .map(|(name, hash)| (name.value, hash.value))
            .collect(),
        ready: ready?,
    })
}

fn listen(table: &mut Table<'_>) -> Option<RawListen> {
    let address = table.require("address", address);
    let workers = table.require("workers", whole(1..=MOST_WORKERS));
    let hosts = table.list("hosts", cors::host);
    let trusted = table.list("trusted", identity::network);
    let forwarded = table.list("forwarded", word(FORWARDING_HEADERS, &[]));
    let forwarded_from = table.require("forwarded_from", word(TRUST_FORWARDED, &[]));
    let remove_headers = table.list("remove_headers", identity::header_pattern);
    let set_headers = identity::set_headers(table);
    let proxy_protocol = table.get("proxy_protocol", word(PROXY_PROTOCOL, &[]));
    let tls = table.table("tls", identity::tls);
    Some(RawListen {
        address: address?,
        workers: workers?,
        hosts: hosts?,
        trusted: trusted?,
        forwarded: forwarded?,
        forwarded_from: forwarded_from?,
        remove_headers: remove_headers?,
        set_headers: set_headers?,
        proxy_protocol,
        tls,
    })
}

fn rpc(table: &mut Table<'_>) -> Option<RawRpc> {
    let paths = table.list("paths", path);
    if paths.as_ref().is_some_and(Vec::is_empty) {
        table.report(
            "paths",
            ValueError::new("the list is empty; write at least one path"),
        );
    }
    let notification_status = table.require("notification_status", notification_status);
    let failure_codes = failures::codes(table);
    let error_status = table.get_or(
        "error_status",
        word(ERROR_STATUS, &[]),
        ErrorStatus::OfServer,
    );
    let tool_error_status = table.require("tool_error_status", whole(400..=599));
    let batch_concurrency = table.require("batch_concurrency", whole(1..=MOST));
    let websocket = table.get("websocket", boolean(false, true));
    let socket_concurrency = table.require("socket_concurrency", whole(1..=MOST));
    let socket_idle_timeout = table.require("socket_idle_timeout", timeout);
    let envelope = envelope(table);
    Some(RawRpc {
        paths: paths?,
        notification_status: notification_status?,
        failure_codes: failure_codes?,
        error_status: error_status?.value,
        tool_error_status: tool_error_status?,
        batch_concurrency: batch_concurrency?,
        websocket,
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
    match whole(200..=204)(found).map_err(wrong)? {
        status @ (200 | 202 | 204) => Ok(status),
        other => Err(wrong(ValueError::new(other.to_string()))),
    }
}

fn limits(table: &mut Table<'_>) -> Option<RawLimits> {
    let body = table.require("body", size(1));
    let answer = table.require("answer", size(1));
    let head = table.require("head", size(LEAST_HEAD));
    let target = table.require("target", size(1));
    let batch = table.require("batch", whole(1..=MOST));
    let depth = table.require("depth", whole(1..=512));
    let in_flight = table.require("in_flight", whole(1..=MOST));
    let connections = table.require("connections", whole(1..=MOST));
    let memory = table.require("memory", size(1));
    let header_timeout = table.require("header_timeout", timeout);
    let idle_timeout = table.require("idle_timeout", timeout);
    let body_timeout = table.require("body_timeout", timeout);
    let body_rate = table.require("body_rate", size(0));
    let body_grace = table.require("body_grace", duration);
    let total_timeout = table.get("total_timeout", timeout);
    let write_timeout = table.require("write_timeout", timeout);
    let drain = table.require("drain", duration);
    let error_text = table.require("error_text", size(0));
    Some(RawLimits {
        body: body?,
        answer: answer?,
        head: head?,
        target: target?,
        batch: batch?,
        depth: depth?,
        in_flight: in_flight?,
        connections: connections?,
        memory: memory?,
        header_timeout: header_timeout?,
        idle_timeout: idle_timeout?,
        body_timeout: body_timeout?,
        body_rate: body_rate?,
        body_grace: body_grace?,
        total_timeout,
        write_timeout: write_timeout?,
        drain: drain?,
        error_text: error_text?,
    })
}

fn rollout(table: &mut Table<'_>) -> Option<RawRollout> {
    let flags = table.get("flags", file);
    let state = table.require("state", file);
    let store = store::within(table);
    let stage = word(STAGES, &[]);
    let defaults = table.table("default", |default| {
        Some((default.get("rest", &stage), default.get("rpc", &stage)))
    });
    let (default_rest, default_rpc) = defaults.unwrap_or((None, None));
    let api_key_header = table.require_table("api_key", |key| key.require("header", header));
    let decision_header = table.get("decision_header", header);
    let session_grace = table.get_or("session_grace", duration, SESSION_GRACE);
    let bearer = table.table("bearer", identity::bearer);
    let candidates = table.require_table("candidates", candidates::candidates);
    Some(RawRollout {
        flags,
        state: state?,
        store,
        default_rest,
        default_rpc,
        api_key_header: api_key_header?,
        decision_header,
        session_grace: session_grace?,
        bearer,
        candidates: candidates?,
    })
}

fn log(table: &mut Table<'_>) -> Option<RawLog> {
    let format = table.require("format", word(LOG_FORMATS, &[]));
    let level = table.require("level", word(LOG_LEVELS, &[]));
    let redact = table.table("redact", redact::redact);
    Some(RawLog {
        format: format?,
        level: level?,
        redact: redact.unwrap_or_default(),
    })
}
