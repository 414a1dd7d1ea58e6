//! The log: one subscriber for the process, and the access log line of a call.
//!
//! ```text
//! call      the access log line of a call
//! format    formatting of an event as one line, as text or as JSON
//! escape    escaping of text from outside
//! writer    the queue to the writer thread
//! ```
//!
//! Laws: an event is one line, whatever text it contains; a call never waits for the log; the queue is bounded, and
//! lines that exceed it are dropped and counted; header values and query values are not logged.
//!
//! Used by `app`, `gateway` and `log`.

mod call;
mod escape;
mod format;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::time::SystemTime;

use tracing::Subscriber;
use tracing::subscriber::{SetGlobalDefaultError, set_global_default};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt;

use super::clock;
use format::LogLayer;
use writer::{Queue, WriterGuard};

use dualgauge_model::log_format::LogFormat;

pub use call::CallLine;
pub use writer::{buffer_lines, flush_lines, flushing_lines};

/// Default levels for libraries that report every fault of a peer: a peer could fill the log. Such faults are counted
/// where they matter.
const QUIET: &str = "h2=error,hyper=error";

/// The capacity of the queue in bytes: the lines of one second of a busy proxy.
const QUEUE_SIZE: usize = 8 * 1024 * 1024;

/// The reason why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log level is invalid.
    #[error("`{level}` is not a log level")]
    Level {
        /// The given level.
        level: String,
        /// The parse error.
        source: ParseError,
    },
    /// The writer thread could not be started.
    #[error("the thread of the log cannot be started")]
    Thread(#[source] io::Error),
    /// A global subscriber exists already.
    #[error("the log is already set up")]
    AlreadySet(#[source] SetGlobalDefaultError),
}

/// Keeps the log running. Dropping it writes the queued lines, waiting about a second at most.
#[derive(Debug)]
#[must_use = "the log ends when its guard is dropped"]
pub struct LogGuard {
    queue: Queue,
    _flush: WriterGuard,
}

impl LogGuard {
    /// Keeps lines until [`LogGuard::release`]; if the guard is dropped before, they are discarded.
    pub fn hold(&self) {
        self.queue.hold();
    }

    /// Writes the kept lines, and those that follow.
    pub fn release(&self) {
        self.queue.release();
    }

    /// Returns the counter of dropped lines, for the thread that serves the metrics.
    #[must_use]
    pub fn dropped_lines(&self) -> DroppedLines {
        DroppedLines(self.queue.clone())
    }
}

/// The counter of lines that were dropped because the queue was full.
#[derive(Debug, Clone)]
pub struct DroppedLines(Queue);

impl DroppedLines {
    /// Returns the count so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.dropped()
    }
}

/// Logs the whole process to standard error, from a level upwards: `info`, or with a level for a target:
/// `info,hyper=warn`.
///
/// # Errors
///
/// Fails if the level is invalid, the thread cannot be started, or the process has a log already.
pub fn init(format: LogFormat, level: &str) -> Result<LogGuard, LogError> {
    let filter = filter(level)?;
    let (queue, flush) = Queue::new(io::stderr(), QUEUE_SIZE).map_err(LogError::Thread)?;
    let written = subscriber(format, filter, queue.clone(), clock::wall);
    set_global_default(written).map_err(LogError::AlreadySet)?;
    Ok(LogGuard {
        queue,
        _flush: flush,
    })
}

/// Parses the level only; the configuration reads the environment. Later directives win, so a level for a library
/// overrides [`QUIET`].
fn filter(level: &str) -> Result<EnvFilter, LogError> {
    let directives = match level {
        "debug" | "trace" | "off" => level.to_owned(),
        _ => format!("{QUIET},{level}"),
    };
    EnvFilter::builder()
        .with_regex(false)
        .parse(directives)
        .map_err(|source| LogError::Level {
            level: level.to_owned(),
            source,
        })
}

fn subscriber(
    format: LogFormat,
    filter: EnvFilter,
    queue: Queue,
    wall: fn() -> SystemTime,
) -> impl Subscriber + Send + Sync {
    let lines = LogLayer {
        format,
        wall,
        queue,
    };
    tracing_subscriber::registry().with(filter).with(lines)
}
