//! The request line (RFC 9112 §3) as it is recorded for each call of a request.
//!
//! Used throughout `gateway`.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Method, Version, request};

use super::peers::Peer as CountedPeer;
use super::request_origin::{HeaderReadTime, RequestOrigin};
use dualgauge_transport::wire::RefusedLine;

/// A request target without its authority.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// A valid target.
    Valid(PathAndQuery),
    /// The target of a rejected request line, which need not begin with a slash.
    Refused(Arc<str>),
    /// The target of a CONNECT, which has no path.
    Absent,
}

impl Target {
    fn new(head: &request::Parts) -> Target {
        let target = head.uri.path_and_query().cloned();
        target.map_or(Target::Absent, Target::Valid)
    }

    /// Returns the path; for a rejected target, the query may be included.
    pub(super) fn path(&self) -> &str {
        match self {
            Target::Valid(target) => target.path(),
            Target::Refused(target) => target,
            Target::Absent => "",
        }
    }

    /// Returns the query of a valid target.
    pub(super) fn query(&self) -> Option<&str> {
        match self {
            Target::Valid(target) => target.query(),
            Target::Refused(_) | Target::Absent => None,
        }
    }
}

/// The recorded parts of a request line, with the peer it came from.
pub(super) struct RequestLine {
    pub(super) method: Method,
    pub(super) target: Target,
    pub(super) version: Version,
    /// Time that the head took to arrive; zero if it arrived at once.
    pub(super) head_time: Duration,
    /// Peer whose in-progress limit the call counts towards.
    pub(super) peer: Option<Rc<CountedPeer>>,
}

impl RequestLine {
    /// Returns the request line of a new request.
    pub(super) fn new(head: &request::Parts, origin: &RequestOrigin) -> RequestLine {
        let head_time = head.extensions.get();
        let line = RequestLine {
            head_time: head_time.map_or(Duration::ZERO, |HeaderReadTime(head_time)| *head_time),
            ..RequestLine::for_call(head, origin)
        };
        match origin.rejected_line() {
            Some(refused) => line.with_rejected_line(refused),
            None => line,
        }
    }

    /// Replaces method and target with those of the rejected line.
    #[cold]
    fn with_rejected_line(self, refused: &RefusedLine) -> RequestLine {
        RequestLine {
            method: refused.method.clone(),
            target: Target::Refused(refused.target.as_str().into()),
            ..self
        }
    }

    /// Returns the request line for one call of a request that was already read; its head time is zero.
    pub(super) fn for_call(head: &request::Parts, origin: &RequestOrigin) -> RequestLine {
        RequestLine {
            method: head.method.clone(),
            target: Target::new(head),
            version: head.version,
            head_time: Duration::ZERO,
            peer: origin.peer_in_limits().cloned(),
        }
    }
}
