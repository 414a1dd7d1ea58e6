//! Responses stored for comparison, as the client would see them. Used by `response`, `rpc` and `shadow`.

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Method, StatusCode};

use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::FullResponse;
use dualgauge_model::compare::{
    ComparedResponse, ReplySketch, Rules, Run, RunEnding, Skip, StreamBound, StreamPart, Terms,
};
use dualgauge_model::failure::{Blame, Failure};
use dualgauge_model::jsonrpc::{ResponseReply, parse_response};
use dualgauge_model::shadow_limits;
use dualgauge_model::stream_format::{StreamFormat, StreamHead};
use dualgauge_net::{ContentEncoding, DecodeError};
use dualgauge_patterns::side::Side;

/// The RPC error code for a failure inside the server (JSON-RPC 2.0 §5.1).
const INTERNAL_ERROR: i64 = -32603;

/// The largest body that is parsed on the worker, in bytes; that takes far less than a millisecond.
const SHORT: usize = 8 * 1024;

/// A complete response.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct RecordedResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) source: ResponseOrigin,
    /// Set if the response streamed.
    pub(super) stream: Option<RecordedStream>,
}

/// The form of a response that streamed, and the extent of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordedStream {
    pub(super) format: StreamFormat,
    /// The bound at which recording ended; `None` if the record is complete.
    pub(super) bound: Option<StreamBound>,
}

/// The source of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseOrigin {
    /// The server, directly or translated.
    Server,
    /// The proxy, because the call was invalid.
    Refusal,
    /// The proxy, because it or the server failed, or because the call violates a rule of the proxy alone.
    Failure,
}

impl RecordedResponse {
    /// Records a complete response.
    pub(in crate::gateway) fn from_full(full: &FullResponse) -> RecordedResponse {
        // One event of a client that reads only events, compared with the events of the other response.
        let is_event =
            |head: &StreamHead| head.format == StreamFormat::EventStream && !head.is_coded;
        let head = StreamFormat::of_head(&full.headers).filter(is_event);
        RecordedResponse {
            status: full.status,
            headers: full.headers.clone(),
            body: full.body.clone().into_bytes(),
            source: ResponseOrigin::Server,
            stream: head.map(|head| RecordedStream {
                format: head.format,
                bound: None,
            }),
        }
    }

    /// Records the proxy's response to a failure.
    pub(in crate::gateway) fn failure(full: &FullResponse, failure: &Failure) -> RecordedResponse {
        let source = match failure.reason.row().blame {
            Blame::Client if !shadow_limits::is_failure(failure.reason) => ResponseOrigin::Refusal,
            Blame::Client | Blame::Upstream | Blame::Proxy => ResponseOrigin::Failure,
        };
        RecordedResponse {
            source,
            ..RecordedResponse::from_full(full)
        }
    }

    /// Returns the record of a response that broke off.
    pub(super) fn broken() -> RecordedResponse {
        RecordedResponse {
            status: StatusCode::BAD_GATEWAY,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            source: ResponseOrigin::Failure,
            stream: None,
        }
    }

    /// Returns the memory that the response occupies, in bytes.
    pub(super) fn size(&self) -> usize {
        headers_size(&self.headers) + self.body.len()
    }

    /// Returns true when the worker itself can parse the body: it is short and has no content coding.
    pub(super) fn is_short(&self) -> bool {
        self.body.len() <= SHORT && !self.headers.contains_key(CONTENT_ENCODING)
    }

    /// Removes the content coding, and the body if the method is HEAD. Decoded bytes are subtracted from `budget`.
    pub(super) fn decode(
        mut self,
        method: &Method,
        budget: &mut usize,
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
        let decoded = coding.decode(self.body, *budget, |_| true);
        self.body = decoded.map_err(|error| match error {
            DecodeError::TooLarge(_) | DecodeError::NoRoom => Skip::Large,
            DecodeError::Malformed(_) => Skip::Coded,
        })?;
        *budget = budget.saturating_sub(self.body.len());
        Ok(self)
    }

    /// Reads the events of a response that streamed, as a client of `side` got them.
    pub(super) fn events(&self, side: Side, depth: u16) -> Option<StreamPart> {
        let RecordedStream { format, bound } = self.stream?;
        Some(StreamPart::read(&self.body, format, side, depth, bound))
    }

    /// Sketches the response to a call of `side`, also one that reports a failure; `None` if it is too long or not a
    /// response.
    pub(super) fn sketch(&self, side: Side, rules: &Rules, terms: &Terms) -> Option<ReplySketch> {
        if side == Side::Rest {
            let response = ComparedResponse::Rest {
                status: self.status.as_u16(),
                headers: &self.headers,
                body: &self.body,
            };
            return ReplySketch::new(&response, rules, terms);
        }
        let response = parse_response(&self.body, terms.depth).ok()?;
        let response = match &response.reply {
            ResponseReply::Result(result) => ComparedResponse::Result(result),
            ResponseReply::Error(error) => ComparedResponse::Error {
                code: error.code,
                message: &error.message,
                data: error.data.as_ref(),
            },
        };
        ReplySketch::new(&response, rules, terms)
    }

    /// Parses the response to a call of `side`.
    pub(super) fn parse(self, side: Side, depth: u16) -> ParsedResponse {
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
                // The events are compared in place of the body.
                Err(_) if self.stream.is_some() && !is_failure => ParsedResponse::Rest(self),
                Err(_) => ParsedResponse::Failure(RunEnding::NoResponse(status)),
            },
        }
    }
}

/// A parsed response.
#[derive(Debug)]
pub(super) enum ParsedResponse {
    /// To a REST call.
    Rest(RecordedResponse),
    /// To an RPC call.
    Rpc(ResponseReply),
    /// No response: the server or the proxy failed.
    Failure(RunEnding),
}

impl ParsedResponse {
    /// Returns whether the run produced a response.
    pub(super) fn run(&self) -> Run {
        match self {
            ParsedResponse::Rest(_) | ParsedResponse::Rpc(_) => Run::Answered,
            ParsedResponse::Failure(_) => Run::Failed,
        }
    }

    /// Returns the response in the form that is compared.
    pub(super) fn answer(&self) -> Option<ComparedResponse<'_>> {
        match self {
            ParsedResponse::Rest(response) => Some(ComparedResponse::Rest {
                status: response.status.as_u16(),
                headers: &response.headers,
                body: &response.body,
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

    /// Returns a short description of the response.
    pub(super) fn describe(&self) -> RunEnding {
        match self {
            ParsedResponse::Rest(response) => RunEnding::Status(response.status.as_u16()),
            ParsedResponse::Rpc(ResponseReply::Result(_)) => RunEnding::Result,
            ParsedResponse::Rpc(ResponseReply::Error(error)) => RunEnding::Error(error.code),
            ParsedResponse::Failure(ending) => *ending,
        }
    }
}

/// Returns the approximate memory of `headers`, in bytes.
pub(in crate::gateway) fn headers_size(headers: &HeaderMap) -> usize {
    let fields = headers.iter();
    fields
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum()
}

/// Returns the format of a response that streams, and may never end: an event stream, or JSON lines if the route
/// declares them for its REST side.
///
/// # Errors
///
/// Fails if the stream has a content coding: its events cannot be told apart as they arrive.
pub(super) fn stream_format(
    headers: &HeaderMap,
    context: &CallContext,
) -> Result<Option<StreamFormat>, Skip> {
    let (Some(head), Some(route)) = (StreamFormat::of_head(headers), context.route()) else {
        return Ok(None);
    };
    let StreamHead { format, is_coded } = head;
    let declared = context.runtime_plan().plan.routes.route(route).stream;
    let is_expected = match format {
        StreamFormat::EventStream => true,
        StreamFormat::JsonLines => declared.format(context.side()) == StreamFormat::JsonLines,
    };
    match (is_expected, is_coded) {
        (false, _) => Ok(None),
        (true, true) => Err(Skip::Coded),
        (true, false) => Ok(Some(format)),
    }
}
