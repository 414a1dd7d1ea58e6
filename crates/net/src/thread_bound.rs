//! Thread-bound shared state that satisfies hyper's `Send` bounds.
//!
//! hyper requires the socket of an upgraded connection to be `Send`. Here a task never leaves its worker, so the ends
//! of a connection share state without locks or atomic operations, which would cost more than what they protect. Law:
//! any use or drop on another thread panics before anything is read.
//!
//! Used by `coalescing_socket`, `response_reader`, `wire_capture` and `write_coalescer`.

use std::cell::{RefCell, RefMut};
use std::rc::{Rc, Weak};

use fragile::Fragile;

/// A value shared by several owners on one thread. Law: an owner that borrows it calls no other owner meanwhile.
#[derive(Debug)]
pub struct ThreadBound<T>(Fragile<Rc<RefCell<T>>>);

impl<T> ThreadBound<T> {
    /// Creates a value bound to the current thread.
    pub fn new(value: T) -> ThreadBound<T> {
        ThreadBound(Fragile::new(Rc::new(RefCell::new(value))))
    }

    /// Borrows the value mutably.
    ///
    /// # Panics
    /// On another thread, and while it is borrowed already.
    #[must_use]
    pub fn get(&self) -> RefMut<'_, T> {
        self.0.get().borrow_mut()
    }

    /// Returns a weak reference.
    pub(super) fn downgrade(&self) -> WeakThreadBound<T> {
        WeakThreadBound(Fragile::new(Rc::downgrade(self.0.get())))
    }
}

/// A weak reference, which does not keep the value alive.
#[derive(Debug)]
pub(super) struct WeakThreadBound<T>(Fragile<Weak<RefCell<T>>>);

impl<T> WeakThreadBound<T> {
    /// Applies `of` to the value, if it is still alive. Panics as [`ThreadBound::get`] does.
    pub(super) fn map<U>(&self, of: impl FnOnce(&mut T) -> U) -> Option<U> {
        let kept = self.0.get().upgrade()?;
        Some(of(&mut kept.borrow_mut()))
    }
}

impl<T> Clone for WeakThreadBound<T> {
    fn clone(&self) -> WeakThreadBound<T> {
        WeakThreadBound(Fragile::new(self.0.get().clone()))
    }
}

/// A reference to no value.
impl<T> Default for WeakThreadBound<T> {
    fn default() -> WeakThreadBound<T> {
        WeakThreadBound(Fragile::new(Weak::new()))
    }
}

impl<T> Clone for ThreadBound<T> {
    fn clone(&self) -> ThreadBound<T> {
        ThreadBound(Fragile::new(self.0.get().clone()))
    }
}

impl<T: Default> Default for ThreadBound<T> {
    fn default() -> ThreadBound<T> {
        ThreadBound::new(T::default())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    #[test]
    fn all_who_have_it_have_the_same() {
        let first = ThreadBound::new(1);
        let second = first.clone();
        *first.get() += 1;
        assert_eq!(*second.get(), 2);
    }

    #[test]
    fn on_another_thread_it_panics() {
        let local = ThreadBound::new(1);
        thread::scope(|scope| {
            let used = || catch_unwind(AssertUnwindSafe(|| *local.get())).is_err();
            assert!(scope.spawn(used).join().unwrap());
        });
        let gone = thread::spawn(move || drop(local)).join();
        assert!(gone.is_err());
    }
}
