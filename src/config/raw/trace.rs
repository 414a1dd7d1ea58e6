//! `[trace]` Used by `compile::trace` and `decode::trace`.

use http::Uri;

use crate::config::problem::Spanned;

/// `[trace]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawTrace {
    /// `sample`: of the traces that begin here, in thousandths of a percent.
    pub sample: Spanned<u32>,
    /// `endpoint`
    pub endpoint: Option<Spanned<Uri>>,
    /// `service`
    pub service: Spanned<String>,
}
