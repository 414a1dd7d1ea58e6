//! Complete responses of upstreams. Used throughout `gateway`.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// A complete upstream response.
#[derive(Clone, Debug)]
pub(super) struct UpstreamResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}
