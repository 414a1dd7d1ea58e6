//! What a server is asked.

use http::{HeaderMap, Method, Request, Uri, request};

use super::Body;

/// A request on its way to a server. Its head stays where it was read until a connection takes it.
#[derive(Debug)]
pub struct Question {
    /// Its head.
    pub head: Box<request::Parts>,
    /// Its body.
    pub body: Body,
}

impl Question {
    /// One that this proxy has written.
    #[must_use]
    pub fn new(method: Method, target: Uri, headers: HeaderMap, body: Body) -> Question {
        let (head, ()) = Request::new(()).into_parts();
        let mut head = Box::new(head);
        head.method = method;
        head.uri = target;
        head.headers = headers;
        Question { head, body }
    }
}

impl From<Request<Body>> for Question {
    fn from(request: Request<Body>) -> Question {
        let (head, body) = request.into_parts();
        Question {
            head: Box::new(head),
            body,
        }
    }
}

impl From<Question> for Request<Body> {
    fn from(question: Question) -> Request<Body> {
        Request::from_parts(*question.head, question.body)
    }
}
