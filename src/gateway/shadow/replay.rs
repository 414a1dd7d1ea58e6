//! Calls that can be sent a second time, on either way. Used by `shadow`, `rest` and `rpc`.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::recorded_response::{RecordedResponse, RecordedStream, ResponseOrigin, stream_format};
use super::stream_recorder::StreamRecorder;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::{CallResponse, FullResponse, StreamingResponse};
use crate::gateway::upstream_stream::StreamBody;
use crate::telemetry::clock;
use dualgauge_model::compare::{Skip, StreamBound};
use dualgauge_model::failure::{Failure, FailureCodes};
use dualgauge_model::rollout::Way;
use dualgauge_model::stream_format::StreamFormat;
use dualgauge_net::{CollectError, Lease, collect_budgeted};

/// The second sending of a call, up to its response.
pub(in crate::gateway) type ReplayFuture<'a> =
    Pin<Box<dyn Future<Output = Result<CallResponse, Failure>> + 'a>>;

/// A call stored so that it can be sent again.
pub(in crate::gateway) trait ReplayableCall {
    /// Returns the memory that the call occupies in bytes, without a body that is still arriving.
    fn size(&self) -> usize;

    /// Fails with the reason when the body was not copied completely.
    fn check_complete(&self) -> Result<(), Skip>;

    /// Returns true when translation rejects the message of the call.
    fn is_invalid(&self) -> bool {
        false
    }

    /// Returns the response to this call; for a call of a batch, its part of the batch response.
    fn extract_own_part(&self, answer: Bytes) -> Bytes {
        answer
    }

    /// Sends the call on `way`.
    fn send<'a>(&'a self, record: &'a mut AccessRecord, way: Way) -> ReplayFuture<'a>;

    /// Renders a failure as the client of the call would get it.
    fn render_failure(&self, failure: &Failure, codes: &FailureCodes) -> FullResponse;
}

/// The bounds at which reading of a response that streams ends.
#[derive(Clone, Copy)]
struct StreamBounds {
    most_events: usize,
    /// The time is that of the whole call: a late head leaves less of it to the events.
    until: Instant,
}

/// Sends a call on `way` and reads the response.
pub(super) async fn send_and_collect(
    call: &dyn ReplayableCall,
    record: &mut AccessRecord,
    way: Way,
    most_events: usize,
) -> Result<RecordedResponse, Skip> {
    let bounds = StreamBounds {
        most_events,
        // Half of the time of a candidate, so that its own limit does not end a slow stream as a failure.
        until: clock::now() + record.context.runtime_plan().plan.candidates.timeout / 2,
    };
    let response = match call.send(record, way).await {
        Ok(answer) => collect(record, answer, bounds).await?,
        Err(failure) => failure_response(call, record, &failure),
    };
    match record.context.second_run_budget() {
        Some(budget) if budget.is_discarded() => Err(Skip::Large),
        Some(_) | None => Ok(response),
    }
}

/// Returns the response that a client would get for the failure.
pub(super) fn failure_response(
    call: &dyn ReplayableCall,
    record: &mut AccessRecord,
    failure: &Failure,
) -> RecordedResponse {
    let codes = &record.context.runtime_plan().plan.face.failure_codes;
    let full = call.render_failure(failure, codes);
    record.set_failure(full.status.as_u16(), failure);
    RecordedResponse::failure(&full, failure)
}

/// Reads a response to its end.
async fn collect(
    record: &mut AccessRecord,
    answer: CallResponse,
    bounds: StreamBounds,
) -> Result<RecordedResponse, Skip> {
    let stream = match answer {
        CallResponse::Full(full) => return Ok(RecordedResponse::from_full(&full)),
        CallResponse::Upgrade(_) => return Err(Skip::Stream),
        CallResponse::Streaming(stream) => stream,
    };
    if let Some(format) = stream_format(stream.response.headers(), &record.context)? {
        return collect_stream(record, *stream, format, bounds).await;
    }
    let (head, body) = stream.response.into_parts();
    record.set_response(head.status.as_u16());
    let limit = record.context.runtime_plan().plan.limits.answer;
    let Some(budget) = record.context.second_run_budget().cloned() else {
        return Err(Skip::Large);
    };
    match collect_budgeted(body, limit, &budget).await {
        Ok(body) => {
            stream.lease.into_iter().for_each(Lease::release);
            record.inspect_response(&body);
            Ok(recorded(head.status, head.headers, body))
        }
        Err(CollectError::TooLarge(_) | CollectError::NoRoom(_)) => Err(Skip::Large),
        Err(fault @ CollectError::Cut(_)) => {
            record.cut(fault);
            Ok(RecordedResponse::broken())
        }
    }
}

/// Reads a response that streams, up to a bound. Dropping it closes the upstream connection.
async fn collect_stream(
    record: &mut AccessRecord,
    stream: StreamingResponse,
    format: StreamFormat,
    bounds: StreamBounds,
) -> Result<RecordedResponse, Skip> {
    let (head, body) = stream.response.into_parts();
    record.set_response(head.status.as_u16());
    let Some(budget) = record.context.second_run_budget().cloned() else {
        return Err(Skip::Large);
    };
    let mut content = StreamBody::new(body, stream.translation, &record.context);
    let mut recorder = StreamRecorder::new(format, bounds.most_events);
    let ending = loop {
        let next = poll_fn(|cx| content.poll_frame(cx, record));
        match timeout_at(bounds.until, next).await {
            Err(_) => break Ok(Some(StreamBound::Time)),
            Ok(None) => break Ok(None),
            Ok(Some(Err(fault))) => break Err(fault),
            Ok(Some(Ok(frame))) => {
                let chunk = frame.into_data().unwrap_or_default();
                if !budget.charge(chunk.len()) {
                    return Err(Skip::Large);
                }
                if let Some(bound) = recorder.record(&chunk) {
                    break Ok(Some(bound));
                }
            }
        }
    };
    match ending {
        Ok(_) if content.has_failed() => Ok(RecordedResponse::broken()),
        Ok(bound) => Ok(RecordedResponse {
            stream: Some(RecordedStream { format, bound }),
            ..recorded(head.status, head.headers, recorder.into_body())
        }),
        Err(fault) => {
            record.cut(fault);
            Ok(RecordedResponse::broken())
        }
    }
}

fn recorded(status: StatusCode, headers: HeaderMap, body: Bytes) -> RecordedResponse {
    RecordedResponse {
        status,
        headers,
        body,
        source: ResponseOrigin::Server,
        stream: None,
    }
}
