//! What stays on the thread of one worker, in a form that a library may take for something that does not.
//!
//! hyper hands on the socket of a connection that changes its protocol, and asks for one that may change its thread. None
//! here does: a task stays with its worker. So the ends of a connection share what they have to tell each other without any
//! operation that locks out other threads, which would cost more than what it guards. Law: elsewhere, it panics when it is
//! used or let go, before anything is read.

use std::cell::{RefCell, RefMut};
use std::rc::{Rc, Weak};

use fragile::Fragile;

/// Something of one thread that many have. Nobody calls another one that reads it while it has it in hand.
#[derive(Debug)]
pub struct ThreadBound<T>(Fragile<Rc<RefCell<T>>>);

impl<T> ThreadBound<T> {
    /// Of this thread.
    pub fn new(value: T) -> ThreadBound<T> {
        ThreadBound(Fragile::new(Rc::new(RefCell::new(value))))
    }

    /// To read and to change it.
    ///
    /// # Panics
    /// On another thread, and where somebody has it at this moment.
    #[must_use]
    pub fn get(&self) -> RefMut<'_, T> {
        self.0.get().borrow_mut()
    }

    /// The same, which does not keep it.
    pub(super) fn downgrade(&self) -> WeakThreadBound<T> {
        WeakThreadBound(Fragile::new(Rc::downgrade(self.0.get())))
    }
}

/// The same, of somebody who does not keep it.
#[derive(Debug)]
pub(super) struct WeakThreadBound<T>(Fragile<Weak<RefCell<T>>>);

impl<T> WeakThreadBound<T> {
    /// What is done with it, unless nobody keeps it any more; panics as [`ThreadBound::get`] does.
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

/// Of what nobody keeps.
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
