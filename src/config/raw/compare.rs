//! How answers are compared: `[compare]`, and `compare` of a route.

use http::HeaderName;

use crate::config::problem::Located;
use crate::domain::compare::{Path, Show, Tolerance};

/// `[compare]`, or `compare` of a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawCompare {
    /// `ignore`
    pub ignore: Vec<Located<Path>>,
    /// `unordered`
    pub unordered: Vec<Located<Path>>,
    /// `tolerance`, by path.
    pub tolerance: Vec<(Located<Path>, Located<Tolerance>)>,
    /// `headers`
    pub headers: Vec<Located<HeaderName>>,
    /// `show`
    pub show: Option<Located<Show>>,
}
