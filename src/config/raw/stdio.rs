//! An upstream that is a child: `command` and what belongs to it.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::problem::Located;
use crate::domain::json::Json;
use crate::domain::mcp::Revision;
use crate::domain::pending::LogMessages;
use crate::domain::plan::Variables;

/// The keys of `[upstream.NAME]` with `command`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawStdio {
    /// `command`: the program and its arguments; at least the program. A relative path with a `/` is resolved
    /// against the folder of the main file.
    pub command: Vec<Located<String>>,
    /// `env`
    pub env: Variables,
    /// `directory`, resolved against the folder of the main file.
    pub directory: Option<Located<PathBuf>>,
    /// `mode`
    pub mode: Located<ModeWord>,
    /// `in_flight`: only where the mode is pipelined.
    pub in_flight: Located<usize>,
    /// `queue`
    pub queue: Located<usize>,
    /// `handshake`
    pub handshake: Located<HandshakeWord>,
    /// `initialize`: only with a handshake.
    pub initialize: Option<Json>,
    /// `revision`: only with a handshake, and without `initialize`.
    pub revision: Option<Located<Revision>>,
    /// `start_timeout`: not zero.
    pub start_timeout: Located<Duration>,
    /// `log_messages`
    pub log_messages: Located<LogMessages>,
    /// `line_limit`: in bytes.
    pub line_limit: Located<usize>,
    /// `unanswered`
    pub unanswered: Located<usize>,
    /// `withhold`
    pub withhold: Vec<String>,
}

/// `mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeWord {
    /// One call after another.
    Serial,
    /// Several at a time.
    Pipelined,
}

/// `handshake`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeWord {
    /// The `initialize` of MCP.
    Mcp,
    /// None.
    None,
}
