//! One outcome: a pair of reply patterns, read on one side and written on the other.

use http::{HeaderName, HeaderValue, StatusCode};

use super::number::NumberPattern;
use super::{RestAnswer, RestReply, RpcAnswer};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{ErrorObject, Reply};
use crate::domain::pattern::{
    Bindings, Facts, Mention, Misfit, Pattern, PatternError, Place, Presence, Reading, Resolver,
    Scope, Strangers, Tree, Words, Writing,
};
use crate::domain::pieces::{Pieces, PiecesWriter};
use crate::domain::route::{HeaderItem, parse_headers, resolve_headers};
use crate::domain::side::Side;
use crate::domain::translate::{Terms, read_headers, write_headers};

/// What a route table says of one outcome.
#[derive(Debug, Clone)]
pub struct RowSource {
    /// The key of the row's table: `route[3].outcome[0]`, `outcomes.common[2]`.
    pub key: String,
    /// 0 for a row of the route itself, then the sets in the order in which it names them.
    pub origin: usize,
    /// `rest`
    pub rest: RestReplySource,
    /// `rpc`
    pub rpc: RpcReplySource,
    /// `lossy`
    pub lossy: Option<String>,
}

/// `rest` of an outcome.
#[derive(Debug, Clone)]
pub struct RestReplySource {
    /// `status`
    pub status: Tree,
    /// `headers`
    pub headers: Vec<(String, Tree)>,
    /// `body`
    pub body: Option<Tree>,
    /// `text`
    pub text: Option<String>,
}

/// `rpc` of an outcome.
#[derive(Debug, Clone)]
pub enum RpcReplySource {
    /// `result`
    Result(Tree),
    /// `error`
    Error {
        /// `code`
        code: Tree,
        /// `message`
        message: Option<Tree>,
        /// `data`
        data: Option<Tree>,
    },
}

/// One outcome.
#[derive(Debug, Clone)]
pub struct Row {
    /// The key of the row's table, for messages.
    pub key: String,
    /// 0 for a row of the route itself, then the sets.
    pub origin: usize,
    /// The holes that both sides share.
    pub facts: Facts,
    /// The REST side.
    pub rest: RestReplyPattern,
    /// The RPC side.
    pub rpc: RpcReplyPattern,
    /// Whether a result that says that its tool failed is none of its.
    pub tool: ToolResult,
    /// Why it may lose something.
    pub lossy: Option<String>,
}

/// Whether a row takes a tool's result that says `isError: true`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolResult {
    /// It says nothing of it, so it does not.
    Succeeded,
    /// It names the member, or is of no tool.
    Any,
}

/// The REST side of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestReplyPattern<H = crate::domain::pattern::Slot> {
    /// The HTTP status.
    pub status: NumberPattern<H>,
    /// The headers that are read and written.
    pub headers: Vec<HeaderItem<H>>,
    /// The body.
    pub body: BodyPattern<H>,
}

/// The body of a REST answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPattern<H = crate::domain::pattern::Slot> {
    /// There is none.
    Nothing,
    /// Whatever there is; none is written.
    Anything,
    /// JSON.
    Json(Pattern<H>),
    /// A text that is no JSON.
    Text(Words<H>),
}

/// The RPC side of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcReplyPattern<H = crate::domain::pattern::Slot> {
    /// Success.
    Result(Pattern<H>),
    /// Failure.
    Error {
        /// The code.
        code: NumberPattern<H>,
        /// The message.
        message: Option<Pattern<H>>,
        /// What else there is.
        data: Option<Pattern<H>>,
    },
}

/// A REST answer that is being read: its content is looked at once.
#[derive(Debug)]
pub(super) struct Seen<'r> {
    pub(super) reply: &'r RestReply,
    pub(super) content: Content,
}

/// What the content of a REST answer is.
#[derive(Debug)]
pub(super) enum Content {
    Nothing,
    Json(Json),
    Text(String),
    /// Neither JSON nor UTF-8.
    Bytes,
}

/// What a row has made of an answer.
#[derive(Debug)]
pub(in crate::domain) struct Written<A> {
    /// The answer.
    pub answer: A,
    /// Members that no pattern named.
    pub dropped: usize,
}

impl Row {
    /// Compiles a row. `call` are the holes of the call that it answers.
    pub(super) fn build(
        source: RowSource,
        call: &Facts,
        tool: ToolResult,
    ) -> Result<Row, PatternError> {
        let key = source.key.clone();
        Row::compile(source, call, tool).map_err(|error| error.under(&key))
    }

    fn compile(source: RowSource, call: &Facts, tool: ToolResult) -> Result<Row, PatternError> {
        let rest = parse_rest(&source.rest).map_err(|error| error.under("rest"))?;
        let rpc = parse_rpc(&source.rpc).map_err(|error| error.under("rpc"))?;
        let mut resolver = Resolver::default();
        note_rest(&rest, resolver.at("rest")).map_err(|error| error.under("rest"))?;
        note_rpc(&rpc, resolver.at("rpc")).map_err(|error| error.under("rpc"))?;
        let facts = resolver.finish(call)?;
        let rest = resolve_rest(&rest, &facts).map_err(|error| error.under("rest"))?;
        let rpc = resolve_rpc(&rpc, &facts).map_err(|error| error.under("rpc"))?;
        let names_it = |pattern: &Pattern| {
            matches!(pattern, Pattern::Object(object)
                if object.members.iter().any(|(name, _)| name == IS_ERROR))
        };
        let tool = match &rpc {
            RpcReplyPattern::Result(pattern) if !names_it(pattern) => tool,
            RpcReplyPattern::Result(_) | RpcReplyPattern::Error { .. } => ToolResult::Any,
        };
        Ok(Row {
            key: source.key,
            origin: source.origin,
            facts,
            rest,
            rpc,
            tool,
            lossy: source.lossy,
        })
    }

    fn reading(&self, depth: u16) -> Reading {
        Reading::of(self.facts.holes.len(), Strangers::Open, depth)
    }

    /// Reads a REST answer.
    pub(super) fn read_rest(&self, seen: &Seen<'_>, depth: u16) -> Result<Reading, Misfit> {
        let mut reading = self.reading(depth);
        let status = self
            .rest
            .status
            .read(seen.reply.status.into(), &mut reading);
        status.map_err(|misfit| misfit.within("status"))?;
        read_headers(&self.rest.headers, &seen.reply.headers, &mut reading)?;
        let body = |misfit: Misfit| misfit.within("body");
        match (&self.rest.body, &seen.content) {
            (BodyPattern::Anything, _) | (BodyPattern::Nothing, Content::Nothing) => {}
            (BodyPattern::Json(pattern), Content::Json(json)) => {
                pattern.read(Some(json), &mut reading).map_err(body)?;
            }
            (BodyPattern::Text(words), Content::Text(text)) => {
                words.read(&[text], &mut reading).map_err(body)?;
            }
            (BodyPattern::Text(words), Content::Nothing) => {
                words.read(&[""], &mut reading).map_err(body)?;
            }
            (BodyPattern::Nothing | BodyPattern::Json(_) | BodyPattern::Text(_), _) => {
                return Err(Misfit::new("body", "it is of another kind"));
            }
        }
        Ok(reading)
    }

    /// Reads a REST answer that no other row looks at.
    pub(in crate::domain) fn read_rest_whole(
        &self,
        reply: &RestReply,
        depth: u16,
    ) -> Result<Reading, Misfit> {
        self.read_rest(&Seen::of(reply, depth), depth)
    }

    /// Reads an RPC answer.
    pub(in crate::domain) fn read_rpc(&self, reply: &Reply, depth: u16) -> Result<Reading, Misfit> {
        let mut reading = self.reading(depth);
        match (&self.rpc, reply) {
            (RpcReplyPattern::Result(pattern), Reply::Result(result)) => {
                if self.tool == ToolResult::Succeeded && says_failure(result) {
                    return Err(Misfit::new(
                        "result/isError",
                        "the row says nothing of failure",
                    ));
                }
                let read = pattern.read(Some(result), &mut reading);
                read.map_err(|misfit| misfit.within("result"))?;
            }
            (
                RpcReplyPattern::Error {
                    code,
                    message,
                    data,
                },
                Reply::Error(error),
            ) => {
                code.read(error.code, &mut reading)
                    .map_err(|misfit| misfit.within("error/code"))?;
                read_part(message.as_ref(), Some(&error.message), &mut reading)
                    .map_err(|misfit| misfit.within("error/message"))?;
                read_part(data.as_ref(), error.data.as_ref(), &mut reading)
                    .map_err(|misfit| misfit.within("error/data"))?;
            }
            (RpcReplyPattern::Result(_), Reply::Error(_)) => {
                return Err(Misfit::new("error", "the row has a result"));
            }
            (RpcReplyPattern::Error { .. }, Reply::Result(_)) => {
                return Err(Misfit::new("result", "the row has an error"));
            }
        }
        Ok(reading)
    }

    /// Writes the RPC answer.
    pub(in crate::domain) fn write_rpc(
        &self,
        reading: &Reading,
        call: &Bindings,
        terms: Terms,
    ) -> Result<Written<RpcAnswer>, Misfit> {
        let writing = writing(reading, call, terms);
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
                let value = |pattern: &Option<Pattern>| -> Result<Option<Json>, Misfit> {
                    let written = pattern.as_ref().map(|pattern| write(pattern, &writing));
                    let pieces = written.transpose()?.flatten();
                    Ok(pieces.map(|pieces| Json::assembled(pieces.into_bytes().to_vec())))
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
        Ok(Written {
            answer,
            dropped: reading.dropped,
        })
    }

    /// What an error says whose row does not say it.
    fn title(&self) -> &'static str {
        let status = self.rest.status.numbers().next();
        let status =
            status.and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
        let title = status.and_then(|status| status.canonical_reason());
        title.unwrap_or("Error")
    }

    /// Writes the REST answer.
    pub(in crate::domain) fn write_rest(
        &self,
        reading: &Reading,
        call: &Bindings,
        terms: Terms,
    ) -> Result<Written<RestAnswer>, Misfit> {
        let writing = writing(reading, call, terms);
        let status = self.rest.status.write(&writing)?;
        let in_range = u16::try_from(status)
            .ok()
            .filter(|status| (200..=599).contains(status));
        let status = in_range
            .ok_or_else(|| Misfit::new("status", format!("{status} is no status of an answer")))?;
        let (content_type, body) = match &self.rest.body {
            BodyPattern::Nothing | BodyPattern::Anything => (None, Pieces::default()),
            BodyPattern::Json(pattern) => match write(pattern, &writing)? {
                Some(body) => (Some("application/json"), body),
                None => (None, Pieces::default()),
            },
            BodyPattern::Text(words) => {
                let text = words.write(&writing)?.pop().unwrap_or_default();
                let body = bytes::Bytes::from(text).into();
                (Some("text/plain; charset=utf-8"), body)
            }
        };
        let headers = write_headers(&self.rest.headers, &writing)?;
        let says_type = |(name, _): &(HeaderName, HeaderValue)| name == "content-type";
        let content_type = content_type.filter(|_| !headers.iter().any(says_type));
        Ok(Written {
            answer: RestAnswer {
                status,
                content_type: content_type.map(str::to_owned),
                headers,
                body,
            },
            dropped: reading.dropped,
        })
    }
}

/// A member of an error; one that the row does not name is dropped.
fn read_part(
    pattern: Option<&Pattern>,
    value: Option<&Json>,
    reading: &mut Reading,
) -> Result<(), Misfit> {
    match (pattern, value) {
        (Some(pattern), value) => pattern.read(value, reading),
        (None, Some(value)) => {
            reading.dropped += usize::from(value.as_bytes() != b"\"\"");
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn writing<'s>(reading: &'s Reading, call: &'s Bindings, terms: Terms) -> Writing<'s> {
    Writing::of(Scope {
        bindings: &reading.bindings,
        call: Some(call),
        now: terms.now,
    })
}

fn write(pattern: &Pattern, writing: &Writing<'_>) -> Result<Option<Pieces>, Misfit> {
    let mut out = PiecesWriter::with_capacity(256);
    Ok(match pattern.write(writing, &mut out)? {
        Presence::Present => Some(out.finish()),
        Presence::Absent => None,
    })
}

/// The member of a tool's result that tells failure (MCP, "Tools", error handling).
const IS_ERROR: &str = "isError";

fn says_failure(result: &Json) -> bool {
    result
        .member(IS_ERROR)
        .is_some_and(|says| says.as_bytes() == b"true")
}

fn parse_rest(source: &RestReplySource) -> Result<RestReplyPattern<Mention>, PatternError> {
    let status = NumberPattern::parse(&source.status).map_err(|error| error.under("status"))?;
    if let NumberPattern::Among(first, _) = &status
        && !(200..=599).contains(first)
    {
        let what = format!("{first} is no status of an answer; write one from 200 to 599");
        return Err(PatternError::new(what).under("status"));
    }
    let mut errors = Vec::new();
    let headers = parse_headers(&source.headers, &mut errors);
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let body = match (&source.body, &source.text) {
        (Some(_), Some(_)) => {
            return Err(PatternError::new(
                "`body` is JSON and `text` is none; write one of them",
            ));
        }
        (Some(body), None) => {
            let body = body.pattern().map_err(|error| error.under("body"))?;
            match body {
                Pattern::Hole(mention) if mention.name == "_" && mention.default.is_none() => {
                    BodyPattern::Anything
                }
                body => BodyPattern::Json(body),
            }
        }
        (None, Some(text)) => {
            BodyPattern::Text(Words::parse(text).map_err(|error| error.under("text"))?)
        }
        (None, None) => BodyPattern::Nothing,
    };
    Ok(RestReplyPattern {
        status,
        headers,
        body,
    })
}

fn parse_rpc(source: &RpcReplySource) -> Result<RpcReplyPattern<Mention>, PatternError> {
    let part = |tree: &Option<Tree>, key: &str| {
        let pattern = tree.as_ref().map(Tree::pattern).transpose();
        pattern.map_err(|error| error.under(key).under("error"))
    };
    Ok(match source {
        RpcReplySource::Result(tree) => {
            RpcReplyPattern::Result(tree.pattern().map_err(|error| error.under("result"))?)
        }
        RpcReplySource::Error {
            code,
            message,
            data,
        } => RpcReplyPattern::Error {
            code: NumberPattern::parse(code).map_err(|error| error.under("code").under("error"))?,
            message: part(message, "message")?,
            data: part(data, "data")?,
        },
    })
}

fn note_rest(
    rest: &RestReplyPattern<Mention>,
    resolver: &mut Resolver,
) -> Result<(), PatternError> {
    let status = rest.status.note(Side::Rest, resolver);
    status.map_err(|error| error.under("status"))?;
    for item in &rest.headers {
        let noted = resolver.words(Side::Rest, &item.words, Place::Words);
        noted.map_err(|error| error.under(&format!("headers.{}", item.name)))?;
    }
    match &rest.body {
        BodyPattern::Nothing | BodyPattern::Anything => Ok(()),
        BodyPattern::Json(pattern) => resolver
            .pattern(Side::Rest, pattern)
            .map_err(|error| error.under("body")),
        BodyPattern::Text(words) => resolver
            .words(Side::Rest, words, Place::Text)
            .map_err(|error| error.under("text")),
    }
}

fn note_rpc(rpc: &RpcReplyPattern<Mention>, resolver: &mut Resolver) -> Result<(), PatternError> {
    match rpc {
        RpcReplyPattern::Result(pattern) => resolver
            .pattern(Side::Rpc, pattern)
            .map_err(|error| error.under("result")),
        RpcReplyPattern::Error {
            code,
            message,
            data,
        } => {
            code.note(Side::Rpc, resolver)
                .map_err(|error| error.under("error.code"))?;
            for (pattern, key) in [(message, "error.message"), (data, "error.data")] {
                if let Some(pattern) = pattern {
                    let noted = resolver.pattern(Side::Rpc, pattern);
                    noted.map_err(|error| error.under(key))?;
                }
            }
            Ok(())
        }
    }
}

fn resolve_rest(
    rest: &RestReplyPattern<Mention>,
    facts: &Facts,
) -> Result<RestReplyPattern, PatternError> {
    let status = rest.status.resolve(Side::Rest, facts);
    let body = match &rest.body {
        BodyPattern::Nothing => BodyPattern::Nothing,
        BodyPattern::Anything => BodyPattern::Anything,
        BodyPattern::Json(pattern) => {
            let pattern = facts.resolve(Side::Rest, pattern);
            BodyPattern::Json(pattern.map_err(|error| error.under("body"))?)
        }
        BodyPattern::Text(words) => {
            let words = facts.words(Side::Rest, words, Place::Text);
            BodyPattern::Text(words.map_err(|error| error.under("text"))?)
        }
    };
    Ok(RestReplyPattern {
        status: status.map_err(|error| error.under("status"))?,
        headers: resolve_headers(&rest.headers, facts)?,
        body,
    })
}

fn resolve_rpc(
    rpc: &RpcReplyPattern<Mention>,
    facts: &Facts,
) -> Result<RpcReplyPattern, PatternError> {
    Ok(match rpc {
        RpcReplyPattern::Result(pattern) => {
            let pattern = facts.resolve(Side::Rpc, pattern);
            RpcReplyPattern::Result(pattern.map_err(|error| error.under("result"))?)
        }
        RpcReplyPattern::Error {
            code,
            message,
            data,
        } => {
            let part = |pattern: &Option<Pattern<Mention>>, key: &str| {
                let pattern = pattern.as_ref();
                let pattern = pattern.map(|pattern| facts.resolve(Side::Rpc, pattern));
                pattern.transpose().map_err(|error| error.under(key))
            };
            let code = code.resolve(Side::Rpc, facts);
            RpcReplyPattern::Error {
                code: code.map_err(|error| error.under("error.code"))?,
                message: part(message, "error.message")?,
                data: part(data, "error.data")?,
            }
        }
    })
}
