//! The ways in which the upstreams of a plan are reached, shared by all workers. Used by `app`, `gateway` and `server`.

use std::sync::Arc;

use super::per_client::LinkSharing;
use super::stats::LinkStats;

/// The way in which workers reach an upstream that they share.
#[derive(Debug, Clone)]
pub enum LinkRoute {
    /// Through links of the process.
    Link(LinkSharing),
    /// Through legacy sockets that each worker owns and that are counted here.
    Frames(Arc<LinkStats>),
    /// Through connections of each worker alone.
    Other,
}

/// The link routes of a plan, by the index of the upstream.
#[derive(Debug, Clone, Default)]
pub struct Links(Arc<[LinkRoute]>);

impl Links {
    /// Creates the table from routes in the order of the plan.
    #[must_use]
    pub fn new(all: Vec<LinkRoute>) -> Links {
        Links(all.into())
    }

    /// Returns the links of the upstream at `index`, if it uses links.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&LinkSharing> {
        match self.0.get(index)? {
            LinkRoute::Link(sharing) => Some(sharing),
            LinkRoute::Frames(_) | LinkRoute::Other => None,
        }
    }

    /// Returns the statistics of the legacy sockets of the upstream at `index`, if it uses them.
    #[must_use]
    pub fn stats(&self, index: usize) -> Option<Arc<LinkStats>> {
        match self.0.get(index) {
            Some(LinkRoute::Frames(stats)) => Some(stats.clone()),
            Some(LinkRoute::Link(_) | LinkRoute::Other) | None => None,
        }
    }
}
