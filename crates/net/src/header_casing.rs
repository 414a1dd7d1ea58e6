//! The case of header names in the heads of a call and its response.
//!
//! Used by `channel`, `http1`, `retry` and `wire_capture`.

use super::Interims;
use dualgauge_transport::wire::HeaderCase;

/// The case of the header names of a call and its response, over HTTP/1.1.
#[derive(Debug, Clone, Copy)]
pub enum HeaderCasing<'a> {
    /// Lower case, for heads that the proxy creates.
    LowerCase,
    /// As received. The case of the response's names is recorded, unless it is lower.
    Passed(PassedHead<'a>),
}

/// The head of a call that is passed on.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassedHead<'a> {
    /// The case of its names; lower case if `None`.
    pub header_case: Option<&'a HeaderCase>,
    /// The raw target that replaces the parsed one.
    pub target: Option<&'a [u8]>,
    /// The receiver of interim responses to the call.
    pub interims: Option<&'a Interims>,
}
