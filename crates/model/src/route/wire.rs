//! The left form of a route: the protocol of its REST side. Used by `config`, `model` and `gateway`.

use dualgauge_patterns::pattern::PatternError;

/// The left form of a route: the protocol of its REST side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    /// An HTTP request, answered by a response.
    #[default]
    Http,
    /// An HTTP request with a message of an old RPC dialect, answered by a response.
    Old,
    /// A message of an old dialect on a socket, answered by a message or silence.
    Frame,
}

impl Wire {
    /// Returns the key used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Wire::Http => "rest",
            Wire::Old => "old",
            Wire::Frame => "frame",
        }
    }

    /// Returns the name of its content, for messages.
    pub(crate) const fn content(self) -> &'static str {
        match self {
            Wire::Http | Wire::Old => "body",
            Wire::Frame => "frame",
        }
    }

    /// Returns an error with the key of its part: an old dialect has its parts in its own table.
    pub(super) fn located(self, error: PatternError) -> PatternError {
        let part = error.key.split(['.', '[']).next().unwrap_or_default();
        match (self, part) {
            (Wire::Old, "rest") => PatternError {
                key: error.key.replacen("rest", "old.path", 1),
                ..error
            },
            (Wire::Old, "query" | "headers" | "body") => error.under("old"),
            (Wire::Http | Wire::Old | Wire::Frame, _) => error,
        }
    }

    /// Returns true for messages of an old RPC dialect: they have an id, and no built-in outcome knows them.
    #[must_use]
    pub const fn is_old(self) -> bool {
        match self {
            Wire::Http => false,
            Wire::Old | Wire::Frame => true,
        }
    }
}
