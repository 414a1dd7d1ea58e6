//! A request that gets its id from whoever sends it: calls of many clients share one connection there, and with it
//! one row of ids.

use bytes::Bytes;

use crate::domain::rope::Rope;

use super::{Call, ExtraMembers, write};

/// A request around the place of its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    pub(super) before: Bytes,
    pub(super) after: Bytes,
}

impl RequestTemplate {
    /// A request of the proxy's own writing.
    #[must_use]
    pub fn new(method: &str, params: Rope, members: ExtraMembers<'_>) -> RequestTemplate {
        const BEFORE: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
        let whole = write::request(0, method, params, members).into_bytes();
        RequestTemplate {
            before: Bytes::from_static(BEFORE),
            // Behind the digit that stands there.
            after: whole.slice(BEFORE.len() + 1..),
        }
    }

    /// The request with an id.
    #[must_use]
    pub fn with_id(&self, id: u64) -> Bytes {
        [&self.before, id.to_string().as_bytes(), &self.after]
            .concat()
            .into()
    }

    /// How many bytes it has, without an id.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Never: a request has at least its method.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Call {
    /// The call without its id; nothing where it is a notification.
    #[must_use]
    pub fn template(&self) -> Option<RequestTemplate> {
        let place = self.id_place.clone()?;
        let text = self.text.clone().into_bytes();
        Some(RequestTemplate {
            before: text.slice(..place.start),
            after: text.slice(place.end..),
        })
    }
}
