//! `[metrics]` Used by `compile::metrics` and `decode::metrics`.

use crate::config::problem::Spanned;

/// `[metrics]`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawMetrics {
    /// `series`: 1,000 or more.
    pub series: Option<Spanned<u64>>,
    /// `labels`: the names of metric families, each with the labels to keep.
    pub labels: Vec<(Spanned<String>, Spanned<Vec<String>>)>,
}
