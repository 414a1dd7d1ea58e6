//! The stored form of a report, the same in a file and on a server. Used by `file::contents`, `redis` and `snapshot`.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::store::error::Corruption;
use crate::store::state::{DEPTH, ReplicaReport};
use dualgauge_patterns::json::Json;

/// The form of a report, which contains the counts as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record<'t> {
    at: u64,
    replica: String,
    boot: String,
    #[serde(borrow)]
    report: &'t RawValue,
}

/// Returns the record of a report. It begins with [`beginning`].
pub(super) fn record(report: &ReplicaReport) -> String {
    let mut record = String::new();
    push_record(&mut record, report);
    record
}

/// Appends the record of a report.
pub(super) fn push_record(out: &mut String, report: &ReplicaReport) {
    let quoted = |text: &str| text_of(&Json::string(text));
    out.push_str(&beginning(report));
    out.push_str(r#""replica":"#);
    out.push_str(&quoted(&report.replica));
    out.push_str(r#","boot":"#);
    out.push_str(&quoted(&report.boot));
    out.push_str(r#","report":"#);
    out.push_str(&report.text);
    out.push('}');
}

/// Returns the beginning of a record, which identifies its time without parsing.
pub(super) fn beginning(report: &ReplicaReport) -> String {
    format!(r#"{{"at":{},"#, report.at)
}

impl TryFrom<Record<'_>> for ReplicaReport {
    type Error = Corruption;

    fn try_from(record: Record<'_>) -> Result<ReplicaReport, Corruption> {
        Ok(ReplicaReport {
            replica: record.replica,
            boot: record.boot,
            at: record.at,
            text: compact(record.report)?.into(),
        })
    }
}

/// Returns a text without insignificant white space.
pub(super) fn compact(text: &RawValue) -> Result<String, Corruption> {
    let text = Bytes::copy_from_slice(text.get().as_bytes());
    let json = Json::parse(text, DEPTH).map_err(Corruption::Text)?;
    Ok(text_of(&json.compact()))
}

/// Converts JSON to a string. JSON is always UTF-8, so the conversion is lossless.
fn text_of(json: &Json) -> String {
    String::from_utf8_lossy(json.as_bytes()).into_owned()
}
