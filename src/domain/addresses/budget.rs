//! A budget of repeats: a share of the calls, so that an upstream in trouble is not asked twice for everything.

use std::time::Duration;

use super::Repeats;

/// How much is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetPlan {
    /// So many of a hundred calls.
    pub percent: u8,
    /// And so many in each [`SPAN`], however few calls there are.
    pub least: u32,
}

/// What is counted together.
const SPAN: Duration = Duration::from_secs(10);

/// Calls pay in, repeats are paid from it; what was paid in one span serves in it and in the next.
#[derive(Debug)]
pub(super) struct Budget {
    plan: BudgetPlan,
    began: Duration,
    calls: u64,
    repeats: u64,
}

impl Budget {
    pub(super) fn new(plan: BudgetPlan) -> Budget {
        Budget {
            plan,
            began: Duration::ZERO,
            calls: 0,
            repeats: 0,
        }
    }

    pub(super) fn call(&mut self, now: Duration) {
        self.turn(now);
        self.calls += 1;
    }

    pub(super) fn repeat(&mut self, now: Duration) -> Repeats {
        self.turn(now);
        let paid = self.calls * u64::from(self.plan.percent) / 100;
        if self.repeats >= paid + u64::from(self.plan.least) {
            return Repeats::Exhausted;
        }
        self.repeats += 1;
        Repeats::Allowed
    }

    /// Another span begins with half of what was.
    fn turn(&mut self, now: Duration) {
        if now.saturating_sub(self.began) >= SPAN {
            self.began = now;
            self.calls /= 2;
            self.repeats /= 2;
        }
    }
}
