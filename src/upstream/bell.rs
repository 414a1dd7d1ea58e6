//! The bell that the task of a connection is woken by, so that it is not woken for nothing.
//!
//! hyper wakes the task whenever a piece of a body is taken from it, so that it reads the next one: also when that was the
//! last one, and the task would find nothing to do. Law: a ring is left out only where a body that has a length was taken
//! whole while the bell was held.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The bell of one connection. Whoever rings is on the thread of its task, so that none but the taking of a piece rings
/// while it is held.
#[derive(Debug, Clone, Default)]
pub struct Bell(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Who is woken.
    task: Waker,
    clapper: Clapper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clapper {
    Loose,
    /// It is held, and nobody has rung.
    Held,
    /// Somebody has.
    Pulled,
}

impl Default for State {
    fn default() -> State {
        State {
            task: Waker::noop().clone(),
            clapper: Clapper::Loose,
        }
    }
}

impl Bell {
    /// Polls the connection, which this bell wakes from now on.
    pub fn poll<F: Future>(
        &self,
        connection: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        self.0.lock().task.clone_from(cx.waker());
        let waker = Waker::from(self.0.clone());
        connection.poll(&mut Context::from_waker(&waker))
    }

    /// Holds it while a piece of a body is taken. Let go, it rings if somebody has rung.
    pub(super) fn hold(&self) -> Held<'_> {
        self.0.lock().clapper = Clapper::Held;
        Held(&self.0)
    }
}

/// A bell that is held.
pub(super) struct Held<'a>(&'a Shared);

impl Held<'_> {
    /// There is nothing to wake anybody for.
    pub(super) fn needless(self) {
        self.0.lock().clapper = Clapper::Loose;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let clapper = std::mem::replace(&mut state.clapper, Clapper::Loose);
        if clapper == Clapper::Pulled {
            state.task.wake_by_ref();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panic has left is as good as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.lock();
        match state.clapper {
            Clapper::Loose => state.task.wake_by_ref(),
            Clapper::Held | Clapper::Pulled => state.clapper = Clapper::Pulled,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use super::*;
    use crate::upstream::woken::Woken;

    /// A bell that has polled something, who rings it, and how often its task was woken.
    fn hung() -> (Bell, Waker, Arc<Woken>) {
        let (bell, woken) = (Bell::default(), Arc::<Woken>::default());
        let mut ringer = None;
        let asked = poll_fn(|cx| {
            ringer = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        let task = Waker::from(woken.clone());
        let polled = bell.poll(pin!(asked), &mut Context::from_waker(&task));
        assert!(polled.is_pending());
        (bell, ringer.unwrap(), woken)
    }

    #[test]
    fn who_rings_wakes_the_task() {
        let (_bell, ringer, woken) = hung();
        ringer.wake_by_ref();
        ringer.wake();
        assert_eq!(woken.count(), 2);
    }

    #[test]
    fn a_ring_is_late_while_the_bell_is_held_and_left_out_where_it_is_needless() {
        let (bell, ringer, woken) = hung();
        let count = || woken.count();
        let held = bell.hold();
        ringer.wake_by_ref();
        ringer.wake_by_ref();
        assert_eq!(count(), 0);
        drop(held);
        assert_eq!(count(), 1);
        drop(bell.hold());
        assert_eq!(count(), 1, "nobody has rung");
        let held = bell.hold();
        ringer.wake_by_ref();
        held.needless();
        assert_eq!(count(), 1);
        ringer.wake_by_ref();
        assert_eq!(count(), 2);
    }
}
