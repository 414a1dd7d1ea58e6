//! Every metric's name, kind, labels and help: the one place that knows them.

mod candidates;
mod process;

use prometheus::proto::MetricType;

pub(super) use candidates::{
    CANDIDATE_DURATION, CANDIDATES_FAILED, CANDIDATES_IN_FLIGHT, CANDIDATES_SKIPPED,
};
pub(super) use process::{
    PROCESS_CPU, PROCESS_FDS, PROCESS_FDS_LIMIT, PROCESS_RESIDENT, PROCESS_START,
};

/// One metric.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: MetricType,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

pub(super) const CALLS: Family = Family {
    name: "dualgauge_calls_total",
    kind: MetricType::COUNTER,
    labels: &["route", "client", "side", "stage", "outcome", "blame"],
    help: "Calls that ended. The outcome is success, error (the upstream's own answer reports one), \
           tool_error (the result of a tool says that it failed, also one that the proxy made from an HTTP 4xx; one from 403, 429 or a 5xx is an error), failed (the proxy answered with a failure), cut (the answer broke off) or cancelled (the \
           client went away); the blame is client, upstream, proxy or none; the stage is none where \
           a `[[local]]` or a preflight was answered.",
};

pub(super) const DECISIONS: Family = Family {
    name: "dualgauge_decisions_total",
    kind: MetricType::COUNTER,
    labels: &["client", "side", "reason", "flag"],
    help: "Calls that ended, by the rule that chose their stage: flag (it takes everyone whom it covers), share \
           (the caller's bucket lies in the percentage of a flag), keyless (the flag takes callers without a \
           key), session (a flag as it was when the session began), default, kill_switch, brownout, unrouted, local or preflight; the flag is none where none \
           has decided.",
};

pub(super) const KEYLESS_CALLS: Family = Family {
    name: "dualgauge_keyless_calls_total",
    kind: MetricType::COUNTER,
    labels: &["flag"],
    help: "Calls for which the percentage of a flag could not be applied, since their callers have no key; the flag \
           takes all of them or none, as its without_key says.",
};

pub(super) const CALL_DURATION: Family = Family {
    name: "dualgauge_call_duration_seconds",
    kind: MetricType::HISTOGRAM,
    labels: &["route", "client", "side", "stage", "outcome"],
    help: "Time from the head of a call to the end of its answer.",
};

pub(super) const UPSTREAM_DURATION: Family = Family {
    name: "dualgauge_upstream_duration_seconds",
    kind: MetricType::HISTOGRAM,
    labels: &["route", "client", "side", "stage", "outcome"],
    help: "The part of a call that was spent on its upstream; only calls that reached one.",
};

pub(super) const OVERHEAD: Family = Family {
    name: "dualgauge_overhead_seconds",
    kind: MetricType::HISTOGRAM,
    labels: &["side", "stage"],
    help: "The part of the time to the head of the answer that was not spent on the upstream; only calls that \
           reached one.",
};

pub(super) const FAILURES: Family = Family {
    name: "dualgauge_failures_total",
    kind: MetricType::COUNTER,
    labels: &["reason", "blame", "side"],
    help: "Failures that the proxy answered with, or that broke an answer off, by reason and by whose \
           fault they are.",
};

pub(super) const DROPPED_MEMBERS: Family = Family {
    name: "dualgauge_dropped_members_total",
    kind: MetricType::COUNTER,
    labels: &["route"],
    help: "Members of translated calls and answers for which the route has no place on the other side.",
};

pub(super) const VERDICTS: Family = Family {
    name: "dualgauge_verdicts_total",
    kind: MetricType::COUNTER,
    labels: &["route", "client", "side", "stage", "verdict"],
    help: "Calls of the stages shadow and verify, by what became of their candidates: match, mismatch, \
           control-failed, candidate-failed, both-failed or skipped.",
};

pub(super) const LAST_SEEN: Family = Family {
    name: "dualgauge_last_seen_timestamp_seconds",
    kind: MetricType::GAUGE,
    labels: &["route", "client", "side"],
    help: "When the last call of a client on a side of a route began, in seconds since 1970, as far as this \
           process has seen.",
};

pub(super) const UNROUTED_CALLS: Family = Family {
    name: "dualgauge_unrouted_calls_total",
    kind: MetricType::COUNTER,
    labels: &["prefix"],
    help: "REST calls of no route whose path begins like that of a route, by the longest such beginning.",
};

pub(super) const CLIENT_CONNECTIONS: Family = Family {
    name: "dualgauge_client_connections",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Open connections of clients.",
};

pub(super) const REFUSED_CONNECTIONS: Family = Family {
    name: "dualgauge_refused_connections_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Connections of clients that were closed at once because as many as allowed were open.",
};

pub(super) const CUT_CONNECTIONS: Family = Family {
    name: "dualgauge_cut_connections_total",
    kind: MetricType::COUNTER,
    labels: &["reason"],
    help: "Connections of HTTP/2 clients and WebSockets of clients that were cut: resets (more calls were reset than answered), chatter (frames that \
           bring no call further) or faults (of the protocol: one of the connection, or too many of its streams); and single \
           streams: stalled (the client took nothing of its answer for too long).",
};

pub(super) const FAILED_HANDSHAKES: Family = Family {
    name: "dualgauge_failed_handshakes_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Connections of clients that were closed because their TLS handshake or PROXY header failed or took too long.",
};

pub(super) const UNVERIFIED_TOKENS: Family = Family {
    name: "dualgauge_unverified_tokens_total",
    kind: MetricType::COUNTER,
    labels: &["reason"],
    help: "Bearer tokens of callers that prove nothing, by what is wrong with them; only those that a client's rule \
           asked for.",
};

pub(super) const CALLS_IN_FLIGHT: Family = Family {
    name: "dualgauge_calls_in_flight",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Calls that have begun and not ended.",
};

pub(super) const UPSTREAM_CONNECTIONS: Family = Family {
    name: "dualgauge_upstream_connections",
    kind: MetricType::GAUGE,
    labels: &["side"],
    help: "Open connections to the upstream of a side, busy or idle.",
};

pub(super) const LINK_UP: Family = Family {
    name: "dualgauge_link_up",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "1 while an upstream that is spoken to over links (a child, a session of MCP, WebSockets) takes calls over one \
           of them, else 0. Of sockets of frames, 0 from one that could not be opened until the next one that could. \
           Absent where clients have links for themselves, and there are none.",
};

pub(super) const LINK_CALLS: Family = Family {
    name: "dualgauge_link_calls_in_flight",
    kind: MetricType::GAUGE,
    labels: &["upstream", "state"],
    help: "Calls for the links of an upstream: written (and not answered) or waiting (for their turn).",
};

pub(super) const LINK_STARTS: Family = Family {
    name: "dualgauge_link_starts_total",
    kind: MetricType::COUNTER,
    labels: &["upstream"],
    help: "Links to an upstream that were opened, or tried to: starts of a child. Each after the first is a restart, or \
           one of several `sockets`. Of sockets of frames, those alone that follow one that was lost or could not be \
           opened, and the first.",
};

pub(super) const LINK_STRAYS: Family = Family {
    name: "dualgauge_link_strays_total",
    kind: MetricType::COUNTER,
    labels: &["upstream", "kind"],
    help: "Messages on the links of an upstream that nobody waited for: late (answers after the timeout), foreign \
           (answers to nothing, and errors that could be anybody's), skipped (no messages, or too long), declined \
           (requests of the server) or notified (its notifications, or events in frames).",
};

pub(super) const LINK_NOTIFICATIONS: Family = Family {
    name: "dualgauge_link_notifications_total",
    kind: MetricType::COUNTER,
    labels: &["upstream", "fate"],
    help: "What became of the notifications on the links of an upstream: told (a client got it) and crowded (a client \
           missed it, being too slow), once for each client, or nobody (it was for nobody who could be told).",
};

pub(super) const PLAN_RELOADS: Family = Family {
    name: "dualgauge_plan_reloads_total",
    kind: MetricType::COUNTER,
    labels: &["result"],
    help: "Reloads of the configuration; after a failed one the plan before it stays.",
};

pub(super) const PLAN_LOADED: Family = Family {
    name: "dualgauge_plan_loaded_timestamp_seconds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "When the live plan was loaded, in seconds since 1970.",
};

pub(super) const FLAG_PERCENT: Family = Family {
    name: "dualgauge_flag_percent",
    kind: MetricType::GAUGE,
    labels: &["flag", "client", "route", "side", "stage"],
    help: "The share of callers that a flag of the live plan takes, 0 to 100. Client and route are \
           globs; the side is rest, rpc or both.",
};

pub(super) const FLAG_TRIPPED: Family = Family {
    name: "dualgauge_flag_tripped",
    kind: MetricType::GAUGE,
    labels: &["flag"],
    help: "1 where the guard of a flag has taken it back and nobody has re-armed it, else 0.",
};

pub(super) const GUARD_TRIPS: Family = Family {
    name: "dualgauge_guard_trips_total",
    kind: MetricType::COUNTER,
    labels: &["flag", "limit", "mode"],
    help: "Trips that the guard of a flag has ruled in this process, by the limit that was exceeded; with the mode \
           dry_run it would have taken the flag back.",
};

pub(super) const GUARD_RULING: Family = Family {
    name: "dualgauge_guard_ruling",
    kind: MetricType::GAUGE,
    labels: &["flag", "ruling"],
    help: "1 for what the guard of a flag said last: content, inconclusive or trip.",
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
    help: "1 where the store of flags has answered last, 0 while it is away and the last good flags hold.",
};

pub(super) const LOG_LINES_DROPPED: Family = Family {
    name: "dualgauge_log_lines_dropped_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Log lines that were dropped because standard error took them too slowly.",
};

pub(super) const SPANS_DROPPED: Family = Family {
    name: "dualgauge_spans_dropped_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Spans that were dropped because the collector of traces did not take them, or too slowly.",
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
    help: "Events for clients of a side that came from the other side, by what became of them: rewritten, untouched (no `[[event]]` takes it), swallowed (its `[[event]]` has one side only) or failed (it could not be written, and was left out).",
};

pub(super) const UPSTREAM_IDLE: Family = Family {
    name: "dualgauge_upstream_idle_connections",
    kind: MetricType::GAUGE,
    labels: &["side"],
    help: "Open connections to the upstream of a side that wait in the pool for their next call.",
};

pub(super) const UPSTREAM_CALLS: Family = Family {
    name: "dualgauge_upstream_calls_in_flight",
    kind: MetricType::GAUGE,
    labels: &["upstream", "state"],
    help: "Calls of clients at an upstream over HTTP: sent (they have a place there) or waiting (for one); of an upstream \
           that speaks in frames the sockets of clients, as sent.",
};

pub(super) const UPSTREAM_CALLS_LIMIT: Family = Family {
    name: "dualgauge_upstream_calls_in_flight_limit",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "How many calls of clients may be at an upstream at once in all workers together, however many of them share a \
           connection.",
};

pub(super) const BUFFERED: Family = Family {
    name: "dualgauge_buffered_bytes",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Bytes of requests, answers and messages that were read whole and are held.",
};

pub(super) const BUFFERED_LIMIT: Family = Family {
    name: "dualgauge_buffered_bytes_limit",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "How many bytes of requests, answers and messages may be held; beyond it calls are answered with 503.",
};

pub(super) const CALLS_LIMIT: Family = Family {
    name: "dualgauge_calls_in_flight_limit",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "How many calls may be in flight at once; the next one is answered with 503.",
};

pub(super) const CONNECTIONS_LIMIT: Family = Family {
    name: "dualgauge_client_connections_limit",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "How many connections of clients may be open at once.",
};

pub(super) const MISMATCHING_FIELDS: Family = Family {
    name: "dualgauge_mismatching_fields",
    kind: MetricType::GAUGE,
    labels: &["route"],
    help: "Different fields of the answers of a route that have differed since the process began, the route was changed \
           or its mismatches were reset, at most 64; which they are is told by `dualgauge mismatches`.",
};

pub(super) const SUNSET: Family = Family {
    name: "dualgauge_route_sunset_timestamp_seconds",
    kind: MetricType::GAUGE,
    labels: &["route", "side"],
    help: "When the deprecated side of a route is to stop answering; only routes that have announced it.",
};

pub(super) const SESSIONS: Family = Family {
    name: "dualgauge_sessions_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Sessions that began: of MCP, by a hole with affinity, or a WebSocket. One that was forgotten begins anew.",
};

pub(super) const SESSIONS_REMEMBERED: Family = Family {
    name: "dualgauge_sessions_remembered",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Sessions of which it is known with which flags they began; the memory is bounded, and an ended session \
           stays until it is forgotten.",
};

pub(super) const SOCKET_STRAYS: Family = Family {
    name: "dualgauge_socket_strays_total",
    kind: MetricType::COUNTER,
    labels: &["kind"],
    help: "Messages of sockets where frames are spoken that reached nobody: noise (of no protocol), late (the answer of a call for which nobody waits any more).",
};

pub(super) const UPSTREAM_EJECTIONS: Family = Family {
    name: "dualgauge_upstream_ejections_total",
    kind: MetricType::COUNTER,
    labels: &["upstream"],
    help: "How often an address of an upstream was left out for its failures, by each worker for itself.",
};

pub(super) const BREAKER_OPENINGS: Family = Family {
    name: "dualgauge_upstream_breaker_openings_total",
    kind: MetricType::COUNTER,
    labels: &["upstream"],
    help: "How often the breaker of an upstream has opened, that of each worker for itself.",
};

pub(super) const UPSTREAM_REPEATS: Family = Family {
    name: "dualgauge_upstream_repeats_total",
    kind: MetricType::COUNTER,
    labels: &["upstream", "result"],
    help: "Calls that could be tried again, on a fresh connection or at another address: sent, or refused by the budget.",
};

pub(super) const ADDRESSES_LEFT_OUT: Family = Family {
    name: "dualgauge_upstream_addresses_left_out",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "How many addresses of an upstream get no calls, for their failures or their health checks; the most that any worker leaves out.",
};

pub(super) const BREAKER_OPEN: Family = Family {
    name: "dualgauge_upstream_breaker_open",
    kind: MetricType::GAUGE,
    labels: &["upstream"],
    help: "1 while the breaker of an upstream is open in some worker, so that its calls are refused, else 0.",
};

/// Every metric.
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
    &super::messages::INVALID_MESSAGES,
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
    &super::addresses::CUT_CONNECTIONS,
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
    &super::series::SERIES,
    &super::series::SERIES_LIMIT,
    &super::series::SERIES_OVERFLOW,
    &BUILD,
    &PROCESS_CPU,
    &PROCESS_RESIDENT,
    &PROCESS_FDS,
    &PROCESS_FDS_LIMIT,
    &PROCESS_START,
];
