//! The log: one subscriber for the process, and the one line of a call.
//!
//! ```text
//! call      what the line of a call says
//! line      how an event becomes one line, as text or as JSON
//! escape    how text that others wrote stays one harmless word of that line
//! queue     how lines get to the thread that writes them
//! ```
//!
//! Laws: an event is one line, whatever text is in it; a call never waits for the log, whose queue has a
//! bound, and what finds it full is dropped and counted; header values and query values are not logged.

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

pub use call::CallLine;
pub use writer::{hand_over, handing_over, keep_lines};

/// What libraries say of every fault of a peer, which whoever is at the other end could have said without end. It is counted
/// where it matters.
const QUIET: &str = "h2=error,hyper=error";

/// Bytes of lines that wait for standard error: a second of a busy proxy.
const QUEUE: usize = 8 * 1024 * 1024;

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
    /// There is no thread for it.
    #[error("the thread of the log cannot be started")]
    Thread(#[source] io::Error),
    /// The process has a log already.
    #[error("the log is set up already")]
    Taken(#[source] SetGlobalDefaultError),
}

/// Keeps the log running; dropping it writes what is queued, and waits at most about a second for that.
#[derive(Debug)]
#[must_use = "the log ends when its guard is dropped"]
pub struct LogGuard {
    queue: Queue,
    _flush: WriterGuard,
}

impl LogGuard {
    /// The counter of dropped lines, for the thread that serves the metrics.
    #[must_use]
    pub fn dropped_lines(&self) -> DroppedLines {
        DroppedLines(self.queue.clone())
    }
}

/// How many lines found the queue full.
#[derive(Debug, Clone)]
pub struct DroppedLines(Queue);

impl DroppedLines {
    /// The count so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.dropped()
    }
}

/// Sends the log of the whole process to standard error, from a level upwards: `info`, or one for a target
/// too: `info,hyper=warn`.
///
/// # Errors
///
/// When the level is none, when there can be no thread, and when the process has a log already.
pub fn init(format: LogFormat, level: &str) -> Result<LogGuard, LogError> {
    let filter = filter(level)?;
    let (queue, flush) = Queue::new(io::stderr(), QUEUE).map_err(LogError::Thread)?;
    let written = subscriber(format, filter, queue.clone(), clock::wall);
    set_global_default(written).map_err(LogError::Taken)?;
    Ok(LogGuard {
        queue,
        _flush: flush,
    })
}

/// Reads nothing but the text: the environment is the configuration's business. What stands later holds, so that a
/// library that is named is heard.
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
