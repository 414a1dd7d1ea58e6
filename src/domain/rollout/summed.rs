//! The counts of all processes as one: each reports what it has counted since it began, and may end or begin anew.

use std::collections::BTreeMap;

use super::Tally;

/// What one process has counted, by the names of the flags.
pub type Tallies = BTreeMap<String, Tally>;

/// Which start of which process has counted.
pub type Reporter = (String, String);

/// A sum that only rises: what a process has counted stays in it when the process is gone.
#[derive(Debug, Clone, Default)]
pub struct Summed {
    last: BTreeMap<Reporter, Tallies>,
    total: Tallies,
}

impl Summed {
    /// Adds what is new in the reports of all processes, and tells the sum. A process that no longer reports is
    /// forgotten; if it comes back with the same counts, they are counted again.
    pub fn take(&mut self, reports: impl IntoIterator<Item = (Reporter, Tallies)>) -> &Tallies {
        let mut now = BTreeMap::new();
        for (source, tallies) in reports {
            self.count(&source, &tallies);
            now.insert(source, tallies);
        }
        self.last = now;
        &self.total
    }

    /// Adds what is new in the report of one process.
    pub fn update(&mut self, source: Reporter, tallies: Tallies) {
        self.count(&source, &tallies);
        self.last.insert(source, tallies);
    }

    fn count(&mut self, source: &Reporter, tallies: &Tallies) {
        let before = self.last.get(source);
        for (flag, tally) in tallies {
            let earlier = before.and_then(|before| before.get(flag));
            let news = earlier.map_or_else(|| tally.clone(), |earlier| tally.since(earlier));
            self.total.entry(flag.clone()).or_default().add(&news);
        }
    }

    /// The sum so far.
    #[must_use]
    pub fn total(&self) -> &Tallies {
        &self.total
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::rollout::{Fate, Way};

    fn source(replica: &str, boot: &str) -> Reporter {
        (replica.to_owned(), boot.to_owned())
    }

    fn calls(count: u64) -> Tallies {
        let mut tally = Tally::default();
        for _ in 0..count {
            tally.count(Way::New, Fate::Served, Duration::from_millis(3));
        }
        BTreeMap::from([("f".to_owned(), tally)])
    }

    fn total(summed: &Summed) -> u64 {
        summed.total()["f"].new.calls
    }

    #[test]
    fn what_a_process_counted_stays_when_it_is_gone_or_begins_anew() {
        let mut summed = Summed::default();
        summed.take([(source("a", "1"), calls(5)), (source("b", "1"), calls(2))]);
        assert_eq!(total(&summed), 7);
        summed.take([(source("a", "1"), calls(6)), (source("b", "1"), calls(2))]);
        assert_eq!(total(&summed), 8);
        // `b` ends, and `a` is started again.
        summed.take([(source("a", "2"), calls(1))]);
        assert_eq!(total(&summed), 9);
        summed.update(source("a", "2"), calls(4));
        assert_eq!(total(&summed), 12);
    }
}
