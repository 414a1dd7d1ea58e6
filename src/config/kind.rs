//! Kinds of values: each decodes a value, and describes the accepted values for people and as a JSON Schema.
//!
//! Used by `decode`, `flags`, `key` and `table_reader`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};
use serde_json::{Value, json};

use crate::config::value::{self, MOST_BYTES, RawValue, ValueError, alternatives};

/// Words with the values that they stand for.
pub(super) type Words<T> = &'static [(&'static str, T)];

/// The accepted values of a key, with their decoder.
pub(super) enum Kind<T: 'static> {
    /// One of some words.
    Words(
        Words<T>,
        fn(Words<T>, RawValue<'_>) -> Result<T, ValueError>,
    ),
    /// `false` or `true`, as these values.
    Boolean(
        &'static [T; 2],
        fn(&'static [T; 2], RawValue<'_>) -> Result<T, ValueError>,
    ),
    /// A whole number in a range.
    Whole {
        /// The smallest number.
        from: i64,
        /// The largest number.
        to: i64,
        /// Decodes a number of the range.
        decode: fn(i64, i64, RawValue<'_>) -> Result<T, ValueError>,
    },
    /// A number of bytes.
    Size {
        /// The smallest number.
        least: usize,
        /// Decodes a size that is not smaller.
        decode: fn(usize, RawValue<'_>) -> Result<T, ValueError>,
    },
    /// Any other values.
    Other {
        /// The values, for people.
        accepts: &'static str,
        /// The values, as the text of a JSON Schema.
        schema: &'static str,
        /// Decodes one of them.
        decode: fn(RawValue<'_>) -> Result<T, ValueError>,
    },
}

impl<T: 'static> Kind<T> {
    /// Decodes a value.
    pub(super) fn decode(&self, found: RawValue<'_>) -> Result<T, ValueError> {
        match self {
            Kind::Words(words, decode) => decode(words, found),
            Kind::Boolean(values, decode) => decode(values, found),
            Kind::Whole { from, to, decode } => decode(*from, *to, found),
            Kind::Size { least, decode } => decode(*least, found),
            Kind::Other { decode, .. } => decode(found),
        }
    }

    /// Describes the accepted values for people, as Markdown.
    pub(super) fn accepts(&self) -> String {
        const SIZES: &str = "size up to 1024GiB";
        match self {
            Kind::Words(words, _) => alternatives(words),
            Kind::Boolean(..) => "boolean".to_owned(),
            Kind::Whole { from, to, .. } => format!("whole number from {from} to {to}"),
            Kind::Size { least: 0, .. } => SIZES.to_owned(),
            Kind::Size { least, .. } => format!("{SIZES}, {least} bytes or more"),
            Kind::Other { accepts, .. } => (*accepts).to_owned(),
        }
    }

    /// Returns the JSON Schema of the accepted values in a file.
    pub(super) fn schema(&self) -> Value {
        match self {
            Kind::Words(words, _) => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                json!({ "enum": words })
            }
            Kind::Boolean(..) => json!({ "type": "boolean" }),
            Kind::Whole { from, to, .. } => {
                json!({ "type": "integer", "minimum": from, "maximum": to })
            }
            Kind::Size { least, .. } => json!({ "anyOf": [
                { "type": "integer", "minimum": least, "maximum": MOST_BYTES },
                { "type": "string", "pattern": "^[0-9]+ *([KMG]?B|[KMG]iB)?$" },
            ] }),
            // A test parses the schema of every key.
            Kind::Other { schema, .. } => serde_json::from_str(schema).unwrap_or(Value::Bool(true)),
        }
    }
}

/// One of some words.
pub(super) const fn words<T: Copy>(words: Words<T>) -> Kind<T> {
    Kind::Words(words, |words, found| value::word(words)(found))
}

/// `false` or `true`, as the values of this order.
pub(super) const fn boolean<T: Copy>(values: &'static [T; 2]) -> Kind<T> {
    Kind::Boolean(values, |[no, yes], found| value::boolean(*no, *yes)(found))
}

/// A whole number from `from` to `to`.
pub(super) const fn whole<T: TryFrom<i128> + 'static>(from: i64, to: i64) -> Kind<T> {
    Kind::Whole {
        from,
        to,
        decode: |from, to, found| value::whole(from, to)(found),
    }
}

/// A number of bytes, at least `least`.
pub(super) const fn size(least: usize) -> Kind<usize> {
    Kind::Size {
        least,
        decode: |least, found| value::size(least)(found),
    }
}

/// Any other values: their description for people, their JSON Schema, and their decoder.
pub(super) const fn other<T: 'static>(
    accepts: &'static str,
    schema: &'static str,
    decode: fn(RawValue<'_>) -> Result<T, ValueError>,
) -> Kind<T> {
    Kind::Other {
        accepts,
        schema,
        decode,
    }
}

/// The JSON Schema of a text without further rules.
pub(super) const ANY_TEXT: &str = r#"{ "type": "string" }"#;
/// The JSON Schema of a text with at least one character.
pub(super) const SOME_TEXT: &str = r#"{ "type": "string", "minLength": 1 }"#;
/// The JSON Schema of a duration.
pub(super) const DURATIONS: &str = r#"{ "type": "string", "pattern": "^[0-9]+ *(ms|s|m|h)$" }"#;
const PERCENTAGES: &str = r#"{ "anyOf": [
    { "type": "number", "minimum": 0, "maximum": 100 },
    { "type": "string", "pattern": "^[0-9]+([.][0-9]{1,3})? *%?$" }
] }"#;
const PATHS: &str = r##"{ "type": "string", "pattern": "^/[^?# ]*$" }"##;
const HASHES: &str = r#"{ "type": "string", "pattern": "^sha256:[0-9A-Fa-f]{64}$" }"#;
const URLS: &str = r#"{ "type": "string", "pattern": "^(https?|wss?)://" }"#;

/// Any text.
pub(super) const STRING: Kind<String> = other("string", ANY_TEXT, value::string);
/// A text with at least one character.
pub(super) const TEXT: Kind<String> = other("string", SOME_TEXT, value::text);
/// A name.
pub(super) const NAME: Kind<String> = other(
    "name; write 1 to 100 bytes without spaces",
    r#"{ "type": "string", "pattern": "^[^ \t]{1,100}$" }"#,
    value::name,
);
/// The path of a file.
pub(super) const FILE: Kind<PathBuf> = other("string", SOME_TEXT, |found| {
    value::text(found).map(PathBuf::from)
});
/// The name of a header.
pub(super) const HEADER: Kind<HeaderName> = other("HTTP header name", SOME_TEXT, value::header);
/// The address of a server.
pub(super) const URL: Kind<Uri> = other(
    "address of a server; write one such as `http://127.0.0.1:9001`",
    URLS,
    value::url,
);
/// An address to listen on.
pub(super) const ADDRESS: Kind<SocketAddr> = other(
    "address; write an IP address and a port, such as `127.0.0.1:8080` or `[::]:8080`",
    ANY_TEXT,
    value::address,
);
/// A path of the proxy.
pub(super) const PATH: Kind<String> = other(
    "path; write one that begins with `/`, without a query",
    PATHS,
    value::path,
);
/// A time with its unit.
pub(super) const DURATION: Kind<Duration> = other("duration", DURATIONS, value::duration);
/// A time other than zero.
pub(super) const TIMEOUT: Kind<Duration> =
    other("duration, `1ms` or more", DURATIONS, value::timeout);
/// A percentage, in thousandths of a percent.
pub(super) const PERCENT: Kind<u32> = other(
    "a number from 0 to 100 in steps of 0.001",
    PERCENTAGES,
    value::percent,
);
/// The hash of an admin token.
pub(super) const TOKEN_HASH: Kind<[u8; 32]> = other(
    "an admin token is written as its hash: `sha256:` and 64 hexadecimal digits",
    HASHES,
    value::token_hash,
);
/// The hash of an API key.
pub(super) const KEY_HASH: Kind<[u8; 32]> = other(
    "an API key is written as its hash: `sha256:` and 64 hexadecimal digits",
    HASHES,
    value::key_hash,
);
