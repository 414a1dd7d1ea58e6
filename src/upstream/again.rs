//! A call that may go out a second time: a server may close a kept connection at the very moment at which it is taken.

use http::{HeaderMap, Method, Uri};

use super::line::Line;
use super::{Body, Interims, Outgoing};
use crate::domain::wire::Spelling;

/// Whether a call may be sent a second time on another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Only when nothing of it was sent.
    Unsent,
    /// Also when a kept connection broke before the answer: its effect allows it.
    Allowed,
}

/// How a call is sent.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    /// Whether it may be sent a second time.
    pub repeat: Repeat,
    /// How names are written over HTTP/1.1.
    pub heads: Heads<'a>,
    /// What it needs of its connection.
    pub wants: Wants,
}

/// How the heads of a call and of its answer are written, over HTTP/1.1.
#[derive(Debug, Clone, Copy)]
pub enum Heads<'a> {
    /// In lower case: the heads that go on are made here.
    Made,
    /// As they came. The names of the answer are noted, unless in lower case.
    Passed(Passed<'a>),
}

/// How the head of a call goes on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed<'a> {
    /// How its names are written; in lower case without.
    pub spelling: Option<&'a Spelling>,
    /// The target in place of its own, with raw characters.
    pub target: Option<&'a [u8]>,
    /// Where interim responses to it go.
    pub interims: Option<&'a Interims>,
}

/// What a call needs of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// One of its own, which may change its protocol (RFC 9110 §7.8); there is no such thing in HTTP/2.
    Upgrade,
    /// Any.
    Answer,
}

impl From<Repeat> for Manner<'_> {
    fn from(repeat: Repeat) -> Self {
        Manner {
            repeat,
            heads: Heads::Made,
            wants: Wants::Answer,
        }
    }
}

/// What is kept of a call while it may have to be sent again.
pub(super) enum Spare {
    Nothing,
    /// The connection keeps its bytes; it asks by this method.
    Bytes(Method),
    Copy(Outgoing),
}

impl Spare {
    /// Of a call that goes out on a kept connection.
    pub(super) fn of(outgoing: &Outgoing, repeat: Repeat, line: &Line) -> Spare {
        if repeat == Repeat::Unsent {
            return Spare::Nothing;
        }
        if let Line::Own(connection) = line
            && outgoing.body.is_empty()
        {
            connection.record();
            return Spare::Bytes(outgoing.head.method.clone());
        }
        let Some(body) = outgoing.body.copy() else {
            return Spare::Nothing;
        };
        let head = &outgoing.head;
        let (target, headers) = (head.uri.clone(), head.headers.clone());
        Spare::Copy(Outgoing::new(head.method.clone(), target, headers, body))
    }

    /// The call once more, with the bytes that its connection has kept.
    pub(super) fn again(self, bytes: Option<Vec<u8>>) -> Option<Again> {
        match self {
            Spare::Nothing => None,
            Spare::Bytes(method) => Some(Again::Bytes(method, bytes?)),
            Spare::Copy(copy) => Some(Again::Outgoing(copy)),
        }
    }
}

/// A call that is sent once more.
pub(super) enum Again {
    Outgoing(Outgoing),
    /// As it went out the first time.
    Bytes(Method, Vec<u8>),
}

impl Again {
    /// What a connection is to be asked, where it can be asked that. Bytes go out in place of a request, by whose method
    /// the answer is read.
    pub(super) fn on(self, line: &Line) -> Option<Outgoing> {
        match (self, line) {
            (Again::Outgoing(outgoing), _) => Some(outgoing),
            (Again::Bytes(method, bytes), Line::Own(connection)) => {
                connection.play(bytes);
                let (target, headers) = (Uri::default(), HeaderMap::new());
                Some(Outgoing::new(method, target, headers, Body::empty()))
            }
            // The server speaks HTTP/2 by now, in which those bytes say nothing.
            (Again::Bytes(..), Line::Shared(_)) => None,
        }
    }
}
