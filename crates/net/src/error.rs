//! Errors of calls to an upstream that got no response.

use std::time::Duration;

use dualgauge_transport::wire::InvalidFraming;

/// The reason why a call got no response.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection could be opened.
    #[error("no connection to the upstream `{upstream}`")]
    Unreachable {
        /// The name of the upstream.
        upstream: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The circuit breaker is open after too many failures.
    #[error("the circuit breaker of the upstream `{upstream}` is open")]
    CircuitOpen {
        /// The name of the upstream.
        upstream: String,
        /// The time until it is tried again.
        retry_in: Duration,
    },
    /// The concurrency limit is reached, and no call ended in time or the queue is full.
    #[error(
        "the upstream `{upstream}` is at its limit of {limit} concurrent calls, and {waiting} more calls wait"
    )]
    Busy {
        /// The name of the upstream.
        upstream: String,
        /// The concurrency limit of a worker.
        limit: usize,
        /// The number of waiting calls.
        waiting: usize,
    },
    /// The connection broke before the head of the response was complete.
    #[error("the connection broke before the response")]
    Broken(#[source] hyper::Error),
    /// The response is not valid HTTP.
    #[error("the response is not valid HTTP")]
    Malformed(#[source] hyper::Error),
    /// The response has no valid length, or an unsupported transfer coding.
    #[error("the response has no valid length or transfer coding")]
    InvalidFraming(#[source] InvalidFraming),
    /// A header value of an HTTP/2 response begins or ends with white space (RFC 9113 §8.2.1).
    #[error("the response is not valid HTTP: a header value begins or ends with white space")]
    PaddedHeaderValue,
}

pub(super) fn classify(error: hyper::Error) -> UpstreamError {
    if is_malformed(&error) {
        UpstreamError::Malformed(error)
    } else {
        UpstreamError::Broken(error)
    }
}

/// Returns true if the server sent bytes that are not valid HTTP; otherwise the connection just ended.
pub(super) fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error);
    let io = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let is_http2 = http2_error(error).is_some_and(h2::Error::is_library);
    error.is_parse()
        || is_http2
        || io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData)
}

fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Returns true when the server reported that it did not process the call (RFC 9113 §8.7): it refused the stream, or
/// a `GOAWAY` excludes the stream.
pub(super) fn is_refusal(error: &hyper::Error) -> bool {
    http2_error(error).is_some_and(|error| {
        let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (is_refused || error.is_go_away())
    })
}

/// Returns true when the error ends a shared connection, not only one call.
pub(super) fn ends_connection(error: &hyper::Error) -> bool {
    http2_error(error).is_none_or(|error| error.is_go_away() || error.is_io())
}

/// Returns true when this end aborted the connection with `GOAWAY`, because the server broke the protocol or sent too
/// many errors (RFC 9113 §5.4.1).
pub(super) fn is_local_abort(error: &hyper::Error) -> bool {
    http2_error(error).is_some_and(|error| error.is_library() && error.is_go_away())
}

/// Returns true when the server reset the stream only.
pub(super) fn is_reset(error: &hyper::Error) -> bool {
    http2_error(error).is_some_and(h2::Error::is_reset)
}
