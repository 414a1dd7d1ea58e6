//! Load balancing over the addresses of an upstream: selection, ejection, circuit breaking and retries.
//!
//! The core has no sockets and clocks: a worker reports the results of its calls and health checks, and asks for the
//! address of the next call. Laws: at most a share of the addresses is ejected for failures; an ejected address is
//! tried again after its pause; without a healthy address all are used, so that a wrong health check takes nothing
//! down; an open breaker admits one call after its pause, and no second one before that call has ended or a further
//! pause has passed; retries never exceed their budget.

mod breaker;
mod budget;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use breaker::BreakerPlan;
pub use budget::RetryBudgetPlan;

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
    Address(usize, Part),
    /// No address: the breaker is open.
    Nowhere {
        /// The time until another attempt is worthwhile.
        again_in: Duration,
    },
}

/// The role of a call for the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
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
pub enum Sign {
    /// Healthy.
    Well,
    /// Unhealthy.
    Ill,
}

/// State changes, for the log and the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The address with this index is ejected for this time.
    Ejected(usize, Duration),
    /// The address fails its health checks.
    Ill(usize),
    /// The address passes its health checks again.
    Well(usize),
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
    sign: Sign,
    /// Consecutive checks that contradict `sign`.
    contrary: u32,
    /// The result known from checks alone; `None` before the first success.
    proven: Option<Sign>,
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
            sign: Sign::Well,
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
        let part = match asked {
            None => Part::Usual,
            Some(Ok(part)) => part,
            Some(Err(again_in)) => return Choice::Nowhere { again_in },
        };
        for own in &mut self.all {
            own.until = own.until.filter(|until| *until > now);
        }
        let standings = [Standing::Whole, Standing::Ejected, Standing::Ill];
        let found = standings
            .into_iter()
            .find_map(|least| self.least_busy(least, tried));
        let place = found.or(tried).unwrap_or_default();
        self.next = (place + 1) % self.all.len();
        Choice::Address(place, part)
    }

    /// Returns the least busy address of at least this standing; round robin among equals.
    fn least_busy(&self, least: Standing, tried: Option<usize>) -> Option<usize> {
        let count = self.all.len();
        let turns = (0..count).map(|step| (self.next + step) % count);
        turns
            .filter(|place| Some(*place) != tried && self.all[*place].standing() <= least)
            .min_by_key(|place| self.all[*place].busy)
    }

    /// Counts a call, which pays into the retry budget.
    pub fn called(&mut self) {
        self.budget.deposit();
    }

    /// Counts a connection to an address as in use.
    pub fn begun(&mut self, place: usize) {
        if let Some(own) = self.all.get_mut(place) {
            own.busy += 1;
        }
    }

    /// Counts a connection to an address as no longer in use.
    pub fn over(&mut self, place: usize) {
        if let Some(own) = self.all.get_mut(place) {
            own.busy = own.busy.saturating_sub(1);
        }
    }

    /// Records the end of a call.
    pub fn ended(&mut self, (place, part): (usize, Part), end: End, now: Duration) -> Vec<News> {
        let breaker = self.breaker.as_mut();
        let of_all = breaker.and_then(|own| own.record((end, part), now));
        self.count(place, end, now)
            .into_iter()
            .chain(of_all)
            .collect()
    }

    fn count(&mut self, place: usize, end: End, now: Duration) -> Option<News> {
        let out = self.all.iter().filter(|own| own.until.is_some()).count();
        let most = self.all.len() * usize::from(self.plan.ejection.most_percent);
        let room = self.all.len() > 1 && (out + 1) * 100 <= most;
        let plan = self.plan.ejection;
        let own = self.all.get_mut(place)?;
        match end {
            End::Abandoned => None,
            End::Answered => {
                (own.failures, own.times) = (0, 0);
                None
            }
            End::Failed => {
                own.failures = own.failures.saturating_add(1);
                if own.failures < plan.failures || own.until.is_some() || !room {
                    return None;
                }
                own.times = (own.times + 1).min(10);
                // One more failure ejects it again.
                own.failures = plan.failures.saturating_sub(1);
                let pause = plan.pause * own.times;
                own.until = Some(now + pause);
                Some(News::Ejected(place, pause))
            }
        }
    }

    /// Records the result of a health check.
    pub fn checked(&mut self, place: usize, sign: Sign) -> Option<News> {
        let plan = self.plan.check.as_ref()?;
        let own = self.all.get_mut(place)?;
        if own.sign == sign {
            own.proven = own.proven.or((sign == Sign::Well).then_some(sign));
            own.contrary = 0;
            return None;
        }
        own.contrary += 1;
        let (enough, news) = match sign {
            Sign::Well => (plan.up_after, News::Well(place)),
            Sign::Ill => (plan.down_after, News::Ill(place)),
        };
        if own.contrary < enough {
            return None;
        }
        own.contrary = 0;
        own.sign = sign;
        own.proven = Some(sign);
        Some(news)
    }

    /// Returns whether another retry is allowed; if so, it is counted.
    pub fn repeats(&mut self, now: Duration) -> Repeats {
        self.budget.withdraw(now)
    }

    /// Returns the number of addresses that are avoided now.
    #[must_use]
    pub fn left_out(&self, now: Duration) -> usize {
        let is_out =
            |own: &&Address| own.sign == Sign::Ill || own.until.is_some_and(|until| until > now);
        self.all.iter().filter(is_out).count()
    }

    /// Returns the number of addresses that pass their health checks; zero before the first success.
    #[must_use]
    pub fn well(&self) -> usize {
        let is_well = |own: &&Address| own.proven == Some(Sign::Well);
        self.all.iter().filter(is_well).count()
    }

    /// Returns whether no health check succeeds.
    #[must_use]
    pub fn all_ill(&self) -> bool {
        self.all.iter().all(|own| own.sign == Sign::Ill)
    }
}

/// The verdict on a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// Allowed.
    Allowed,
    /// The budget is exhausted.
    Exhausted,
}

/// The standing of an address; the best is preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Whole,
    /// Ejected for its failures.
    Ejected,
    /// Its health checks fail.
    Ill,
}

impl Address {
    fn standing(&self) -> Standing {
        match (self.sign, self.until) {
            (Sign::Ill, _) => Standing::Ill,
            (Sign::Well, Some(_)) => Standing::Ejected,
            (Sign::Well, None) => Standing::Whole,
        }
    }
}
