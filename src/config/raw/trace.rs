//! `[trace]`

use http::Uri;

use crate::config::problem::Located;

/// `[trace]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawTrace {
    /// `sample`: thousandths of a percent of the traces that begin here.
    pub sample: Located<u32>,
    /// `endpoint`
    pub endpoint: Option<Located<Uri>>,
    /// `service`
    pub service: Located<String>,
}
