//! The log of evaluations that fail.
//!
//! Law: however many fail, there is at most one line per error code and minute.
//!
//! Used by `control::evaluated` and `control::state`.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use crate::telemetry::clock::now;
use crate::telemetry::metrics::EvaluatedAs;
use dualgauge_model::ofrep::EvaluationFault;

/// The least time between two lines about the same error.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The failed evaluations that the log reports.
#[derive(Debug, Default)]
pub(super) struct EvaluationLog(BTreeMap<EvaluatedAs, Failures>);

/// The failures with one error code.
#[derive(Debug)]
struct Failures {
    /// The time of the last line.
    logged: Instant,
    /// The failures since then.
    unlogged: u64,
}

impl EvaluationLog {
    /// Counts a failure. Returns the number of failures for a line, if one is due.
    fn note(&mut self, result: EvaluatedAs) -> Option<u64> {
        let now = now();
        let Some(failures) = self.0.get_mut(&result) else {
            let failures = Failures {
                logged: now,
                unlogged: 0,
            };
            self.0.insert(result, failures);
            return Some(1);
        };
        failures.unlogged += 1;
        if now - failures.logged < LOG_EVERY {
            return None;
        }
        failures.logged = now;
        Some(mem::take(&mut failures.unlogged))
    }

    /// Counts a failure, and logs it if a line is due. An evaluation of all flags has no key.
    pub(super) fn log(&mut self, key: Option<&str>, result: EvaluatedAs, fault: &EvaluationFault) {
        if let Some(failures) = self.note(result) {
            tracing::warn!(
                reason = result.as_str(),
                key,
                error = %fault,
                failures,
                "flags cannot be evaluated for an application"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_error_is_logged_once_a_minute_with_its_failures() {
        let mut failed = EvaluationLog::default();
        assert_eq!(failed.note(EvaluatedAs::FlagNotFound), Some(1));
        for _ in 0..1000 {
            assert_eq!(failed.note(EvaluatedAs::FlagNotFound), None);
        }
        // Another error has a line of its own.
        assert_eq!(failed.note(EvaluatedAs::ParseError), Some(1));
        advance(LOG_EVERY).await;
        assert_eq!(failed.note(EvaluatedAs::FlagNotFound), Some(1001));
        assert_eq!(failed.note(EvaluatedAs::FlagNotFound), None);
    }
}
