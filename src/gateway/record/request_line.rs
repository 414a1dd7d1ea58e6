//! The request line (RFC 9112 §3), as far as it is recorded of each call that the request brings.

use std::time::Duration;

use http::{Method, Request, Uri, Version, request};

use crate::gateway::HeadTook;

/// What is recorded of the request line.
pub(in crate::gateway) struct RequestLine {
    pub(in crate::gateway) method: Method,
    pub(in crate::gateway) uri: Uri,
    pub(in crate::gateway) version: Version,
    /// How long the head took, where it did not come at once.
    pub(in crate::gateway) took: Duration,
}

impl RequestLine {
    /// That of a request as it came.
    pub(in crate::gateway) fn of<B>(request: &Request<B>) -> RequestLine {
        let took = request.extensions().get();
        RequestLine {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            took: took.map_or(Duration::ZERO, |HeadTook(took)| *took),
        }
    }

    /// That of a call in a request which was read before.
    pub(in crate::gateway) fn within(head: &request::Parts) -> RequestLine {
        RequestLine {
            method: head.method.clone(),
            uri: head.uri.clone(),
            version: head.version,
            took: Duration::ZERO,
        }
    }
}
