//! The addresses of an HTTP upstream, and their load balancing. Used by `compile::addresses` and `decode::addresses`.

use std::time::Duration;

use http::Uri;

use crate::config::problem::Spanned;

/// `urls` after the first, and the load-balancing keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawAddresses {
    /// `urls`, without the first.
    pub more: Vec<Spanned<Uri>>,
    /// `eject`
    pub eject: Option<RawEject>,
    /// `breaker`
    pub breaker: Option<RawBreaker>,
    /// `retry`
    pub retry: Option<RawRetry>,
    /// `health`
    pub health: Option<RawHealth>,
}

/// `eject`
#[derive(Debug, Clone, PartialEq)]
pub struct RawEject {
    /// `failures`
    pub failures: Spanned<u32>,
    /// `pause`: not zero.
    pub pause: Spanned<Duration>,
    /// `most_percent`
    pub most_percent: Spanned<u8>,
}

/// `breaker`
#[derive(Debug, Clone, PartialEq)]
pub struct RawBreaker {
    /// `failures`
    pub failures: Spanned<u32>,
    /// `pause`: not zero.
    pub pause: Spanned<Duration>,
}

/// `retry`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRetry {
    /// `percent`
    pub percent: Spanned<u8>,
    /// `least`
    pub least: Spanned<u32>,
}

/// `health`
#[derive(Debug, Clone, PartialEq)]
pub struct RawHealth {
    /// `path`
    pub path: Spanned<String>,
    /// `every`: at least a second.
    pub every: Spanned<Duration>,
    /// `timeout`: not zero.
    pub timeout: Spanned<Duration>,
    /// `down_after`
    pub down_after: Spanned<u32>,
    /// `up_after`
    pub up_after: Spanned<u32>,
}
