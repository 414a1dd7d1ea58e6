//! Confidence bounds of rates and of their differences.
//!
//! A rate is bounded by Chernoff's inequality in the Kullback-Leibler form: of `n` calls with a true rate `q`, a share
//! of `p ≥ q` or more fails with a probability of at most `exp(-n · KL(p‖q))`. The inequality holds for any number of
//! calls. So the bounds also hold for few calls and rare failures, unlike intervals from the normal distribution. The
//! bounds of two rates are combined by Newcombe's method 10 (MOVER).
//!
//! Used by `rollout`.

/// An observed rate of one way: a share, and its number of calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) share: f64,
    pub(super) calls: f64,
}

impl Rate {
    /// Creates the rate of `some` among `calls`.
    pub(super) fn new(some: f64, calls: f64) -> Rate {
        let share = if calls > 0.0 { some / calls } else { 0.0 };
        Rate {
            share: share.clamp(0.0, 1.0),
            calls,
        }
    }

    /// Returns the rate with the share raised by `by`; it is never lower.
    pub(super) fn raised(self, by: f64) -> Rate {
        Rate {
            share: (self.share + by.max(0.0)).min(1.0),
            ..self
        }
    }

    /// Returns the lowest true share that is compatible with the observation. A lower one would have shown so many
    /// with a probability of at most `exp(-evidence)`.
    pub(super) fn lower(self, evidence: f64) -> f64 {
        let Rate { share, calls } = self;
        // Negated so that NaN gives the harmless result.
        if !(share > 0.0 && calls > 0.0) {
            return 0.0;
        }
        let excluded = |q: f64| calls * divergence(share, q) > evidence;
        bisect(0.0, share, excluded)
    }

    /// Returns the highest true share that is compatible with the observation.
    pub(super) fn upper(self, evidence: f64) -> f64 {
        let opposite = Rate {
            share: 1.0 - self.share,
            calls: self.calls,
        };
        1.0 - opposite.lower(evidence)
    }
}

/// Returns the minimum by which the share of `one` exceeds that of `other`.
pub(super) fn excess(one: Rate, other: Rate, evidence: f64) -> f64 {
    let below = one.share - one.lower(evidence);
    let above = other.upper(evidence) - other.share;
    one.share - other.share - below.hypot(above)
}

/// Returns the range of observed quantiles that contains the true quantile `share`. The upper end is `None` if there
/// are too few calls to bound it.
pub(super) fn around(share: f64, calls: f64, evidence: f64) -> (f64, Option<f64>) {
    let beyond = |observed: f64| calls * divergence(observed, share) > evidence;
    let lower = bisect(0.0, share, beyond);
    let upper = beyond(1.0).then(|| 1.0 - bisect(0.0, 1.0 - share, |rest| beyond(1.0 - rest)));
    (lower, upper)
}

/// Returns the border between `from`, near which the condition holds, and `to`, near which it does not, on the side of
/// `to`.
fn bisect(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut from, mut to) = (from, to);
    // Forty halvings are finer than the precision of reported rates.
    for _ in 0..40 {
        let middle = f64::midpoint(from, to);
        if holds(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    from
}

/// Returns KL(p‖q) of two Bernoulli distributions.
fn divergence(p: f64, q: f64) -> f64 {
    let part = |p: f64, q: f64| if p <= 0.0 { 0.0 } else { p * (p / q).ln() };
    part(p, q) + part(1.0 - p, 1.0 - q)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIDENCE: f64 = 8.0;

    /// The probability that of so many calls this many or more fail.
    fn tail(calls: u32, least: u32, q: f64) -> f64 {
        let mut term = (1.0 - q).powi(i32::try_from(calls).unwrap());
        let mut below = 0.0;
        for k in 0..least {
            below += term;
            term *= f64::from(calls - k) / f64::from(k + 1) * q / (1.0 - q);
        }
        1.0 - below
    }

    #[test]
    fn the_bound_keeps_what_it_promises_with_few_calls_and_rare_failures() {
        for (calls, failed) in [(20, 1), (100, 7), (100, 2), (600, 20), (50, 50), (3000, 9)] {
            let lower = Rate::new(f64::from(failed), f64::from(calls)).lower(EVIDENCE);
            let chance = tail(calls, failed, lower);
            assert!(
                chance <= (-EVIDENCE).exp() * 1.01,
                "{failed} of {calls}: {chance}"
            );
            assert!(lower > 0.0);
        }
    }

    #[test]
    fn no_calls_bound_nothing() {
        let none = Rate::new(0.0, 0.0);
        assert!(none.lower(EVIDENCE).abs() < f64::EPSILON);
        assert!((none.upper(EVIDENCE) - 1.0).abs() < f64::EPSILON);
        assert!(excess(Rate::new(10.0, 10.0), none, EVIDENCE) < 0.0);
        assert_eq!(around(0.95, 0.0, EVIDENCE), (0.0, None));
    }

    #[test]
    fn the_difference_of_equal_rates_is_never_shown() {
        for calls in [1.0, 10.0, 1e3, 1e6, 1e12] {
            for share in [0.0, 0.003, 0.5, 1.0] {
                let rate = Rate::new(share * calls, calls);
                assert!(excess(rate, rate, EVIDENCE) <= 1e-9, "{share} of {calls}");
            }
        }
    }

    #[test]
    fn more_failures_of_the_other_way_never_widen_the_excess() {
        let one = Rate::new(40.0, 100.0);
        let mut before = f64::INFINITY;
        for failed in 0..=200 {
            let found = excess(one, Rate::new(f64::from(failed), 200.0), EVIDENCE);
            assert!(found <= before + 1e-9, "{failed}");
            before = found;
        }
    }

    #[test]
    fn a_quantile_has_calls_on_both_sides_or_no_upper_bound() {
        let (lower, upper) = around(0.95, 1000.0, EVIDENCE);
        assert!((0.90..0.95).contains(&lower));
        assert!(upper.is_some_and(|upper| (0.95..0.98).contains(&upper)));
        assert_eq!(around(0.95, 100.0, EVIDENCE).1, None);
        assert!(around(0.5, 100.0, EVIDENCE).1.is_some());
    }
}
