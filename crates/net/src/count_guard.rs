//! Counts of things that exist, such as open connections.
//!
//! A limit on such a count may change at a reload, below the number in use; a semaphore cannot hold that.
//!
//! Used by `connection_pool`, `http1`, `http2` and `monitored_socket`.

use std::cell::Cell;
use std::rc::Rc;

/// Counts one thing until it is dropped.
#[derive(Debug)]
pub struct CountGuard(Rc<Cell<usize>>);

impl CountGuard {
    /// Counts one more.
    #[must_use]
    pub fn new(count: Rc<Cell<usize>>) -> CountGuard {
        count.set(count.get() + 1);
        CountGuard(count)
    }

    /// Counts one more, if fewer than `limit` exist.
    #[must_use]
    pub fn below(limit: usize, count: &Rc<Cell<usize>>) -> Option<CountGuard> {
        (count.get() < limit).then(|| CountGuard::new(count.clone()))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
