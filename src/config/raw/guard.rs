//! `guard` and `ramp` of a flag.

use std::time::Duration;

use crate::config::problem::{SourceLocation, Spanned};
use crate::domain::rollout::{Fast, Mode, Ratio, Share};

/// `guard` of a flag.
#[derive(Debug, Clone, PartialEq)]
pub struct RawGuard {
    /// Where the table begins.
    pub place: SourceLocation,
    /// `flag[3].guard`
    pub key: String,
    /// `window`: from ten seconds to a day.
    pub window: Spanned<Duration>,
    /// `min_calls`: at least ten.
    pub min_calls: Spanned<u64>,
    /// `failure_delta`; none where it is off.
    pub failure_delta: Spanned<Option<Share>>,
    /// `refused_delta`; none where it is off.
    pub refused_delta: Spanned<Option<Share>>,
    /// `tool_error_delta`; none where it is off.
    pub tool_error_delta: Spanned<Option<Share>>,
    /// `latency_ratio`; none where it is off.
    pub latency_ratio: Spanned<Option<Ratio>>,
    /// `mismatch`; none where it is off.
    pub mismatch: Spanned<Option<Share>>,
    /// `fast`; none where it is off.
    pub fast: Option<Fast>,
    /// `dry_run`
    pub mode: Spanned<Mode>,
}

/// `ramp` of a flag.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRamp {
    /// Where the table begins.
    pub place: SourceLocation,
    /// `flag[3].ramp`
    pub key: String,
    /// `steps`, in thousandths of a percent: not yet compared with each other.
    pub steps: Vec<Spanned<u32>>,
    /// `every`: not zero.
    pub every: Spanned<Duration>,
}
