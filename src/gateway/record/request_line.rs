//! The request line (RFC 9112 §3), as far as it is recorded of each call that the request brings.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Method, Version, request};

use crate::domain::wire::RefusedLine;
use crate::gateway::{CountedPeer, HeaderReadTime, RequestOrigin};

/// A request target, but for its authority.
#[derive(Debug, Clone)]
pub(in crate::gateway) enum Target {
    /// A valid one.
    Valid(PathAndQuery),
    /// That of a request line that is refused, which need not begin with a slash.
    Refused(Arc<str>),
    /// That of a CONNECT.
    Absent,
}

impl Target {
    fn new(head: &request::Parts) -> Target {
        let target = head.uri.path_and_query().cloned();
        target.map_or(Target::Absent, Target::Valid)
    }

    /// The path; a refused one may have a query.
    pub(in crate::gateway) fn path(&self) -> &str {
        match self {
            Target::Valid(target) => target.path(),
            Target::Refused(target) => target,
            Target::Absent => "",
        }
    }
}

/// What is recorded of the request line.
pub(in crate::gateway) struct RequestLine {
    pub(in crate::gateway) method: Method,
    pub(in crate::gateway) target: Target,
    pub(in crate::gateway) version: Version,
    /// How long the head took, where it did not come at once.
    pub(in crate::gateway) took: Duration,
    /// With whose calls the call counts.
    pub(in crate::gateway) peer: Option<Rc<CountedPeer>>,
}

impl RequestLine {
    /// That of a request as it came.
    pub(in crate::gateway) fn new(head: &request::Parts, arrival: &RequestOrigin) -> RequestLine {
        let took = head.extensions.get();
        let line = RequestLine {
            took: took.map_or(Duration::ZERO, |HeaderReadTime(took)| *took),
            ..RequestLine::within(head, arrival)
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
            target: Target::Refused(refused.target.as_str().into()),
            ..self
        }
    }

    /// That of a call in a request which was read before.
    pub(in crate::gateway) fn within(
        head: &request::Parts,
        arrival: &RequestOrigin,
    ) -> RequestLine {
        RequestLine {
            method: head.method.clone(),
            target: Target::new(head),
            version: head.version,
            took: Duration::ZERO,
            peer: arrival.counted.clone(),
        }
    }
}
