//! The table of all metric families: name, kind, labels and help. Used by `metrics`.

use prometheus::proto::MetricType;

/// One metric family.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: MetricType,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// Defines a constant for each family, and `ALL`.
macro_rules! families {
    ($($id:ident = $kind:ident($name:literal, [$($label:literal),*], $help:literal);)*) => {
        $(
            pub(super) const $id: Family = Family {
                name: $name,
                kind: MetricType::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All metric families.
        pub(super) const ALL: [&Family; [$($name),*].len()] = [$(&$id),*];
    };
}

families! {
    CALLS = COUNTER("dualgauge_calls_total", ["route", "client", "side", "stage", "outcome", "blame"],
        "Completed calls. outcome: success, error (the upstream reports one), tool_error (a tool result reports a failure), failed (the proxy responded with a failure), cut (the response ended early) or cancelled (by the client). blame: client, upstream, proxy or none. stage is none for a `[[local]]`, a preflight or resource metadata.");
    DECISIONS = COUNTER("dualgauge_decisions_total", ["client", "side", "reason", "flag"],
        "Completed calls, by the rule that chose the stage: flag (all callers), share (percentage of a flag), keyless (callers without a key), session (flag as the session began), default, kill_switch, brownout, route (`stage` of the route), unrouted, local, preflight or resource_metadata (protected resource metadata of an MCP server). flag is none if no flag decided.");
    KEYLESS_CALLS = COUNTER("dualgauge_keyless_calls_total", ["flag"],
        "Calls without a key, for which without_key decided instead of the flag's percentage.");
    CALL_DURATION = HISTOGRAM("dualgauge_call_duration_seconds", ["route", "client", "side", "stage", "outcome"],
        "Time from the request head to the end of the response.");
    UPSTREAM_DURATION = HISTOGRAM("dualgauge_upstream_duration_seconds", ["route", "client", "side", "stage", "outcome"],
        "Time that a call spent on its upstream; only calls that reached one.");
    OVERHEAD = HISTOGRAM("dualgauge_overhead_seconds", ["side", "stage"],
        "Time to the response head, without the time spent on the upstream; only calls that reached one.");
    FAILURES = COUNTER("dualgauge_failures_total", ["reason", "blame", "side"],
        "Failures that the proxy sent, or that cut a response, by reason and blame.");
    DROPPED_MEMBERS = COUNTER("dualgauge_dropped_members_total", ["route"],
        "JSON members that the proxy dropped in translation because the route does not map them.");
    EVENTS = COUNTER("dualgauge_events_total", ["route", "side", "kind"],
        "Events from the other side, by result: rewritten, untouched (no `[[event]]` matches), swallowed (the `[[event]]` has one side only) or failed (dropped, because translation failed). In responses of calls also: response, error (the last event), unmatched (a notification that no `[[event]]` matches, dropped), unfinished (the stream ended within it, dropped), refused (a failure of the proxy, the last event), complete (a complete response as the only event) or oversize (dropped after translation, too long for a client on a WebSocket).");
    OLD_MESSAGES = COUNTER("dualgauge_old_messages_total", ["route", "transport"],
        "Messages of clients in an old RPC dialect, by how they came: http (alone), batch (with others in one request) or websocket.");
    VERDICTS = COUNTER("dualgauge_verdicts_total", ["route", "client", "side", "stage", "verdict"],
        "Calls in shadow or verify, by verdict: match, mismatch, control-failed, candidate-failed, both-failed or skipped.");
    CANDIDATES_SKIPPED = COUNTER("dualgauge_candidates_skipped_total", ["route", "reason"],
        "Calls in shadow or verify without a candidate or comparison, by reason.");
    PARTIAL_COMPARISONS = COUNTER("dualgauge_partial_comparisons_total", ["bound"],
        "Comparisons of responses that stream, which ended at a bound: events, bytes or time.");
    CANDIDATES_FAILED = COUNTER("dualgauge_candidates_failed_total", ["route", "reason"],
        "Candidates that ended with a failure of the proxy, by reason.");
    CANDIDATE_DURATION = HISTOGRAM("dualgauge_candidate_duration_seconds", ["route", "side", "stage"],
        "Time from the start of a candidate to the end of its response. No client waits for it.");
    CANDIDATES_IN_FLIGHT = GAUGE("dualgauge_candidates_in_flight", [],
        "Candidates in flight.");
    RESPONSE_STREAMS = GAUGE("dualgauge_response_streams_open", [],
        "Calls whose response streams and is translated event by event.");
    MISMATCHING_FIELDS = GAUGE("dualgauge_mismatching_fields", ["route"],
        "Response fields that differed since the start, the last change of the route or the last reset, at most 64. `dualgauge mismatches` lists them.");
    LAST_SEEN = GAUGE("dualgauge_last_seen_timestamp_seconds", ["route", "client", "side"],
        "Start of the last call of a client on one side of a route that this process saw.");
    MCP_CALLS = COUNTER("dualgauge_mcp_calls_total", ["client", "era", "revision"],
        "Calls of MCP clients, by era, handshake (up to 2025-11-25) or stateless (from 2026-07-28 on), and by the revision that the call names: a known one, unnamed or other.");
    MCP_LAST_SEEN = GAUGE("dualgauge_mcp_last_seen_timestamp_seconds", ["client", "era"],
        "Start of the last call of an MCP client in an era that this process saw.");
    SUNSET = GAUGE("dualgauge_route_sunset_timestamp_seconds", ["route", "side"],
        "Announced time at which the deprecated side of a route stops working.");
    UNROUTED_CALLS = COUNTER("dualgauge_unrouted_calls_total", ["prefix"],
        "REST calls without a route whose path starts like that of a route, by the longest such prefix.");
    UNROUTED_REMEMBERED = GAUGE("dualgauge_unrouted_calls_remembered", [],
        "Entries in the table of calls without a route, which `/api/v1/unrouted` reports and `dualgauge learn --admin` reads; at most 512.");
    UNROUTED_LEFT_OUT = COUNTER("dualgauge_unrouted_calls_left_out_total", [],
        "Calls without a route that no worker kept, because its table was full, or because of their method (other than GET, POST, PUT, PATCH and DELETE) or path (more than 24 segments, or `//`).");
    CLIENT_CONNECTIONS = GAUGE("dualgauge_client_connections", [],
        "Open client connections.");
    REFUSED_CONNECTIONS = COUNTER("dualgauge_refused_connections_total", [],
        "Client connections closed because the limit was reached.");
    FAILED_HANDSHAKES = COUNTER("dualgauge_failed_handshakes_total", [],
        "Client connections closed because the TLS handshake or PROXY header failed or timed out.");
    CUT_CONNECTIONS = COUNTER("dualgauge_cut_connections_total", ["reason"],
        "Client connections (HTTP/2, WebSocket) that the proxy aborted: resets (too many calls reset), chatter (too many frames without progress) or faults (protocol errors). Also single HTTP/2 streams: stalled (the client read nothing for too long).");
    ERA_BRIDGE = COUNTER("dualgauge_mcp_era_conversions_total", ["kind"],
        "Conversions between MCP clients and servers of different eras: missing_resource and foreign_code (error codes), url_elicitation (an error became a request for input), discovery (`server/discover` for a server with sessions), log_level (a session's level sent with a request), input_request (a request for input sent to a client), input_response (a call sent again with the client's input), server_request (a request of a server with sessions passed to a client), server_response (the client's answer to it) and subscription (a subscription at a server of the other era).");
    UNAUTHENTICATED = COUNTER("dualgauge_unauthenticated_requests_total", ["credentials"],
        "Requests refused by `listen.authentication`, by their credentials: missing, or unknown (those of no client).");
    RESOURCE_METADATA = COUNTER("dualgauge_mcp_resource_metadata_total", ["kind"],
        "Protected resource metadata of MCP servers, and challenges that name them: metadata_rewritten and challenge_rewritten (they name `listen.public_url`), and metadata_unchanged.");
    AGENT_CARDS = COUNTER("dualgauge_agent_cards_total", ["kind"],
        "Agent cards (A2A) at `rpc.agent_card`: rewritten (they name `listen.public_url`), or unchanged (the document is no card).");
    EVENT_SESSIONS = COUNTER("dualgauge_mcp_sse_sessions_total", ["result"],
        "Event streams of MCP clients over HTTP with SSE (2024-11-05): opened, ended, or refused because too many were open.");
    EVENT_SOCKETS = COUNTER("dualgauge_event_sockets_total", ["result"],
        "WebSockets of REST clients with the events of a subscription: opened, and ended by the client (closed), because the events ended (ended), or by a failure (failed).");
    SUSPENDED_CALLS = COUNTER("dualgauge_mcp_suspended_calls_total", ["result"],
        "Calls of stateless MCP clients that wait for input: suspended, continued by a retry, refused because too many wait; unknown counts retries whose `requestState` names no call.");
    UNVERIFIED_TOKENS = COUNTER("dualgauge_unverified_tokens_total", ["reason"],
        "Bearer tokens that failed verification, by cause; only tokens that a client's rule needs.");
    SOCKET_STRAYS = COUNTER("dualgauge_socket_strays_total", ["kind"],
        "Messages on frame sockets without a recipient: noise (not of the protocol) or late (no call waits for this response).");
    INVALID_MESSAGES = COUNTER("dualgauge_invalid_messages_total", ["reason", "action"],
        "Messages posted to RPC paths that are not valid JSON-RPC 2.0: invalid_request (one method is readable), unreadable (none) or ambiguous (several).");
    CALLS_IN_FLIGHT = GAUGE("dualgauge_calls_in_flight", [],
        "Calls in flight.");
    CALLS_LIMIT = GAUGE("dualgauge_calls_in_flight_limit", [],
        "Limit of calls in flight. Calls beyond it get 503.");
    CONNECTIONS_LIMIT = GAUGE("dualgauge_client_connections_limit", [],
        "Limit of open client connections.");
    UPSTREAM_CONNECTIONS = GAUGE("dualgauge_upstream_connections", ["side"],
        "Open connections to the upstreams of a side, busy or idle.");
    UPSTREAM_IDLE = GAUGE("dualgauge_upstream_idle_connections", ["side"],
        "Idle connections in the pools for the upstreams of a side.");
    UPSTREAM_CALLS = GAUGE("dualgauge_upstream_calls_in_flight", ["upstream", "state"],
        "Client calls for an HTTP upstream: sent, or waiting for a free slot. For an upstream with frames: client sockets, as sent.");
    UPSTREAM_CALLS_LIMIT = GAUGE("dualgauge_upstream_calls_in_flight_limit", ["upstream"],
        "Limit of client calls in flight at an upstream, over all workers.");
    BUFFERED = GAUGE("dualgauge_buffered_bytes", [],
        "Bytes of requests, responses and messages in buffers.");
    BUFFERED_LIMIT = GAUGE("dualgauge_buffered_bytes_limit", [],
        "Limit of buffered bytes. Calls beyond it get 503.");
    UPSTREAM_EJECTIONS = COUNTER("dualgauge_upstream_ejections_total", ["upstream"],
        "Ejections of upstream addresses because of failures, counted per worker.");
    BREAKER_OPENINGS = COUNTER("dualgauge_upstream_breaker_openings_total", ["upstream"],
        "Openings of an upstream's circuit breaker, counted per worker.");
    UPSTREAM_REPEATS = COUNTER("dualgauge_upstream_repeats_total", ["upstream", "result"],
        "Retries on a fresh connection or at another address: sent, or refused by the budget.");
    UPSTREAM_CUT_CONNECTIONS = COUNTER("dualgauge_upstream_cut_connections_total", ["upstream"],
        "HTTP/2 connections to an upstream that the proxy aborted because the server sent too many frames without progress or broke the protocol.");
    ADDRESSES_LEFT_OUT = GAUGE("dualgauge_upstream_addresses_left_out", ["upstream"],
        "Upstream addresses excluded because of failures or health checks; the maximum over the workers.");
    BREAKER_OPEN = GAUGE("dualgauge_upstream_breaker_open", ["upstream"],
        "1 while an upstream's circuit breaker is open in some worker, else 0.");
    SESSIONS = COUNTER("dualgauge_sessions_total", [],
        "New sessions: MCP, a hole with affinity, or a WebSocket. A forgotten session counts again.");
    SESSIONS_REMEMBERED = GAUGE("dualgauge_sessions_remembered", [],
        "Sessions whose first flags are in memory. The memory is bounded; ended sessions stay until evicted.");
    LINK_UP = GAUGE("dualgauge_link_up", ["upstream"],
        "1 while an upstream with links (child process, MCP session, WebSockets) accepts calls, else 0. For frames: 0 after a failed connection attempt, until one succeeds. Absent while no client has its own link.");
    LINK_CALLS = GAUGE("dualgauge_link_calls_in_flight", ["upstream", "state"],
        "Calls for an upstream's links: written (no response yet) or waiting (queued).");
    LINK_STARTS = COUNTER("dualgauge_link_starts_total", ["upstream"],
        "Attempts to open a link, such as starts of a child process. Each after the first is a restart, or one of several `sockets`. For frames: the first, and those after a lost or failed connection.");
    LINK_STRAYS = COUNTER("dualgauge_link_strays_total", ["upstream", "kind"],
        "Unexpected messages on an upstream's links: late (response after the timeout), foreign (response or error without a call), skipped (not a message, or too long), declined (request of the server) or notified (notification, or event in frames).");
    LINK_LOGINS = COUNTER("dualgauge_link_logins_total", ["upstream", "result"],
        "Logins on an upstream's links: ok, refused, timeout (no response in time) or cut (the link broke before the response).");
    LINK_SUBSCRIPTIONS_OPEN = GAUGE("dualgauge_link_subscriptions_open", ["upstream"],
        "Open subscriptions of routes with `subscription` on an upstream's links.");
    LINK_SUBSCRIPTIONS = COUNTER("dualgauge_link_subscriptions_total", ["upstream", "result"],
        "Subscriptions of routes with `subscription` on an upstream's links: opened, and ended because the client left (closed), the client was too slow (slow) or the link ended (lost); unusable: the response has no id, or one that is in use.");
    LINK_NOTIFICATIONS = COUNTER("dualgauge_link_notifications_total", ["upstream", "fate"],
        "Notifications on an upstream's links: told (delivered) and crowded (dropped, because the client was too slow), once per client, or nobody (no recipient).");
    PLAN_RELOADS = COUNTER("dualgauge_plan_reloads_total", ["result"],
        "Reloads of the configuration. After a failed reload, the old configuration stays in force.");
    PLAN_LOADED = GAUGE("dualgauge_plan_loaded_timestamp_seconds", [],
        "Time at which the current configuration was loaded.");
    FLAG_PERCENT = GAUGE("dualgauge_flag_percent", ["flag", "client", "route", "side", "stage"],
        "Percentage of callers that a flag includes, 0 to 100. client and route are globs; side is rest, rpc or both.");
    FLAG_TRIPPED = GAUGE("dualgauge_flag_tripped", ["flag"],
        "1 if the guard of a flag tripped and no operator re-armed it, else 0.");
    GUARD_TRIPS = COUNTER("dualgauge_guard_trips_total", ["flag", "limit", "mode"],
        "Trips of a flag's guard in this process, by exceeded limit. With mode dry_run, the flag stays in force.");
    GUARD_RULING = GAUGE("dualgauge_guard_ruling", ["flag", "ruling"],
        "1 for the latest ruling of a flag's guard: content, inconclusive or trip.");
    EVALUATIONS = COUNTER("dualgauge_ofrep_evaluations_total", ["request", "result"],
        "Evaluations of flags for applications (OFREP). request: one (flag) or all. result: static, default, targeting_match, split or disabled (the reason for the value), evaluated (all flags), parse_error, invalid_context, targeting_key_missing or flag_not_found.");
    LIVE_STREAMS_OPEN = GAUGE("dualgauge_admin_live_streams_open", [],
        "Open live streams of the admin API (`/api/v1/live`), such as those of consoles; at most 16.");
    LIVE_STREAMS = COUNTER("dualgauge_admin_live_streams_total", ["result"],
        "Requests for live streams of the admin API, by result: opened, refused (the limit was reached) or failed (the process did not respond).");
    KILL_SWITCH = GAUGE("dualgauge_kill_switch", [],
        "1 while the kill switch is on, else 0.");
    STORE_UP = GAUGE("dualgauge_store_up", [],
        "1 if the last request to the flag store succeeded, else 0; the last good flags stay in force.");
    FLAG_SOURCE_AGE = GAUGE("dualgauge_flag_source_age_seconds", [],
        "Seconds since the last good response of the source of flags; before the first one, since its copy or the start. Only with a source.");
    FLAG_SOURCE_POLLS = COUNTER("dualgauge_flag_source_polls_total", ["result"],
        "Polls of the source of flags. result: changed or unchanged (good responses), unreachable, timeout, unauthorized, busy (429 or 503), status (any other), too_long or invalid.");
    FLAG_SOURCE_FLAGS = GAUGE("dualgauge_flag_source_flags", ["state"],
        "Flags with a value at the source. state: governed (the flag follows the source) or refused (the last value cannot be used).");
    LOG_LINES_DROPPED = COUNTER("dualgauge_log_lines_dropped_total", [],
        "Log lines dropped because the reader of standard error was too slow.");
    SPANS_DROPPED = COUNTER("dualgauge_spans_dropped_total", [],
        "Spans dropped because the trace collector was unavailable or too slow.");
    RECORDED_CALLS = COUNTER("dualgauge_recorded_calls_total", ["result"],
        "Calls in the sample of a recording, by result: recorded, or dropped because the queue was full, the line too long, the recording complete or the file not writable.");
    RECORDED_BYTES = COUNTER("dualgauge_recorded_bytes_total", [],
        "Bytes written to recordings.");
    RECORDINGS_STOPPED = COUNTER("dualgauge_recordings_stopped_total", ["reason"],
        "Recordings that ended, by reason: command, time, size, disk_full, error, reload or shutdown.");
    RECORDINGS_OPEN = GAUGE("dualgauge_recordings_open", [],
        "1 while a recording runs, else 0.");
    SERIES = GAUGE("dualgauge_metrics_series", [],
        "Series with names from the configuration as labels; each histogram bucket counts as one.");
    SERIES_LIMIT = GAUGE("dualgauge_metrics_series_limit", [],
        "Limit of such series. Calls that need more count under the name overflow.");
    SERIES_OVERFLOW = GAUGE("dualgauge_metrics_series_overflow", [],
        "Series beyond the limit, which count under the name overflow.");
    BUILD = GAUGE("dualgauge_build_info", ["version"],
        "Always 1, with the version of the program.");
    PROCESS_CPU = COUNTER("process_cpu_seconds_total", [],
        "CPU time of the process, user and system.");
    PROCESS_RESIDENT = GAUGE("process_resident_memory_bytes", [],
        "Resident memory of the process.");
    PROCESS_FDS = GAUGE("process_open_fds", [],
        "Open file descriptors of the process.");
    PROCESS_FDS_LIMIT = GAUGE("process_max_fds", [],
        "Limit of open file descriptors; absent if unlimited.");
    PROCESS_START = GAUGE("process_start_time_seconds", [],
        "Start time of the process.");
}
