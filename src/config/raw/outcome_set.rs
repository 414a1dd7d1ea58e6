//! `[[outcomes.NAME]]` Used by `config::raw`.

use crate::config::problem::Spanned;
use dualgauge_model::outcome::RowSource;

/// `[[outcomes.NAME]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawSet {
    /// `NAME`, with the location of the first row.
    pub name: Spanned<String>,
    /// Its rows, in order.
    pub rows: Vec<RowSource>,
}
