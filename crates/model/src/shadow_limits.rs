//! Limits and sampling of shadow calls.
//!
//! Law: the same index in the sequence of calls gets the same decision, so this module needs no randomness.
//!
//! Used by `config`, `check`, `plan` and `gateway`.

use std::time::Duration;

use super::compare::Skip;
use super::failure::Reason;
use super::rollout::{Bucket, Percent};
use super::route::{Effect, Route};

/// The limits of one worker's candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowLimits {
    /// Concurrent candidates.
    pub concurrency: usize,
    /// Bytes buffered for all candidates and for the calls that they shadow.
    pub memory: usize,
    /// Timeout of a candidate, including all waits.
    pub timeout: Duration,
    /// The share of eligible calls that get a candidate.
    pub sample: Percent,
    /// Candidates of the calls of one HTTP request.
    pub per_request: usize,
    /// The share of comparisons for which the control is run a second time.
    pub noise: Percent,
}

/// Returns the reason why no call of a route is ever duplicated, if there is one.
#[must_use]
pub fn never(route: &Route) -> Option<Skip> {
    if route.subscription.is_some() {
        // A subscription has no end that could be compared.
        return Some(Skip::Stream);
    }
    match route.effect {
        Effect::Idempotent | Effect::Unsafe => Some(Skip::Unsafe),
        Effect::Safe => (!route.expects_reply).then_some(Skip::Notification),
    }
}

/// Returns whether a rejection by the proxy counts as a failure of the candidate rather than a response to compare: the
/// control's server does not know the rule.
#[must_use]
pub const fn is_failure(refusal: Reason) -> bool {
    matches!(refusal, Reason::OriginRefused | Reason::UnknownQuery)
}

/// Decorrelates the sampling of calls from that of comparisons.
const CALLS: u64 = 0x9e37_79b9_7f4a_7c15;
const COMPARISONS: u64 = 0xd1b5_4a32_d192_ed03;

/// The number of first comparisons of a route that always repeat the control.
const FIRST: u64 = 3;

impl ShadowLimits {
    /// Returns whether the call at this index gets a candidate.
    #[must_use]
    pub fn samples(&self, index: u64) -> bool {
        falls_within(self.sample, index.wrapping_mul(CALLS))
    }

    /// Returns whether the control is ever repeated.
    #[must_use]
    pub fn learns_noise(&self) -> bool {
        self.noise != Percent::NONE
    }

    /// Returns whether the comparison at this index of its route repeats the control. The first ones do, so that noise
    /// is known from the start.
    #[must_use]
    pub fn repeats_control(&self, index: u64) -> bool {
        let first = self.learns_noise() && index < FIRST;
        first || falls_within(self.noise, index.wrapping_mul(COMPARISONS))
    }
}

/// Indexes are hashed, so that a share never falls in step with clients that take turns.
fn falls_within(share: Percent, index: u64) -> bool {
    let mut mixed = index;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((mixed >> 32) * u64::from(Bucket::COUNT)) >> 32 < u64::from(share.thousandths())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(sample: &str, noise: &str) -> ShadowLimits {
        ShadowLimits {
            concurrency: 1,
            memory: 1,
            timeout: Duration::from_secs(1),
            sample: Percent::parse(sample).unwrap(),
            per_request: 1,
            noise: Percent::parse(noise).unwrap(),
        }
    }

    #[test]
    fn all_and_none_are_exact() {
        let all = with("100", "0");
        assert!((0..10_000).all(|index| all.samples(index)));
        assert!(!(0..10_000).any(|index| all.repeats_control(index)));
    }

    #[test]
    fn the_first_comparisons_run_the_control_again_unless_none_does() {
        let few = with("100", "0.001");
        assert!((0..3).all(|index| few.repeats_control(index)));
        assert!((3..20).any(|index| !few.repeats_control(index)));
        assert!(!(0..3).any(|index| with("100", "0").repeats_control(index)));
    }

    #[test]
    fn a_share_is_about_as_large_as_it_says_for_callers_who_take_turns_too() {
        for (share, wanted) in [("1", 1_000), ("50", 50_000), ("0.1", 100)] {
            let limits = with(share, share);
            for step in [1, 2, 7] {
                let indexes = (0..100_000).map(|turn| turn * step);
                let sampled = indexes
                    .clone()
                    .filter(|index| limits.samples(*index))
                    .count();
                let repeated = indexes
                    .filter(|index| limits.repeats_control(*index))
                    .count();
                for count in [sampled, repeated] {
                    assert!(count.abs_diff(wanted) <= wanted / 4 + 20, "{share} {count}");
                }
            }
        }
    }
}
