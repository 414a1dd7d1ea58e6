//! Calls without a route, by prefix of routes and by path. Used by `metrics::shard`.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use super::hasher::IdHasher;
use super::labels::LabelId;
use dualgauge_model::lifecycle::UsageCount;
use dualgauge_model::unrouted::UnroutedCalls;

/// The calls without a route of one worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UnroutedCounts {
    pub(super) prefixes: HashMap<LabelId, UsageCount, BuildHasherDefault<IdHasher>>,
    /// Shared with the last snapshot, until the next such call.
    pub(super) paths: Arc<UnroutedCalls>,
}

impl UnroutedCounts {
    pub(super) fn add(&mut self, other: &UnroutedCounts) {
        for (prefix, count) in &other.prefixes {
            self.prefixes.entry(*prefix).or_default().merge(count);
        }
        if !other.paths.is_empty() {
            Arc::make_mut(&mut self.paths).merge(&other.paths);
        }
    }
}
