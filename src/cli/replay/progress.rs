//! The progress of a replay on standard error: one line that is rewritten on a terminal, else a line now and then.
//!
//! Used by `driver`.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::Instant;

use super::summary::Summary;
use crate::cli::plural::count;
use crate::telemetry::clock;

/// The time between two updates on a terminal.
const TERMINAL: Duration = Duration::from_millis(200);
/// The time between two lines elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(10);

/// The shown progress.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    shown: Instant,
    has_line: bool,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            is_terminal: io::stderr().is_terminal(),
            shown: clock::now(),
            has_line: false,
        }
    }

    /// Shows the progress, if the last time is long enough ago.
    pub(super) fn show(&mut self, percent: u64, summary: &Summary) {
        let (pause, begin, end) = match self.is_terminal {
            true => (TERMINAL, "\r\x1b[K", ""),
            false => (ELSEWHERE, "", "\n"),
        };
        let now = clock::now();
        if now - self.shown < pause {
            return;
        }
        self.shown = now;
        self.has_line = self.is_terminal;
        let (compared, different) = (summary.compared(), summary.different());
        let calls = count(compared, "call");
        let line = format!("{begin}{percent} % read, {calls} compared, {different} differ{end}");
        // Progress that cannot be shown stops nothing.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }

    /// Removes the line from a terminal.
    pub(super) fn end(&self) {
        if self.has_line {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}
