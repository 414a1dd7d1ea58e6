//! A budget of repeats: a share of the calls, so that an upstream in trouble is not asked twice for everything.

use std::time::Duration;

use super::Repeats;

/// How much is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBudgetPlan {
    /// So many of a hundred calls.
    pub percent: u8,
    /// And so many in each ten seconds, however few calls there are.
    pub least: u32,
}

/// In what time [`RetryBudgetPlan::least`] comes in.
const SPAN: Duration = Duration::from_secs(10);

/// What a repeat costs; a call brings in so many hundredths as its percentage says.
const PRICE: u64 = 100;

/// For so many repeats can be put by.
const MOST: u64 = 100;

/// Calls pay in, repeats are paid from it.
#[derive(Debug)]
pub(super) struct RetryBudget {
    plan: RetryBudgetPlan,
    /// Hundredths of a repeat.
    left: u64,
    /// When the least last came in.
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

    pub(super) fn withdraw(&mut self, now: Duration) -> Repeats {
        let spans = now.saturating_sub(self.last_refill).as_secs() / SPAN.as_secs();
        if spans > 0 {
            self.last_refill = now;
            self.add(u64::from(self.plan.least) * PRICE * spans);
        }
        if self.left < PRICE {
            return Repeats::Exhausted;
        }
        self.left -= PRICE;
        Repeats::Allowed
    }

    fn add(&mut self, more: u64) {
        let most = (MOST * PRICE).max(u64::from(self.plan.least) * PRICE);
        self.left = (self.left + more).min(most);
    }
}
