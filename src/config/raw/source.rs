//! `[rollout.source]` Used by `compile::source` and `decode::source`.

use std::time::Duration;

use http::Uri;

use super::identity::{RawClientTls, RawFile};
use crate::config::problem::Spanned;

/// `[rollout.source]`: the server with the values of flags.
#[derive(Debug, Clone, PartialEq)]
pub struct RawSource {
    /// `url`
    pub url: Spanned<Uri>,
    /// `token_file`: the bearer token.
    pub token_file: Option<RawFile>,
    /// `tls`: only if `url` requires TLS.
    pub tls: Option<RawClientTls>,
    /// `prefix` of the keys of flags.
    pub prefix: Spanned<String>,
    /// `interval` of polls.
    pub interval: Spanned<Duration>,
    /// `timeout` of a poll: not zero.
    pub timeout: Spanned<Duration>,
}
