//! Compilation of an outcome in the configuration into a row. Used by `config`, `check`, `outcome` and `route`.

use super::number::NumberPattern;
use super::row::{
    BodyPattern, IS_ERROR, OutcomeRow, RestReplyPattern, RowOrder, RpcReplyPattern, ToolResult,
    without_content,
};
use crate::route::{Wire, parse_headers, resolve_headers};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::{
    Codec, HoleFacts, HolePosition, HoleRef, HoleResolver, Pattern, PatternError, Role, Scalar,
    Shape, SourceTree, TextPatterns,
};
use dualgauge_patterns::side::Side;

/// The source of one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSource {
    /// The key of the row's table: `route[3].outcome[0]`, `outcomes.common[2]`.
    pub key: String,
    /// 0 for a row of the route itself, then the index of the set, in the order in which the route names them.
    pub origin: usize,
    /// `name` and `after`
    pub order: RowOrder,
    /// `rest`
    pub rest: RestReplySource,
    /// `rpc`
    pub rpc: RpcReplySource,
    /// `lossy`
    pub lossy: Option<String>,
}

/// `rest` of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestReplySource {
    /// The wire protocol: HTTP or frames.
    pub rest_protocol: Wire,
    /// `status`
    pub status: SourceTree,
    /// `headers`
    pub headers: Vec<(String, SourceTree)>,
    /// `body`
    pub body: Option<SourceTree>,
    /// `text`
    pub text: Option<String>,
}

impl RestReplySource {
    /// Returns the source of a frame reply: a frame is content only, and silence is no content.
    #[must_use]
    pub fn frame(frame: Option<SourceTree>) -> RestReplySource {
        let status = if frame.is_some() { "200" } else { "204" };
        RestReplySource {
            rest_protocol: Wire::Frame,
            status: SourceTree::Literal(Json::literal(status)),
            headers: Vec::new(),
            body: frame,
            text: None,
        }
    }

    /// Returns the error in terms of the configuration keys.
    fn with_config_key(&self, error: PatternError) -> PatternError {
        let inside = match self.rest_protocol {
            Wire::Http | Wire::Old => return error.under(self.rest_protocol.as_str()),
            Wire::Frame => error.key.strip_prefix("body").unwrap_or(&error.key),
        };
        let inside = inside.strip_prefix('.').unwrap_or(inside).to_owned();
        PatternError {
            key: inside,
            ..error
        }
        .under("frame")
    }
}

/// `rpc` of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcReplySource {
    /// `result`
    Result(SourceTree),
    /// `error`
    Error {
        /// `code`
        code: SourceTree,
        /// `message`
        message: Option<SourceTree>,
        /// `data`
        data: Option<SourceTree>,
    },
}

impl OutcomeRow {
    /// Compiles a row. `call` has the holes of the call that it responds to.
    pub(super) fn build(
        source: RowSource,
        call: &HoleFacts,
        tool: ToolResult,
    ) -> Result<OutcomeRow, PatternError> {
        let key = source.key.clone();
        OutcomeRow::compile(source, call, tool).map_err(|error| error.under(&key))
    }

    fn compile(
        source: RowSource,
        call: &HoleFacts,
        tool: ToolResult,
    ) -> Result<OutcomeRow, PatternError> {
        let rest = parse_rest(&source.rest).map_err(|error| source.rest.with_config_key(error))?;
        let rpc = parse_rpc(&source.rpc).map_err(|error| error.under("rpc"))?;
        let mut resolver = HoleResolver::default();
        let noted = note_rest(&rest, resolver.at(source.rest.rest_protocol.as_str()));
        noted.map_err(|error| source.rest.with_config_key(error))?;
        note_rpc(&rpc, resolver.at("rpc")).map_err(|error| error.under("rpc"))?;
        let facts = resolver.finish(call)?;
        if let Some(name) = facts.read_only() {
            let what = format!(
                "`{{<{name}}}` keeps a value of a call; in a response, write `{{_}}` to ignore it"
            );
            return Err(PatternError::new(what));
        }
        let rest =
            resolve_rest(&rest, &facts).map_err(|error| source.rest.with_config_key(error))?;
        let rpc = resolve_rpc(&rpc, &facts).map_err(|error| error.under("rpc"))?;
        let names_it = |pattern: &Pattern| {
            matches!(pattern, Pattern::Object(object)
                if object.members.iter().any(|(name, _)| name == IS_ERROR))
        };
        let tool = match &rpc {
            RpcReplyPattern::Result(pattern) if !names_it(pattern) => tool,
            RpcReplyPattern::Result(_) | RpcReplyPattern::Error { .. } => ToolResult::Any,
        };
        Ok(OutcomeRow {
            key: source.key,
            origin: source.origin,
            order: source.order,
            facts,
            rest,
            rpc,
            tool,
            lossy: source.lossy,
        })
    }
}

fn parse_rest(source: &RestReplySource) -> Result<RestReplyPattern<HoleRef>, PatternError> {
    let status = NumberPattern::parse(&source.status).map_err(|error| error.under("status"))?;
    let mut errors = Vec::new();
    let headers = parse_headers(&source.headers, &mut errors);
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let body = match (&source.body, &source.text) {
        (Some(_), Some(_)) => {
            return Err(PatternError::new(
                "`body` is JSON, `text` is not; write one of them",
            ));
        }
        (Some(body), None) => {
            let body = body.pattern().map_err(|error| error.under("body"))?;
            let forgets = matches!(&body, Pattern::Hole(mention)
                if mention.name == "_" && mention.default.is_none());
            if forgets {
                BodyPattern::Anything
            } else {
                BodyPattern::Json(body)
            }
        }
        (None, Some(text)) => {
            BodyPattern::Text(TextPatterns::parse(text).map_err(|error| error.under("text"))?)
        }
        (None, None) => BodyPattern::Nothing,
    };
    let has_body = matches!(body, BodyPattern::Json(_) | BodyPattern::Text(_));
    check_statuses(&status, has_body).map_err(|error| error.under("status"))?;
    Ok(RestReplyPattern {
        status,
        headers,
        body,
    })
}

/// Checks the statuses that a row writes, those of a value map among them.
fn check_statuses(status: &NumberPattern<HoleRef>, has_body: bool) -> Result<(), PatternError> {
    for number in status.named()? {
        if !(200..=599).contains(&number) {
            return Err(PatternError::new(format!(
                "{number} is not a response status; write one from 200 to 599"
            )));
        }
        if has_body && without_content(number) {
            return Err(PatternError::new(format!(
                "an answer with {number} has no content (RFC 9110 §15); leave the body out"
            )));
        }
    }
    Ok(())
}

fn parse_rpc(source: &RpcReplySource) -> Result<RpcReplyPattern<HoleRef>, PatternError> {
    let part = |tree: &Option<SourceTree>, key: &str| {
        let pattern = tree.as_ref().map(SourceTree::pattern).transpose();
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
    rest: &RestReplyPattern<HoleRef>,
    resolver: &mut HoleResolver,
) -> Result<(), PatternError> {
    let status = rest.status.note(Side::Rest, resolver);
    status.map_err(|error| error.under("status"))?;
    for item in &rest.headers {
        let noted = resolver.words(Side::Rest, &item.words, HolePosition::Words);
        noted.map_err(|error| error.under(&format!("headers.{}", item.name)))?;
    }
    match &rest.body {
        BodyPattern::Nothing | BodyPattern::Anything => Ok(()),
        BodyPattern::Json(pattern) => resolver
            .pattern(Side::Rest, pattern)
            .map_err(|error| error.under("body")),
        BodyPattern::Text(words) => resolver
            .words(Side::Rest, words, HolePosition::Text)
            .map_err(|error| error.under("text")),
    }
}

fn note_rpc(
    rpc: &RpcReplyPattern<HoleRef>,
    resolver: &mut HoleResolver,
) -> Result<(), PatternError> {
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
            let noted = match message {
                // A message is a string (JSON-RPC 2.0 §5.1), so its hole needs no type.
                Some(Pattern::Hole(mention))
                    if mention.shape.is_none() && mention.codec == Codec::Plain =>
                {
                    let shape = Some(Shape::One(Scalar::String));
                    let string = HoleRef {
                        shape,
                        ..mention.clone()
                    };
                    resolver.mention(Side::Rpc, &string, HolePosition::Json, 0)
                }
                Some(pattern) => resolver.pattern(Side::Rpc, pattern),
                None => Ok(()),
            };
            noted.map_err(|error| error.under("error.message"))?;
            let noted = data.as_ref().map(|data| resolver.pattern(Side::Rpc, data));
            let noted = noted.unwrap_or(Ok(()));
            noted.map_err(|error| error.under("error.data"))
        }
    }
}

fn resolve_rest(
    rest: &RestReplyPattern<HoleRef>,
    facts: &HoleFacts,
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
            let words = facts.words(Side::Rest, words, HolePosition::Text);
            BodyPattern::Text(words.map_err(|error| error.under("text"))?)
        }
    };
    Ok(RestReplyPattern {
        status: status.map_err(|error| error.under("status"))?,
        headers: resolve_headers(Side::Rest, &rest.headers, facts)?,
        body,
    })
}

fn resolve_rpc(
    rpc: &RpcReplyPattern<HoleRef>,
    facts: &HoleFacts,
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
            let part = |pattern: &Option<Pattern<HoleRef>>, key: &str| {
                let pattern = pattern.as_ref();
                let pattern = pattern.map(|pattern| facts.resolve(Side::Rpc, pattern));
                pattern.transpose().map_err(|error| error.under(key))
            };
            let code = code.resolve(Side::Rpc, facts);
            let message = part(message, "error.message")?;
            if let Some(pattern) = &message
                && !is_text(pattern)
            {
                let what = "a message is a string (JSON-RPC 2.0 §5.1); write text, or a hole that is a string";
                return Err(PatternError::new(what).under("error.message"));
            }
            RpcReplyPattern::Error {
                code: code.map_err(|error| error.under("error.code"))?,
                message,
                data: part(data, "error.data")?,
            }
        }
    })
}

/// Returns whether a pattern always writes a string.
fn is_text(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Literal(literal) => literal.kind() == JsonKind::String,
        Pattern::Text(_) => true,
        Pattern::Hole(slot) => {
            let is_string = match slot.codec.map() {
                Some(map) => map.values().all(|word| word.kind() == JsonKind::String),
                None => matches!(slot.shape, Shape::One(Scalar::String | Scalar::Enum(_))),
            };
            is_string || slot.codec.is_json() || matches!(slot.role, Role::Ignored(_))
        }
        Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_) | Pattern::Either(_) => false,
    }
}
