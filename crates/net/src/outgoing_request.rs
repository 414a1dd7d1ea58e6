//! A request to be sent to a server.

use http::{HeaderMap, Method, Request, Uri, request};

use super::{Body, boxed};

/// A request to be sent to a server. The head is boxed, and stays in place until a connection takes it.
#[derive(Debug)]
pub struct OutgoingRequest {
    /// The head.
    pub head: Box<request::Parts>,
    /// The body.
    pub body: Body,
}

impl OutgoingRequest {
    /// Creates a request written by the proxy.
    #[must_use]
    pub fn new(method: Method, target: Uri, headers: HeaderMap, body: Body) -> OutgoingRequest {
        let mut head = boxed(|| Request::new(()).into_parts().0);
        head.method = method;
        head.uri = target;
        head.headers = headers;
        OutgoingRequest { head, body }
    }
}

impl From<Request<Body>> for OutgoingRequest {
    fn from(request: Request<Body>) -> OutgoingRequest {
        let (head, body) = request.into_parts();
        OutgoingRequest {
            head: Box::new(head),
            body,
        }
    }
}

impl From<OutgoingRequest> for Request<Body> {
    fn from(outgoing: OutgoingRequest) -> Request<Body> {
        Request::from_parts(*outgoing.head, outgoing.body)
    }
}
