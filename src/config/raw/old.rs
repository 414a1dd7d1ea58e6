//! `old` of a route. Used by `compile` and `decode`.

use http::HeaderName;

use crate::config::problem::Spanned;

/// `old` of a route over HTTP; its patterns are those of the route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOld {
    /// `method`
    pub method: Spanned<String>,
    /// `path`; that of `rpc.paths` if absent.
    pub path: Option<Spanned<String>>,
    /// `parameter`
    pub parameter: Option<Spanned<String>>,
    /// `pass.status`
    pub pass_statuses: Vec<Spanned<u16>>,
    /// `pass.headers`
    pub pass_headers: Vec<Spanned<HeaderName>>,
}
