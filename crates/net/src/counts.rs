//! Counters and states of a pool, for metrics.

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

/// The calls at an upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamCalls {
    /// The calls with a permit: they are sent, or their connection is being opened.
    pub sent: u64,
    /// The calls that wait for a permit.
    pub waiting: u64,
    /// The number of permits.
    pub limit: u64,
}

impl UpstreamCalls {
    /// Adds the calls of another worker.
    pub const fn add(&mut self, other: UpstreamCalls) {
        self.sent += other.sent;
        self.waiting += other.waiting;
        self.limit += other.limit;
    }
}
