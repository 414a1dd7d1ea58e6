//! Learned noise: the fields of a route that differ by themselves, found by comparing the control with a second
//! control.
//!
//! Laws: a field in which two controls never differed is not volatile; a field that differs between two controls at
//! least as often as between control and candidate is volatile; the counts of several workers add up to those of a
//! single worker as long as no count has aged.

use std::collections::BTreeMap;

use super::comparison::{Comparison, Difference};
use super::verdict::Verdict;

/// The maximum number of fields per route.
const FIELDS: usize = 256;
/// The number of comparisons of one kind after which all counts are halved, so that old results weigh less.
const MEMORY: u64 = 1 << 14;
/// The minimum excess of the candidate's share over the noise, relative to their sum.
const RELATIVE: f64 = 0.20;
/// The minimum excess, relative to all comparisons.
const ABSOLUTE: f64 = 0.0003;
/// The z-score of the required confidence: one in a hundred is wrong.
const Z: f64 = 2.326;

/// The numbers of comparisons in which a field differed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoiseCounts {
    /// Comparisons of control and candidate.
    pub raw: u64,
    /// Comparisons of two controls.
    pub noise: u64,
}

/// The learned noise of one route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noise {
    fields: BTreeMap<String, NoiseCounts>,
    compared: NoiseCounts,
    more: u64,
}

/// The judgement of a comparison, given the learned noise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement<'c> {
    /// [`Verdict::Match`] or [`Verdict::Mismatch`].
    pub verdict: Verdict,
    /// The differences that count.
    pub counted: Vec<&'c Difference>,
    /// The number of differences left out as noise. A match with any is counted apart from plain matches.
    pub noisy: usize,
}

impl Noise {
    /// Restores the counts of an earlier run; fields beyond the limit are only counted.
    #[must_use]
    pub fn restore(
        compared: NoiseCounts,
        fields: impl IntoIterator<Item = (String, NoiseCounts)>,
    ) -> Noise {
        let mut noise = Noise {
            compared,
            ..Noise::default()
        };
        for (field, counts) in fields {
            noise.add(&field, counts);
        }
        noise
    }

    /// Counts a comparison of control and candidate.
    pub fn feed_raw(&mut self, found: &Comparison) {
        self.feed(found, NoiseCounts { raw: 1, noise: 0 });
    }

    /// Counts a comparison of two controls.
    pub fn feed_noise(&mut self, found: &Comparison) {
        self.feed(found, NoiseCounts { raw: 0, noise: 1 });
    }

    fn feed(&mut self, found: &Comparison, one: NoiseCounts) {
        if !self.compared.is_below(MEMORY) {
            self.age();
        }
        self.compared = self.compared.plus(one);
        for (index, difference) in found.differences.iter().enumerate() {
            // A field that differs in several ways counts once.
            let mut earlier = found.differences[..index].iter();
            if !earlier.any(|earlier| earlier.field == difference.field) {
                self.add(&difference.field, one);
            }
        }
    }

    /// Adds counts to a field. A field that differed only from the candidate is dropped for one in which two controls
    /// differed: it is judged the same without a count.
    fn add(&mut self, field: &str, counts: NoiseCounts) {
        if let Some(known) = self.fields.get_mut(field) {
            *known = known.plus(counts);
            return;
        }
        if self.fields.len() >= FIELDS && counts.noise > 0 {
            let quiet = self.fields.iter().find(|(_, known)| known.noise == 0);
            if let Some(quiet) = quiet.map(|(field, _)| field.clone()) {
                self.fields.remove(&quiet);
                self.more += 1;
            }
        }
        if self.fields.len() < FIELDS {
            self.fields.insert(field.to_owned(), counts);
        } else {
            self.more += 1;
        }
    }

    /// Halves all counts, rounding up, so that a field known as volatile stays known.
    fn age(&mut self) {
        self.compared = self.compared.halved();
        for counts in self.fields.values_mut() {
            *counts = counts.halved();
        }
    }

    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Noise) {
        self.compared = self.compared.plus(other.compared);
        self.more = self.more.saturating_add(other.more);
        for (field, counts) in &other.fields {
            self.add(field, *counts);
        }
    }

    /// Returns true if a field is volatile. That is so once two controls have differed in it, unless the candidate
    /// almost certainly differs in it more often: by more than a fifth of the sum of both shares, and by more than
    /// 0.03 % of all comparisons. The shares are the nearest ends of their 98 % intervals (Wilson), so that few
    /// comparisons never separate a field from noise.
    #[must_use]
    pub fn is_volatile(&self, field: &str) -> bool {
        let Some(counts) = self.fields.get(field).filter(|counts| counts.noise > 0) else {
            return false;
        };
        let (raw, _) = interval(counts.raw, self.compared.raw);
        let (_, noise) = interval(counts.noise, self.compared.noise);
        let above = share(counts.raw, self.compared.raw) - share(counts.noise, self.compared.noise);
        let both = share(counts.raw, self.compared.raw) + share(counts.noise, self.compared.noise);
        let is_distinct = raw > noise && above > RELATIVE * both && above > ABSOLUTE;
        !is_distinct
    }

    /// Returns true if two controls have ever differed in a field.
    #[must_use]
    pub fn is_known_noise(&self, field: &str) -> bool {
        self.fields
            .get(field)
            .is_some_and(|counts| counts.noise > 0)
    }

    /// Judges a comparison of control and candidate. Differences that were not stored always count.
    #[must_use]
    pub fn judge<'c>(&self, found: &'c Comparison) -> Judgement<'c> {
        let all = found.differences.iter();
        let counted: Vec<_> = all.filter(|one| !self.is_volatile(&one.field)).collect();
        let noisy = found.differences.len() - counted.len();
        let verdict = if counted.is_empty() && found.more == 0 {
            Verdict::Match
        } else {
            Verdict::Mismatch
        };
        Judgement {
            verdict,
            counted,
            noisy,
        }
    }

    /// Returns the fields that differed, by name.
    pub fn fields(&self) -> impl Iterator<Item = (&str, NoiseCounts)> {
        self.fields
            .iter()
            .map(|(field, counts)| (field.as_str(), *counts))
    }

    /// Returns the numbers of comparisons.
    #[must_use]
    pub fn compared(&self) -> NoiseCounts {
        self.compared
    }

    /// Returns the number of differences in fields beyond the limit.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.more
    }
}

impl NoiseCounts {
    fn plus(self, other: NoiseCounts) -> NoiseCounts {
        NoiseCounts {
            raw: self.raw.saturating_add(other.raw),
            noise: self.noise.saturating_add(other.noise),
        }
    }

    fn halved(self) -> NoiseCounts {
        NoiseCounts {
            raw: self.raw.div_ceil(2),
            noise: self.noise.div_ceil(2),
        }
    }

    fn is_below(self, bound: u64) -> bool {
        self.raw < bound && self.noise < bound
    }
}

/// Converts a count; counts stay far below 2^53, where a double is exact.
fn float(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

fn share(count: u64, of: u64) -> f64 {
    if of == 0 {
        return 0.0;
    }
    float(count.min(of)) / float(of)
}

/// Returns the Wilson interval of a share; without observations, the whole range.
fn interval(count: u64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (share, of) = (share(count, of), float(of));
    let spread = Z * Z / of;
    let middle = share + spread / 2.0;
    let reach = Z * (share * (1.0 - share) / of + spread / (4.0 * of)).sqrt();
    let within = |value: f64| (value / (1.0 + spread)).clamp(0.0, 1.0);
    (within(middle - reach), within(middle + reach))
}

#[cfg(test)]
mod tests;
