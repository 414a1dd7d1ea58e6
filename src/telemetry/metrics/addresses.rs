//! How the addresses of upstreams stand: left out, tried again, left alone.

use std::collections::BTreeMap;

use prometheus::proto;

use super::family::{self, Family};
use super::labels::{LabelId, LabelNames, NONE};
use super::render::{RenderedTexts, counter, gauge, of};
use super::shard::Snapshot;

pub(super) const CUT_CONNECTIONS: Family = Family {
    name: "dualgauge_upstream_cut_connections_total",
    kind: proto::MetricType::COUNTER,
    labels: &["upstream"],
    help: "HTTP/2 connections to an upstream that the proxy aborted because the server sent too many frames without progress or broke the protocol.",
};

/// What has happened with the addresses of an upstream, and how they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressCounts {
    /// How often one was left out for its failures.
    pub ejections: u64,
    /// How often the breaker has opened.
    pub openings: u64,
    /// Calls that were tried again.
    pub repeats: u64,
    /// Calls that were not, for too many had been.
    pub exhausted: u64,
    /// Connections of HTTP/2 that were cut, since the server flooded them or broke the protocol.
    pub cut: u64,
    /// How many get no calls now.
    pub left_out: u64,
    /// Whether the breaker is open.
    pub open: u64,
    /// How many pass their health checks, and have done so at least once.
    pub well: u64,
}

impl AddressCounts {
    /// Adds what another worker has counted; how they stand is the worst of both, but for those that are well: one worker's
    /// word is enough.
    pub fn add(&mut self, other: AddressCounts) {
        self.ejections += other.ejections;
        self.openings += other.openings;
        self.repeats += other.repeats;
        self.exhausted += other.exhausted;
        self.cut += other.cut;
        self.left_out = self.left_out.max(other.left_out);
        self.open = self.open.max(other.open);
        self.well = self.well.max(other.well);
    }
}

/// How the addresses of each upstream stand in the whole process, by the names of upstreams.
#[must_use]
pub fn standings(names: &LabelNames, snapshots: &[Snapshot]) -> BTreeMap<String, AddressCounts> {
    let texts = names.texts();
    let mut all: BTreeMap<String, AddressCounts> = BTreeMap::new();
    for (upstream, counts) in snapshots.iter().flat_map(|snapshot| &snapshot.addresses) {
        let name = texts.get(upstream.index()).map_or(NONE, |text| text);
        all.entry(name.to_owned()).or_default().add(*counts);
    }
    all
}

/// The families of all upstreams that have addresses.
pub(super) fn families(
    texts: &RenderedTexts,
    all: &BTreeMap<LabelId, AddressCounts>,
) -> Vec<proto::MetricFamily> {
    let counted = |family, count: fn(&AddressCounts) -> u64| {
        let series = all
            .iter()
            .map(|(upstream, counts)| counter(family, &[texts.of(*upstream)], count(counts)));
        of(family, series.collect())
    };
    let stands = |family, value: fn(&AddressCounts) -> u64| {
        let series = all
            .iter()
            .map(|(upstream, counts)| gauge(family, &[texts.of(*upstream)], value(counts) as f64));
        of(family, series.collect())
    };
    let repeats = all.iter().flat_map(|(upstream, counts)| {
        [("sent", counts.repeats), ("refused", counts.exhausted)].map(|(result, count)| {
            counter(
                &family::UPSTREAM_REPEATS,
                &[texts.of(*upstream), result],
                count,
            )
        })
    });
    vec![
        counted(&family::UPSTREAM_EJECTIONS, |counts| counts.ejections),
        counted(&family::BREAKER_OPENINGS, |counts| counts.openings),
        of(&family::UPSTREAM_REPEATS, repeats.collect()),
        counted(&CUT_CONNECTIONS, |counts| counts.cut),
        stands(&family::ADDRESSES_LEFT_OUT, |counts| counts.left_out),
        stands(&family::BREAKER_OPEN, |counts| counts.open),
    ]
}
