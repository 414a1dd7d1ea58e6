//! The retry budget: retries are limited to a share of the calls, so that an upstream in trouble is not overloaded
//! further.

use std::time::Duration;

/// The configuration of the retry budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBudgetPlan {
    /// Retries per hundred calls.
    pub percent: u8,
    /// Additional retries per ten seconds, however few calls there are.
    pub least: u32,
}

/// The verdict on a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Allowed.
    Allowed,
    /// The budget is exhausted.
    Exhausted,
}

/// The period of [`RetryBudgetPlan::least`].
const SPAN: Duration = Duration::from_secs(10);

/// The price of a retry; a call deposits its percentage in the same unit.
const PRICE: u64 = 100;

/// The maximum number of saved retries.
const MOST: u64 = 100;

/// The account that calls pay into and retries are paid from.
#[derive(Debug)]
pub(super) struct RetryBudget {
    plan: RetryBudgetPlan,
    /// The balance, in hundredths of a retry.
    left: u64,
    /// The time of the last periodic deposit.
    last_refill: Duration,
}

impl RetryBudget {
    pub(super) fn new(plan: RetryBudgetPlan) -> RetryBudget {
        RetryBudget {
            plan,
            left: u64::from(plan.least) * PRICE,
            last_refill: Duration::ZERO,
        }
    }

    pub(super) fn deposit(&mut self) {
        self.add(u64::from(self.plan.percent));
    }

    pub(super) fn withdraw(&mut self, now: Duration) -> RetryDecision {
        let spans = now.saturating_sub(self.last_refill).as_secs() / SPAN.as_secs();
        if spans > 0 {
            self.last_refill = now;
            self.add(u64::from(self.plan.least) * PRICE * spans);
        }
        if self.left < PRICE {
            return RetryDecision::Exhausted;
        }
        self.left -= PRICE;
        RetryDecision::Allowed
    }

    fn add(&mut self, more: u64) {
        let most = (MOST * PRICE).max(u64::from(self.plan.least) * PRICE);
        self.left = (self.left + more).min(most);
    }
}
