//! The keys of `envelope`, of an upstream and of `rpc`. Used by `decode::rpc` and `decode::upstream`.

use http::HeaderName;

use crate::config::key::{Key, SubTable, key, section};
use crate::config::kind::{HEADER, NAME, TEXT};
use crate::config::raw::RawEnvelopeHeader;
use crate::config::table_reader::{Shape, Table};

section! {
    /// One member of `envelope`.
    pub(super) ENVELOPE {
        /// Header with the credentials
        OF_MEMBER: Key<HeaderName> = key("header", HEADER).required();
        /// Pattern of the header, with one hole for the member
        VALUE: Key<String> = key("value", TEXT).required();
    }
}

/// Decodes the members of the envelope by their names.
pub(super) fn envelope(table: &mut Table<'_>, key: &SubTable) -> Option<Vec<RawEnvelopeHeader>> {
    if table.shape(key.name) == Shape::Absent {
        return None;
    }
    Some(table.named_tables(key, |pair, chosen| {
        let member = pair.named(chosen, &NAME);
        let header = pair.get(&OF_MEMBER);
        let value = pair.get(&VALUE);
        Some(RawEnvelopeHeader {
            member: member?,
            header: header?,
            value: value?,
        })
    }))
}
