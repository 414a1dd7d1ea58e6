//! The state of the addresses of upstreams: ejections, retries, circuit breakers.
//!
//! Used by `app::run` and `metrics::render`.

use std::collections::BTreeMap;

use prometheus::proto;

use super::family;
use super::labels::{LabelId, LabelNames, NONE, RenderedTexts};
use super::protobuf::{counter, gauge, metric_family};
use super::shard::Snapshot;
use dualgauge_net::AddressCounts;

/// Returns the state of the addresses of each upstream in the whole process, by the name of the upstream.
#[must_use]
pub fn address_counts(
    names: &LabelNames,
    snapshots: &[Snapshot],
) -> BTreeMap<String, AddressCounts> {
    let texts = names.texts();
    let mut all: BTreeMap<String, AddressCounts> = BTreeMap::new();
    for (upstream, counts) in snapshots.iter().flat_map(|snapshot| &snapshot.addresses) {
        let name = texts.get(upstream.index()).map_or(NONE, |text| text);
        all.entry(name.to_owned()).or_default().add(*counts);
    }
    all
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
