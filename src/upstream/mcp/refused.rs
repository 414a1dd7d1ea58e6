//! Reading of responses whose HTTP status rejects a request.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::response;

use super::coded::decode_body;
use super::post::PostClient;
use crate::domain::outcome::RestReply;
use crate::upstream::{IncomingBody, Lease, collect_all};

impl PostClient {
    /// Reads a response whose status rejects the request. An unreadable body counts as empty.
    pub(super) async fn refused(
        &self,
        head: response::Parts,
        (body, lease): (IncomingBody, Lease),
        most: usize,
    ) -> RestReply {
        let mut reply = RestReply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: Bytes::new(),
        };
        // An event stream may have no end.
        if !reply.is_event_stream()
            && let Ok(body) = collect_all(body, most).await
        {
            lease.release();
            let decoded = decode_body(&self.memory, &reply.headers, body, most);
            reply.body = decoded.unwrap_or_default();
        }
        if reply.body.is_empty() {
            reply.headers.remove(CONTENT_TYPE);
        }
        reply
    }
}
