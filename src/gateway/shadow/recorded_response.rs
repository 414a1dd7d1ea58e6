//! Answers that are kept to be compared, as the client would see them.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};

use crate::domain::compare::{ComparedResponse, Run, RunEnding, Skip};
use crate::domain::failure::{Blame, Failure};
use crate::domain::jsonrpc::{ResponseReply, parse_response};
use crate::domain::shadow_limits;
use crate::domain::side::Side;
use crate::domain::sse;
use crate::gateway::response::FullResponse;
use crate::upstream::{ContentEncoding, DecodeError};

/// The code of an RPC error that says that the server itself has failed (JSON-RPC 2.0 §5.1).
const INTERNAL_ERROR: i64 = -32603;

/// The longest body that is read at once, in bytes: that takes far less than a millisecond.
const SHORT: usize = 8 * 1024;

/// An answer.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct RecordedResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) source: ResponseOrigin,
}

/// Who gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseOrigin {
    /// The server, or the proxy in its words.
    Server,
    /// The proxy itself, because the call was wrong.
    Refusal,
    /// The proxy itself, because it or the server has failed, or the call breaks a rule that only the proxy has.
    Failure,
}

impl RecordedResponse {
    /// An answer that is there whole.
    pub(in crate::gateway) fn whole(whole: &FullResponse) -> RecordedResponse {
        RecordedResponse {
            status: whole.status,
            headers: whole.headers.clone(),
            body: whole.body.clone().into_bytes(),
            source: ResponseOrigin::Server,
        }
    }

    /// What the proxy says of a failure.
    pub(in crate::gateway) fn failure(whole: &FullResponse, failure: &Failure) -> RecordedResponse {
        let source = match failure.reason.row().blame {
            Blame::Client if !shadow_limits::is_failure(failure.reason) => ResponseOrigin::Refusal,
            Blame::Client | Blame::Upstream | Blame::Proxy => ResponseOrigin::Failure,
        };
        RecordedResponse {
            source,
            ..RecordedResponse::whole(whole)
        }
    }

    /// An answer that broke off.
    pub(super) fn broken() -> RecordedResponse {
        RecordedResponse {
            status: StatusCode::BAD_GATEWAY,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            source: ResponseOrigin::Failure,
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
    pub(super) fn plain(
        mut self,
        method: &Method,
        room: &mut usize,
    ) -> Result<RecordedResponse, Skip> {
        if *method == Method::HEAD {
            self.body = Bytes::new();
            return Ok(self);
        }
        let coding = ContentEncoding::from_headers(&self.headers).map_err(|_| Skip::Coded)?;
        self.headers.remove(CONTENT_ENCODING);
        if coding == ContentEncoding::Identity || self.body.is_empty() {
            return Ok(self);
        }
        let decoded = coding.decode(self.body, *room, |_| true);
        self.body = decoded.map_err(|error| match error {
            DecodeError::TooLarge(_) | DecodeError::NoRoom => Skip::Large,
            DecodeError::Malformed(_) => Skip::Coded,
        })?;
        *room = room.saturating_sub(self.body.len());
        Ok(self)
    }

    /// Reads the answer as one to a call of a side.
    pub(super) fn read(self, side: Side, depth: u16) -> ParsedResponse {
        let status = self.status.as_u16();
        let is_failure = self.source == ResponseOrigin::Failure;
        match side {
            Side::Rest if is_failure || self.status.is_server_error() => {
                ParsedResponse::Failure(RunEnding::Status(status))
            }
            Side::Rest => ParsedResponse::Rest(self),
            Side::Rpc => match parse_response(&self.body, depth) {
                Ok(response) => match response.reply {
                    ResponseReply::Error(error)
                        if is_failure
                            || error.code == INTERNAL_ERROR
                                && self.source == ResponseOrigin::Server =>
                    {
                        ParsedResponse::Failure(RunEnding::Error(error.code))
                    }
                    ResponseReply::Result(_) if is_failure => {
                        ParsedResponse::Failure(RunEnding::Result)
                    }
                    reply @ (ResponseReply::Result(_) | ResponseReply::Error(_)) => {
                        ParsedResponse::Rpc(reply)
                    }
                },
                Err(_) => ParsedResponse::Failure(RunEnding::NoResponse(status)),
            },
        }
    }
}

/// An answer that was read.
#[derive(Debug)]
pub(super) enum ParsedResponse {
    /// To a REST call.
    Rest(RecordedResponse),
    /// To an RPC call.
    Rpc(ResponseReply),
    /// None: the server or the proxy has failed.
    Failure(RunEnding),
}

impl ParsedResponse {
    /// Whether there is an answer.
    pub(super) fn run(&self) -> Run {
        match self {
            ParsedResponse::Rest(_) | ParsedResponse::Rpc(_) => Run::Answered,
            ParsedResponse::Failure(_) => Run::Failed,
        }
    }

    /// The answer as it is compared.
    pub(super) fn answer(&self) -> Option<ComparedResponse<'_>> {
        match self {
            ParsedResponse::Rest(told) => Some(ComparedResponse::Rest {
                status: told.status.as_u16(),
                headers: &told.headers,
                body: &told.body,
            }),
            ParsedResponse::Rpc(ResponseReply::Result(result)) => {
                Some(ComparedResponse::Result(result))
            }
            ParsedResponse::Rpc(ResponseReply::Error(error)) => Some(ComparedResponse::Error {
                code: error.code,
                message: &error.message,
                data: error.data.as_ref(),
            }),
            ParsedResponse::Failure(_) => None,
        }
    }

    /// Returns the response in a few words.
    pub(super) fn ending(&self) -> RunEnding {
        match self {
            ParsedResponse::Rest(told) => RunEnding::Status(told.status.as_u16()),
            ParsedResponse::Rpc(ResponseReply::Result(_)) => RunEnding::Result,
            ParsedResponse::Rpc(ResponseReply::Error(error)) => RunEnding::Error(error.code),
            ParsedResponse::Failure(ending) => *ending,
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
