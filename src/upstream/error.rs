//! Why a call got no answer of an upstream.

use std::time::Duration;

use crate::domain::wire::InvalidFraming;

/// Why a call got no answer.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection.
    #[error("no connection to the upstream `{upstream}`")]
    Unreachable {
        /// Which upstream.
        upstream: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// It has failed too often, and is left alone for a while.
    #[error("the breaker of the upstream `{upstream}` is open")]
    Resting {
        /// Which upstream.
        upstream: String,
        /// For how long.
        again_in: Duration,
    },
    /// As many calls as may are there, and none has ended in time, or too many wait already.
    #[error(
        "all {connections} places for calls at the upstream `{upstream}` are taken, and {waiting} further calls wait"
    )]
    Busy {
        /// Which upstream.
        upstream: String,
        /// How many calls a worker may have there.
        connections: usize,
        /// How many calls wait.
        waiting: usize,
    },
    /// The connection broke before the head of the answer was complete.
    #[error("the connection broke before the answer")]
    Broken(#[source] hyper::Error),
    /// The answer is not valid HTTP.
    #[error("the answer is not valid HTTP")]
    Malformed(#[source] hyper::Error),
    /// The answer does not say how long it is, or is in a coding that is not read.
    #[error("the answer is not valid HTTP")]
    Unframed(#[source] InvalidFraming),
    /// A header value of an answer over HTTP/2 begins or ends with white space (RFC 9113 §8.2.1).
    #[error("the answer is not valid HTTP: a header value begins or ends with white space")]
    Padded,
}

pub(super) fn classify(error: hyper::Error) -> UpstreamError {
    if is_malformed(&error) {
        UpstreamError::Malformed(error)
    } else {
        UpstreamError::Broken(error)
    }
}

/// Whether the server has said what is no answer, rather than nothing.
pub(super) fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error);
    let io = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let is_of_http2 = of_http2(error).is_some_and(h2::Error::is_library);
    error.is_parse()
        || is_of_http2
        || io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData)
}

fn of_http2(error: &hyper::Error) -> Option<&h2::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Whether the server has said that it did nothing with the call (RFC 9113 §8.7): it has refused the stream, or goes away
/// and names it among those that it does not look at.
pub(super) fn is_refusal(error: &hyper::Error) -> bool {
    of_http2(error).is_some_and(|error| {
        let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (is_refused || error.is_go_away())
    })
}

/// Whether the fault is one of a connection that calls share, and not of one call.
pub(super) fn ends_connection(error: &hyper::Error) -> bool {
    of_http2(error).is_none_or(|error| error.is_go_away() || error.is_io())
}

/// Whether this end has ended the connection for a fault of the server, or for too many of them (RFC 9113 §5.4.1).
pub(super) fn is_cut(error: &hyper::Error) -> bool {
    of_http2(error).is_some_and(|error| error.is_library() && error.is_go_away())
}

/// Whether the server has reset the call, and nothing else.
pub(super) fn is_reset(error: &hyper::Error) -> bool {
    of_http2(error).is_some_and(h2::Error::is_reset)
}
