//! The thread that exports spans to a collector: OTLP over HTTP, in batches.
//!
//! An unavailable, slow or failing collector loses spans and has no other effect: each batch has one attempt with a
//! time limit.
//!
//! Used by `run`.

#[cfg(feature = "otlp")]
mod otlp;

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::telemetry::spans::Spans;
use dualgauge_model::trace::ExportPlan;

/// The export thread, if spans are exported.
#[derive(Debug, Default)]
pub(super) struct SpanThread(Option<SpanThreadHandle>);

#[derive(Debug)]
struct SpanThreadHandle {
    spans: Spans,
    close: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl SpanThread {
    /// Starts the thread if the plan exports spans.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    #[cfg(feature = "otlp")]
    pub(super) fn start(plan: Option<&ExportPlan>) -> io::Result<SpanThread> {
        let Some(plan) = plan else {
            return Ok(SpanThread::default());
        };
        let (spans, waiting) = Spans::open();
        let (close, closed) = oneshot::channel();
        let (over, ended) = oneshot::channel();
        let sending = otlp::ExportState::new(plan, spans.clone())?;
        let thread = std::thread::Builder::new()
            .name("spans".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                match runtime {
                    Ok(runtime) => runtime.block_on(sending.run(waiting, closed)),
                    Err(error) => tracing::error!(%error, "spans are not sent"),
                }
                // Dropping the sender has the same effect.
                let _ = over.send(());
            })?;
        Ok(SpanThread(Some(SpanThreadHandle {
            spans,
            close,
            ended,
            thread,
        })))
    }

    /// Starts no thread: this build cannot export spans.
    ///
    /// # Errors
    /// Never fails.
    #[cfg(not(feature = "otlp"))]
    pub(super) fn start(_plan: Option<&ExportPlan>) -> io::Result<SpanThread> {
        Ok(SpanThread::default())
    }

    /// Returns the span queue for the workers.
    pub(super) fn spans(&self) -> Option<&Spans> {
        self.0.as_ref().map(|running| &running.spans)
    }

    /// Returns the number of lost spans.
    pub(super) fn dropped(&self) -> u64 {
        self.spans().map_or(0, Spans::dropped)
    }

    /// Exports the remaining spans, within the time limit of one batch, and ends the thread.
    pub(super) async fn end(&mut self) {
        let Some(running) = self.0.take() else {
            return;
        };
        drop(running.close);
        let _ = running.ended.await;
        // The thread has signalled its end, so this does not block.
        let _ = running.thread.join();
    }
}
