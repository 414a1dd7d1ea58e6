//! A thread that does one thing after another.
//!
//! A configuration is read from texts and trees that take more than what is made of them, and what a thread has freed is room
//! for nobody but that thread, or nearly so. So the thread that reads is one that serves afterwards: its calls find room in
//! what the reading has left.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

type Job = Box<dyn FnOnce() + Send>;

/// The thread. Dropped, it ends by itself.
#[derive(Debug)]
pub(super) struct Hand {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Hand {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// What the system says of it.
    pub(super) fn start(name: String) -> io::Result<Hand> {
        let (jobs, given) = channel::<Job>();
        let thread = Builder::new()
            .name(name)
            .spawn(move || given.into_iter().for_each(|job| job()))?;
        Ok(Hand { jobs, thread })
    }

    /// Has a thing done, and waits for it.
    ///
    /// # Errors
    /// It has panicked.
    pub(super) fn does<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, result) = channel();
        self.give(move || drop(done.send(job())));
        let panicked = |_| io::Error::other("what was to be done on a thread of its own panicked");
        result.recv().map_err(panicked)
    }

    /// Has a last thing done, and waits for nothing.
    pub(super) fn ends_with(self, job: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        self.give(job);
        self.thread
    }

    fn give(&self, job: impl FnOnce() + Send + 'static) {
        // One that has panicked takes nothing: whoever waits for it is told so.
        drop(self.jobs.send(Box::new(job)));
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn all_is_done_by_one_thread_and_in_order() {
        let hand = Hand::start("hand".to_owned()).unwrap();
        let mine = thread::current().id();
        let whose = hand.does(|| thread::current().id()).unwrap();
        assert_ne!(whose, mine);
        assert_eq!(hand.does(|| thread::current().id()).unwrap(), whose);
        let (done, last) = channel();
        let thread = hand.ends_with(move || done.send(thread::current().id()).unwrap());
        thread.join().unwrap();
        assert_eq!(last.recv().unwrap(), whose);
    }

    #[test]
    fn a_panic_is_told_to_whoever_waits() {
        let hand = Hand::start("hand".to_owned()).unwrap();
        assert!(hand.does(|| panic!("on purpose")).is_err());
        assert!(hand.does(|| ()).is_err());
    }
}
