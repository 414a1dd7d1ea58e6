//! Retries of calls. A server may close a kept connection at the moment it is taken. Used by `connection_pool` and `open`.

use http::{HeaderMap, Method, Uri};

use super::channel::Channel;
use super::header_casing::HeaderCasing;
use super::{Body, OutgoingRequest};

/// The condition for sending a call a second time, on another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Only when the server processed none of it.
    Unprocessed,
    /// Also when a kept connection broke before the response: the call's effect allows it.
    Allowed,
}

/// The options for sending a call.
#[derive(Debug, Clone, Copy)]
pub struct SendOptions<'a> {
    /// The retry policy.
    pub retry: RetryPolicy,
    /// The case of header names over HTTP/1.1.
    pub casing: HeaderCasing<'a>,
    /// The kind of connection that the call needs.
    pub need: ConnectionNeed,
}

/// The kind of connection that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionNeed {
    /// A connection of its own that can be upgraded (RFC 9110 §7.8); HTTP/2 has no upgrades.
    Upgrade,
    /// Any connection.
    Any,
}

impl From<RetryPolicy> for SendOptions<'_> {
    fn from(retry: RetryPolicy) -> Self {
        SendOptions {
            retry,
            casing: HeaderCasing::LowerCase,
            need: ConnectionNeed::Any,
        }
    }
}

/// The copy of a call that may have to be sent again.
pub(super) enum RetryCopy {
    /// The call is not sent again, or its body cannot be copied.
    NotKept,
    /// The connection records the bytes of a request with this method.
    Bytes(Method),
    Copy(OutgoingRequest),
}

impl RetryCopy {
    /// Prepares a copy of a call that is sent on a kept connection.
    pub(super) fn new(
        outgoing: &OutgoingRequest,
        policy: RetryPolicy,
        channel: &Channel,
    ) -> RetryCopy {
        if policy == RetryPolicy::Unprocessed {
            return RetryCopy::NotKept;
        }
        if let Channel::Http1(connection) = channel
            && outgoing.body.is_empty()
        {
            connection.record_next_call();
            return RetryCopy::Bytes(outgoing.head.method.clone());
        }
        let Some(body) = outgoing.body.copy() else {
            return RetryCopy::NotKept;
        };
        let head = &outgoing.head;
        let (target, headers) = (head.uri.clone(), head.headers.clone());
        RetryCopy::Copy(OutgoingRequest::new(
            head.method.clone(),
            target,
            headers,
            body,
        ))
    }

    /// Returns the request for a retry, given the bytes that the connection recorded.
    pub(super) fn retry_request(self, bytes: Option<Vec<u8>>) -> Option<RetryRequest> {
        match self {
            RetryCopy::NotKept => None,
            RetryCopy::Bytes(method) => Some(RetryRequest::Bytes(method, bytes?)),
            RetryCopy::Copy(copy) => Some(RetryRequest::Outgoing(copy)),
        }
    }
}

/// A call to be sent again.
pub(super) enum RetryRequest {
    Outgoing(OutgoingRequest),
    /// The bytes of the first attempt, and their method.
    Bytes(Method, Vec<u8>),
}

impl RetryRequest {
    /// Returns the request to send on `channel`; `None` if it cannot be sent there. Recorded bytes replace a
    /// placeholder request, whose method tells how to read the response.
    pub(super) fn for_channel(self, channel: &Channel) -> Option<OutgoingRequest> {
        match (self, channel) {
            (RetryRequest::Outgoing(outgoing), _) => Some(outgoing),
            (RetryRequest::Bytes(method, bytes), Channel::Http1(connection)) => {
                connection.replay(bytes);
                let (target, headers) = (Uri::default(), HeaderMap::new());
                Some(OutgoingRequest::new(method, target, headers, Body::empty()))
            }
            // The server speaks HTTP/2 by now; HTTP/1.1 bytes are useless there.
            (RetryRequest::Bytes(..), Channel::Http2(_)) => None,
        }
    }
}
