//! The decisions of dualgauge: pure values, and total functions over them.
//!
//! This crate uses no clock, socket, file, lock or log; time, keys and ids are arguments. Every decision about a call is
//! made here and can be tested without I/O.

pub mod agent_card;
pub mod batch;
pub mod check;
pub mod client_ip;
pub mod compare;
pub mod content_length;
pub mod correlator;
pub mod cors;
pub mod descriptors;
pub mod dialect;
pub mod document;
pub mod envelope;
pub mod event;
pub mod explain;
pub mod failure;
pub mod fairness;
pub mod flag_preview;
pub mod form;
pub mod forwarding;
pub mod frame;
pub mod headers;
pub mod hosts;
pub mod identity_headers;
pub mod import;
pub mod jsonrpc;
pub mod lenient;
pub mod lifecycle;
pub mod local_reply;
pub mod log_format;
pub mod mcp;
pub mod outcome;
pub mod pending;
pub mod plan;
pub mod posted;
pub mod record;
pub mod redact;
pub mod rejections;
pub mod reply;
pub mod response_stream;
pub mod rollout;
pub mod route;
pub mod routing;
pub mod series;
pub mod shadow_limits;
mod side_word;
pub mod sse;
pub mod stream;
pub mod stream_format;
pub mod subscription;
pub mod time;
pub mod token;
pub mod trace;
pub mod translate;
pub mod websocket;
