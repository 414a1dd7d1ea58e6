//! Copies of bodies that pass by, within a budget that all copies of a worker share.
//!
//! A copy never holds up what it copies: where the budget ends, the copy ends, gives back all that it had, and says
//! so. Law: what is charged is given back exactly once, however a copy ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;

/// How many bytes may be kept, and how many are.
#[derive(Debug, Default)]
pub struct Budget {
    limit: Cell<usize>,
    used: Cell<usize>,
}

impl Budget {
    /// Allows so many bytes from now on; what is kept beyond them is kept to its end.
    pub fn allow(&self, limit: usize) {
        self.limit.set(limit);
    }

    /// How many bytes are kept.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// How many more may be.
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

/// A copy of a body that passes by; its clones are the same copy.
#[derive(Debug, Clone)]
pub struct Tap(Rc<RefCell<Copied>>);

#[derive(Debug)]
struct Copied {
    budget: Rc<Budget>,
    charged: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Running(Vec<u8>),
    Whole(Bytes),
    Over,
}

/// Why there is no copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The budget was too small.
    Large,
    /// The body has not come to its end.
    Unfinished,
}

/// The least that a copy asks of the budget at a time.
const STEP: usize = 1024;

impl Tap {
    /// A copy of nothing yet.
    #[must_use]
    pub fn new(budget: &Rc<Budget>) -> Tap {
        Tap(Rc::new(RefCell::new(Copied {
            budget: budget.clone(),
            charged: 0,
            state: State::Running(Vec::new()),
        })))
    }

    /// A piece of the body passes by.
    pub fn passes(&self, piece: &[u8]) {
        self.0.borrow_mut().passes(piece);
    }

    /// The body has passed by whole.
    pub fn ends(&self) {
        let mut copied = self.0.borrow_mut();
        if let State::Running(bytes) = &mut copied.state {
            let whole = std::mem::take(bytes);
            copied.state = State::Whole(whole.into());
        }
    }

    /// The whole body is there already, and stays where it is.
    pub fn keeps(&self, whole: &Bytes) {
        let mut copied = self.0.borrow_mut();
        if matches!(copied.state, State::Running(_)) && copied.charge(whole.len()) {
            copied.state = State::Whole(whole.clone());
        }
    }

    /// Charges bytes that are kept elsewhere for as long as this copy lives; tells whether they may be.
    #[must_use]
    pub fn charge(&self, bytes: usize) -> bool {
        self.0.borrow_mut().charge(bytes)
    }

    /// How many more bytes the budget allows.
    #[must_use]
    pub fn left(&self) -> usize {
        self.0.borrow().budget.left()
    }

    /// Whether the budget was too small.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.0.borrow().state, State::Over)
    }

    /// The whole body, which stays charged for as long as this copy lives.
    ///
    /// # Errors
    /// [`Missing`] where there is none.
    pub fn whole(&self) -> Result<Bytes, Missing> {
        match &self.0.borrow().state {
            State::Whole(whole) => Ok(whole.clone()),
            State::Over => Err(Missing::Large),
            State::Running(_) => Err(Missing::Unfinished),
        }
    }
}

impl Copied {
    fn charge(&mut self, bytes: usize) -> bool {
        let fits = self.budget.take(bytes);
        if fits {
            self.charged += bytes;
        } else {
            self.give_up();
        }
        fits
    }

    fn give_up(&mut self) {
        self.state = State::Over;
        self.give_back();
    }

    fn give_back(&mut self) {
        let charged = std::mem::take(&mut self.charged);
        self.budget.used.set(self.budget.used.get() - charged);
    }

    fn passes(&mut self, piece: &[u8]) {
        let State::Running(bytes) = &self.state else {
            return;
        };
        let (had, wanted) = (bytes.capacity(), bytes.len() + piece.len());
        let room = wanted.max(had * 2).max(STEP);
        // Twice as much as before where there is room for it, else just enough.
        let room = if room - had <= self.budget.left() {
            room
        } else {
            wanted
        };
        if wanted > had && !self.charge(room - had) {
            return;
        }
        if let State::Running(bytes) = &mut self.state {
            if wanted > had {
                bytes.reserve_exact(room - bytes.len());
            }
            bytes.extend_from_slice(piece);
        }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: usize) -> Rc<Budget> {
        let budget = Rc::<Budget>::default();
        budget.allow(limit);
        budget
    }

    #[test]
    fn a_body_that_fits_is_kept_and_given_back() {
        let budget = budget(10_000);
        let tap = Tap::new(&budget);
        for _ in 0..90 {
            tap.passes(&[b'x'; 100]);
        }
        assert_eq!(tap.whole(), Err(Missing::Unfinished));
        tap.ends();
        assert_eq!(tap.whole().unwrap().len(), 9_000);
        assert!((9_000..=10_000).contains(&budget.used()));
        drop(tap);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_body_that_does_not_fit_gives_back_at_once() {
        let budget = budget(5_000);
        let (large, small) = (Tap::new(&budget), Tap::new(&budget));
        small.passes(b"small");
        for _ in 0..60 {
            large.passes(&[b'x'; 100]);
        }
        assert!(large.is_over());
        assert_eq!(budget.used(), STEP, "only the other one's is left");
        large.passes(b"more");
        large.ends();
        assert_eq!(large.whole(), Err(Missing::Large));
        small.ends();
        assert_eq!(small.whole().unwrap(), "small");
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_kept_elsewhere_counts_as_well() {
        let budget = budget(100);
        let tap = Tap::new(&budget);
        assert!(tap.charge(60));
        tap.keeps(&Bytes::from_static(b"whole"));
        assert_eq!(tap.whole().unwrap(), "whole");
        assert_eq!(budget.left(), 35);
        assert!(!tap.charge(36));
        assert_eq!((tap.whole(), budget.used()), (Err(Missing::Large), 0));
    }

    #[test]
    fn an_empty_body_costs_nothing() {
        let budget = budget(0);
        let tap = Tap::new(&budget);
        tap.ends();
        assert_eq!(tap.whole().unwrap(), "");
    }
}
