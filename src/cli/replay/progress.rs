//! The progress of a replay on standard error: one line that is rewritten on a terminal, else a line now and then.
//!
//! Used by `driver`.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::Instant;

use super::summary::Summary;
use crate::cli::plural::{count, differ, duration};
use crate::telemetry::clock;

/// The time between two updates on a terminal.
const TERMINAL: Duration = Duration::from_millis(200);
/// The time between two lines elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(10);
/// Removes a line from a terminal.
const CLEAR: &str = "\r\x1b[K";

/// The shown progress.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    began: Instant,
    shown: Instant,
    has_line: bool,
}

/// The part of a replay that is done.
#[derive(Debug, Clone, Copy)]
struct ProgressCounts {
    /// The read share of the file; `None` if its size is unknown.
    percent: Option<u64>,
    compared: u64,
    different: u64,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress::on(io::stderr().is_terminal())
    }

    fn on(is_terminal: bool) -> Progress {
        let now = clock::now();
        Progress {
            is_terminal,
            began: now,
            shown: now,
            has_line: false,
        }
    }

    /// Shows the progress, if the last time is long enough ago.
    pub(super) fn show(&mut self, percent: Option<u64>, summary: &Summary) {
        let done = || ProgressCounts {
            percent,
            compared: summary.compared(),
            different: summary.different(),
        };
        if let Some(text) = self.next(done) {
            // Progress that cannot be shown stops nothing.
            let _ = io::stderr().lock().write_all(text.as_bytes());
        }
    }

    /// Returns the text to show; `None` if the last one was shown a short time ago.
    fn next(&mut self, done: impl FnOnce() -> ProgressCounts) -> Option<String> {
        let pause = match self.is_terminal {
            true => TERMINAL,
            false => ELSEWHERE,
        };
        let now = clock::now();
        if now - self.shown < pause {
            return None;
        }
        self.shown = now;
        self.has_line = self.is_terminal;
        let line = done().line(now - self.began);
        Some(match self.is_terminal {
            true => format!("{CLEAR}{line}"),
            false => format!("{line}\n"),
        })
    }

    /// Removes the line from a terminal.
    pub(super) fn end(&self) {
        if self.has_line {
            let _ = io::stderr().lock().write_all(CLEAR.as_bytes());
        }
    }
}

impl ProgressCounts {
    /// Returns the line of a replay that has run for `elapsed`.
    fn line(self, elapsed: Duration) -> String {
        let mut parts = Vec::new();
        parts.extend(self.percent.map(|percent| format!("{percent} % read")));
        parts.push(format!("{} compared", count(self.compared, "call")));
        parts.push(format!("{} {}", self.different, differ(self.different)));
        let rate = u128::from(self.compared) * 1_000 / elapsed.as_millis().max(1);
        parts.push(format!("{rate} per second"));
        let rest = self.percent.filter(|percent| *percent > 0);
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let rest = rest.map(|percent| {
            let rest_ms = elapsed_ms.saturating_mul(100 - percent.min(100)) / percent;
            rest_ms.div_ceil(1_000)
        });
        parts.extend(rest.map(|rest| format!("about {} left", duration(rest))));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const DONE: ProgressCounts = ProgressCounts {
        percent: Some(25),
        compared: 500,
        different: 3,
    };

    #[test]
    fn the_line_has_the_done_share_the_rate_and_the_time_left() {
        let line = |done: ProgressCounts, seconds| done.line(Duration::from_secs(seconds));
        assert_eq!(
            line(DONE, 10),
            "25 % read, 500 calls compared, 3 differ, 50 per second, about 30 s left"
        );
        let soon = DONE.line(Duration::from_millis(300));
        assert!(soon.ends_with("about 1 s left"), "{soon}");
        assert!(line(DONE, 50).ends_with("10 per second, about 2 min 30 s left"));
        assert!(line(DONE, 3_000).ends_with("0 per second, about 2 h 30 min left"));
        let unknown = ProgressCounts {
            percent: None,
            ..DONE
        };
        assert_eq!(
            line(unknown, 10),
            "500 calls compared, 3 differ, 50 per second"
        );
        let one = ProgressCounts {
            different: 1,
            ..unknown
        };
        assert!(line(one, 10).contains(", 1 differs, "));
        let nothing = ProgressCounts {
            percent: Some(0),
            compared: 0,
            different: 0,
        };
        assert_eq!(
            line(nothing, 0),
            "0 % read, 0 calls compared, 0 differ, 0 per second"
        );
    }

    /// The texts of a minute in which a call ends every 10 ms.
    async fn texts(is_terminal: bool) -> Vec<String> {
        let mut progress = Progress::on(is_terminal);
        let mut texts = Vec::new();
        for _ in 0..6_000 {
            advance(Duration::from_millis(10)).await;
            texts.extend(progress.next(|| DONE));
        }
        texts
    }

    #[tokio::test(start_paused = true)]
    async fn a_terminal_has_one_line_that_is_rewritten() {
        let texts = texts(true).await;
        assert_eq!(texts.len(), 300);
        let is_rewritten = |text: &String| text.starts_with(CLEAR) && !text.contains('\n');
        assert!(texts.iter().all(is_rewritten), "{texts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_has_a_line_every_ten_seconds() {
        let texts = texts(false).await;
        assert_eq!(texts.len(), 6);
        let is_plain = |text: &String| text.ends_with(" left\n") && !text.contains('\x1b');
        assert!(texts.iter().all(is_plain), "{texts:?}");
    }
}
