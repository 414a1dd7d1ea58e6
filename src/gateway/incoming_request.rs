//! An HTTP request before it is dispatched to one of the protocols.
//!
//! Used by `gateway` and the adapters of its protocols.

use http::request;

use super::access_record::AccessRecord;
use super::request_origin::RequestOrigin;
use dualgauge_net::IncomingBody;

/// One HTTP request before dispatch. The client and its connection may already be gone.
pub(super) struct IncomingRequest {
    /// Belongs to the side that the request addresses.
    pub(super) record: Box<AccessRecord>,
    /// Boxed, because it is passed through several functions.
    pub(super) head: Box<request::Parts>,
    pub(super) body: IncomingBody,
    pub(super) origin: RequestOrigin,
}
