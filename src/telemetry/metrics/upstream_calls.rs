//! The calls at upstreams against what may be there at once. Whether they share connections or not is another matter.

use std::collections::BTreeMap;

use prometheus::proto;

use super::family;
use super::labels::LabelId;
use super::render::{RenderedTexts, gauge, of};

/// The calls at an upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamCalls {
    /// Those that have a place: they are sent, or their connection is being opened.
    pub sent: u64,
    /// Those that wait for a place.
    pub waiting: u64,
    /// How many places there are.
    pub limit: u64,
}

impl UpstreamCalls {
    /// Adds those of another worker.
    pub const fn add(&mut self, other: UpstreamCalls) {
        self.sent += other.sent;
        self.waiting += other.waiting;
        self.limit += other.limit;
    }
}

/// The families of all upstreams that calls have places at.
pub(super) fn families(
    texts: &RenderedTexts,
    all: &BTreeMap<LabelId, UpstreamCalls>,
) -> Vec<proto::MetricFamily> {
    let calls = all.iter().flat_map(|(upstream, calls)| {
        [("sent", calls.sent), ("waiting", calls.waiting)].map(|(state, count)| {
            let labels = [texts.of(*upstream), state];
            gauge(&family::UPSTREAM_CALLS, &labels, count as f64)
        })
    });
    let limits = all.iter().map(|(upstream, calls)| {
        let labels = [texts.of(*upstream)];
        gauge(&family::UPSTREAM_CALLS_LIMIT, &labels, calls.limit as f64)
    });
    vec![
        of(&family::UPSTREAM_CALLS, calls.collect()),
        of(&family::UPSTREAM_CALLS_LIMIT, limits.collect()),
    ]
}
