//! `[log.redact]`: the configured redaction rules. Used by `decode`.

use crate::config::raw::RawRedact;
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError, header, text};
use dualgauge_model::redact::{KeyPattern, PathMask};

/// Decodes the three lists.
pub(super) fn redact(table: &mut Table<'_>) -> Option<RawRedact> {
    let headers = table.list("headers", header);
    let keys = table.list("keys", key);
    let paths = table.list("paths", path);
    Some(RawRedact {
        headers: headers?,
        keys: keys?,
        paths: paths?,
    })
}

fn key(found: RawValue<'_>) -> Result<KeyPattern, ValueError> {
    let wrong = "it has no letter or digit, so it would match every name; write a name, or a pattern with `*`";
    KeyPattern::parse(&text(found)?).ok_or_else(|| ValueError::new(wrong))
}

fn path(found: RawValue<'_>) -> Result<PathMask, ValueError> {
    PathMask::parse(&text(found)?).map_err(ValueError::new)
}
