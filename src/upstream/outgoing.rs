//! A request on its way to a server.

use http::{HeaderMap, Method, Request, Uri, request};

use super::{Body, placed};

/// A request on its way to a server. Its head stays in one place until a connection takes it.
#[derive(Debug)]
pub struct Outgoing {
    /// Its head.
    pub head: Box<request::Parts>,
    /// Its body.
    pub body: Body,
}

impl Outgoing {
    /// One that this proxy has written.
    #[must_use]
    pub fn new(method: Method, target: Uri, headers: HeaderMap, body: Body) -> Outgoing {
        let mut head = placed(|| Request::new(()).into_parts().0);
        head.method = method;
        head.uri = target;
        head.headers = headers;
        Outgoing { head, body }
    }
}

impl From<Request<Body>> for Outgoing {
    fn from(request: Request<Body>) -> Outgoing {
        let (head, body) = request.into_parts();
        Outgoing {
            head: Box::new(head),
            body,
        }
    }
}

impl From<Outgoing> for Request<Body> {
    fn from(outgoing: Outgoing) -> Request<Body> {
        Request::from_parts(*outgoing.head, outgoing.body)
    }
}
