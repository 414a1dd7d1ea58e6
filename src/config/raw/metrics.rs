//! `[metrics]`

use crate::config::problem::Located;

/// `[metrics]`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawMetrics {
    /// `series`: 1,000 or more.
    pub series: Option<Located<u64>>,
    /// `labels`: families by name, each with the labels that it keeps.
    pub labels: Vec<(Located<String>, Located<Vec<String>>)>,
}
