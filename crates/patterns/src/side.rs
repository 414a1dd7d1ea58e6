//! The two protocols that dualgauge translates between.

use std::fmt;

/// The protocol of a call, and of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Legacy HTTP: a method, a path, a body.
    Rest,
    /// JSON-RPC 2.0.
    Rpc,
}

impl Side {
    /// Both sides, for tables that have one row for each.
    pub const ALL: [Side; 2] = [Side::Rest, Side::Rpc];

    /// Returns the side that a translated call is sent to.
    #[must_use]
    #[inline]
    pub const fn other(self) -> Side {
        match self {
            Side::Rest => Side::Rpc,
            Side::Rpc => Side::Rest,
        }
    }

    /// Returns the word used in configuration, metrics and logs.
    #[must_use]
    #[inline]
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::Rest => "rest",
            Side::Rpc => "rpc",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
