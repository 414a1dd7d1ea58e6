//! The head of a request, as far as routing needs it. Used by `app`, `cli`, `model` and `gateway`.

use http::{HeaderMap, Method, Uri, request};

use crate::route::Segments;
use crate::translate::RestHead;

/// The head of a request, as far as routing needs it.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The request target.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
}

impl<'a> RequestHead<'a> {
    /// Creates the head of a received request.
    #[must_use]
    pub fn new(head: &'a request::Parts) -> RequestHead<'a> {
        RequestHead {
            method: &head.method,
            uri: &head.uri,
            headers: &head.headers,
        }
    }

    /// Returns the head in the form that translation reads.
    #[must_use]
    pub fn rest(self, segments: &'a Segments<'a>) -> RestHead<'a> {
        RestHead {
            segments,
            query: self.uri.query(),
            headers: self.headers,
        }
    }
}
