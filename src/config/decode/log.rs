//! `[log]`, with the configured redaction rules. Used by `decode`.

use http::HeaderName;

use crate::config::key::{Key, List, SubTable, key, list, section, table};
use crate::config::kind::{HEADER, SOME_TEXT, other, words};
use crate::config::raw::{RawLog, RawRedact};
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError, text};
use dualgauge_model::log_format::LogFormat;
use dualgauge_model::redact::{KeyPattern, PathMask};

const FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];
const LEVELS: &[(&str, &str)] = &[
    ("error", "error"),
    ("warn", "warn"),
    ("info", "info"),
    ("debug", "debug"),
    ("trace", "trace"),
];

section! {
    /// `[log.redact]`
    REDACT {
        /// Further headers whose values are hidden in all output
        HEADERS: List<HeaderName> = list("headers", HEADER);
        /// Members, query parameters, holes and headers with hidden values; `*` matches any text
        KEYS: List<KeyPattern> = list("keys", other("string", SOME_TEXT, key_pattern));
        /// Paths with hidden segments: `*` hides one segment, `**` at the end hides the rest
        PATHS: List<PathMask> = list("paths", other("string", SOME_TEXT, path));
    }
}

section! {
    /// `[log]`
    pub(super) LOG {
        /// Form of the lines
        FORMAT: Key<LogFormat> = key("format", words(FORMATS)).or("text");
        /// Least severe level that is logged
        LEVEL: Key<&'static str> = key("level", words(LEVELS)).or("info");
        /// Redaction rules in addition to the built-in ones
        REDACTION: SubTable = table("redact", &REDACT);
    }
}

pub(super) fn log(table: &mut Table<'_>) -> Option<RawLog> {
    let format = table.get(&FORMAT);
    let level = table.get(&LEVEL);
    let redact = table.table(&REDACTION, redact);
    Some(RawLog {
        format: format?,
        level: level?,
        redact: redact.unwrap_or_default(),
    })
}

fn redact(table: &mut Table<'_>) -> Option<RawRedact> {
    let headers = table.list(&HEADERS);
    let keys = table.list(&KEYS);
    let paths = table.list(&PATHS);
    Some(RawRedact {
        headers: headers?,
        keys: keys?,
        paths: paths?,
    })
}

pub(super) fn key_pattern(found: RawValue<'_>) -> Result<KeyPattern, ValueError> {
    let wrong = "it has no letter or digit, so it would match every name; write a name, or a pattern with `*`";
    KeyPattern::parse(&text(found)?).ok_or_else(|| ValueError::new(wrong))
}

fn path(found: RawValue<'_>) -> Result<PathMask, ValueError> {
    PathMask::parse(&text(found)?).map_err(ValueError::new)
}
