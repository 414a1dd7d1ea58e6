//! The request line (RFC 9112 §3), as far as it is recorded of each call that the request brings.

use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Method, Version, request};

use crate::domain::wire::RefusedLine;
use crate::gateway::{Arrival, HeadTook};

/// What is recorded of the request line.
pub(in crate::gateway) struct RequestLine {
    pub(in crate::gateway) method: Method,
    /// The target, but for its authority; none of a CONNECT.
    pub(in crate::gateway) target: Option<PathAndQuery>,
    pub(in crate::gateway) version: Version,
    /// How long the head took, where it did not come at once.
    pub(in crate::gateway) took: Duration,
}

impl RequestLine {
    /// That of a request as it came.
    pub(in crate::gateway) fn of(head: &request::Parts, arrival: &Arrival) -> RequestLine {
        let took = head.extensions.get();
        let line = RequestLine {
            took: took.map_or(Duration::ZERO, |HeadTook(took)| *took),
            ..RequestLine::within(head)
        };
        match arrival.refused_line() {
            Some(refused) => line.replaced(refused),
            None => line,
        }
    }

    /// The same with the method and the target that were refused.
    #[cold]
    fn replaced(self, refused: &RefusedLine) -> RequestLine {
        RequestLine {
            method: refused.method.clone(),
            target: refused.target.parse().ok().or(self.target),
            ..self
        }
    }

    /// That of a call in a request which was read before.
    pub(in crate::gateway) fn within(head: &request::Parts) -> RequestLine {
        RequestLine {
            method: head.method.clone(),
            target: head.uri.path_and_query().cloned(),
            version: head.version,
            took: Duration::ZERO,
        }
    }
}
