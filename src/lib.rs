//! dualgauge: a migration proxy that serves legacy REST and JSON-RPC 2.0 on one port, translates between them with a
//! declarative route table, and moves clients from one to the other step by step.
//!
//! # The layers
//!
//! A module uses only crates, and modules of lower layers, none of its own layer (`tests/architecture.rs` checks this):
//!
//! | layer | crate or module | what it owns |
//! |---|---|---|
//! | crate | [`dualgauge_patterns`] | pure values and functions: JSON, patterns, percent-encoding, schemas |
//! | crate | [`dualgauge_model`] | pure decisions: JSON-RPC, routes, translation, outcomes, rollout, comparison, failures |
//! | crate | `dualgauge_sample` (feature `demo`) | the built-in server of `dualgauge demo` |
//! | 1 | [`config`] | files, environment and command line → a [`dualgauge_model::plan::Plan`], or every problem |
//! | 1 | [`telemetry`] | metric names and shards, the log, the clock |
//! | 2 | [`upstream`] | connections to upstreams, bodies, tracked tasks |
//! | 2 | [`store`] | runtime changes, in files or on a shared server, with revisions |
//! | 3 | [`gateway`] | the processing of one call, from request to response |
//! | 4 | [`server`] | listeners, the wire inspector's socket, the admin listener |
//! | 5 | [`app`] | wiring: build, spawn, join, drain |
//! | 6 | [`cli`] | `run`, `check`, `schema`, `routes`, `explain`, `import`, `demo`, and clients of a running process: `flags`, `mismatches`, `usage` |
//!
//! # The words
//!
//! *side* (`rest` or `rpc`: the protocol of a call, and of an upstream) · *upstream* (a server behind the proxy) ·
//! *link* (one connection to an upstream that the calls of all clients share, such as a child process) · *route* (one
//! operation on both sides) · *pattern*, *hole* (JSON or a URL with named gaps) · *outcome* (a response on each side) ·
//! *stream*, *event* (messages that a server sends without a request, and their channel) · *client* (the caller: a name
//! from a bounded set) · *flag* (a rule that assigns a stage) · *stage* (`passthrough`, `shadow`, `verify`,
//! `translate`, `retired`) · *control*, *candidate* (the call whose response the client gets; the call that runs only
//! for comparison) · *verdict* (the result of a comparison: match, mismatch, control-failed, candidate-failed,
//! both-failed, skipped) · *decision*, *reason* (the stage of one call, and the rule that chose it) · *overrides*
//! (runtime changes of the flags file) · *plan* (routes, flags and limits, compiled and immutable) ·
//! *failure*, *blame* (an error, and the party at fault).

pub mod app;
pub mod cli;
pub mod config;
pub mod gateway;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod upstream;
