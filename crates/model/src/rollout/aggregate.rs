//! The sum of the tallies of all processes. Each process reports its cumulative counts, and may end or restart.
//!
//! Used by `app` and `telemetry`.

use std::collections::BTreeMap;

use super::Tally;

/// The tallies of one process, by the name of the flag.
pub type Tallies = BTreeMap<String, Tally>;

/// A reporter: a process and the identifier of its start.
pub type Reporter = (String, String);

/// A sum that only rises: the counts of a process stay in it after the process has ended.
#[derive(Debug, Clone, Default)]
pub struct Aggregate {
    last: BTreeMap<Reporter, LastReport>,
    total: Tallies,
    round: u64,
}

/// The last report of a process, and its round.
#[derive(Debug, Clone)]
struct LastReport {
    round: u64,
    tallies: Tallies,
}

/// The maximum number of remembered processes, including ended ones.
const REMEMBERED: usize = 2_000;

impl Aggregate {
    /// Records the counts from before the start of the aggregation; they are not part of the sum.
    pub fn begin(&mut self, reports: impl IntoIterator<Item = (Reporter, Tallies)>) {
        let round = self.round;
        for (source, tallies) in reports {
            let last = self.last.entry(source);
            last.or_insert(LastReport { round, tallies });
        }
    }

    /// Adds the growth in the reports of all processes and returns the sum. A process whose report is missing for a
    /// while, because the store lost it, is not counted twice afterwards.
    pub fn take(&mut self, reports: impl IntoIterator<Item = (Reporter, Tallies)>) -> &Tallies {
        self.round += 1;
        for (source, tallies) in reports {
            self.update(source, tallies);
        }
        while self.last.len() > REMEMBERED {
            let oldest = self.last.iter().min_by_key(|(_, last)| last.round);
            let Some((source, _)) = oldest else { break };
            let source = source.clone();
            self.last.remove(&source);
        }
        &self.total
    }

    /// Adds the growth in the report of one process.
    pub fn update(&mut self, source: Reporter, tallies: Tallies) {
        self.count(&source, &tallies);
        let round = self.round;
        self.last.insert(source, LastReport { round, tallies });
    }

    fn count(&mut self, source: &Reporter, tallies: &Tallies) {
        let before = self.last.get(source);
        for (flag, tally) in tallies {
            let earlier = before.and_then(|before| before.tallies.get(flag));
            let news = earlier.map_or_else(|| tally.clone(), |earlier| tally.since(earlier));
            self.total.entry(flag.clone()).or_default().add(&news);
        }
    }

    /// Returns the sum so far.
    #[must_use]
    pub fn total(&self) -> &Tallies {
        &self.total
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rollout::{CallEnd, Way};

    fn source(replica: &str, boot: &str) -> Reporter {
        (replica.to_owned(), boot.to_owned())
    }

    fn calls(count: u64) -> Tallies {
        let mut tally = Tally::default();
        for _ in 0..count {
            tally.count(Way::New, CallEnd::Served, Duration::from_millis(3));
        }
        BTreeMap::from([("f".to_owned(), tally)])
    }

    fn total(summed: &Aggregate) -> u64 {
        summed.total()["f"].new.calls
    }

    #[test]
    fn what_a_process_counted_stays_when_it_is_gone_or_begins_anew() {
        let mut summed = Aggregate::default();
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

    #[test]
    fn what_was_counted_before_anybody_watched_is_not_new() {
        let mut summed = Aggregate::default();
        summed.begin([(source("a", "1"), calls(5))]);
        assert!(summed.total().is_empty());
        summed.take([(source("a", "1"), calls(6))]);
        assert_eq!(total(&summed), 1);
    }

    #[test]
    fn a_process_whose_report_was_lost_for_a_while_is_not_counted_twice() {
        let mut summed = Aggregate::default();
        summed.take([(source("a", "1"), calls(5)), (source("b", "1"), calls(2))]);
        summed.take([(source("a", "1"), calls(5))]);
        summed.take([(source("a", "1"), calls(5)), (source("b", "1"), calls(3))]);
        assert_eq!(total(&summed), 8);
    }
}
