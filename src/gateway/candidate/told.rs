//! Answers that are kept to be compared, as the client would see them.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};

use crate::domain::candidates;
use crate::domain::compare::{Answer, Ending, Run, Skip};
use crate::domain::failure::{Blame, Failure};
use crate::domain::jsonrpc::{Reply, parse_response};
use crate::domain::side::Side;
use crate::domain::sse;
use crate::gateway::render::Whole;
use crate::upstream::{Coding, CodingError};

/// The code of an RPC error that says that the server itself has failed (JSON-RPC 2.0 §5.1).
const INTERNAL_ERROR: i64 = -32603;

/// The longest body that is read at once, in bytes: that takes far less than a millisecond.
const SHORT: usize = 8 * 1024;

/// An answer.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct Told {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) source: Source,
}

/// Who gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The server, or the proxy in its words.
    Server,
    /// The proxy itself, because the call was wrong.
    Refusal,
    /// The proxy itself, because it or the server has failed, or the call breaks a rule that only the proxy has.
    Failure,
}

impl Told {
    /// An answer that is there whole.
    pub(in crate::gateway) fn whole(whole: &Whole) -> Told {
        Told {
            status: whole.status,
            headers: whole.headers.clone(),
            body: whole.body.clone().into_bytes(),
            source: Source::Server,
        }
    }

    /// What the proxy says of a failure.
    pub(in crate::gateway) fn failure(whole: &Whole, failure: &Failure) -> Told {
        let source = match failure.reason.row().blame {
            Blame::Client if !candidates::is_failure(failure.reason) => Source::Refusal,
            Blame::Client | Blame::Upstream | Blame::Proxy => Source::Failure,
        };
        Told {
            source,
            ..Told::whole(whole)
        }
    }

    /// An answer that broke off.
    pub(super) fn broken() -> Told {
        Told {
            status: StatusCode::BAD_GATEWAY,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            source: Source::Failure,
        }
    }

    /// How many bytes are kept for it.
    pub(super) fn size(&self) -> usize {
        headers_size(&self.headers) + self.body.len()
    }

    /// Whether it can be read at once: it is short, and is what it is.
    pub(super) fn is_short(&self) -> bool {
        self.body.len() <= SHORT && !self.headers.contains_key(CONTENT_ENCODING)
    }

    /// The same without a content coding and without a body that the client does not get. What is decoded is taken
    /// from `room`.
    pub(super) fn plain(mut self, method: &Method, room: &mut usize) -> Result<Told, Skip> {
        if *method == Method::HEAD {
            self.body = Bytes::new();
            return Ok(self);
        }
        let coding = Coding::of(&self.headers).map_err(|_| Skip::Coded)?;
        self.headers.remove(CONTENT_ENCODING);
        if coding == Coding::Identity || self.body.is_empty() {
            return Ok(self);
        }
        let decoded = coding.decode(self.body, *room, |_| true);
        self.body = decoded.map_err(|error| match error {
            CodingError::TooLarge(_) | CodingError::NoRoom => Skip::Large,
            CodingError::Malformed(_) => Skip::Coded,
        })?;
        *room = room.saturating_sub(self.body.len());
        Ok(self)
    }

    /// Reads the answer as one to a call of a side.
    pub(super) fn read(self, side: Side, depth: u16) -> Heard {
        let status = self.status.as_u16();
        let is_failure = self.source == Source::Failure;
        match side {
            Side::Rest if is_failure || self.status.is_server_error() => {
                Heard::Failure(Ending::Status(status))
            }
            Side::Rest => Heard::Rest(self),
            Side::Rpc => match parse_response(&self.body, depth) {
                Ok(response) => match response.reply {
                    Reply::Error(error)
                        if is_failure
                            || error.code == INTERNAL_ERROR && self.source == Source::Server =>
                    {
                        Heard::Failure(Ending::Error(error.code))
                    }
                    Reply::Result(_) if is_failure => Heard::Failure(Ending::Result),
                    reply @ (Reply::Result(_) | Reply::Error(_)) => Heard::Rpc(reply),
                },
                Err(_) => Heard::Failure(Ending::NoResponse(status)),
            },
        }
    }
}

/// An answer that was read.
#[derive(Debug)]
pub(super) enum Heard {
    /// To a REST call.
    Rest(Told),
    /// To an RPC call.
    Rpc(Reply),
    /// None: the server or the proxy has failed.
    Failure(Ending),
}

impl Heard {
    /// Whether there is an answer.
    pub(super) fn run(&self) -> Run {
        match self {
            Heard::Rest(_) | Heard::Rpc(_) => Run::Answered,
            Heard::Failure(_) => Run::Failed,
        }
    }

    /// The answer as it is compared.
    pub(super) fn answer(&self) -> Option<Answer<'_>> {
        match self {
            Heard::Rest(told) => Some(Answer::Rest {
                status: told.status.as_u16(),
                headers: &told.headers,
                body: &told.body,
            }),
            Heard::Rpc(Reply::Result(result)) => Some(Answer::Result(result)),
            Heard::Rpc(Reply::Error(error)) => Some(Answer::Error {
                code: error.code,
                message: &error.message,
                data: error.data.as_ref(),
            }),
            Heard::Failure(_) => None,
        }
    }

    /// Returns the response in a few words.
    pub(super) fn ending(&self) -> Ending {
        match self {
            Heard::Rest(told) => Ending::Status(told.status.as_u16()),
            Heard::Rpc(Reply::Result(_)) => Ending::Result,
            Heard::Rpc(Reply::Error(error)) => Ending::Error(error.code),
            Heard::Failure(ending) => *ending,
        }
    }
}

/// About how many bytes headers take.
pub(super) fn headers_size(headers: &HeaderMap) -> usize {
    let fields = headers.iter();
    fields
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum()
}

/// Whether an answer has no end that could be waited for.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| sse::is_event_stream(&String::from_utf8_lossy(kind.as_bytes())))
}
