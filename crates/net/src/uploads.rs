//! The uploads that hold a connection to an upstream while their clients still send.
//!
//! While other calls wait for a connection, uploads from clients slower than [`CONTENDED`] are aborted: the slowest
//! first, and no more than calls wait.
//!
//! Used by `connection_pool`.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::UploadProgress;
use crate::clock;
use dualgauge_transport::upload_rate::CONTENDED;

/// The interval at which waiting calls check for slow uploads.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The uploads to one upstream within one worker; at most as many as its connections.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    all: RefCell<Vec<Rc<UploadProgress>>>,
    /// The time of the last check.
    last_check: Cell<Option<Instant>>,
}

/// A guard that removes an upload from the list on drop.
#[derive(Debug)]
pub(super) struct UploadGuard<'u> {
    uploads: &'u Uploads,
    progress: Rc<UploadProgress>,
}

impl Uploads {
    /// Adds an upload that holds a connection.
    pub(super) fn list(&self, progress: Rc<UploadProgress>) -> UploadGuard<'_> {
        self.all.borrow_mut().push(progress.clone());
        UploadGuard {
            uploads: self,
            progress,
        }
    }

    /// Aborts slow uploads for the waiting calls, at most `waiting`. Checks at most twice per [`CHECK_INTERVAL`].
    pub(super) fn abort_slow(&self, waiting: usize) {
        if self.all.borrow().is_empty() {
            return;
        }
        let now = clock::now();
        if self
            .last_check
            .get()
            .is_some_and(|at| now - at < CHECK_INTERVAL / 2)
        {
            return;
        }
        self.last_check.set(Some(now));
        let all = self.all.borrow();
        let ending = all.iter().filter(|upload| upload.is_given_up()).count();
        let mut slow: Vec<_> = all
            .iter()
            .filter(|upload| !upload.is_given_up())
            .filter_map(|upload| Some((upload.time_behind(CONTENDED, now)?, upload)))
            .collect();
        slow.sort_by_key(|(behind, _)| Reverse(*behind));
        for (_, upload) in slow.into_iter().take(waiting.saturating_sub(ending)) {
            upload.abort();
        }
    }
}

impl Drop for UploadGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.uploads.all.borrow_mut();
        if let Some(at) = all
            .iter()
            .position(|upload| Rc::ptr_eq(upload, &self.progress))
        {
            all.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::body::WaitingFor;

    /// Returns uploads that wait for their clients, which have sent these numbers of bytes.
    fn waiting_for<const N: usize>(sent: [usize; N]) -> [Rc<UploadProgress>; N] {
        sent.map(|bytes| {
            let progress = UploadProgress::begin();
            progress.received(bytes);
            progress.set_waiting_for(WaitingFor::Client);
            progress
        })
    }

    fn given_up(all: &[Rc<UploadProgress>]) -> Vec<bool> {
        all.iter().map(|upload| upload.is_given_up()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_uploads_go_and_no_more_than_calls_wait() {
        let uploads = Uploads::default();
        let all = waiting_for([100, 0, 4 * 1024 * 1024, 50]);
        let _listed = all.each_ref().map(|upload| uploads.list(upload.clone()));
        uploads.abort_slow(2);
        assert_eq!(given_up(&all), [false; 4], "each has its grace time");
        advance(Duration::from_secs(2)).await;
        uploads.abort_slow(2);
        assert_eq!(given_up(&all), [false, true, false, true]);
        advance(Duration::from_secs(2)).await;
        uploads.abort_slow(2);
        assert_eq!(given_up(&all), [false, true, false, true], "two are ending");
        advance(Duration::from_secs(2)).await;
        uploads.abort_slow(9);
        assert_eq!(given_up(&all), [true, true, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_its_upstream_holds_up_stays() {
        let uploads = Uploads::default();
        let progress = UploadProgress::begin();
        let _listed = uploads.list(progress.clone());
        advance(Duration::from_secs(60)).await;
        uploads.abort_slow(1);
        assert!(!progress.is_given_up());
    }
}
