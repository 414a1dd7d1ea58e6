//! What the configuration says about the series of `/metrics`: how many there may be, and with which labels.

use std::collections::BTreeMap;

/// The rules for series whose labels hold names of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRules {
    /// The most series at a time; one bucket of a histogram is one series.
    pub limit: u64,
    /// The labels that a family keeps, by its name; a family that is not named keeps all of its labels.
    pub labels: BTreeMap<String, Vec<String>>,
}

impl SeriesRules {
    /// The default of `metrics.series`: a page of about 14 MB.
    pub const LIMIT: u64 = 100_000;

    /// Whether a family keeps a label.
    #[must_use]
    pub fn keeps(&self, family: &str, label: &str) -> bool {
        let kept = self.labels.get(family);
        kept.is_none_or(|kept| kept.iter().any(|one| one == label))
    }
}

impl Default for SeriesRules {
    fn default() -> Self {
        SeriesRules {
            limit: SeriesRules::LIMIT,
            labels: BTreeMap::new(),
        }
    }
}
