//! Export of span batches as OTLP over HTTP. Used by `spans`.

use std::io;
use std::time::Duration;

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::telemetry::spans::{Attribute, Span, Spans};
use dualgauge_model::trace::ExportPlan;

/// The maximum number of spans in a batch.
const BATCH: usize = 512;
/// The time for which a batch is collected.
const GATHER: Duration = Duration::from_secs(1);
/// The time limit of a collector for a batch.
const LIMIT: Duration = Duration::from_secs(5);

fn exporter(plan: &ExportPlan) -> io::Result<SpanExporter> {
    let built = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(&plan.endpoint)
        .with_timeout(LIMIT)
        .build();
    let mut exporter = built.map_err(io::Error::other)?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder_empty()
        .with_service_name(plan.service.clone())
        .with_attribute(version);
    exporter.set_resource(&resource.build());
    Ok(exporter)
}

/// The exporter of batches.
pub(super) struct ExportState {
    exporter: SpanExporter,
    spans: Spans,
    /// True if the last batch failed.
    is_failing: bool,
}

impl ExportState {
    /// Creates an exporter to the collector of a plan.
    ///
    /// # Errors
    /// Returns the error of the library if the endpoint is invalid.
    pub(super) fn new(plan: &ExportPlan, spans: Spans) -> io::Result<ExportState> {
        Ok(ExportState {
            exporter: exporter(plan)?,
            spans,
            is_failing: false,
        })
    }

    /// Exports spans until the queue is closed, and then the remaining ones.
    pub(super) async fn run(
        mut self,
        mut waiting: mpsc::Receiver<Span>,
        closed: oneshot::Receiver<()>,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut closed = closed;
        loop {
            // Both branches are cancel-safe: a span that is not received stays in the queue.
            tokio::select! {
                count = waiting.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return;
                    }
                }
                _ = &mut closed => break,
            }
            tokio::select! {
                () = gather(&mut waiting, &mut batch) => self.send(&mut batch).await,
                _ = &mut closed => break,
            }
        }
        let last = async {
            while !batch.is_empty() || !waiting.is_empty() {
                while batch.len() < BATCH
                    && let Ok(span) = waiting.try_recv()
                {
                    batch.push(span);
                }
                self.send(&mut batch).await;
            }
        };
        // The end of the program does not wait longer for a collector, and the counts are no longer read.
        let _ = timeout(LIMIT, last).await;
    }

    async fn send(&mut self, batch: &mut Vec<Span>) {
        let count = batch.len() as u64;
        let spans = batch.drain(..).map(data).collect();
        let sent = timeout(LIMIT, self.exporter.export(spans)).await;
        let fault = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {LIMIT:?}")),
        };
        let Some(fault) = fault else {
            if self.is_failing {
                tracing::info!("the trace collector accepts spans again");
            }
            self.is_failing = false;
            return;
        };
        self.spans.lost(count);
        if !self.is_failing {
            tracing::warn!(
                fault,
                "the trace collector does not accept spans; they are dropped and counted"
            );
        }
        self.is_failing = true;
    }
}

/// Collects more spans into a batch for a limited time.
async fn gather(waiting: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) {
    let mut over = std::pin::pin!(sleep(GATHER));
    while batch.len() < BATCH {
        let room = BATCH - batch.len();
        tokio::select! {
            count = waiting.recv_many(batch, room) => {
                if count == 0 {
                    return;
                }
            }
            () = &mut over => return,
        }
    }
}

/// Converts a span into the form of the library.
fn data(span: Span) -> SpanData {
    let context = span.trace.context;
    let span_context = SpanContext::new(
        TraceId::from_bytes(context.trace.to_be_bytes()),
        SpanId::from_bytes(context.span.to_be_bytes()),
        TraceFlags::new(context.flags),
        false,
        TraceState::default(),
    );
    let attributes = span.attributes.into_iter();
    let error = span.error.map(|error| KeyValue::new("error.type", error));
    let attributes = attributes.map(|(key, value)| {
        let value: Value = match value {
            Attribute::Text(text) => text.into(),
            Attribute::Integer(number) => number.into(),
            Attribute::Milliseconds(time) => time.into(),
        };
        KeyValue::new(key, value)
    });
    SpanData {
        span_context,
        parent_span_id: SpanId::from_bytes(span.trace.parent.unwrap_or_default().to_be_bytes()),
        parent_span_is_remote: span.trace.parent.is_some(),
        span_kind: SpanKind::Server,
        name: span.name.into(),
        start_time: span.ended.checked_sub(span.took).unwrap_or(span.ended),
        end_time: span.ended,
        attributes: attributes.chain(error).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: match span.error {
            Some(_) => Status::error(""),
            None => Status::Unset,
        },
        instrumentation_scope: InstrumentationScope::builder("dualgauge").build(),
    }
}
