//! The budget of one validation: steps, and memory from a shared limit.
//!
//! Laws: memory taken from the shared limit is returned exactly once, when the meter is dropped; an exhausted meter
//! stays exhausted.

use std::cell::Cell;
use std::fmt::Debug;

/// Steps that each validation may take, regardless of the length of the value.
const BASE_STEPS: u64 = 200_000;
/// Steps for each byte of the value.
const STEPS_PER_BYTE: u64 = 50;
/// Maximum steps of one validation.
const MOST_STEPS: u64 = 50_000_000;
/// Steps for the search of error messages, after a value was found invalid.
const ERROR_STEPS: u64 = 100_000;
/// Bytes that collected errors may take.
const ERROR_BYTES: usize = 4 << 20;
/// Memory is requested from the shared limit in pieces of at least this size.
const PIECE: usize = 16 << 10;

/// A limit of memory that validations share with other users.
pub trait MemoryShare: Debug + Send + Sync {
    /// Takes `bytes`, or returns `false` if the limit does not allow it.
    fn take(&self, bytes: usize) -> bool;
    /// Returns `bytes` that were taken before.
    fn release(&self, bytes: usize);
}

/// The exceeded part of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// More steps than one validation may take.
    Steps,
    /// More memory than the shared limit has left.
    Memory,
}

/// The counter of one validation's steps and memory.
#[derive(Debug)]
pub(super) struct Meter<'r> {
    shared: Option<&'r dyn MemoryShare>,
    steps: Cell<u64>,
    used: Cell<usize>,
    most: Cell<usize>,
    reserved: Cell<usize>,
    exceeded: Cell<Option<Exceeded>>,
    /// True while errors are collected, which keep names and locations.
    collects: Cell<bool>,
}

impl<'r> Meter<'r> {
    /// Returns a budget for a value of `length` bytes.
    pub(super) fn new(length: usize, shared: Option<&'r dyn MemoryShare>) -> Meter<'r> {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let steps = BASE_STEPS.saturating_add(length.saturating_mul(STEPS_PER_BYTE));
        Meter {
            shared,
            steps: Cell::new(steps.min(MOST_STEPS)),
            used: Cell::new(0),
            most: Cell::new(usize::MAX),
            reserved: Cell::new(0),
            exceeded: Cell::new(None),
            collects: Cell::new(false),
        }
    }

    /// Starts a search for errors, with a small budget in addition to the memory in use.
    pub(super) fn collect_errors(&self, in_use: usize) {
        self.collects.set(true);
        self.exceeded.set(None);
        self.steps.set(ERROR_STEPS);
        self.used.set(in_use);
        self.most.set(in_use.saturating_add(ERROR_BYTES));
    }

    /// Counts steps. Returns `false` when the budget is spent.
    pub(super) fn step(&self, steps: usize) -> bool {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        match self.steps.get().checked_sub(steps) {
            Some(left) if self.exceeded.get().is_none() => {
                self.steps.set(left);
                true
            }
            _ => self.exceed(Exceeded::Steps),
        }
    }

    /// Counts memory that stays in use. Returns `false` when the budget is spent.
    pub(super) fn hold(&self, bytes: usize) -> bool {
        let used = self.used.get().saturating_add(bytes);
        if self.exceeded.get().is_some() || used > self.most.get() {
            return self.exceed(Exceeded::Memory);
        }
        let reserved = self.reserved.get();
        if let (Some(shared), true) = (self.shared, used > reserved) {
            let piece = (used - reserved).max(PIECE);
            if !shared.take(piece) {
                return self.exceed(Exceeded::Memory);
            }
            self.reserved.set(reserved + piece);
        }
        self.used.set(used);
        true
    }

    /// Counts memory that is no longer in use. It stays taken from the shared limit, for later use.
    pub(super) fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    /// Counts memory that only collected errors use.
    pub(super) fn hold_for_errors(&self, bytes: usize) {
        if self.collects.get() {
            self.hold(bytes);
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used.get()
    }

    /// Returns the part of the budget that was exceeded first.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get()
    }

    fn exceed(&self, what: Exceeded) -> bool {
        self.exceeded.set(self.exceeded.get().or(Some(what)));
        false
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared {
            shared.release(self.reserved.get());
        }
    }
}
