//! `headers` of an upstream: additional headers of its requests. Used by `decode::mcp` and `decode::websocket`.

use std::path::PathBuf;

use figment::value::Value;
use http::{HeaderName, HeaderValue};

use crate::config::key::{NamedValues, named_values, section};
use crate::config::kind::other;
use crate::config::problem::Spanned;
use crate::config::raw::{RawFile, RawHeaderValue, RawHeaders, Secret};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, string};

/// The source of a value.
pub(super) enum HeaderLine {
    Here(String),
    InFile(PathBuf),
}

section! {
    /// Keys of links with an address.
    pub(super) HEADERS {
        /// Headers of each request, or of the handshake; a value may be in a file
        pub(super) OF_REQUESTS: NamedValues<HeaderLine> = named_values(
            "headers",
            other(
                "string, or a table with the name of a file",
                r#"{ "anyOf": [
                    { "type": "string" },
                    { "type": "object", "properties": { "file": { "type": "string" } }, "required": ["file"] }
                ] }"#,
                header_line,
            ),
        );
    }
}

/// Decodes the headers. `not_sent` are headers that a request sets itself or must not have; `of` names the kind of
/// requests.
pub(super) fn headers(table: &mut Table<'_>, not_sent: &[&str], of: &str) -> Option<RawHeaders> {
    if table.shape(OF_REQUESTS.name) == Shape::Absent {
        return Some(RawHeaders::default());
    }
    let lines = table.named_values(&OF_REQUESTS)?;
    for (name, _) in &lines {
        let lower = name.value.to_ascii_lowercase();
        if HeaderName::from_bytes(lower.as_bytes()).is_err() {
            table.add(name.problem("this is not a header name"));
        } else if not_sent.contains(&lower.as_str()) {
            table.add(name.problem(format!("`{lower}` is reserved in {of}; remove it")));
        }
    }
    let pairs = lines.into_iter().map(|(name, value)| {
        let Spanned { value, place, key } = value;
        let value = match value {
            HeaderLine::Here(text) => RawHeaderValue::Text(Secret(text.into_bytes())),
            HeaderLine::InFile(path) => RawHeaderValue::File(RawFile::at(Spanned {
                value: path,
                place,
                key,
            })),
        };
        (name.map(|name| name.to_ascii_lowercase()), value)
    });
    Some(RawHeaders(pairs.collect()))
}

/// Decodes a text, or a table with a file name. The value is never shown, since it may be a secret.
fn header_line(found: RawValue<'_>) -> Result<HeaderLine, ValueError> {
    if let Value::Dict(_, entries) = found.value {
        let mut entries = entries.iter();
        let only = (entries.next(), entries.next());
        if let (Some((name, Value::String(_, path))), None) = only
            && name == "file"
            && !path.is_empty()
        {
            return Ok(HeaderLine::InFile(path.into()));
        }
        return Err(ValueError::new(
            "a header is a string, or a table with the name of a file, `{ file = \"token\" }`",
        ));
    }
    let wrong = |_| ValueError::new("a header value is a string of visible ASCII and spaces");
    let value = string(found).map_err(|_| wrong(()))?;
    let parsed = HeaderValue::from_str(&value);
    parsed
        .map(|_| HeaderLine::Here(value))
        .map_err(|_| wrong(()))
}
