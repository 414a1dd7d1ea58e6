//! End-to-end tests over real sockets: the real program between a client and upstreams that are driven byte by
//! byte. A file per capability; `support` holds the ends.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "an end that does not behave as the test says fails the test"
)]

mod addresses;
mod admin_listener;
mod agent_card;
mod authentication;
mod bad_input;
mod base_path;
mod batch;
mod batch_left;
mod batch_passthrough;
mod blame;
mod bodies_and_params;
#[cfg(target_os = "linux")]
mod campaign;
mod cardinality;
mod coded;
mod coded_answers;
mod connections;
mod console;
mod cors;
#[cfg(target_os = "linux")]
mod crowds;
mod dashboards;
#[cfg(feature = "demo")]
mod decided;
mod demo;
mod deprecated;
mod descriptors;
mod drafted;
mod drains;
mod empty_success;
mod envelope;
mod event_stream_refused;
mod every_kind;
mod expect;
mod explained;
mod failure_meanings;
mod fairness;
mod flag_source;
mod flags_at_run_time;
mod floods;
mod forms;
mod forwarded;
mod frames;
mod full;
mod guide;
mod half_closed;
mod harness;
mod health;
mod host_and_origin;
mod http2;
mod http2_slow;
mod http2_upstream;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod hung_files;
mod identity;
mod identity_headers;
mod import;
mod import_pair;
mod import_sources;
mod interim_responses;
mod invalid_messages;
mod irregular_paths;
mod jsonrpc_ids;
mod jsonrpc_spec;
mod learn;
mod lifecycle;
mod links;
mod lists;
mod local;
mod log_at_start;
mod max_age;
mod mcp;
mod metrics_and_log;
mod misused_commands;
mod mutual_tls;
mod near_paths;
mod ofrep;
mod old_dialects;
#[path = "../docs/pages.rs"]
mod pages;
mod passthrough_changes;
mod proxy_protocol;
mod quadrant;
mod random;
mod random_table;
mod raw_targets;
mod ready;
mod recorded;
mod redacted;
#[cfg(unix)]
#[expect(
    dead_code,
    clippy::expect_used,
    reason = "the tests of the store itself need more of it"
)]
#[path = "../shared/server.rs"]
mod redis_server;
mod refused_by_status;
mod reloaded;
#[cfg(unix)]
mod replay;
mod replicas;
mod report;
mod request_hops;
mod response_framing;
mod response_streams;
mod rest_answers;
mod rest_refused;
mod rest_requests;
mod rest_to_rpc;
mod restart;
#[cfg(unix)]
mod restart_kinds;
mod room;
mod route_patterns;
mod routes_of_their_own;
mod rpc_passthrough;
mod rpc_path_methods;
mod rpc_refused;
mod rpc_to_rest;
mod scene;
mod schema_budget;
mod sessions;
mod shadow;
#[cfg(target_os = "linux")]
mod soak;
mod sse;
mod stages;
#[cfg(unix)]
mod static_binary;
mod stdio;
mod streaming;
mod streams_told;
mod supervised;
mod support;
mod systems;
mod there_and_back;
mod timeouts;
mod tls_reload;
mod tls_upstream;
mod tool_errors;
mod tool_values;
mod total_time;
mod traces;
mod two_servers;
mod unknown_query;
mod unread;
mod upgrade;
mod upgrade_with_content;
mod upgraded_state;
mod uploads;
mod upstream_failures;
mod websocket;
mod whole_rollout;
