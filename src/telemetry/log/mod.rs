//! The log: one subscriber for the process, and the one line of a call.
//!
//! ```text
//! call      what the line of a call says
//! line      how an event becomes one line, as text or as JSON
//! escape    how text that others wrote stays one harmless word of that line
//! ```
//!
//! Laws: an event is one line, whatever text is in it; a call never waits for the log, whose queue has a
//! bound, and what finds it full is dropped and counted; header values and query values are not logged.

mod call;
mod escape;
mod line;
#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};
use std::time::SystemTime;

use tracing::Subscriber;
use tracing::subscriber::{SetGlobalDefaultError, set_global_default};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;

use super::clock;
use line::Lines;

pub use call::CallLine;

/// Lines that wait for standard error: a few seconds of a busy proxy, a few megabytes.
const QUEUE: usize = 16_384;

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: `time level target key=value ...`.
    Text,
    /// For machines: one flat JSON object.
    Json,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level is none.
    #[error("`{level}` is not a log level")]
    Level {
        /// What was given.
        level: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The process has a log already.
    #[error("the log is set up already")]
    Taken(#[source] SetGlobalDefaultError),
}

/// Keeps the log running; dropping it writes what is queued, and waits at most about a second for that.
#[derive(Debug)]
#[must_use = "the log ends when its guard is dropped"]
pub struct LogGuard {
    dropped: ErrorCounter,
    _flush: WorkerGuard,
}

impl LogGuard {
    /// The counter of dropped lines, for the thread that serves the metrics.
    #[must_use]
    pub fn dropped_lines(&self) -> DroppedLines {
        DroppedLines(self.dropped.clone())
    }
}

/// How many lines found the queue full.
#[derive(Debug, Clone)]
pub struct DroppedLines(ErrorCounter);

impl DroppedLines {
    /// The count so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        u64::try_from(self.0.dropped_lines()).unwrap_or(u64::MAX)
    }
}

/// Sends the log of the whole process to standard error, from a level upwards: `info`, or one for a target
/// too: `info,hyper=warn`.
///
/// # Errors
///
/// When the level is none, and when the process has a log already.
pub fn init(format: LogFormat, level: &str) -> Result<LogGuard, LogError> {
    let filter = filter(level)?;
    let (queue, guard) = queue(BufWriter::new(io::stderr()), QUEUE);
    set_global_default(subscriber(format, filter, queue, clock::wall)).map_err(LogError::Taken)?;
    Ok(guard)
}

/// Reads nothing but the text: the environment is the configuration's business.
fn filter(level: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::builder()
        .with_regex(false)
        .parse(level)
        .map_err(|source| LogError::Level {
            level: level.to_owned(),
            source,
        })
}

/// A bounded queue and its thread, which flushes whenever it has caught up.
fn queue(writer: impl Write + Send + 'static, lines: usize) -> (NonBlocking, LogGuard) {
    let (queue, flush) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(lines)
        .thread_name("log")
        .finish(writer);
    let dropped = queue.error_counter();
    let guard = LogGuard {
        dropped,
        _flush: flush,
    };
    (queue, guard)
}

fn subscriber(
    format: LogFormat,
    filter: EnvFilter,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
    wall: fn() -> SystemTime,
) -> impl Subscriber + Send + Sync {
    tracing_subscriber::fmt()
        .event_format(Lines::new(format, wall))
        .with_env_filter(filter)
        .with_writer(writer)
        .finish()
}
