//! The functions through which the control task reaches the workers. Used by `app::run` and `control::task`.

use std::rc::Rc;

use crate::app::recordings::Recordings;

/// The functions through which the task reaches the workers.
#[derive(Debug)]
pub struct Hooks<I, M, C, D, F, N, K> {
    /// Installs a plan in every worker; completes when all use it from their next call on.
    pub install: I,
    /// Renders the metrics page.
    pub metrics: M,
    /// Returns the counts of every worker, for guards and usage.
    pub counts: C,
    /// Returns the last mismatches of all workers together.
    pub mismatches: D,
    /// Returns a copy of the calls of all workers.
    pub calls: K,
    /// Clears the mismatches of routes in all workers; returns the names of those routes.
    pub forget: F,
    /// Returns the state of the upstreams: the obstacles that make the process unready, and the notes on those that
    /// affect some calls.
    pub upstreams: N,
    /// The recordings of calls.
    pub recordings: Rc<Recordings>,
}
