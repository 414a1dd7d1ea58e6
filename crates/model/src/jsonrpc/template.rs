//! A request without its id, which the sender fills in: calls of many clients share one connection and its id space.
//!
//! Used by `jsonrpc`, `pending` and `gateway`.

use bytes::Bytes;

use dualgauge_patterns::rope::Rope;

use super::{Call, ExtraMembers, write};

/// A request, split at its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    pub(super) before: Bytes,
    pub(super) after: Bytes,
}

impl RequestTemplate {
    /// Returns a request that the proxy writes itself.
    #[must_use]
    pub fn new(method: &str, params: Rope, members: ExtraMembers<'_>) -> RequestTemplate {
        const BEFORE: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
        let whole = write::request(0, method, params, members).into_bytes();
        RequestTemplate {
            before: Bytes::from_static(BEFORE),
            // After the placeholder digit.
            after: whole.slice(BEFORE.len() + 1..),
        }
    }

    /// Returns the request with an id.
    #[must_use]
    pub fn with_id(&self, id: u64) -> Bytes {
        [&self.before, id.to_string().as_bytes(), &self.after]
            .concat()
            .into()
    }

    /// Returns its length in bytes, without an id.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Returns false: a request has at least its method.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Call {
    /// Returns the call without its id; `None` for a notification.
    #[must_use]
    pub fn template(&self) -> Option<RequestTemplate> {
        let range = self.id_range.clone()?;
        let text = self.text.clone().into_bytes();
        Some(RequestTemplate {
            before: text.slice(..range.start),
            after: text.slice(range.end..),
        })
    }
}
