//! The limit of open files: raised at the start, and compared with each plan.
//!
//! `run` raises it after the configuration is read, before it opens sockets. Law: children get the limit that this
//! process was started with, because some programs need time or memory for each possible file descriptor.
//!
//! Used by `run`.

use std::cell::Cell;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::inherited_sockets::InheritedSockets;
use dualgauge_model::descriptors::{Budget, Descriptors};
use dualgauge_model::plan::Plan;

/// The limit of open files.
#[derive(Debug)]
pub(super) struct OpenFiles {
    descriptors: Descriptors,
    /// The original soft limit, if it was raised.
    before: Option<u64>,
    /// The budget that was logged last.
    logged: Cell<Option<Budget>>,
}

impl OpenFiles {
    /// Raises the soft limit of this process to its hard limit.
    pub(super) fn raise(inherited: &InheritedSockets, workers: usize) -> OpenFiles {
        let given = getrlimit(Resource::Nofile);
        if given.current != given.maximum {
            let raised = Rlimit {
                current: given.maximum,
                ..given
            };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::warn!(%error, limit = given.current, "the limit of open files cannot be raised");
            }
        }
        let limit = getrlimit(Resource::Nofile).current;
        let first = inherited.open_files.or(given.current);
        OpenFiles {
            descriptors: Descriptors { limit, workers },
            before: first.filter(|first| limit.is_none_or(|limit| *first < limit)),
            logged: Cell::default(),
        }
    }

    /// Returns the soft limit that the process was started with, if it has changed.
    pub(super) fn before(&self) -> Option<u64> {
        self.before
    }

    /// Logs if the connections of a plan exceed the limit, once per change.
    pub(super) fn check(&self, plan: &Plan) {
        let budget = Budget::from_plan(plan, self.descriptors);
        let known = self.logged.replace(Some(budget));
        if budget.fits() || known == Some(budget) {
            return;
        }
        tracing::warn!(
            limit = self.descriptors.limit,
            needed = budget.needed(self.descriptors.workers),
            clients = budget.clients(),
            "`limits.connections` and the `connections` of upstreams do not fit into the limit of open files, and are lowered; \
             raise its hard limit (`ulimit -Hn`, LimitNOFILE of systemd) or lower these keys"
        );
    }
}
