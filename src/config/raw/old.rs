//! `old` of a route. Used by `compile` and `decode`.

use http::HeaderName;

use crate::config::problem::Spanned;

/// `old` of a route; its patterns are those of the route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawOld {
    /// Messages on a socket: `message`, or `frame` for short.
    Socket,
    /// Messages over HTTP.
    Http {
        /// True if `path` is absent: the paths are those of `rpc.paths`.
        is_on_rpc_paths: bool,
        /// `parameter`
        parameter: Option<Spanned<String>>,
        /// `pass.status`
        pass_statuses: Vec<Spanned<u16>>,
        /// `pass.headers`
        pass_headers: Vec<Spanned<HeaderName>>,
    },
}
