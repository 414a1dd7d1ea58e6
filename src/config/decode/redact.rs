//! `[log.redact]`: what is hidden wherever something is shown.

use crate::config::kind::{Found, Wrong, header, text};
use crate::config::raw::RawRedact;
use crate::config::reader::Table;
use crate::domain::redact::{KeyPattern, PathMask};

/// The three lists.
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

fn key(found: Found<'_>) -> Result<KeyPattern, Wrong> {
    let wrong = "it has no letter and no digit, so every name would fit; write a name, or one with `*` in it";
    KeyPattern::parse(&text(found)?).ok_or_else(|| Wrong::new(wrong))
}

fn path(found: Found<'_>) -> Result<PathMask, Wrong> {
    PathMask::parse(&text(found)?).map_err(Wrong::new)
}
