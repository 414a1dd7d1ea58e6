//! The state of the addresses of upstreams: ejections, retries, circuit breakers.
//!
//! Used by `metrics::render` and `metrics::shard`.

use std::collections::BTreeMap;

use prometheus::proto;

use super::family;
use super::labels::{LabelId, RenderedTexts};
use super::protobuf::{counter, gauge, metric_family};

/// The counters and the current state of the addresses of an upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressCounts {
    /// The number of ejections for failures.
    pub ejections: u64,
    /// The number of times that the circuit breaker opened.
    pub openings: u64,
    /// The number of retried calls.
    pub repeats: u64,
    /// The number of calls not retried because the retry budget was exhausted.
    pub exhausted: u64,
    /// The number of HTTP/2 connections aborted because the server flooded them or broke the protocol.
    pub cut: u64,
    /// The number of addresses that get no calls now.
    pub left_out: u64,
    /// 1 if the circuit breaker is open, else 0.
    pub open: u64,
    /// The number of addresses that pass their health checks and have done so at least once.
    pub healthy: u64,
}

impl AddressCounts {
    /// Adds the counts of another worker. The state is the worse of both, except for `healthy`, for which one worker's
    /// result suffices.
    pub fn add(&mut self, other: AddressCounts) {
        self.ejections += other.ejections;
        self.openings += other.openings;
        self.repeats += other.repeats;
        self.exhausted += other.exhausted;
        self.cut += other.cut;
        self.left_out = self.left_out.max(other.left_out);
        self.open = self.open.max(other.open);
        self.healthy = self.healthy.max(other.healthy);
    }
}

/// Returns the families of all upstreams that have addresses.
pub(super) fn families(
    texts: &RenderedTexts,
    all: &BTreeMap<LabelId, AddressCounts>,
) -> Vec<proto::MetricFamily> {
    let counted = |family, count: fn(&AddressCounts) -> u64| {
        let series = all
            .iter()
            .map(|(upstream, counts)| counter(family, &[texts.text(*upstream)], count(counts)));
        metric_family(family, series.collect())
    };
    let current = |family, value: fn(&AddressCounts) -> u64| {
        let series = all.iter().map(|(upstream, counts)| {
            gauge(family, &[texts.text(*upstream)], value(counts) as f64)
        });
        metric_family(family, series.collect())
    };
    let repeats = all.iter().flat_map(|(upstream, counts)| {
        [("sent", counts.repeats), ("refused", counts.exhausted)].map(|(result, count)| {
            counter(
                &family::UPSTREAM_REPEATS,
                &[texts.text(*upstream), result],
                count,
            )
        })
    });
    vec![
        counted(&family::UPSTREAM_EJECTIONS, |counts| counts.ejections),
        counted(&family::BREAKER_OPENINGS, |counts| counts.openings),
        metric_family(&family::UPSTREAM_REPEATS, repeats.collect()),
        counted(&family::UPSTREAM_CUT_CONNECTIONS, |counts| counts.cut),
        current(&family::ADDRESSES_LEFT_OUT, |counts| counts.left_out),
        current(&family::BREAKER_OPEN, |counts| counts.open),
    ]
}
