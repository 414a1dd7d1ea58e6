//! The thread that sends spans to a collector: OTLP over HTTP, in batches.
//!
//! A collector that is away, slow or angry costs spans and nothing else: each batch has one attempt within a time.

#[cfg(feature = "otlp")]
mod otlp;

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::domain::trace::ExportPlan;
use crate::telemetry::spans::Spans;

/// The thread, where spans are sent.
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
    /// Starts the thread where a plan wants spans to be sent.
    ///
    /// # Errors
    /// What the system says of it.
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
                // Dropped, it says the same.
                let _ = over.send(());
            })?;
        Ok(SpanThread(Some(SpanThreadHandle {
            spans,
            close,
            ended,
            thread,
        })))
    }

    /// No thread: no plan of this build wants one.
    ///
    /// # Errors
    /// None.
    #[cfg(not(feature = "otlp"))]
    pub(super) fn start(_plan: Option<&ExportPlan>) -> io::Result<SpanThread> {
        Ok(SpanThread::default())
    }

    /// What the workers hand spans to.
    pub(super) fn spans(&self) -> Option<&Spans> {
        self.0.as_ref().map(|running| &running.spans)
    }

    /// How many spans were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.spans().map_or(0, Spans::dropped)
    }

    /// Sends what is left, within the time of one batch, and ends the thread.
    pub(super) async fn end(&mut self) {
        let Some(running) = self.0.take() else {
            return;
        };
        drop(running.close);
        let _ = running.ended.await;
        // It has sent its last word, so this is no wait.
        let _ = running.thread.join();
    }
}
