//! `[record]` Used by `compile::record` and `decode::record`.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;

use crate::config::problem::Spanned;
use dualgauge_model::record::RecordedBodies;
use dualgauge_model::redact::KeyPattern;

/// `[record]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRecord {
    /// `directory`
    pub directory: Spanned<PathBuf>,
    /// `sample`: in thousandths of a percent.
    pub sample: Spanned<u32>,
    /// `bodies`
    pub bodies: Spanned<RecordedBodies>,
    /// `headers`
    pub headers: Vec<Spanned<HeaderName>>,
    /// `redact`
    pub redact: Vec<Spanned<KeyPattern>>,
    /// `file_size`
    pub file_size: Spanned<usize>,
    /// `files`
    pub files: Spanned<usize>,
    /// `total_size`
    pub total_size: Spanned<usize>,
    /// `time_limit`
    pub time_limit: Option<Spanned<Duration>>,
}
