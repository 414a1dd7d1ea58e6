//! Every answer that the server gives, by name. Used throughout `sample`.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::json::{self, Spacing};
use crate::value::Value;

/// An answer before it becomes bytes on a socket.
pub type Reply = Response<Content>;

/// The body of a [`Reply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// All of it, with its length.
    Whole(Bytes),
    /// An event stream that ends after these bytes.
    Ended(Bytes),
    /// An event stream that stays open after these bytes.
    Open(Bytes),
}

impl Content {
    /// The bytes that are there at once.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        let (Content::Whole(bytes) | Content::Ended(bytes) | Content::Open(bytes)) = self;
        bytes
    }
}

pub(super) fn json(status: StatusCode, body: &Value, spacing: Spacing) -> Reply {
    let text = json::write(body, spacing);
    let mut reply = empty(status);
    *reply.body_mut() = Content::Whole(text.into());
    with(reply, CONTENT_TYPE, "application/json")
}

/// `{"detail": ...}`, the form of all that the web framework refuses.
pub(super) fn detail(status: StatusCode, detail: Value) -> Reply {
    json(status, &Value::dict([("detail", detail)]), Spacing::Compact)
}

pub(super) fn not_found() -> Reply {
    detail(StatusCode::NOT_FOUND, "Not Found".into())
}

pub(super) fn method_not_allowed(allowed: &str) -> Reply {
    let refusal = "Method Not Allowed".into();
    with(
        detail(StatusCode::METHOD_NOT_ALLOWED, refusal),
        ALLOW,
        allowed,
    )
}

pub(super) fn moved(to: &str) -> Reply {
    with(empty(StatusCode::TEMPORARY_REDIRECT), LOCATION, to)
}

/// What the framework says when its own code raises.
pub(super) fn internal_error() -> Reply {
    let mut reply = empty(StatusCode::INTERNAL_SERVER_ERROR);
    *reply.body_mut() = Content::Whole("Internal Server Error".into());
    with(reply, CONTENT_TYPE, "text/plain; charset=utf-8")
}

pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Content::Whole(Bytes::new()));
    *reply.status_mut() = status;
    reply
}

pub(super) fn event_stream(content: Content) -> Reply {
    let reply = Response::new(content);
    let reply = with(reply, CONTENT_TYPE, "text/event-stream; charset=utf-8");
    let reply = with(reply, CACHE_CONTROL, "no-store");
    with(reply, HeaderName::from_static("x-accel-buffering"), "no")
}

/// The reply with one more header. A value that no header can carry is left out: only the text of a
/// `Location` comes from outside, and it has already been part of a request.
pub(super) fn with(mut reply: Reply, name: HeaderName, value: &str) -> Reply {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
    reply
}
