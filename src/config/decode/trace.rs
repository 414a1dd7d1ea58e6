//! `[trace]` Used by `decode`.

use http::Uri;

use crate::config::key::{Key, key, section};
use crate::config::kind::{PERCENT, TEXT, URL};
use crate::config::raw::RawTrace;
use crate::config::table_reader::Table;

section! {
    /// `[trace]`
    pub(super) TRACE {
        /// Percent of traces started here to mark as sampled
        SAMPLE: Key<u32> = key("sample", PERCENT).or("100");
        /// URL of an OTLP collector
        ENDPOINT: Key<Uri> = key("endpoint", URL);
        /// `service.name` of the proxy
        SERVICE: Key<String> = key("service", TEXT).or("dualgauge");
    }
}

pub(super) fn trace(table: &mut Table<'_>) -> Option<RawTrace> {
    let sample = table.get(&SAMPLE);
    let endpoint = table.get(&ENDPOINT);
    let service = table.get(&SERVICE);
    Some(RawTrace {
        sample: sample?,
        endpoint,
        service: service?,
    })
}
