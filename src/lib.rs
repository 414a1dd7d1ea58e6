//! dualgauge: a migration proxy that speaks legacy REST and JSON-RPC 2.0 on one port, translates
//! between them from a declarative route table, and moves clients from one to the other one by one.
//!
//! # The floors
//!
//! A module names only floors below its own, and modules of one floor do not name each other
//! (`tests/architecture.rs` keeps this):
//!
//! | floor | module | what it owns |
//! |---|---|---|
//! | 0 | [`domain`] | pure values and functions: JSON, JSON-RPC, patterns, routes, outcomes, rollout, failures |
//! | 1 | [`config`] | files, environment and command line → a [`domain::plan::Plan`], or every problem |
//! | 1 | [`telemetry`] | metric names and shards, the log, the clock |
//! | 2 | [`upstream`] | connections to the servers behind, bodies, tracked tasks |
//! | 2 | [`store`] | what changes at run time, in files or on a shared server, with revisions |
//! | 3 | [`gateway`] | the whole story of one call |
//! | 4 | [`server`] | listeners, the wire inspector's socket, the admin listener |
//! | 4 | `sample` (feature `demo`) | the built-in server behind `dualgauge demo` |
//! | 5 | [`app`] | wiring: build, spawn, join, drain |
//! | 6 | [`cli`] | `run`, `check`, `routes`, `explain`, `import`, `demo`, and what asks a running process: `flags`, `mismatches`, `usage` |
//!
//! # The words
//!
//! *side* (`rest` or `rpc`: the language of a call, and of an upstream) · *upstream* (a server behind the
//! proxy) · *link* (the one connection to an upstream that the calls of all callers share, such as a child) ·
//! *route* (one operation seen from both sides) · *pattern*, *hole* (JSON or a URL with named gaps) · *outcome*
//! (what an answer looks like on each side) · *stream*, *event* (what a server says unasked, and where) ·
//! *client* (who calls, a bounded name) · *flag* (a rule that gives a stage) · *stage* (`passthrough`, `shadow`,
//! `verify`, `translate`, `retired`) · *control*, *candidate* (the call whose answer the client gets; the call run
//! only to compare) · *verdict* (of a comparison: match, mismatch, control-failed, candidate-failed, both-failed,
//! skipped) · *decision*, *reason* (the stage of one call, and which rule chose it) · *standing* (what was changed
//! at run time, over the flags file) · *plan* (routes, flags, limits, compiled and immutable) · *failure*, *blame*
//! (what went wrong; whose fault it is).

pub mod app;
pub mod cli;
pub mod config;
pub mod domain;
pub mod gateway;
#[cfg(feature = "demo")]
pub mod sample;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod upstream;
