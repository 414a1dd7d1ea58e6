//! The headers of responses that stream: those of the proxy's own event streams, those of rewritten and translated ones,
//! and those of a complete response that becomes one event.
//!
//! Used by `event_stream`, `old_failure`, `rpc`, `streamed_call` and `translate`.

use std::mem;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::access_record::AccessRecord;
use super::call_response::FullResponse;
use super::headers::from_response;
use dualgauge_model::response_stream::{becomes_event, single_event};
use dualgauge_model::route::Route;
use dualgauge_model::stream::EventResultKind;
use dualgauge_model::stream_format::StreamFormat;
use dualgauge_patterns::rope::Rope;

/// Asks intermediaries not to buffer the response.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Returns the headers of an event stream that the proxy itself writes.
pub(super) fn own_events() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, content_type(StreamFormat::EventStream));
    headers.insert(
        CACHE_CONTROL,
        const { HeaderValue::from_static("no-cache") },
    );
    headers.insert(X_ACCEL_BUFFERING, unbuffered());
    headers
}

/// Returns the headers of an upstream's event stream that still apply after rewriting; length and validators do not.
pub(super) fn rewritten(from: &HeaderMap) -> HeaderMap {
    let mut remaining = from_response(from.clone());
    for name in [CONTENT_TYPE, X_ACCEL_BUFFERING] {
        if let Some(value) = from.get(&name) {
            remaining.insert(name, value.clone());
        }
    }
    remaining
}

/// Returns the headers of a translated response that streams in `format`: those of any translated response, and one
/// that asks intermediaries not to buffer the stream.
pub(super) fn translated(from: &HeaderMap, format: StreamFormat) -> HeaderMap {
    let mut remaining = from_response(from.clone());
    let buffering = from.get(&X_ACCEL_BUFFERING).cloned();
    remaining.insert(X_ACCEL_BUFFERING, buffering.unwrap_or_else(unbuffered));
    remaining.insert(CONTENT_TYPE, content_type(format));
    remaining
}

fn content_type(format: StreamFormat) -> HeaderValue {
    HeaderValue::from_static(format.content_type())
}

/// Turns a complete response to a call of an old dialect into one event, if its client reads nothing else.
pub(super) fn complete_as_event(
    record: &mut AccessRecord,
    route: &Route,
    client: &HeaderMap,
    response: &mut FullResponse,
) {
    // The messages of a batch are parts of one array.
    if !route.is_old() || record.is_in_old_batch() {
        return;
    }
    let kind = response.headers.get(CONTENT_TYPE);
    if !becomes_event(route, client, response.status, kind) {
        return;
    }
    let body = mem::take(&mut response.body).into_bytes();
    response.body = Rope::from(Bytes::from(single_event(&body)));
    response.headers = translated(&response.headers, StreamFormat::EventStream);
    record.add_event();
    let context = &record.context;
    // No client gets the event of a second run.
    if context.second_run_budget().is_none() {
        let (label, side) = (context.label(), context.side());
        let kind = EventResultKind::Complete;
        context
            .worker()
            .count(|shard| shard.event(label, side, kind));
    }
}

const fn unbuffered() -> HeaderValue {
    HeaderValue::from_static("no")
}
