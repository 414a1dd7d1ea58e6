//! `[[stream]]` Used by `compile::streams` and `decode::stream`.

use std::time::Duration;

use http::Method;

use crate::config::problem::Spanned;
use dualgauge_patterns::side::Side;

/// `[[stream]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawStream {
    /// `name`
    pub name: Spanned<String>,
    /// `rest`: a method and a path.
    pub rest: Spanned<(Method, String)>,
    /// `rpc`: a method and a path.
    pub rpc: Spanned<(Method, String)>,
    /// `upstream`: for both sides, or for one.
    pub upstreams: Vec<(Option<Side>, Spanned<String>)>,
    /// `max_age`: not zero.
    pub max_age: Option<Spanned<Duration>>,
}
