//! Load balancing over the addresses of an upstream: selection, ejection, circuit breaking and retries.
//!
//! The core has no sockets and clocks: a worker reports the results of its calls and health checks, and asks for the
//! address of the next call. Laws: at most a share of the addresses is ejected for failures; an ejected address is
//! tried again after its pause; without a healthy address all are used, so that a wrong health check stops no
//! calls; an open breaker admits one call after its pause, and no second one before that call has ended or a further
//! pause has passed; retries never exceed their budget.

mod breaker;
mod budget;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use breaker::BreakerPlan;
pub use budget::{RetryBudgetPlan, RetryDecision};

use breaker::Breaker;
use budget::RetryBudget;

/// The load-balancing configuration of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressPlan {
    /// Ejection of single addresses.
    pub ejection: EjectionPlan,
    /// The circuit breaker of the whole upstream.
    pub breaker: Option<BreakerPlan>,
    /// The retry budget.
    pub budget: RetryBudgetPlan,
    /// Health checks.
    pub check: Option<CheckPlan>,
}

/// The configuration of ejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EjectionPlan {
    /// Consecutive failures before ejection.
    pub failures: u32,
    /// First time of ejection; each further one in a row is longer by this time, up to ten times.
    pub pause: Duration,
    /// Maximum percentage of ejected addresses.
    pub most_percent: u8,
}

/// The configuration of health checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckPlan {
    /// The path.
    pub path: String,
    /// The interval after the end of the last check.
    pub every: Duration,
    /// The timeout of a check.
    pub timeout: Duration,
    /// Consecutive failures that make an address unhealthy.
    pub down_after: u32,
    /// Consecutive successes that make it healthy again.
    pub up_after: u32,
}

impl Default for AddressPlan {
    fn default() -> Self {
        AddressPlan {
            ejection: EjectionPlan {
                failures: 5,
                pause: Duration::from_secs(30),
                most_percent: 50,
            },
            breaker: None,
            budget: RetryBudgetPlan {
                percent: 20,
                least: 10,
            },
            check: None,
        }
    }
}

/// The target of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The address with this index; the part is for the breaker.
    Address(usize, CallRole),
    /// No address: the breaker is open.
    Unavailable {
        /// The time until another attempt is worthwhile.
        retry_in: Duration,
    },
}

/// The role of a call for the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallRole {
    /// An ordinary call.
    Usual,
    /// The trial call of a half-open breaker.
    Trial,
}

/// The end of a call, as far as it concerns the health of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A response arrived.
    Answered,
    /// No response in time, or one that reports an unavailable server (502, 503, 504).
    Failed,
    /// The caller cancelled it.
    Abandoned,
}

/// The result of a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthSignal {
    /// Healthy.
    Healthy,
    /// Unhealthy.
    Unhealthy,
}

/// State changes, for the log and the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthEvent {
    /// The address with this index is ejected for this time.
    Ejected(usize, Duration),
    /// The address fails its health checks.
    Unhealthy(usize),
    /// The address passes its health checks again.
    Healthy(usize),
    /// The breaker opened for this time.
    Opened(Duration),
    /// The breaker closed after a successful call.
    Closed,
}

/// The addresses of an upstream, as one worker knows them.
#[derive(Debug)]
pub struct Addresses {
    plan: AddressPlan,
    all: Vec<Address>,
    /// The start of the search, for round robin among equals.
    next: usize,
    breaker: Option<Breaker>,
    budget: RetryBudget,
}

/// One address.
#[derive(Debug, Clone)]
struct Address {
    /// Calls in flight.
    busy: usize,
    /// Consecutive failures.
    failures: u32,
    /// Ejections without a response in between.
    times: u32,
    /// The end of the ejection.
    until: Option<Duration>,
    signal: HealthSignal,
    /// Consecutive checks that contradict `signal`.
    contrary: u32,
    /// The result known from checks alone; `None` before the first success.
    proven: Option<HealthSignal>,
}

impl Addresses {
    /// Returns this many addresses, all healthy.
    #[must_use]
    pub fn new(plan: AddressPlan, count: usize) -> Addresses {
        let address = Address {
            busy: 0,
            failures: 0,
            times: 0,
            until: None,
            signal: HealthSignal::Healthy,
            contrary: 0,
            proven: None,
        };
        Addresses {
            all: vec![address; count],
            next: 0,
            breaker: plan.breaker.map(Breaker::new),
            budget: RetryBudget::new(plan.budget),
            plan,
        }
    }

    /// Selects the address of the next call; avoids `tried` if there is another one.
    pub fn choose(&mut self, now: Duration, tried: Option<usize>) -> Choice {
        let asked = self
            .breaker
            .as_mut()
            .map(|breaker| breaker.try_acquire(now));
        let role = match asked {
            None => CallRole::Usual,
            Some(Ok(role)) => role,
            Some(Err(retry_in)) => return Choice::Unavailable { retry_in },
        };
        for address in &mut self.all {
            address.until = address.until.filter(|until| *until > now);
        }
        let states = [
            AddressState::Healthy,
            AddressState::Ejected,
            AddressState::Unhealthy,
        ];
        let found = states
            .into_iter()
            .find_map(|least| self.least_busy(least, tried));
        let index = found.or(tried).unwrap_or_default();
        self.next = (index + 1) % self.all.len();
        Choice::Address(index, role)
    }

    /// Returns the least busy address of at least this state; round robin among equals.
    fn least_busy(&self, least: AddressState, tried: Option<usize>) -> Option<usize> {
        let count = self.all.len();
        let turns = (0..count).map(|step| (self.next + step) % count);
        turns
            .filter(|index| Some(*index) != tried && self.all[*index].state() <= least)
            .min_by_key(|index| self.all[*index].busy)
    }

    /// Counts a call, which pays into the retry budget.
    pub fn record_call(&mut self) {
        self.budget.deposit();
    }

    /// Counts a connection to an address as in use.
    pub fn acquire(&mut self, index: usize) {
        if let Some(address) = self.all.get_mut(index) {
            address.busy += 1;
        }
    }

    /// Counts a connection to an address as no longer in use.
    pub fn release(&mut self, index: usize) {
        if let Some(address) = self.all.get_mut(index) {
            address.busy = address.busy.saturating_sub(1);
        }
    }

    /// Records the end of a call.
    pub fn record_end(
        &mut self,
        index: usize,
        role: CallRole,
        end: End,
        now: Duration,
    ) -> Vec<HealthEvent> {
        let breaker = self.breaker.as_mut();
        let breaker_event = breaker.and_then(|breaker| breaker.record(end, role, now));
        self.count(index, end, now)
            .into_iter()
            .chain(breaker_event)
            .collect()
    }

    fn count(&mut self, index: usize, end: End, now: Duration) -> Option<HealthEvent> {
        let out = self
            .all
            .iter()
            .filter(|address| address.until.is_some())
            .count();
        let most = self.all.len() * usize::from(self.plan.ejection.most_percent);
        let may_eject = self.all.len() > 1 && (out + 1) * 100 <= most;
        let plan = self.plan.ejection;
        let address = self.all.get_mut(index)?;
        match end {
            End::Abandoned => None,
            End::Answered => {
                (address.failures, address.times) = (0, 0);
                None
            }
            End::Failed => {
                address.failures = address.failures.saturating_add(1);
                if address.failures < plan.failures || address.until.is_some() || !may_eject {
                    return None;
                }
                address.times = (address.times + 1).min(10);
                // One more failure ejects it again.
                address.failures = plan.failures.saturating_sub(1);
                let pause = plan.pause * address.times;
                address.until = Some(now + pause);
                Some(HealthEvent::Ejected(index, pause))
            }
        }
    }

    /// Records the result of a health check.
    pub fn record_check(&mut self, index: usize, signal: HealthSignal) -> Option<HealthEvent> {
        let plan = self.plan.check.as_ref()?;
        let address = self.all.get_mut(index)?;
        if address.signal == signal {
            address.proven = address
                .proven
                .or((signal == HealthSignal::Healthy).then_some(signal));
            address.contrary = 0;
            return None;
        }
        address.contrary += 1;
        let (enough, event) = match signal {
            HealthSignal::Healthy => (plan.up_after, HealthEvent::Healthy(index)),
            HealthSignal::Unhealthy => (plan.down_after, HealthEvent::Unhealthy(index)),
        };
        if address.contrary < enough {
            return None;
        }
        address.contrary = 0;
        address.signal = signal;
        address.proven = Some(signal);
        Some(event)
    }

    /// Returns whether another retry is allowed; if so, it is counted.
    pub fn try_retry(&mut self, now: Duration) -> RetryDecision {
        self.budget.withdraw(now)
    }

    /// Returns the number of addresses that are avoided now.
    #[must_use]
    pub fn avoided(&self, now: Duration) -> usize {
        let is_out = |address: &&Address| {
            address.signal == HealthSignal::Unhealthy
                || address.until.is_some_and(|until| until > now)
        };
        self.all.iter().filter(is_out).count()
    }

    /// Returns the number of addresses that pass their health checks; zero before the first success.
    #[must_use]
    pub fn healthy(&self) -> usize {
        let is_healthy = |address: &&Address| address.proven == Some(HealthSignal::Healthy);
        self.all.iter().filter(is_healthy).count()
    }

    /// Returns whether no health check succeeds.
    #[must_use]
    pub fn all_unhealthy(&self) -> bool {
        self.all
            .iter()
            .all(|address| address.signal == HealthSignal::Unhealthy)
    }
}

/// The state of an address; the best is preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AddressState {
    Healthy,
    /// Ejected for its failures.
    Ejected,
    /// Its health checks fail.
    Unhealthy,
}

impl Address {
    fn state(&self) -> AddressState {
        match (self.signal, self.until) {
            (HealthSignal::Unhealthy, _) => AddressState::Unhealthy,
            (HealthSignal::Healthy, Some(_)) => AddressState::Ejected,
            (HealthSignal::Healthy, None) => AddressState::Healthy,
        }
    }
}
