//! The failure of a call that got no response, with what is left of its request.
//!
//! Used by `channel`, `connection_pool`, `http1` and `http2`.

use http::Request;

use super::Body;

/// A call that got no response: the error, and the state of the request.
#[derive(Debug)]
pub(super) struct SendError {
    pub(super) error: hyper::Error,
    pub(super) request: RequestDisposition,
}

/// The state of a request that got no response. It decides whether the call may be retried.
#[derive(Debug)]
pub(super) enum RequestDisposition {
    /// None of it was sent.
    Unsent(Request<Body>),
    /// The server reported that it did not process it; this is a copy.
    Refused(Request<Body>),
    /// The server may have processed it. Contains the bytes sent, if they were recorded.
    Sent(Option<Vec<u8>>),
}
