//! The calls at upstreams and their limits, whether or not the calls share connections.
//!
//! Used by `metrics::render` and `metrics::shard`.

use std::collections::BTreeMap;

use prometheus::proto;

use super::family;
use super::labels::{LabelId, RenderedTexts};
use super::protobuf::{gauge, metric_family};
use dualgauge_net::UpstreamCalls;

/// Returns the families of all upstreams that limit calls.
pub(super) fn families(
    texts: &RenderedTexts,
    all: &BTreeMap<LabelId, UpstreamCalls>,
) -> Vec<proto::MetricFamily> {
    let calls = all.iter().flat_map(|(upstream, calls)| {
        [("sent", calls.sent), ("waiting", calls.waiting)].map(|(state, count)| {
            let labels = [texts.text(*upstream), state];
            gauge(&family::UPSTREAM_CALLS, &labels, count as f64)
        })
    });
    let limits = all.iter().map(|(upstream, calls)| {
        let labels = [texts.text(*upstream)];
        gauge(&family::UPSTREAM_CALLS_LIMIT, &labels, calls.limit as f64)
    });
    vec![
        metric_family(&family::UPSTREAM_CALLS, calls.collect()),
        metric_family(&family::UPSTREAM_CALLS_LIMIT, limits.collect()),
    ]
}
