//! The headers of responses that stream: those of the proxy's own event streams, and those of rewritten and translated
//! ones.
//!
//! Used by `event_stream`, `rpc` and `streamed_call`.

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::headers::from_response;
use dualgauge_model::stream_format::StreamFormat;

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

const fn unbuffered() -> HeaderValue {
    HeaderValue::from_static("no")
}
