//! File descriptors: how many connections fit into the limit of open files.
//!
//! A part of the limit is reserved for the admin listener, files and threads, so that probes and the kill switch work
//! while clients use their maximum. Connections to upstreams get at most half of the rest, and clients the remainder.
//!
//! Used by `app::open_files` and `gateway::runtime_plan`.

use super::pending::SUBSCRIPTIONS;
use super::plan::{Plan, Sharing, Transport, UpstreamPlan};

/// The descriptors reserved for the process: 64 connections of the admin listener, files of the configuration and the
/// state, the log, pipes, and connections to a shared store and to a collector of traces.
const RESERVED: usize = 160;
/// The descriptors reserved for each worker: its listener, the same for a successor, and its event loop.
const PER_WORKER: usize = 8;
/// The descriptors of one child process: three pipes, its process, and those for its start.
const PER_CHILD: usize = 8;
/// The descriptors of one MCP server in addition to those of calls and subscriptions.
const PER_SESSION: usize = 16;

/// The limit of open files, and the number of threads that share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// The limit; `None` if unlimited.
    pub limit: Option<u64>,
    /// The number of workers.
    pub workers: usize,
}

/// The connections that fit into the limit of open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Connections of clients in the process.
    clients: usize,
    /// `limits.connections`.
    clients_wanted: usize,
    /// Descriptors for upstreams.
    upstreams: usize,
    /// Descriptors for upstreams with all their `connections`.
    upstreams_wanted: usize,
}

impl Budget {
    /// Returns the connections of a plan that fit.
    #[must_use]
    pub fn from_plan(plan: &Plan, files: Descriptors) -> Budget {
        let all = plan.upstreams.all.iter();
        let wanted = all.map(|upstream| need(upstream, plan.candidates.concurrency, files));
        let wanted = wanted.fold(0, usize::saturating_add);
        Budget::new(plan.limits.connections, wanted, files)
    }

    fn new(clients: usize, upstreams: usize, files: Descriptors) -> Budget {
        let limit = files.limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(usize::MAX);
        let reserved = RESERVED.saturating_add(PER_WORKER.saturating_mul(files.workers));
        let available = limit.saturating_sub(reserved);
        let granted = upstreams.min(available / 2);
        Budget {
            clients: clients.min(available - granted).max(1),
            clients_wanted: clients,
            upstreams: granted,
            upstreams_wanted: upstreams,
        }
    }

    /// Returns how many connections of clients the process may have.
    #[must_use]
    pub const fn clients(&self) -> usize {
        self.clients
    }

    /// Returns the connections that one worker may have to an upstream whose plan allows `connections`.
    #[must_use]
    pub fn connections(&self, connections: usize) -> usize {
        if self.upstreams == self.upstreams_wanted {
            return connections;
        }
        let part = connections as u128 * self.upstreams as u128;
        let part = part.checked_div(self.upstreams_wanted as u128);
        let part = part.and_then(|part| usize::try_from(part).ok());
        part.unwrap_or(connections).max(1)
    }

    /// Returns whether all connections of the plan fit.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.clients == self.clients_wanted && self.upstreams == self.upstreams_wanted
    }

    /// Returns the limit of open files with which all connections of the plan would fit.
    #[must_use]
    pub fn needed(&self, workers: usize) -> usize {
        // Upstreams get at most half of the unreserved descriptors.
        let clients = self.clients_wanted.max(self.upstreams_wanted);
        [
            RESERVED,
            PER_WORKER.saturating_mul(workers),
            clients,
            self.upstreams_wanted,
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}

/// Returns the descriptors of all connections that an upstream may have, including those of candidates.
fn need(upstream: &UpstreamPlan, candidates: usize, files: Descriptors) -> usize {
    let of_workers = |own: usize| own.saturating_mul(files.workers);
    match &upstream.transport {
        Transport::Http => of_workers(upstream.connections.saturating_add(candidates)),
        // Second runs have as many sockets of their own.
        Transport::Frames(_) => of_workers(upstream.connections.saturating_mul(2)),
        Transport::Stdio(_) => PER_CHILD,
        Transport::WebSocket(socket) => match socket.sharing {
            Sharing::Shared => socket.sockets,
            Sharing::Client | Sharing::Authorization => upstream.connections,
        },
        Transport::Mcp(server) => {
            let calls = server.link.settings.order.in_flight();
            calls.saturating_add(SUBSCRIPTIONS + PER_SESSION)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn files(limit: u64, workers: usize) -> Descriptors {
        let limit = Some(limit);
        Descriptors { limit, workers }
    }

    #[test]
    fn upstreams_get_at_most_half_and_clients_the_rest() {
        let of = |limit| Budget::new(10_000, 1_024, files(limit, 4));
        // 160 and 4 times 8 are reserved.
        let small = of(1_024);
        assert_eq!((small.clients(), small.fits()), (416, false));
        assert_eq!(small.connections(256), 104);
        let middle = of(4_096);
        assert_eq!((middle.clients(), middle.fits()), (2_880, false));
        assert_eq!(middle.connections(256), 256);
        let large = of(65_536);
        assert_eq!((large.clients(), large.fits()), (10_000, true));
    }

    #[test]
    fn a_limit_that_leaves_nothing_leaves_one_connection() {
        let budget = Budget::new(10_000, 256, files(100, 2));
        assert_eq!((budget.clients(), budget.connections(256)), (1, 1));
    }

    #[test]
    fn without_a_limit_all_fits() {
        let files = Descriptors {
            limit: None,
            workers: 64,
        };
        let budget = Budget::new(1_000_000, 1_000_000, files);
        assert!(budget.fits());
        assert_eq!(budget.connections(7), 7);
    }

    proptest! {
        #[test]
        fn the_reserve_is_never_given_away(
            limit in 400..100_000_u64,
            workers in 1..20_usize,
            clients in 1..50_000_usize,
            upstreams in prop::collection::vec(1..5_000_usize, 1..5),
        ) {
            let wanted = upstreams.iter().sum::<usize>() * workers;
            let budget = Budget::new(clients, wanted, files(limit, workers));
            let given = upstreams.iter().map(|own| budget.connections(*own)).sum::<usize>();
            // Each upstream has one connection in any case.
            let given = given.saturating_sub(upstreams.len()) * workers;
            let reserved = RESERVED + PER_WORKER * workers;
            prop_assert!(budget.clients() + given + reserved <= usize::try_from(limit).unwrap());
        }

        #[test]
        fn the_needed_limit_is_sufficient(
            workers in 1..20_usize,
            clients in 2..50_000_usize,
            upstreams in 0..50_000_usize,
        ) {
            let small = Budget::new(clients, upstreams, files(1, workers));
            let needed = small.needed(workers) as u64;
            let fits = |limit| Budget::new(clients, upstreams, files(limit, workers)).fits();
            prop_assert!(fits(needed) && !fits(needed - 1));
        }
    }
}
