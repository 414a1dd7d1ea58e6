//! Which fields of a route differ by themselves: learned by comparing the control with a second control.
//!
//! Laws: a field that two controls have never differed in is never volatile; one that differs as often, or more often,
//! between two controls than between control and candidate is; counts of several workers add up to what one worker
//! would have counted, as long as none of them has aged.

use std::collections::BTreeMap;

use super::{Comparison, Difference, Verdict};

/// Fields of one route that are counted.
const FIELDS: usize = 256;
/// Comparisons of one kind after which all counts are halved, so that what was long ago weighs less.
const MEMORY: u64 = 1 << 14;
/// How much the share of differences from the candidate must be above that of noise, of both together.
const RELATIVE: f64 = 0.20;
/// The same, of all comparisons.
const ABSOLUTE: f64 = 0.0003;
/// How sure it must be that it is above: one in a hundred is wrong.
const Z: f64 = 2.326;

/// In how many comparisons a field differed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoiseCounts {
    /// Of control and candidate.
    pub raw: u64,
    /// Of control and control.
    pub noise: u64,
}

/// What is known of one route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noise {
    fields: BTreeMap<String, NoiseCounts>,
    compared: NoiseCounts,
    more: u64,
}

/// What a comparison comes to in the light of what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement<'c> {
    /// [`Verdict::Match`] or [`Verdict::Mismatch`].
    pub verdict: Verdict,
    /// The differences that count.
    pub counted: Vec<&'c Difference>,
    /// How many differences were left out as noise. A match with some is no plain match: it is counted apart.
    pub noisy: usize,
}

/// Which two answers were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Raw,
    Noise,
}

impl Noise {
    /// What was kept of an earlier run; what is beyond the bounds is only counted.
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

    /// Takes in a comparison of control and candidate.
    pub fn feed_raw(&mut self, found: &Comparison) {
        self.feed(found, Of::Raw);
    }

    /// Takes in a comparison of two answers of the control.
    pub fn feed_noise(&mut self, found: &Comparison) {
        self.feed(found, Of::Noise);
    }

    fn feed(&mut self, found: &Comparison, of: Of) {
        let one = match of {
            Of::Raw => NoiseCounts { raw: 1, noise: 0 },
            Of::Noise => NoiseCounts { raw: 0, noise: 1 },
        };
        if !self.compared.is_below(MEMORY) {
            self.age();
        }
        self.compared = self.compared.plus(one);
        for (index, difference) in found.differences.iter().enumerate() {
            // A field may differ in several ways, and is one field.
            let mut earlier = found.differences[..index].iter();
            if !earlier.any(|earlier| earlier.field == difference.field) {
                self.add(&difference.field, one);
            }
        }
    }

    /// A field that only ever differed from the candidate makes room for one that two controls differed in: without a
    /// count it is judged the same.
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

    /// Halves all counts, upwards: what was once seen to be volatile stays known.
    fn age(&mut self) {
        self.compared = self.compared.halved();
        for counts in self.fields.values_mut() {
            *counts = counts.halved();
        }
    }

    /// Adds what another worker has counted.
    pub fn merge(&mut self, other: &Noise) {
        self.compared = self.compared.plus(other.compared);
        self.more = self.more.saturating_add(other.more);
        for (field, counts) in &other.fields {
            self.add(field, *counts);
        }
    }

    /// Whether a field differs by itself. It does once two controls have differed in it, unless it is by now almost
    /// certain that the candidate differs in it more often, by more than a fifth of both shares together and more
    /// than 0.03 % of all comparisons. The shares are taken at the ends of their 98 % intervals (Wilson) that lie
    /// nearest to each other, so that few comparisons never tell a field apart from noise.
    #[must_use]
    pub fn is_volatile(&self, field: &str) -> bool {
        let Some(counts) = self.fields.get(field).filter(|counts| counts.noise > 0) else {
            return false;
        };
        let (raw, _) = interval(counts.raw, self.compared.raw);
        let (_, noise) = interval(counts.noise, self.compared.noise);
        let above = share(counts.raw, self.compared.raw) - share(counts.noise, self.compared.noise);
        let both = share(counts.raw, self.compared.raw) + share(counts.noise, self.compared.noise);
        let told_apart = raw > noise && above > RELATIVE * both && above > ABSOLUTE;
        !told_apart
    }

    /// Whether two controls have ever differed in a field.
    #[must_use]
    pub fn is_met(&self, field: &str) -> bool {
        self.fields
            .get(field)
            .is_some_and(|counts| counts.noise > 0)
    }

    /// What a comparison of control and candidate comes to. Differences that were not kept cannot be known as noise.
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

    /// The fields that differed, by name.
    pub fn fields(&self) -> impl Iterator<Item = (&str, NoiseCounts)> {
        self.fields
            .iter()
            .map(|(field, counts)| (field.as_str(), *counts))
    }

    /// How many comparisons there were.
    #[must_use]
    pub fn compared(&self) -> NoiseCounts {
        self.compared
    }

    /// How often a field had no room.
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

/// Counts stay far below 2^53, where a double is exact.
fn float(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

fn share(count: u64, of: u64) -> f64 {
    if of == 0 {
        return 0.0;
    }
    float(count.min(of)) / float(of)
}

/// The Wilson interval of a share: nothing is known where nothing was counted.
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
