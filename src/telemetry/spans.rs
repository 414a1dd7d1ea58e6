//! The trace span of a call, created when the call ends.
//!
//! Spans wait in a bounded queue for the thread that exports them. A full queue drops and counts them: no call waits
//! for a collector.
//!
//! Used by `app` and `gateway`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use dualgauge_model::trace::Trace;

/// The capacity of the queue.
const CAPACITY: usize = 8192;

/// A call as a trace span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The ids of the trace, the span and its parent.
    pub trace: Trace,
    /// The name: a method and the route, never text from a caller.
    pub name: String,
    /// The end of the call.
    pub ended: SystemTime,
    /// The duration of the call.
    pub took: Duration,
    /// The error, if this proxy or an upstream caused one (OpenTelemetry's `error.type`).
    pub error: Option<&'static str>,
    /// Further attributes.
    pub attributes: Vec<(&'static str, Attribute)>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A duration in milliseconds.
    Milliseconds(f64),
}

/// The sending end of the span queue.
#[derive(Debug, Clone)]
pub struct Spans {
    queue: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

impl Spans {
    /// Creates a queue and its receiver.
    #[must_use]
    pub fn open() -> (Spans, mpsc::Receiver<Span>) {
        let (queue, spans) = mpsc::channel(CAPACITY);
        let dropped = Arc::default();
        (Spans { queue, dropped }, spans)
    }

    /// Queues a span, or drops it if the queue is full.
    pub fn offer(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.lost(1);
        }
    }

    /// Counts spans that were lost later.
    pub fn lost(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the number of lost spans.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
