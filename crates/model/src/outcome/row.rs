//! One outcome: a pair of reply patterns, read on one side and written on the other.
//!
//! Used by `cli`, `model` and `gateway`.

use std::sync::LazyLock;

use http::{HeaderName, HeaderValue, StatusCode};
use memchr::memmem::Finder;

use super::number::NumberPattern;
use super::response::{RestAnswer, RestReply, RpcAnswer, is_json};
use super::status::forwarded;
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::route::{HeaderItem, header_of_page, read_headers, write_headers};
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    Bindings, HoleFacts, MatchError, Pattern, PatternReader, PatternWriter, Slot, TextPatterns,
    UnknownMembers, WriteScope,
};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// One outcome.
#[derive(Debug, Clone)]
pub struct OutcomeRow {
    /// The key of the row's table, for messages.
    pub key: String,
    /// 0 for a row of the route itself, then the index of the set.
    pub origin: usize,
    /// The name, and the rows that come before it.
    pub order: RowOrder,
    /// The holes that both sides share.
    pub facts: HoleFacts,
    /// The REST side.
    pub rest: RestReplyPattern,
    /// The RPC side.
    pub rpc: RpcReplyPattern,
    /// The treatment of a failed tool's result.
    pub tool: ToolResult,
    /// The declared reason why translation may lose content.
    pub lossy: Option<String>,
}

impl OutcomeRow {
    /// Returns whether both rows match the same responses and write them alike.
    pub(super) fn answers_like(&self, other: &OutcomeRow) -> bool {
        let OutcomeRow {
            key: _,
            origin: _,
            order: _,
            facts,
            rest,
            rpc,
            tool,
            lossy: _,
        } = self;
        (facts, rest, rpc, tool) == (&other.facts, &other.rest, &other.rpc, &other.tool)
    }
}

/// The name of a row, and the rows that come before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowOrder {
    /// `name`
    pub name: Option<String>,
    /// `after`
    pub after: Vec<String>,
}

/// The treatment of a tool's result with `isError: true`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolResult {
    /// No match: the row does not name the member.
    Succeeded,
    /// A possible match: the row names the member, or belongs to no tool.
    #[default]
    Any,
}

/// The REST side of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestReplyPattern<H = dualgauge_patterns::pattern::Slot> {
    /// The HTTP status.
    pub status: NumberPattern<H>,
    /// The headers to read and write.
    pub headers: Vec<HeaderItem<H>>,
    /// The body.
    pub body: BodyPattern<H>,
}

impl RestReplyPattern {
    /// Returns the location of the page whose offset is the hole with this name.
    fn page_location(&self, name: &str) -> Option<String> {
        header_of_page(&self.headers, name).or_else(|| match &self.body {
            BodyPattern::Json(pattern) => Some(format!("body{}", pattern.path_of_page(name)?)),
            BodyPattern::Nothing | BodyPattern::Anything | BodyPattern::Text(_) => None,
        })
    }
}

/// The body of a REST response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPattern<H = dualgauge_patterns::pattern::Slot> {
    /// No body.
    Nothing,
    /// Any body; none is written.
    Anything,
    /// JSON.
    Json(Pattern<H>),
    /// Text other than JSON.
    Text(TextPatterns<H>),
}

/// The RPC side of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcReplyPattern<H = dualgauge_patterns::pattern::Slot> {
    /// Success.
    Result(Pattern<H>),
    /// Failure.
    Error {
        /// The code.
        code: NumberPattern<H>,
        /// The message.
        message: Option<Pattern<H>>,
        /// Additional data.
        data: Option<Pattern<H>>,
    },
}

/// A reader of one REST response, whose content is parsed at most once.
#[derive(Debug)]
pub(super) struct ReplyReader<'r> {
    pub(super) reply: &'r RestReply,
    pub(super) content: ReplyContent,
}

/// The content of a REST response.
#[derive(Debug)]
pub(super) enum ReplyContent {
    Nothing,
    Json(Json),
    Text(String),
    /// Neither JSON nor UTF-8.
    Bytes,
}

/// The output of a row.
#[derive(Debug)]
pub(crate) struct Rendered<A> {
    /// The response.
    pub answer: A,
    /// Members that no pattern named.
    pub dropped: usize,
}

impl OutcomeRow {
    /// Counts the holes that a side binds.
    pub(super) fn binds(&self, side: Side) -> usize {
        let slots = self.slots(side).into_iter();
        slots.filter(|slot| slot.binds().is_some()).count()
    }

    /// Returns the slots of a side, without those of numbers.
    fn slots(&self, side: Side) -> Vec<&Slot> {
        let mut slots = Vec::new();
        match side {
            Side::Rest => {
                let words = self.rest.headers.iter().map(|item| &item.words);
                slots.extend(words.flat_map(TextPatterns::slots));
                match &self.rest.body {
                    BodyPattern::Json(pattern) => pattern.slots(&mut |slot| slots.push(slot)),
                    BodyPattern::Text(words) => slots.extend(words.slots()),
                    BodyPattern::Nothing | BodyPattern::Anything => {}
                }
            }
            Side::Rpc => match &self.rpc {
                RpcReplyPattern::Result(pattern) => pattern.slots(&mut |slot| slots.push(slot)),
                RpcReplyPattern::Error { message, data, .. } => {
                    for pattern in message.iter().chain(data) {
                        pattern.slots(&mut |slot| slots.push(slot));
                    }
                }
            },
        }
        slots
    }

    /// Returns the holes in order of first use, each with its constraints on the REST side: `text:string`.
    #[must_use]
    pub fn hole_notations(&self) -> Vec<String> {
        let mut slots = self.slots(Side::Rest);
        slots.extend(self.slots(Side::Rpc));
        self.facts.to_notations(&slots)
    }

    fn reading(&self, depth: u16) -> PatternReader {
        PatternReader::new(self.facts.holes.len(), UnknownMembers::Open, depth)
    }

    /// Reads a REST response.
    pub(super) fn read_rest(
        &self,
        seen: &ReplyReader<'_>,
        depth: u16,
    ) -> Result<PatternReader, MatchError> {
        let mut reading = self.reading(depth);
        let status = self
            .rest
            .status
            .read(seen.reply.status.into(), &mut reading);
        status.map_err(|error| error.within("status"))?;
        read_headers(&self.rest.headers, &seen.reply.headers, &mut reading)?;
        let body = |error: MatchError| error.within("body");
        match (&self.rest.body, &seen.content) {
            (BodyPattern::Anything, _) | (BodyPattern::Nothing, ReplyContent::Nothing) => {}
            (BodyPattern::Json(pattern), ReplyContent::Json(json)) => {
                pattern.read(Some(json), &mut reading).map_err(body)?;
            }
            (BodyPattern::Text(words), ReplyContent::Text(text)) => {
                words.read(&[text], &mut reading).map_err(body)?;
            }
            (BodyPattern::Text(words), ReplyContent::Nothing) => {
                words.read(&[""], &mut reading).map_err(body)?;
            }
            (BodyPattern::Nothing | BodyPattern::Json(_) | BodyPattern::Text(_), _) => {
                return Err(MatchError::new("body", "it has another type"));
            }
        }
        settled(&mut reading, |name| self.rest.page_location(name))?;
        Ok(reading)
    }

    /// Reads a REST response that no other row reads.
    pub(crate) fn read_rest_whole(
        &self,
        reply: &RestReply,
        depth: u16,
    ) -> Result<PatternReader, MatchError> {
        self.read_rest(&ReplyReader::new(reply, depth), depth)
    }

    /// Reads an RPC response.
    pub(crate) fn read_rpc(
        &self,
        reply: &ResponseReply,
        depth: u16,
    ) -> Result<PatternReader, MatchError> {
        let mut reading = self.reading(depth);
        match (&self.rpc, reply) {
            (RpcReplyPattern::Result(pattern), ResponseReply::Result(result)) => {
                let read = pattern.read(Some(result), &mut reading);
                // If the row names all members of the result, there is no `isError`.
                let names_all = read.is_ok() && reading.dropped == 0 && has_no_rest(pattern);
                if self.tool == ToolResult::Succeeded && !names_all && reports_failure(result) {
                    return Err(MatchError::new(
                        "result/isError",
                        "the row does not describe a failure",
                    ));
                }
                read.map_err(|error| error.within("result"))?;
            }
            (
                RpcReplyPattern::Error {
                    code,
                    message,
                    data,
                },
                ResponseReply::Error(error),
            ) => {
                code.read(error.code, &mut reading)
                    .map_err(|error| error.within("error/code"))?;
                read_part(message.as_ref(), Some(&error.message), &mut reading)
                    .map_err(|error| error.within("error/message"))?;
                read_part(data.as_ref(), error.data.as_ref(), &mut reading)
                    .map_err(|error| error.within("error/data"))?;
            }
            (RpcReplyPattern::Result(_), ResponseReply::Error(_)) => {
                return Err(MatchError::new("error", "the row has a result"));
            }
            (RpcReplyPattern::Error { .. }, ResponseReply::Result(_)) => {
                return Err(MatchError::new("result", "the row has an error"));
            }
        }
        settled(&mut reading, |name| match &self.rpc {
            RpcReplyPattern::Result(pattern) => {
                Some(format!("result{}", pattern.path_of_page(name)?))
            }
            RpcReplyPattern::Error { data, .. } => {
                Some(format!("error/data{}", data.as_ref()?.path_of_page(name)?))
            }
        })?;
        Ok(reading)
    }

    /// Writes the RPC response.
    pub(crate) fn write_rpc(
        &self,
        reading: &PatternReader,
        call: &Bindings,
        context: TranslateContext,
    ) -> Result<Rendered<RpcAnswer>, MatchError> {
        let writing = writing(reading, call, context);
        let answer = match &self.rpc {
            RpcReplyPattern::Result(pattern) => {
                let written = write(pattern, &writing)?;
                let null = || Json::literal("null").into_bytes().into();
                RpcAnswer::Result(written.unwrap_or_else(null))
            }
            RpcReplyPattern::Error {
                code,
                message,
                data,
            } => {
                let value = |pattern: &Option<Pattern>| -> Result<Option<Json>, MatchError> {
                    let written = pattern.as_ref().map(|pattern| write(pattern, &writing));
                    let pieces = written.transpose()?.flatten();
                    Ok(pieces.map(|pieces| Json::written(pieces.into_bytes().to_vec())))
                };
                let message = match value(message)? {
                    Some(message) => message,
                    None => Json::string(self.title()),
                };
                RpcAnswer::Error(ErrorObject {
                    code: code.write(&writing)?,
                    message,
                    data: value(data)?,
                })
            }
        };
        Ok(Rendered {
            answer,
            dropped: reading.dropped,
        })
    }

    /// Returns the message of an error whose row has none.
    fn title(&self) -> &'static str {
        let status = self.rest.status.written();
        let status =
            status.and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
        let title = status.and_then(|status| status.canonical_reason());
        title.unwrap_or("Error")
    }

    /// Writes the REST response.
    pub(crate) fn write_rest(
        &self,
        reading: &PatternReader,
        call: &Bindings,
        context: TranslateContext,
    ) -> Result<Rendered<RestAnswer>, MatchError> {
        let writing = writing(reading, call, context);
        let status = self.rest.status.write(&writing)?;
        let in_range = u16::try_from(status)
            .ok()
            .filter(|status| (200..=599).contains(status));
        let status = in_range.ok_or_else(|| {
            MatchError::new("status", format!("{status} is not a response status"))
        })?;
        let (content_type, body) = match &self.rest.body {
            BodyPattern::Nothing | BodyPattern::Anything => (None, Rope::default()),
            BodyPattern::Json(pattern) => match write(pattern, &writing)? {
                Some(body) => (Some("application/json"), body),
                None => (None, Rope::default()),
            },
            BodyPattern::Text(words) => {
                let text = words.write(&writing)?.last().unwrap_or_default();
                let body = bytes::Bytes::from(text.into_owned()).into();
                (Some("text/plain; charset=utf-8"), body)
            }
        };
        if !body.is_empty() && without_content(status.into()) {
            return Err(MatchError::new(
                "status",
                format!("an answer with {status} has no content"),
            ));
        }
        let headers = write_headers(&self.rest.headers, &writing)?;
        let is_text_type = |(name, value): &(HeaderName, HeaderValue)| {
            let value = value.to_str().unwrap_or_default();
            name == "content-type" && value.starts_with("text/") && !is_json(value)
        };
        if matches!(self.rest.body, BodyPattern::Json(_)) && headers.iter().any(is_text_type) {
            let what = "it is a text type, but the body is JSON";
            return Err(MatchError::new("header `content-type`", what));
        }
        let is_content_type = |(name, _): &(HeaderName, HeaderValue)| name == "content-type";
        let declared_type = headers.iter().find(|header| is_content_type(header));
        if let (BodyPattern::Text(_), [text]) = (&self.rest.body, body.chunks()) {
            is_text(text, declared_type.map(|(_, kind)| kind.as_bytes()))?;
        }
        let content_type = content_type.filter(|_| declared_type.is_none());
        Ok(Rendered {
            answer: RestAnswer {
                status: forwarded(status),
                content_type: content_type.map(str::to_owned),
                headers,
                body,
            },
            dropped: reading.dropped,
        })
    }
}

/// Rejects a text that would not be read back as text. Blanks count as no content, and without a text type, JSON counts
/// as JSON.
fn is_text(text: &bytes::Bytes, kind: Option<&[u8]>) -> Result<(), MatchError> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(MatchError::new("text", "a blank text counts as no content"));
    }
    let is_text_type = kind.is_none_or(|kind| kind.starts_with(b"text/"));
    if !is_text_type && Json::parse(text.clone(), u16::MAX).is_ok() {
        return Err(MatchError::new("text", "it would be read as JSON"));
    }
    Ok(())
}

/// Reads a member of an error; a member that the row does not name is dropped.
fn read_part(
    pattern: Option<&Pattern>,
    value: Option<&Json>,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    match (pattern, value) {
        (Some(pattern), value) => pattern.read(value, reading),
        (None, Some(value)) => {
            reading.dropped += usize::from(value.as_bytes() != b"\"\"");
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn writing<'s>(
    reading: &'s PatternReader,
    call: &'s Bindings,
    context: TranslateContext,
) -> PatternWriter<'s> {
    PatternWriter::new(WriteScope {
        bindings: &reading.bindings,
        call: Some(call),
        now: context.now,
    })
}

fn write(pattern: &Pattern, writing: &PatternWriter<'_>) -> Result<Option<Rope>, MatchError> {
    pattern.pieces(writing, 256)
}

/// The member of a tool's result that reports failure (MCP, "Tools", error handling).
pub(super) const IS_ERROR: &str = "isError";

/// A search for the word, which has one spelling, is cheaper than a walk over the members of a result.
static TRUE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("true"));

/// A result with this end reports no failure: a repeated member is ignored.
const SUCCESS_END: &[u8] = b",\"isError\":false}";

/// Returns whether a tool's result has `isError: true`.
#[must_use]
pub fn reports_failure(result: &Json) -> bool {
    if result.as_bytes().ends_with(SUCCESS_END) {
        return false;
    }
    let fails = || {
        let is_error = result.member(IS_ERROR);
        is_error.is_some_and(|is_error| is_error.as_bytes() == b"true")
    };
    TRUE.find(result.as_bytes()).is_some() && fails()
}

/// Returns the same for a result in pieces. Most contain no `true`, and only those that do are joined.
pub(super) fn rope_reports_failure(result: &Rope) -> bool {
    let chunks = result.chunks();
    let mut ends = chunks.last().into_iter();
    if ends.any(|chunk| chunk.ends_with(SUCCESS_END)) {
        return false;
    }
    chunks.iter().any(|chunk| TRUE.find(chunk).is_some())
        && reports_failure(&Json::sent(result.clone()))
}

fn has_no_rest(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Object(object) if object.rest.is_none())
}

/// Returns whether a response with this status has no content by definition (RFC 9110 §15.3.5, §15.3.6, §15.4.5).
pub(super) fn without_content(status: i64) -> bool {
    matches!(status, 204 | 205 | 304)
}

/// Binds the offsets of pages. An error gets the location of its page.
fn settled(
    reading: &mut PatternReader,
    location: impl FnOnce(&str) -> Option<String>,
) -> Result<(), MatchError> {
    let settled = reading.settle();
    settled.map_err(|misfit| misfit.located(location))
}
