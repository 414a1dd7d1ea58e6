//! The kinds of JSON values.

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number of any size and form.
    Number,
    /// `true` or `false`
    Boolean,
    /// `null`
    Null,
}

impl JsonKind {
    /// Returns the kind with its article, for messages.
    #[must_use]
    pub const fn described(self) -> &'static str {
        match self {
            JsonKind::Object => "an object",
            JsonKind::Array => "an array",
            JsonKind::String => "a string",
            JsonKind::Number => "a number",
            JsonKind::Boolean => "a boolean",
            JsonKind::Null => "null",
        }
    }
}

/// Returns the kind of a valid value according to its first byte.
#[must_use]
#[inline]
pub fn kind_of(text: &[u8]) -> JsonKind {
    match text.first() {
        Some(b'{') => JsonKind::Object,
        Some(b'[') => JsonKind::Array,
        Some(b'"') => JsonKind::String,
        Some(b't' | b'f') => JsonKind::Boolean,
        Some(b'n') => JsonKind::Null,
        _ => JsonKind::Number,
    }
}
