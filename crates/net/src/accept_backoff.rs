//! The pause of a listener after a failed `accept`, for example without free file descriptors.
//!
//! The listener for calls and the admin listener use it. Law: a failure neither ends the listener nor keeps its thread
//! busy, and it does not flood the log.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::clock;

/// The length of a pause.
const PAUSE: Duration = Duration::from_millis(50);
/// The minimum time between two log lines.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

/// The pause of one listener.
#[derive(Debug)]
pub struct AcceptBackoff {
    listener: &'static str,
    until: Option<Instant>,
    logged: Option<Instant>,
    /// The number of failures since the last log line.
    faults: u64,
}

impl AcceptBackoff {
    /// Creates the backoff of a listener with this name.
    pub const fn new(listener: &'static str) -> AcceptBackoff {
        AcceptBackoff {
            listener,
            until: None,
            logged: None,
            faults: 0,
        }
    }

    /// Returns whether the listener is paused.
    pub const fn is_on(&self) -> bool {
        self.until.is_some()
    }

    /// Waits for the end of the pause. Cancel-safe.
    pub async fn wait(&mut self) {
        if let Some(until) = self.until {
            sleep_until(until).await;
            self.until = None;
        }
    }

    /// Starts a pause, unless the error concerns one connection only.
    pub fn begin(&mut self, error: &Error) {
        let listener = self.listener;
        if concerns_one_connection(error) {
            tracing::debug!(listener, %error, "a connection was aborted before accept");
            return;
        }
        let now = clock::now();
        self.until = Some(now + PAUSE);
        self.faults += 1;
        if self.logged.is_none_or(|at| now - at >= LOGGED_EVERY) {
            let faults = std::mem::take(&mut self.faults);
            self.logged = Some(now);
            tracing::warn!(listener, %error, faults, "cannot accept connections; clients wait in the backlog");
        }
    }
}

/// Returns whether the next connection can be accepted at once.
fn concerns_one_connection(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_listener_without_descriptors_pauses_and_continues() {
        let mut pause = AcceptBackoff::new("calls");
        assert!(!pause.is_on());
        let begun = clock::now();
        // EMFILE
        pause.begin(&Error::from_raw_os_error(24));
        assert!(pause.is_on());
        pause.wait().await;
        assert!(!pause.is_on());
        assert_eq!((clock::now() - begun).as_millis(), PAUSE.as_millis());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_gone_delays_no_other() {
        let mut pause = AcceptBackoff::new("calls");
        pause.begin(&ErrorKind::ConnectionAborted.into());
        assert!(!pause.is_on());
    }

    #[tokio::test(start_paused = true)]
    async fn faults_are_logged_once_in_a_while() {
        let mut pause = AcceptBackoff::new("calls");
        let mut logged = 0;
        for _ in 0..=400 {
            pause.begin(&Error::from_raw_os_error(24));
            logged += u32::from(pause.faults == 0);
            pause.wait().await;
        }
        assert_eq!(logged, 3, "in 20 seconds");
    }
}
