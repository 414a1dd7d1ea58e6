//! The addresses of an upstream: which one a call goes to, which are left out for a while, and what is tried again.
//!
//! A core without sockets and clocks: a worker tells what has become of its calls and of its health checks, and asks
//! where the next call goes. Laws: no more than a share of the addresses is left out for its failures; one that is left
//! out is asked again after its pause; with no healthy address left all of them are used, so that a wrong health check
//! takes nothing down; an open breaker lets one call through when its pause is over, and no second one before that one
//! has ended or has lasted for a pause itself; repeats never exceed their budget.

mod breaker;
mod budget;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use breaker::BreakerPlan;
pub use budget::RetryBudgetPlan;

use breaker::Breaker;
use budget::RetryBudget;

/// How the addresses of an upstream are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressPlan {
    /// When one of several is left out.
    pub ejection: EjectionPlan,
    /// When the upstream is left alone as a whole.
    pub breaker: Option<BreakerPlan>,
    /// How much is tried again.
    pub budget: RetryBudgetPlan,
    /// How they are asked whether they are well.
    pub check: Option<CheckPlan>,
}

/// When one of several addresses is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EjectionPlan {
    /// After so many failures one behind the other.
    pub failures: u32,
    /// For so long at first; each further time in a row as much longer, up to ten times.
    pub pause: Duration,
    /// No more than so many of a hundred addresses.
    pub most_percent: u8,
}

/// How an address is asked whether it is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckPlan {
    /// The path that is asked for.
    pub path: String,
    /// How long after the end of the last check.
    pub every: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// So many failures in a row make it ill.
    pub down_after: u32,
    /// So many successes in a row make it well again.
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

/// Where a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// To the address at this place, as this part of what the breaker looks at.
    Address(usize, Part),
    /// Nowhere: the breaker is open, and closes no sooner.
    Nowhere {
        /// After so long it may be worth to ask again.
        again_in: Duration,
    },
}

/// What a call is for the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One of many.
    Usual,
    /// The one that shows whether the upstream is back.
    Trial,
}

/// How a call ended, as far as it says something of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an answer.
    Answered,
    /// Without one, in time; or with one that says that nobody is there (502, 503, 504).
    Failed,
    /// Nobody waited for it.
    Abandoned,
}

/// What a health check has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It answers as it should.
    Well,
    /// It does not.
    Ill,
}

/// What has happened, for the log and the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The address at this place is left out for so long.
    Ejected(usize, Duration),
    /// Its health checks fail.
    Ill(usize),
    /// They succeed again.
    Well(usize),
    /// The upstream is left alone for so long.
    Opened(Duration),
    /// A call has shown that it is back.
    Closed,
}

/// The addresses of an upstream, as one worker knows them.
#[derive(Debug)]
pub struct Addresses {
    plan: AddressPlan,
    all: Vec<Address>,
    /// Where the search begins, so that equals take turns.
    next: usize,
    breaker: Option<Breaker>,
    budget: RetryBudget,
}

/// One of them.
#[derive(Debug, Clone)]
struct Address {
    /// Calls whose connections are in use.
    busy: usize,
    /// Failures one behind the other.
    failures: u32,
    /// How often it was left out without an answer in between.
    times: u32,
    /// Until when it is left out.
    until: Option<Duration>,
    sign: Sign,
    /// Checks in a row that say the contrary of `sign`.
    contrary: u32,
    /// What is known by checks alone; nothing before the first that succeeds.
    proven: Option<Sign>,
}

impl Addresses {
    /// So many addresses, all of them well.
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

    /// Where the next call goes; not to `tried`, if there is another one.
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

    /// Of those that stand at least so well the one with the fewest calls; equals take turns.
    fn least_busy(&self, least: Standing, tried: Option<usize>) -> Option<usize> {
        let count = self.all.len();
        let turns = (0..count).map(|step| (self.next + step) % count);
        turns
            .filter(|place| Some(*place) != tried && self.all[*place].standing() <= least)
            .min_by_key(|place| self.all[*place].busy)
    }

    /// A call comes, which pays for repeats.
    pub fn called(&mut self) {
        self.budget.deposit();
    }

    /// A connection to an address is in use.
    pub fn begun(&mut self, place: usize) {
        if let Some(own) = self.all.get_mut(place) {
            own.busy += 1;
        }
    }

    /// A connection to an address is in use no more.
    pub fn over(&mut self, place: usize) {
        if let Some(own) = self.all.get_mut(place) {
            own.busy = own.busy.saturating_sub(1);
        }
    }

    /// A call has ended.
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
                // One failure more, and it is left out again.
                own.failures = plan.failures.saturating_sub(1);
                let pause = plan.pause * own.times;
                own.until = Some(now + pause);
                Some(News::Ejected(place, pause))
            }
        }
    }

    /// A health check has ended.
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

    /// Whether one call more may be tried again; it counts as one that was.
    pub fn repeats(&mut self, now: Duration) -> Repeats {
        self.budget.withdraw(now)
    }

    /// How many addresses get no call now, but for want of others.
    #[must_use]
    pub fn left_out(&self, now: Duration) -> usize {
        let is_out =
            |own: &&Address| own.sign == Sign::Ill || own.until.is_some_and(|until| until > now);
        self.all.iter().filter(is_out).count()
    }

    /// How many addresses pass their health checks; before the first that succeeds none does.
    #[must_use]
    pub fn well(&self) -> usize {
        let is_well = |own: &&Address| own.proven == Some(Sign::Well);
        self.all.iter().filter(is_well).count()
    }

    /// Whether no health check says that anybody is there.
    #[must_use]
    pub fn all_ill(&self) -> bool {
        self.all.iter().all(|own| own.sign == Sign::Ill)
    }
}

/// Whether a call may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// It may.
    Allowed,
    /// Too many have been lately.
    Exhausted,
}

/// How an address stands, those that calls go to first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Whole,
    /// Left out for its failures.
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
