//! The protocol of a route's REST side. Used by `config`, `model` and `gateway`.

/// The protocol of a route's REST side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    /// An HTTP request, answered by a response.
    #[default]
    Http,
    /// A frame of a socket, answered by a frame or silence.
    Frame,
}

impl Wire {
    /// Returns the key used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Wire::Http => "rest",
            Wire::Frame => "frame",
        }
    }

    /// Returns the name of its content, for messages.
    pub(crate) const fn content(self) -> &'static str {
        match self {
            Wire::Http => "body",
            Wire::Frame => "frame",
        }
    }
}
