//! What belongs to the addresses of an HTTP upstream.

use std::time::Duration;

use http::Uri;

use crate::config::problem::Located;

/// `urls` behind the first, and how all are watched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawAddresses {
    /// `urls`, but for the first.
    pub more: Vec<Located<Uri>>,
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
    pub failures: Located<u32>,
    /// `pause`: not zero.
    pub pause: Located<Duration>,
    /// `most_percent`
    pub most_percent: Located<u8>,
}

/// `breaker`
#[derive(Debug, Clone, PartialEq)]
pub struct RawBreaker {
    /// `failures`
    pub failures: Located<u32>,
    /// `pause`: not zero.
    pub pause: Located<Duration>,
}

/// `retry`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRetry {
    /// `percent`
    pub percent: Located<u8>,
    /// `least`
    pub least: Located<u32>,
}

/// `health`
#[derive(Debug, Clone, PartialEq)]
pub struct RawHealth {
    /// `path`
    pub path: Located<String>,
    /// `every`: at least a second.
    pub every: Located<Duration>,
    /// `timeout`: not zero.
    pub timeout: Located<Duration>,
    /// `down_after`
    pub down_after: Located<u32>,
    /// `up_after`
    pub up_after: Located<u32>,
}
