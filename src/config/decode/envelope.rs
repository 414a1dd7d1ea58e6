//! The keys of `envelope`, of an upstream and of `rpc`. Used by `decode` and `decode::upstream`.

use crate::config::raw::RawEnvelopeHeader;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{header, name, text};

/// Decodes the members of the envelope by their names.
pub(super) fn envelope(table: &mut Table<'_>) -> Option<Vec<RawEnvelopeHeader>> {
    if table.shape("envelope") == Shape::Absent {
        return None;
    }
    Some(table.named_tables("envelope", |pair, chosen| {
        let member = pair.named(chosen, name);
        let header = pair.require("header", header);
        let value = pair.require("value", text);
        Some(RawEnvelopeHeader {
            member: member?,
            header: header?,
            value: value?,
        })
    }))
}
