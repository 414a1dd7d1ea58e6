//! Comparison rules: `[compare]`, and `compare` of a route. Used by `compile::compare` and `decode::compare`.

use http::HeaderName;

use crate::config::problem::Spanned;
use dualgauge_model::compare::{Path, Show, Tolerance};

/// `[compare]`, or `compare` of a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawCompare {
    /// `ignore`
    pub ignore: Vec<Spanned<Path>>,
    /// `unordered`
    pub unordered: Vec<Spanned<Path>>,
    /// `tolerance`, by path.
    pub tolerance: Vec<(Spanned<Path>, Spanned<Tolerance>)>,
    /// `headers`
    pub headers: Vec<Spanned<HeaderName>>,
    /// `show`
    pub show: Option<Spanned<Show>>,
}
