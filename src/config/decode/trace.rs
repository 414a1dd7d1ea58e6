//! `[trace]` Used by `decode`.

use crate::config::raw::RawTrace;
use crate::config::table_reader::Table;
use crate::config::value::{percent, text, url};

/// All traces by default.
const SAMPLE: u32 = 100_000;

pub(super) fn trace(table: &mut Table<'_>) -> Option<RawTrace> {
    let sample = table.get_or("sample", percent, SAMPLE);
    let endpoint = table.get("endpoint", url);
    let service = table.get_or("service", text, "dualgauge".to_owned());
    Some(RawTrace {
        sample: sample?,
        endpoint,
        service: service?,
    })
}
