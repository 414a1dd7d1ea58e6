//! A call that may go out a second time: a server may close a kept connection at the very moment at which it is taken.

use http::{HeaderMap, Method, Uri};

use super::channel::Channel;
use super::{Body, Interims, OutgoingRequest};
use crate::domain::wire::HeaderCase;

/// Whether a call may be sent a second time on another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Only when nothing of it was sent.
    Unsent,
    /// Also when a kept connection broke before the answer: its effect allows it.
    Allowed,
}

/// How a call is sent.
#[derive(Debug, Clone, Copy)]
pub struct SendOptions<'a> {
    /// Whether it may be sent a second time.
    pub retry: RetryPolicy,
    /// How names are written over HTTP/1.1.
    pub heads: HeaderCasing<'a>,
    /// What it needs of its connection.
    pub need: ConnectionNeed,
}

/// How the heads of a call and of its answer are written, over HTTP/1.1.
#[derive(Debug, Clone, Copy)]
pub enum HeaderCasing<'a> {
    /// In lower case: the heads that go on are made here.
    Made,
    /// As they came. The names of the answer are noted, unless in lower case.
    Passed(PassedHead<'a>),
}

/// How the head of a call goes on.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassedHead<'a> {
    /// How its names are written; in lower case without.
    pub spelling: Option<&'a HeaderCase>,
    /// The target in place of its own, with raw characters.
    pub target: Option<&'a [u8]>,
    /// Where interim responses to it go.
    pub interims: Option<&'a Interims>,
}

/// What a call needs of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionNeed {
    /// One of its own, which may change its protocol (RFC 9110 §7.8); there is no such thing in HTTP/2.
    Upgrade,
    /// Any.
    Answer,
}

impl From<RetryPolicy> for SendOptions<'_> {
    fn from(repeat: RetryPolicy) -> Self {
        SendOptions {
            retry: repeat,
            heads: HeaderCasing::Made,
            need: ConnectionNeed::Answer,
        }
    }
}

/// What is kept of a call while it may have to be sent again.
pub(super) enum RetryCopy {
    Nothing,
    /// The connection keeps its bytes; it asks by this method.
    Bytes(Method),
    Copy(OutgoingRequest),
}

impl RetryCopy {
    /// Of a call that goes out on a kept connection.
    pub(super) fn new(
        outgoing: &OutgoingRequest,
        repeat: RetryPolicy,
        line: &Channel,
    ) -> RetryCopy {
        if repeat == RetryPolicy::Unsent {
            return RetryCopy::Nothing;
        }
        if let Channel::Http1(connection) = line
            && outgoing.body.is_empty()
        {
            connection.capture();
            return RetryCopy::Bytes(outgoing.head.method.clone());
        }
        let Some(body) = outgoing.body.copy() else {
            return RetryCopy::Nothing;
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

    /// The call once more, with the bytes that its connection has kept.
    pub(super) fn retry_request(self, bytes: Option<Vec<u8>>) -> Option<RetryRequest> {
        match self {
            RetryCopy::Nothing => None,
            RetryCopy::Bytes(method) => Some(RetryRequest::Bytes(method, bytes?)),
            RetryCopy::Copy(copy) => Some(RetryRequest::Outgoing(copy)),
        }
    }
}

/// A call that is sent once more.
pub(super) enum RetryRequest {
    Outgoing(OutgoingRequest),
    /// As it went out the first time.
    Bytes(Method, Vec<u8>),
}

impl RetryRequest {
    /// What a connection is to be asked, where it can be asked that. Bytes go out in place of a request, by whose method
    /// the answer is read.
    pub(super) fn on(self, line: &Channel) -> Option<OutgoingRequest> {
        match (self, line) {
            (RetryRequest::Outgoing(outgoing), _) => Some(outgoing),
            (RetryRequest::Bytes(method, bytes), Channel::Http1(connection)) => {
                connection.replay(bytes);
                let (target, headers) = (Uri::default(), HeaderMap::new());
                Some(OutgoingRequest::new(method, target, headers, Body::empty()))
            }
            // The server speaks HTTP/2 by now, in which those bytes say nothing.
            (RetryRequest::Bytes(..), Channel::Http2(_)) => None,
        }
    }
}
