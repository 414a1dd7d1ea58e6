//! Copies of bodies in transit, within a budget shared by all copies of a worker.
//!
//! A copy never delays its body: when the budget is exhausted, the copy is discarded, releases all that it charged,
//! and reports so. Law: each charge is released exactly once, however a copy ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;

/// The budget of all copies of a worker: its limit, and the bytes in use.
#[derive(Debug, Default)]
pub struct CopyBudget {
    limit: Cell<usize>,
    used: Cell<usize>,
}

impl CopyBudget {
    /// Sets the limit in bytes. Copies that exceed it already are kept.
    pub fn set_limit(&self, limit: usize) {
        self.limit.set(limit);
    }

    /// Returns the bytes in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Returns the bytes that may still be charged.
    #[must_use]
    pub fn left(&self) -> usize {
        self.limit.get().saturating_sub(self.used.get())
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = bytes <= self.left();
        if fits {
            self.used.set(self.used.get() + bytes);
        }
        fits
    }
}

/// A copy of a body in transit. Clones share the same copy.
#[derive(Debug, Clone)]
pub struct BodyCopy(Rc<RefCell<CopyState>>);

#[derive(Debug)]
struct CopyState {
    budget: Rc<CopyBudget>,
    charged: usize,
    state: CopyProgress,
}

#[derive(Debug)]
enum CopyProgress {
    Running(Vec<u8>),
    Complete(Bytes),
    Discarded,
}

/// The reason why a copy is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyUnavailable {
    /// The budget was exhausted.
    BudgetExhausted,
    /// The body has not ended yet.
    Unfinished,
}

/// The smallest amount charged at a time, in bytes.
const MIN_CHARGE: usize = 1024;

impl BodyCopy {
    /// Creates an empty copy.
    #[must_use]
    pub fn new(budget: &Rc<CopyBudget>) -> BodyCopy {
        BodyCopy(Rc::new(RefCell::new(CopyState {
            budget: budget.clone(),
            charged: 0,
            state: CopyProgress::Running(Vec::new()),
        })))
    }

    /// Appends a piece of the body.
    pub fn record(&self, piece: &[u8]) {
        self.0.borrow_mut().append(piece);
    }

    /// Marks the body as complete.
    pub fn finish(&self) {
        let mut copied = self.0.borrow_mut();
        if let CopyProgress::Running(bytes) = &mut copied.state {
            let whole = std::mem::take(bytes);
            copied.state = CopyProgress::Complete(whole.into());
        }
    }

    /// Stores a body that is complete already, without copying its memory.
    pub fn store_complete(&self, whole: &Bytes) {
        let mut copied = self.0.borrow_mut();
        if matches!(copied.state, CopyProgress::Running(_)) && copied.charge(whole.len()) {
            copied.state = CopyProgress::Complete(whole.clone());
        }
    }

    /// Charges bytes that are kept elsewhere, until this copy is dropped. Returns false when the budget is exhausted.
    #[must_use]
    pub fn charge(&self, bytes: usize) -> bool {
        self.0.borrow_mut().charge(bytes)
    }

    /// Returns the bytes that may still be charged to the budget.
    #[must_use]
    pub fn left(&self) -> usize {
        self.0.borrow().budget.left()
    }

    /// Returns true when the budget was exhausted.
    #[must_use]
    pub fn is_discarded(&self) -> bool {
        matches!(self.0.borrow().state, CopyProgress::Discarded)
    }

    /// Returns the complete body, which stays charged until this copy is dropped.
    ///
    /// # Errors
    /// [`CopyUnavailable`] when the budget was exhausted or the body has not ended.
    pub fn whole(&self) -> Result<Bytes, CopyUnavailable> {
        match &self.0.borrow().state {
            CopyProgress::Complete(whole) => Ok(whole.clone()),
            CopyProgress::Discarded => Err(CopyUnavailable::BudgetExhausted),
            CopyProgress::Running(_) => Err(CopyUnavailable::Unfinished),
        }
    }
}

impl CopyState {
    fn charge(&mut self, bytes: usize) -> bool {
        let fits = self.budget.take(bytes);
        if fits {
            self.charged += bytes;
        } else {
            self.discard();
        }
        fits
    }

    fn discard(&mut self) {
        self.state = CopyProgress::Discarded;
        self.release();
    }

    fn release(&mut self) {
        let charged = std::mem::take(&mut self.charged);
        self.budget.used.set(self.budget.used.get() - charged);
    }

    fn append(&mut self, piece: &[u8]) {
        let CopyProgress::Running(bytes) = &self.state else {
            return;
        };
        let (had, wanted) = (bytes.capacity(), bytes.len() + piece.len());
        let room = wanted.max(had * 2).max(MIN_CHARGE);
        // Doubles the capacity if the budget allows, else takes just enough.
        let room = if room - had <= self.budget.left() {
            room
        } else {
            wanted
        };
        if wanted > had && !self.charge(room - had) {
            return;
        }
        if let CopyProgress::Running(bytes) = &mut self.state {
            if wanted > had {
                bytes.reserve_exact(room - bytes.len());
            }
            bytes.extend_from_slice(piece);
        }
    }
}

impl Drop for CopyState {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: usize) -> Rc<CopyBudget> {
        let budget = Rc::<CopyBudget>::default();
        budget.set_limit(limit);
        budget
    }

    #[test]
    fn a_body_that_fits_is_copied_and_its_budget_released() {
        let budget = budget(10_000);
        let copy = BodyCopy::new(&budget);
        for _ in 0..90 {
            copy.record(&[b'x'; 100]);
        }
        assert_eq!(copy.whole(), Err(CopyUnavailable::Unfinished));
        copy.finish();
        assert_eq!(copy.whole().unwrap().len(), 9_000);
        assert!((9_000..=10_000).contains(&budget.used()));
        drop(copy);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_body_that_does_not_fit_releases_its_budget_at_once() {
        let budget = budget(5_000);
        let (large, small) = (BodyCopy::new(&budget), BodyCopy::new(&budget));
        small.record(b"small");
        for _ in 0..60 {
            large.record(&[b'x'; 100]);
        }
        assert!(large.is_discarded());
        assert_eq!(budget.used(), MIN_CHARGE, "only the other one's is left");
        large.record(b"more");
        large.finish();
        assert_eq!(large.whole(), Err(CopyUnavailable::BudgetExhausted));
        small.finish();
        assert_eq!(small.whole().unwrap(), "small");
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn other_copies_count_towards_the_budget() {
        let budget = budget(100);
        let copy = BodyCopy::new(&budget);
        assert!(copy.charge(60));
        copy.store_complete(&Bytes::from_static(b"whole"));
        assert_eq!(copy.whole().unwrap(), "whole");
        assert_eq!(budget.left(), 35);
        assert!(!copy.charge(36));
        assert_eq!(
            (copy.whole(), budget.used()),
            (Err(CopyUnavailable::BudgetExhausted), 0)
        );
    }

    #[test]
    fn an_empty_body_costs_nothing() {
        let budget = budget(0);
        let copy = BodyCopy::new(&budget);
        copy.finish();
        assert_eq!(copy.whole().unwrap(), "");
    }
}
