//! `guard` and `ramp` of a flag. Used by `compile::guard` and `decode::guard`.

use std::time::Duration;

use crate::config::problem::{SourceLocation, Spanned};
use dualgauge_model::rollout::{Fast, Mode, Ratio, Share};

/// `guard` of a flag.
#[derive(Debug, Clone, PartialEq)]
pub struct RawGuard {
    /// The location of the table.
    pub place: SourceLocation,
    /// `flag[3].guard`
    pub key: String,
    /// `window`: from ten seconds to a day.
    pub window: Spanned<Duration>,
    /// `min_calls`: at least ten.
    pub min_calls: Spanned<u64>,
    /// `failure_delta`; `None` if off.
    pub failure_delta: Spanned<Option<Share>>,
    /// `refused_delta`; `None` if off.
    pub refused_delta: Spanned<Option<Share>>,
    /// `tool_error_delta`; `None` if off.
    pub tool_error_delta: Spanned<Option<Share>>,
    /// `latency_ratio`; `None` if off.
    pub latency_ratio: Spanned<Option<Ratio>>,
    /// `mismatch`; `None` if off.
    pub mismatch: Spanned<Option<Share>>,
    /// `fast`; `None` if off.
    pub fast: Option<Fast>,
    /// `dry_run`
    pub mode: Spanned<Mode>,
}

/// `ramp` of a flag.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRamp {
    /// The location of the table.
    pub place: SourceLocation,
    /// `flag[3].ramp`
    pub key: String,
    /// `steps`, in thousandths of a percent: not yet compared with each other.
    pub steps: Vec<Spanned<u32>>,
    /// `every`: not zero.
    pub every: Spanned<Duration>,
}
