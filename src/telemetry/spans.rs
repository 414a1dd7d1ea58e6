//! What a collector of traces is told of a call: one span, made at its end.
//!
//! Spans wait in a bounded queue for the thread that sends them. A full queue drops them and counts: no call waits for
//! a collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use crate::domain::trace::Trace;

/// How many spans may wait to be sent.
const WAITING: usize = 8192;

/// A call, as a collector of traces sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Which trace and span it is, and whose child.
    pub trace: Trace,
    /// What it is called: a method and the route, never what a caller chose.
    pub name: String,
    /// When it ended.
    pub ended: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// Why it failed, where it was this proxy or an upstream that did (OpenTelemetry's `error.type`).
    pub error: Option<&'static str>,
    /// What else is known of it.
    pub attributes: Vec<(&'static str, Attribute)>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A text.
    Text(String),
    /// A number.
    Integer(i64),
    /// A time in milliseconds.
    Milliseconds(f64),
}

/// Where spans are handed over.
#[derive(Debug, Clone)]
pub struct Spans {
    queue: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

impl Spans {
    /// A queue, and where it is read.
    #[must_use]
    pub fn open() -> (Spans, mpsc::Receiver<Span>) {
        let (queue, spans) = mpsc::channel(WAITING);
        let dropped = Arc::default();
        (Spans { queue, dropped }, spans)
    }

    /// Hands a span over, or drops it where too many wait.
    pub fn offer(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.lost(1);
        }
    }

    /// Spans were lost on their way.
    pub fn lost(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// How many were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
