//! What bounds the calls that are run only to compare.
//!
//! Law: the same place in the sequence of calls gets the same answer, so that nothing here needs chance.

use std::time::Duration;

use super::compare::Skip;
use super::failure::Reason;
use super::rollout::{Bucket, Percent};
use super::route::{Effect, ExpectsReply, Route};

/// The bounds of the candidates of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowLimits {
    /// Candidates at a time.
    pub concurrency: usize,
    /// Bytes that are kept for all of them together, and for the calls that they will stand beside.
    pub memory: usize,
    /// Time for one of them, with all that it waits for.
    pub timeout: Duration,
    /// The share of calls that get one, of those that may.
    pub sample: Percent,
    /// Candidates of the calls of one HTTP request.
    pub per_request: usize,
    /// The share of comparisons for which the control is run a second time.
    pub noise: Percent,
}

/// Why no call of a route is ever made twice, if none is.
#[must_use]
pub fn never(route: &Route) -> Option<Skip> {
    if route.is_frame() {
        // What answers a frame may be an event, or silence.
        return Some(Skip::Stream);
    }
    match (route.effect, route.waits) {
        (Effect::Idempotent | Effect::Unsafe, _) => Some(Skip::Unsafe),
        (Effect::Safe, ExpectsReply::No) => Some(Skip::Notification),
        (Effect::Safe, ExpectsReply::Yes) => None,
    }
}

/// Whether a refusal by the proxy is a failure of a candidate, and no answer to compare: the server of the control does not
/// know the rule.
#[must_use]
pub const fn is_failure(refusal: Reason) -> bool {
    matches!(refusal, Reason::OriginRefused | Reason::UnknownQuery)
}

/// Spreads the places of calls apart from those of comparisons.
const CALLS: u64 = 0x9e37_79b9_7f4a_7c15;
const COMPARISONS: u64 = 0xd1b5_4a32_d192_ed03;

/// The first comparisons of a route, all of which run the control a second time.
const FIRST: u64 = 3;

impl ShadowLimits {
    /// Whether the call at this place of the sequence gets a candidate.
    #[must_use]
    pub fn samples(&self, place: u64) -> bool {
        falls_within(self.sample, place.wrapping_mul(CALLS))
    }

    /// Whether the control is ever run a second time.
    #[must_use]
    pub fn learns_noise(&self) -> bool {
        self.noise != Percent::NONE
    }

    /// Whether the comparison at this place of the sequence of its route runs the control a second time: the first
    /// ones do, so that what differs by itself is known from the beginning.
    #[must_use]
    pub fn repeats_control(&self, place: u64) -> bool {
        let first = self.learns_noise() && place < FIRST;
        first || falls_within(self.noise, place.wrapping_mul(COMPARISONS))
    }
}

/// Places are mixed, so that a share never falls in step with callers who take turns.
fn falls_within(share: Percent, place: u64) -> bool {
    let mut mixed = place;
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
        assert!((0..10_000).all(|place| all.samples(place)));
        assert!(!(0..10_000).any(|place| all.repeats_control(place)));
    }

    #[test]
    fn the_first_comparisons_run_the_control_again_unless_none_does() {
        let few = with("100", "0.001");
        assert!((0..3).all(|place| few.repeats_control(place)));
        assert!((3..20).any(|place| !few.repeats_control(place)));
        assert!(!(0..3).any(|place| with("100", "0").repeats_control(place)));
    }

    #[test]
    fn a_share_is_about_as_large_as_it_says_for_callers_who_take_turns_too() {
        for (share, wanted) in [("1", 1_000), ("50", 50_000), ("0.1", 100)] {
            let limits = with(share, share);
            for step in [1, 2, 7] {
                let places = (0..100_000).map(|turn| turn * step);
                let sampled = places
                    .clone()
                    .filter(|place| limits.samples(*place))
                    .count();
                let repeated = places
                    .filter(|place| limits.repeats_control(*place))
                    .count();
                for count in [sampled, repeated] {
                    assert!(count.abs_diff(wanted) <= wanted / 4 + 20, "{share} {count}");
                }
            }
        }
    }
}
