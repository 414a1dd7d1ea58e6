//! HTTP Archive (HAR) 1.2, read and written.
//!
//! ```text
//! read     a file to calls
//! entry    one entry to a call
//! write    calls to a file
//! law      properties for tests and fuzz targets
//! ```
//!
//! Members that HAR does not define are ignored, except `_dualgauge`, in which [`Writer`] keeps what HAR has no member for.
//! Law: the reader returns the calls that the writer wrote.

mod entry;
mod law;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use entry::{EntryFault, HarCall};
pub use law::check_any_file;
pub use read::{HarError, MAX_ENTRIES, MAX_FILE, read};
pub use write::Writer;

use serde::{Deserialize, Serialize};

use crate::recording::Responder;
use dualgauge_patterns::side::Side;

/// The member of an entry with what HAR has no member for.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Extension {
    side: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Responder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redacted: Vec<String>,
    complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_us: Option<u64>,
}

impl Extension {
    fn side(&self) -> Option<Side> {
        Side::ALL
            .into_iter()
            .find(|side| side.as_str() == self.side)
    }
}
