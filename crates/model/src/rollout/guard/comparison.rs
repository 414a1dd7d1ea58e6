//! The comparison of the new way with each limit. Used by `rollout::guard::state`.

use std::time::Duration;

use super::bounds::{Rate, around, excess};
use super::decision::{Baseline, Breach, Quantile};
use super::settings::{Ratio, Share};
use super::windows::{Population, Window, WindowCounts, WindowTotals, number};
use crate::rollout::{Latency, Tally, WayTally};

/// The evidence for a bound: chance alone puts a rate beyond it with a probability of at most `exp(-8)`, one in 3,000,
/// for each of the two rates.
const EVIDENCE: f64 = 8.0;
/// A latency difference that counts as unnoticeable whatever its ratio: rewriting costs time as well.
const UNFELT: Duration = Duration::from_millis(5);

/// A breach, and the calls that show it.
pub(super) struct FoundBreach {
    pub(super) breach: Breach,
    pub(super) new_calls: f64,
    pub(super) old_calls: f64,
    pub(super) windows: u32,
    pub(super) against: Baseline,
}

/// The baseline and the spans of a comparison.
pub(super) struct GuardComparison<'c> {
    pub(super) least: f64,
    pub(super) windows: &'c [Window],
    pub(super) reference: Option<&'c WayTally>,
    /// The calls that the rates count.
    pub(super) among: Population,
}

impl GuardComparison<'_> {
    /// Returns the breach in the shortest span in which one kind of result exceeds its limit. Calls of the old way of
    /// a kind `instead`, beyond the number of those on the new way, count as this kind.
    pub(super) fn rates(
        &self,
        limit: Share,
        of: impl Fn(&WindowCounts) -> f64,
        instead: impl Fn(&WindowCounts) -> f64,
        breach: impl Fn(Share, Share) -> Breach,
    ) -> Option<FoundBreach> {
        let rates = |compared: &WindowTotals| {
            let (new, old) = self.both(compared, &of);
            let (new_instead, old_instead) = self.both(compared, &instead);
            let baseline = old.raised(old_instead.share - new_instead.share);
            (new, old, baseline)
        };
        self.windows.iter().find_map(|window| {
            let (new, old, baseline) = rates(&window.whole);
            let old_calls = match self.reference {
                None => window.whole.sides(self.among).old_calls,
                Some(_) => old.calls,
            };
            let enough = new.calls >= self.least && old_calls >= self.least;
            let (young, _, young_baseline) = rates(&window.young);
            let lasts = young.share - young_baseline.share > limit.get() / 2.0;
            let is_exceeded = enough && lasts && new.share - baseline.share > limit.get();
            (is_exceeded && excess(new, baseline, EVIDENCE) > limit.get()).then(|| FoundBreach {
                breach: breach(Share::near(new.share), Share::near(old.share)),
                new_calls: new.calls,
                old_calls,
                windows: window.windows,
                against: match self.reference {
                    Some(_) => Baseline::Earlier,
                    None => Baseline::SameTime,
                },
            })
        })
    }

    /// Returns the rates of the new and the old way.
    fn both(&self, compared: &WindowTotals, of: impl Fn(&WindowCounts) -> f64) -> (Rate, Rate) {
        let sides = compared.sides(self.among);
        match self.reference {
            None => sides.rates(of),
            Some(earlier) => {
                let counts = WindowCounts::new(earlier, self.among);
                let new = Rate::new(of(&sides.alone), sides.alone.calls);
                (new, Rate::new(of(&counts), counts.calls))
            }
        }
    }

    /// Returns a breach if the median or the 95th percentile exceeds the limit. Only the window counts: over a longer
    /// time, latencies change on both ways.
    pub(super) fn latency(&self, limit: Ratio, window: &Tally) -> Option<FoundBreach> {
        let new = &window.new.latency;
        let (old, against) = match self.reference {
            Some(earlier) => (&earlier.latency, Baseline::Earlier),
            None => (&window.old.latency, Baseline::SameTime),
        };
        let (new_calls, old_calls) = (number(new.count()), number(old.count()));
        if new_calls < self.least || old_calls < self.least {
            return None;
        }
        let mut quantiles = [Quantile::P95, Quantile::Median].into_iter();
        let breach = quantiles.find_map(|quantile| slower(quantile, limit, new, old))?;
        Some(FoundBreach {
            breach,
            new_calls,
            old_calls,
            windows: 1,
            against,
        })
    }

    /// Returns the breach in the shortest span in which too many responses differ. The bound itself accounts for few
    /// responses, so there is no minimum number.
    pub(super) fn mismatches(&self, limit: Share) -> Option<FoundBreach> {
        self.windows.iter().find_map(|window| {
            let share = Rate::new(window.whole.mismatched, window.whole.answers);
            let young = Rate::new(window.young.mismatched, window.young.answers);
            let is_exceeded = young.share > limit.get() / 2.0 && share.share > limit.get();
            (is_exceeded && share.lower(EVIDENCE) > limit.get()).then(|| FoundBreach {
                breach: Breach::Mismatches {
                    share: Share::near(share.share),
                    limit,
                },
                new_calls: share.calls,
                old_calls: 0.0,
                windows: window.windows,
                against: Baseline::SameTime,
            })
        })
    }
}

/// Returns a breach if a quantile certainly exceeds the limit. The bounds are combined like those of rates, on the
/// scale of ratios.
fn slower(quantile: Quantile, limit: Ratio, new: &Latency, old: &Latency) -> Option<Breach> {
    let share = quantile.share();
    let log = |time: Duration| time.max(Duration::from_micros(1)).as_secs_f64().ln();
    let (long, usual) = (new.quantile(share)?, old.quantile(share)?);
    let beyond = log(long) - log(usual) - limit.get().ln();
    if beyond <= 0.0 || long.saturating_sub(usual) <= UNFELT {
        return None;
    }
    let (lower, _) = around(share, number(new.count()), EVIDENCE);
    let (_, upper) = around(share, number(old.count()), EVIDENCE);
    let (least, most) = (new.quantile(lower)?, old.quantile(upper?)?);
    let off = (log(long) - log(least)).hypot(log(most) - log(usual));
    (beyond > off).then_some(Breach::Latency {
        quantile,
        new: long,
        old: usual,
        limit,
    })
}
