//! A child-process upstream: the keys for `command`, and those that it shares with WebSockets. Used by `compile`, `decode`, `load` and `raw`.

use std::path::PathBuf;
use std::time::Duration;

use super::identity::{RawFile, Secret};
use crate::config::problem::Spanned;
use dualgauge_model::mcp::Revision;
use dualgauge_model::pending::{CallerCredential, ExpectedResult, LogMessages};
use dualgauge_model::plan::{Framing, SecretMap};
use dualgauge_patterns::json::Json;

/// The keys of `[upstream.NAME]` with `command`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawStdio {
    /// `command`: the program and its arguments; at least the program. A relative path with a `/` is resolved
    /// against the folder of the main file.
    pub command: Vec<Spanned<String>>,
    /// `env`
    pub env: SecretMap,
    /// `inherit`: globs of variables of this process.
    pub inherit: Vec<Spanned<String>>,
    /// `directory`, resolved against the folder of the main file.
    pub directory: Option<Spanned<PathBuf>>,
    /// `mode`
    pub mode: Spanned<ModeWord>,
    /// `in_flight`: only in pipelined mode.
    pub in_flight: Spanned<usize>,
    /// `queue`
    pub queue: Spanned<usize>,
    /// `handshake`: true for `mcp`, which sends `initialize` before the first call.
    pub has_handshake: Spanned<bool>,
    /// `initialize`: only with a handshake.
    pub initialize: Option<Json>,
    /// `revision`: only with a handshake, and without `initialize`.
    pub revision: Option<Spanned<Revision>>,
    /// `login`
    pub login: Option<RawLogin>,
    /// `start_timeout`: not zero.
    pub start_timeout: Spanned<Duration>,
    /// `log_messages`
    pub log_messages: Spanned<LogMessages>,
    /// `framing`
    pub framing: Spanned<Framing>,
    /// `line_limit`: in bytes.
    pub line_limit: Spanned<usize>,
    /// `unanswered`
    pub unanswered: Spanned<usize>,
    /// `withhold`
    pub withhold: Vec<String>,
}

/// `mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeWord {
    /// One call at a time.
    Serial,
    /// Several calls at a time.
    Pipelined,
}

/// `[upstream.NAME.login]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawLogin {
    /// `method`
    pub method: Spanned<String>,
    /// `params`, as the parts of a JSON text.
    pub params: Vec<RawLoginPart>,
    /// `expect`
    pub expect: Option<ExpectedResult>,
}

/// A part of `params`.
#[derive(Debug, Clone, PartialEq)]
pub enum RawLoginPart {
    /// JSON text.
    Json(Secret),
    /// `{file:PATH}`, within a JSON string.
    File(RawFile),
    /// `{env:NAME}`, within a JSON string.
    Variable(Spanned<String>),
    /// `{authorization:…}` or `{header:NAME}`, within a JSON string.
    Caller(Spanned<CallerCredential>),
}
