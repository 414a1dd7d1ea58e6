//! Compilation of a configured event into its pair of patterns.
//!
//! Used by `config::decode::event`, `config::raw` and `event::table`.

use super::definition::{EventDefinition, EventForm};
use crate::sse::MESSAGE;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    HoleFacts, HoleRef, HoleResolver, ListPattern, ObjectPattern, Pattern, PatternError,
    SourceTree, TextPart, TextPattern, TextPatterns,
};
use dualgauge_patterns::side::Side;

/// The source of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSource {
    /// The key of its table: `event[3]`.
    pub key: String,
    /// `rpc`
    pub rpc: Option<RpcEventSource>,
    /// `frame` or `sse`
    pub shown: Option<OtherSide>,
    /// `lossy`
    pub lossy: Option<String>,
}

/// `rpc` of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcEventSource {
    /// `method`
    pub method: String,
    /// `params`
    pub params: Option<SourceTree>,
}

/// The other side of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherSide {
    /// `frame`
    Frame(SourceTree),
    /// `sse`
    Sse(SseSource),
}

/// `sse` of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseSource {
    /// `event`
    pub event: Option<String>,
    /// `id`
    pub id: Option<String>,
    /// `data`
    pub data: Option<SourceTree>,
    /// `text`
    pub text: Option<String>,
}

/// One side of an event: the members of its JSON value, or the whole value.
enum EventDraft {
    Members(Vec<(&'static str, Pattern<HoleRef>)>),
    Whole(Box<Pattern<HoleRef>>),
}

impl EventDefinition {
    pub(super) fn build(source: EventSource) -> Result<EventDefinition, PatternError> {
        let key = source.key.clone();
        EventDefinition::compile(source).map_err(|error| error.under(&key))
    }

    fn compile(source: EventSource) -> Result<EventDefinition, PatternError> {
        if source.rpc.is_none() && source.shown.is_none() {
            let what = "it has no side; write `rpc`, and `sse` or `frame`";
            return Err(PatternError::new(what));
        }
        let rpc = source.rpc.as_ref().map(rpc).transpose();
        let rpc = rpc.map_err(|error| error.under("rpc"))?;
        let shown = source.shown.as_ref().map(shown).transpose()?;
        let mut resolver = HoleResolver::default();
        if let Some((form, draft)) = &shown {
            let noted = draft.note(Side::Rest, resolver.at(form.as_str()));
            noted.map_err(|error| error.under(form.as_str()))?;
        }
        if let Some(draft) = &rpc {
            let noted = draft.note(Side::Rpc, resolver.at("rpc"));
            noted.map_err(|error| error.under("rpc"))?;
        }
        let facts = resolver.finish(&HoleFacts::default())?;
        if let Some(name) = facts.read_only() {
            let what = format!(
                "`{{<{name}}}` keeps a value of a call for its response, and an event has none; write `{{_}}`"
            );
            return Err(PatternError::new(what));
        }
        let rpc = rpc.map(|draft| draft.resolve(Side::Rpc, &facts));
        let rpc = rpc.transpose().map_err(|error| error.under("rpc"))?;
        let shown = shown.map(|(form, draft)| {
            let resolved = draft.resolve(Side::Rest, &facts);
            let pattern = resolved.map_err(|error| error.under(form.as_str()))?;
            Ok((form, pattern))
        });
        Ok(EventDefinition {
            key: source.key,
            rpc,
            shown: shown.transpose()?,
            facts,
            lossy: source.lossy,
        })
    }
}

impl EventDraft {
    fn note(&self, side: Side, resolver: &mut HoleResolver) -> Result<(), PatternError> {
        match self {
            EventDraft::Whole(pattern) => resolver.pattern(side, pattern),
            EventDraft::Members(members) => {
                let mut members = members.iter();
                members.try_for_each(|(name, member)| {
                    let noted = resolver.pattern(side, member);
                    noted.map_err(|error| error.under(name))
                })
            }
        }
    }

    fn resolve(&self, side: Side, facts: &HoleFacts) -> Result<Pattern, PatternError> {
        match self {
            EventDraft::Whole(pattern) => facts.resolve(side, pattern),
            EventDraft::Members(members) => {
                let members = members.iter().map(|(name, member)| {
                    let resolved = facts.resolve(side, member);
                    let pattern = resolved.map_err(|error| error.under(name))?;
                    Ok(((*name).to_owned(), pattern))
                });
                let members = members.collect::<Result<_, PatternError>>()?;
                Ok(Pattern::Object(ObjectPattern::understood(members, None)))
            }
        }
    }
}

fn rpc(source: &RpcEventSource) -> Result<EventDraft, PatternError> {
    let method = text(&source.method).map_err(|error| error.under("method"))?;
    if method == literal("") {
        return Err(PatternError::new("the RPC method is empty").under("method"));
    }
    let mut members = vec![("jsonrpc", literal("2.0")), ("method", method)];
    if let Some(tree) = &source.params {
        let params = tree.pattern().map_err(|error| error.under("params"))?;
        if matches!(params, Pattern::Literal(_) | Pattern::Text(_)) {
            let what = "params must be an object or an array (JSON-RPC 2.0 §4.2); write `{ … }` or `[ … ]`";
            return Err(PatternError::new(what).under("params"));
        }
        members.push(("params", params));
    }
    Ok(EventDraft::Members(members))
}

fn shown(source: &OtherSide) -> Result<(EventForm, EventDraft), PatternError> {
    match source {
        OtherSide::Frame(tree) => {
            let frame = tree.pattern().map_err(|error| error.under("frame"))?;
            Ok((EventForm::Frame, EventDraft::Whole(Box::new(frame))))
        }
        OtherSide::Sse(source) => {
            let members = sse(source).map_err(|error| error.under("sse"))?;
            Ok((EventForm::Sse, EventDraft::Members(members)))
        }
    }
}

fn sse(source: &SseSource) -> Result<Vec<(&'static str, Pattern<HoleRef>)>, PatternError> {
    let event = source.event.as_deref().unwrap_or(MESSAGE);
    let event = text(event).map_err(|error| error.under("event"))?;
    if event == literal("") {
        let what = "an event without a type has the type `message`; write that, or omit `event`";
        return Err(PatternError::new(what).under("event"));
    }
    let mut members = vec![("event", event)];
    if let Some(id) = &source.id {
        members.push(("id", text(id).map_err(|error| error.under("id"))?));
    }
    let data = match (&source.data, &source.text) {
        (Some(_), Some(_)) => {
            return Err(PatternError::new(
                "`data` is JSON and `text` is plain text; write only one of them",
            ));
        }
        (Some(data), None) => {
            let data = data.pattern().map_err(|error| error.under("data"))?;
            if is_discard(&data) {
                return Ok(members);
            }
            let items = vec![data];
            Pattern::List(ListPattern { items, rest: None })
        }
        (None, Some(own)) => text(own).map_err(|error| error.under("text"))?,
        (None, None) => literal(""),
    };
    members.push(("data", data));
    Ok(members)
}

fn literal(text: &str) -> Pattern<HoleRef> {
    Pattern::Literal(Json::string(text))
}

/// Returns whether a pattern is `{_}`, which matches everything and writes nothing.
fn is_discard(pattern: &Pattern<HoleRef>) -> bool {
    matches!(pattern, Pattern::Hole(mention)
        if mention.name == "_" && mention.default.is_none())
}

/// Compiles a text; a hole that is the whole text holds a string, whatever its type.
fn text(text: &str) -> Result<Pattern<HoleRef>, PatternError> {
    Ok(match TextPatterns::parse(text)? {
        TextPatterns::Literal(text) => literal(&text),
        TextPatterns::Mixed(text) => Pattern::Text(text),
        TextPatterns::Hole(mention) if mention.name == "_" && mention.default.is_none() => {
            Pattern::Hole(mention)
        }
        TextPatterns::Hole(mention) => Pattern::Text(TextPattern {
            parts: vec![TextPart::Hole(mention)],
        }),
    })
}
