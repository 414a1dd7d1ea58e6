//! The name, kind, labels and help of every metric. Used by `metrics`.

mod addresses;
mod candidates;
mod definition;
mod messages;
mod process;
mod series;

use prometheus::proto::MetricType;

pub(super) use addresses::UPSTREAM_CUT_CONNECTIONS;
pub(super) use candidates::{
    CANDIDATE_DURATION, CANDIDATES_FAILED, CANDIDATES_IN_FLIGHT, CANDIDATES_SKIPPED,
};
pub(super) use definition::Family;
pub(super) use messages::INVALID_MESSAGES;
pub(super) use process::{
    PROCESS_CPU, PROCESS_FDS, PROCESS_FDS_LIMIT, PROCESS_RESIDENT, PROCESS_START,
};
pub(super) use series::{SERIES, SERIES_LIMIT, SERIES_OVERFLOW};

pub(super) const CALLS: Family = Family {
    name: "dualgauge_calls_total",
    kind: MetricType::COUNTER,
    labels: &["route", "client", "side", "stage", "outcome", "blame"],
    help: "Completed calls. outcome: success, error (the upstream reports one), tool_error (a tool result reports a failure), failed (the proxy responded with a failure), cut (the response ended early) or cancelled (by the client). blame: client, upstream, proxy or none. stage is none for a `[[local]]` or a preflight.",
};

pub(super) const DECISIONS: Family = Family {
    name: "dualgauge_decisions_total",
    kind: MetricType::COUNTER,
    labels: &["client", "side", "reason", "flag"],
    help: "Completed calls, by the rule that chose the stage: flag (all callers), share (percentage of a flag), keyless (callers without a key), session (flag as the session began), default, kill_switch, brownout, unrouted, local or preflight. flag is none if no flag decided.",
};

pub(super) const KEYLESS_CALLS: Family = Family {
    name: "dualgauge_keyless_calls_total",
    kind: MetricType::COUNTER,
    labels: &["flag"],
    help: "Calls without a key, for which without_key decided instead of the flag's percentage.",
};

pub(super) const CALL_DURATION: Family = Family {
    name: "dualgauge_call_duration_seconds",
    kind: MetricType::HISTOGRAM,
    labels: &["route", "client", "side", "stage", "outcome"],
    help: "Time from the request head to the end of the response.",
};

pub(super) const UPSTREAM_DURATION: Family = Family {
    name: "dualgauge_upstream_duration_seconds",
    kind: MetricType::HISTOGRAM,
    labels: &["route", "client", "side", "stage", "outcome"],
    help: "Time that a call spent on its upstream; only calls that reached one.",
};

pub(super) const OVERHEAD: Family = Family {
    name: "dualgauge_overhead_seconds",
    kind: MetricType::HISTOGRAM,
    labels: &["side", "stage"],
    help: "Time to the response head, without the time spent on the upstream; only calls that reached one.",
};

pub(super) const FAILURES: Family = Family {
    name: "dualgauge_failures_total",
    kind: MetricType::COUNTER,
    labels: &["reason", "blame", "side"],
    help: "Failures that the proxy sent, or that cut a response, by reason and blame.",
};

pub(super) const DROPPED_MEMBERS: Family = Family {
    name: "dualgauge_dropped_members_total",
    kind: MetricType::COUNTER,
    labels: &["route"],
    help: "JSON members that the proxy dropped in translation because the route does not map them.",
};

pub(super) const VERDICTS: Family = Family {
    name: "dualgauge_verdicts_total",
    kind: MetricType::COUNTER,
    labels: &["route", "client", "side", "stage", "verdict"],
    help: "Calls in shadow or verify, by verdict: match, mismatch, control-failed, candidate-failed, both-failed or skipped.",
};

pub(super) const LAST_SEEN: Family = Family {
    name: "dualgauge_last_seen_timestamp_seconds",
    kind: MetricType::GAUGE,
    labels: &["route", "client", "side"],
    help: "Start of the last call of a client on one side of a route that this process saw.",
};

pub(super) const UNROUTED_CALLS: Family = Family {
    name: "dualgauge_unrouted_calls_total",
    kind: MetricType::COUNTER,
    labels: &["prefix"],
    help: "REST calls without a route whose path starts like that of a route, by the longest such prefix.",
};

pub(super) const CLIENT_CONNECTIONS: Family = Family {
    name: "dualgauge_client_connections",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Open client connections.",
};

pub(super) const REFUSED_CONNECTIONS: Family = Family {
    name: "dualgauge_refused_connections_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Client connections closed because the limit was reached.",
};

pub(super) const CUT_CONNECTIONS: Family = Family {
    name: "dualgauge_cut_connections_total",
    kind: MetricType::COUNTER,
    labels: &["reason"],
    help: "Client connections (HTTP/2, WebSocket) that the proxy aborted: resets (too many calls reset), chatter (too many frames without progress) or faults (protocol errors). Also single HTTP/2 streams: stalled (the client read nothing for too long).",
};

pub(super) const FAILED_HANDSHAKES: Family = Family {
    name: "dualgauge_failed_handshakes_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Client connections closed because the TLS handshake or PROXY header failed or timed out.",
};

pub(super) const UNVERIFIED_TOKENS: Family = Family {
    name: "dualgauge_unverified_tokens_total",
    kind: MetricType::COUNTER,
    labels: &["reason"],
    help: "Bearer tokens that failed verification, by cause; only tokens that a client's rule needs.",
};

pub(super) const CALLS_IN_FLIGHT: Family = Family {
    name: "dualgauge_calls_in_flight",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Calls in flight.",
};

pub(super) const UPSTREAM_CONNECTIONS: Family = Family {
    name: "dualgauge_upstream_connections",
    kind: MetricType::GAUGE,
    labels: &["side"],
    help: "Open connections to the upstreams of a side, busy or idle.",
};

pub(super) const LINK_UP: Family = Family {
    name: "dualgauge_link_up",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "1 while an upstream with links (child process, MCP session, WebSockets) accepts calls, else 0. For frames: 0 after a failed connection attempt, until one succeeds. Absent while no client has its own link.",
};

pub(super) const LINK_CALLS: Family = Family {
    name: "dualgauge_link_calls_in_flight",
    kind: MetricType::GAUGE,
    labels: &["upstream", "state"],
    help: "Calls for an upstream's links: written (no response yet) or waiting (queued).",
};

pub(super) const LINK_STARTS: Family = Family {
    name: "dualgauge_link_starts_total",
    kind: MetricType::COUNTER,
    labels: &["upstream"],
    help: "Attempts to open a link, such as starts of a child process. Each after the first is a restart, or one of several `sockets`. For frames: the first, and those after a lost or failed connection.",
};

pub(super) const LINK_STRAYS: Family = Family {
    name: "dualgauge_link_strays_total",
    kind: MetricType::COUNTER,
    labels: &["upstream", "kind"],
    help: "Unexpected messages on an upstream's links: late (response after the timeout), foreign (response or error without a call), skipped (not a message, or too long), declined (request of the server) or notified (notification, or event in frames).",
};

pub(super) const LINK_NOTIFICATIONS: Family = Family {
    name: "dualgauge_link_notifications_total",
    kind: MetricType::COUNTER,
    labels: &["upstream", "fate"],
    help: "Notifications on an upstream's links: told (delivered) and crowded (dropped, because the client was too slow), once per client, or nobody (no recipient).",
};

pub(super) const PLAN_RELOADS: Family = Family {
    name: "dualgauge_plan_reloads_total",
    kind: MetricType::COUNTER,
    labels: &["result"],
    help: "Reloads of the configuration. After a failed reload, the old configuration stays in force.",
};

pub(super) const PLAN_LOADED: Family = Family {
    name: "dualgauge_plan_loaded_timestamp_seconds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Time at which the current configuration was loaded.",
};

pub(super) const FLAG_PERCENT: Family = Family {
    name: "dualgauge_flag_percent",
    kind: MetricType::GAUGE,
    labels: &["flag", "client", "route", "side", "stage"],
    help: "Percentage of callers that a flag includes, 0 to 100. client and route are globs; side is rest, rpc or both.",
};

pub(super) const FLAG_TRIPPED: Family = Family {
    name: "dualgauge_flag_tripped",
    kind: MetricType::GAUGE,
    labels: &["flag"],
    help: "1 if the guard of a flag tripped and no operator re-armed it, else 0.",
};

pub(super) const GUARD_TRIPS: Family = Family {
    name: "dualgauge_guard_trips_total",
    kind: MetricType::COUNTER,
    labels: &["flag", "limit", "mode"],
    help: "Trips of a flag's guard in this process, by exceeded limit. With mode dry_run, the flag stays in force.",
};

pub(super) const GUARD_RULING: Family = Family {
    name: "dualgauge_guard_ruling",
    kind: MetricType::GAUGE,
    labels: &["flag", "ruling"],
    help: "1 for the latest ruling of a flag's guard: content, inconclusive or trip.",
};

pub(super) const KILL_SWITCH: Family = Family {
    name: "dualgauge_kill_switch",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "1 while the kill switch is on, else 0.",
};

pub(super) const STORE_UP: Family = Family {
    name: "dualgauge_store_up",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "1 if the last request to the flag store succeeded, else 0; the last good flags stay in force.",
};

pub(super) const LOG_LINES_DROPPED: Family = Family {
    name: "dualgauge_log_lines_dropped_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Log lines dropped because the reader of standard error was too slow.",
};

pub(super) const SPANS_DROPPED: Family = Family {
    name: "dualgauge_spans_dropped_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Spans dropped because the trace collector was unavailable or too slow.",
};

pub(super) const BUILD: Family = Family {
    name: "dualgauge_build_info",
    kind: MetricType::GAUGE,
    labels: &["version"],
    help: "Always 1, with the version of the program.",
};

pub(super) const EVENTS: Family = Family {
    name: "dualgauge_events_total",
    kind: MetricType::COUNTER,
    labels: &["route", "side", "kind"],
    help: "Events from the other side, by result: rewritten, untouched (no `[[event]]` matches), swallowed (the `[[event]]` has one side only) or failed (dropped, because translation failed).",
};

pub(super) const UPSTREAM_IDLE: Family = Family {
    name: "dualgauge_upstream_idle_connections",
    kind: MetricType::GAUGE,
    labels: &["side"],
    help: "Idle connections in the pools for the upstreams of a side.",
};

pub(super) const UPSTREAM_CALLS: Family = Family {
    name: "dualgauge_upstream_calls_in_flight",
    kind: MetricType::GAUGE,
    labels: &["upstream", "state"],
    help: "Client calls for an HTTP upstream: sent, or waiting for a free slot. For an upstream with frames: client sockets, as sent.",
};

pub(super) const UPSTREAM_CALLS_LIMIT: Family = Family {
    name: "dualgauge_upstream_calls_in_flight_limit",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "Limit of client calls in flight at an upstream, over all workers.",
};

pub(super) const BUFFERED: Family = Family {
    name: "dualgauge_buffered_bytes",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Bytes of requests, responses and messages in buffers.",
};

pub(super) const BUFFERED_LIMIT: Family = Family {
    name: "dualgauge_buffered_bytes_limit",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Limit of buffered bytes. Calls beyond it get 503.",
};

pub(super) const CALLS_LIMIT: Family = Family {
    name: "dualgauge_calls_in_flight_limit",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Limit of calls in flight. Calls beyond it get 503.",
};

pub(super) const CONNECTIONS_LIMIT: Family = Family {
    name: "dualgauge_client_connections_limit",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Limit of open client connections.",
};

pub(super) const MISMATCHING_FIELDS: Family = Family {
    name: "dualgauge_mismatching_fields",
    kind: MetricType::GAUGE,
    labels: &["route"],
    help: "Response fields that differed since the start, the last change of the route or the last reset, at most 64. `dualgauge mismatches` lists them.",
};

pub(super) const SUNSET: Family = Family {
    name: "dualgauge_route_sunset_timestamp_seconds",
    kind: MetricType::GAUGE,
    labels: &["route", "side"],
    help: "Announced time at which the deprecated side of a route stops working.",
};

pub(super) const SESSIONS: Family = Family {
    name: "dualgauge_sessions_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "New sessions: MCP, a hole with affinity, or a WebSocket. A forgotten session counts again.",
};

pub(super) const SESSIONS_REMEMBERED: Family = Family {
    name: "dualgauge_sessions_remembered",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Sessions whose first flags are in memory. The memory is bounded; ended sessions stay until evicted.",
};

pub(super) const SOCKET_STRAYS: Family = Family {
    name: "dualgauge_socket_strays_total",
    kind: MetricType::COUNTER,
    labels: &["kind"],
    help: "Messages on frame sockets without a recipient: noise (not of the protocol) or late (no call waits for this response).",
};

pub(super) const UPSTREAM_EJECTIONS: Family = Family {
    name: "dualgauge_upstream_ejections_total",
    kind: MetricType::COUNTER,
    labels: &["upstream"],
    help: "Ejections of upstream addresses because of failures, counted per worker.",
};

pub(super) const BREAKER_OPENINGS: Family = Family {
    name: "dualgauge_upstream_breaker_openings_total",
    kind: MetricType::COUNTER,
    labels: &["upstream"],
    help: "Openings of an upstream's circuit breaker, counted per worker.",
};

pub(super) const UPSTREAM_REPEATS: Family = Family {
    name: "dualgauge_upstream_repeats_total",
    kind: MetricType::COUNTER,
    labels: &["upstream", "result"],
    help: "Retries on a fresh connection or at another address: sent, or refused by the budget.",
};

pub(super) const ADDRESSES_LEFT_OUT: Family = Family {
    name: "dualgauge_upstream_addresses_left_out",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "Upstream addresses excluded because of failures or health checks; the maximum over the workers.",
};

pub(super) const BREAKER_OPEN: Family = Family {
    name: "dualgauge_upstream_breaker_open",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "1 while an upstream's circuit breaker is open in some worker, else 0.",
};

/// All metric families.
pub(super) const ALL: [&Family; 66] = [
    &CALLS,
    &DECISIONS,
    &KEYLESS_CALLS,
    &CALL_DURATION,
    &UPSTREAM_DURATION,
    &OVERHEAD,
    &FAILURES,
    &DROPPED_MEMBERS,
    &EVENTS,
    &VERDICTS,
    &CANDIDATES_SKIPPED,
    &CANDIDATES_FAILED,
    &CANDIDATE_DURATION,
    &CANDIDATES_IN_FLIGHT,
    &MISMATCHING_FIELDS,
    &LAST_SEEN,
    &SUNSET,
    &UNROUTED_CALLS,
    &CLIENT_CONNECTIONS,
    &REFUSED_CONNECTIONS,
    &FAILED_HANDSHAKES,
    &CUT_CONNECTIONS,
    &UNVERIFIED_TOKENS,
    &SOCKET_STRAYS,
    &INVALID_MESSAGES,
    &CALLS_IN_FLIGHT,
    &CALLS_LIMIT,
    &CONNECTIONS_LIMIT,
    &UPSTREAM_CONNECTIONS,
    &UPSTREAM_IDLE,
    &UPSTREAM_CALLS,
    &UPSTREAM_CALLS_LIMIT,
    &BUFFERED,
    &BUFFERED_LIMIT,
    &UPSTREAM_EJECTIONS,
    &BREAKER_OPENINGS,
    &UPSTREAM_REPEATS,
    &UPSTREAM_CUT_CONNECTIONS,
    &ADDRESSES_LEFT_OUT,
    &BREAKER_OPEN,
    &SESSIONS,
    &SESSIONS_REMEMBERED,
    &LINK_UP,
    &LINK_CALLS,
    &LINK_STARTS,
    &LINK_STRAYS,
    &LINK_NOTIFICATIONS,
    &PLAN_RELOADS,
    &PLAN_LOADED,
    &FLAG_PERCENT,
    &FLAG_TRIPPED,
    &GUARD_TRIPS,
    &GUARD_RULING,
    &KILL_SWITCH,
    &STORE_UP,
    &LOG_LINES_DROPPED,
    &SPANS_DROPPED,
    &SERIES,
    &SERIES_LIMIT,
    &SERIES_OVERFLOW,
    &BUILD,
    &PROCESS_CPU,
    &PROCESS_RESIDENT,
    &PROCESS_FDS,
    &PROCESS_FDS_LIMIT,
    &PROCESS_START,
];
