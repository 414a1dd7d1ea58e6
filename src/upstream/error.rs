//! Why a call got no answer of an upstream.

use std::time::Duration;

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
    /// All connections that may be open are in use.
    #[error("all {connections} connections to the upstream `{upstream}` are in use")]
    Busy {
        /// Which upstream.
        upstream: String,
        /// How many a worker may open.
        connections: usize,
    },
    /// The connection broke before the head of the answer was complete.
    #[error("the connection broke before the answer")]
    Broken(#[source] hyper::Error),
    /// The answer is not valid HTTP.
    #[error("the answer is not valid HTTP")]
    Malformed(#[source] hyper::Error),
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
    error.is_parse() || io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData)
}
