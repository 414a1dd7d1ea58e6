//! Routes: one operation seen from both sides, and the table that finds the route of a call.
//!
//! A route is a pair of patterns with shared holes: an HTTP request and a JSON-RPC call. Reading one side
//! binds the holes, writing the other fills them. Laws: which route a call gets does not depend on the
//! order in which routes are declared; among those that fit, the most specific one is taken, and two that
//! share a call without either being more specific cannot be loaded.

mod draft;
mod extra;
mod frame;
mod name_map;
mod near;
mod overlaps;
mod parse;
mod path;
mod same;
mod segments;
mod source;
mod specificity;
mod table;
mod url;

use std::time::Duration;

use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderName, HeaderValue, Method};

use super::outcome::Outcomes;
use super::pattern::{HoleFacts, HolePlace, Pattern, Slot, TextPatterns, UnknownMembers};
use super::rollout::Glob;
use super::side::Side;

pub use draft::{TOOL_CALL, parse_route};
pub(in crate::domain) use draft::{parse_headers, resolve_headers};
pub use frame::{FRAME, Wire, frame_line};
pub use near::{Likeness, NearRoutes};
pub use overlaps::OverlapGroup;
pub use path::PathMatch;
pub use segments::{AmbiguousPath, Segments};
pub use source::{Example, ExampleReply, ExampleWay, Notify, RouteSource, Schemas};
pub use table::{RestSelection, RouteTable, TableError};
pub use url::{Query, read as read_url, refuse_unknown, write as write_url};

/// Why a call cannot be translated.
pub use super::pattern::MatchError as BindError;

/// One operation seen from both sides.
#[derive(Debug, Clone)]
pub struct Route {
    /// The name that flags, metrics and logs know it by.
    pub name: String,
    /// The REST side as it was written: `GET /items/{id}`.
    pub rest: String,
    /// The RPC method as it was written.
    pub rpc: String,
    /// How its REST side is spoken.
    pub speech: Wire,
    /// The HTTP method.
    pub method: Method,
    /// The holes that both sides share.
    pub facts: HoleFacts,
    /// The HTTP request.
    pub rest_call: RestCall,
    /// The JSON-RPC call.
    pub rpc_call: RpcCall,
    /// What happens to members and query names that the route does not know.
    pub extra: Extra,
    /// What happens to query names that the route does not know, on translated calls.
    pub unknown_query: UnknownQuery,
    /// Whether it spells out `params` and `body`.
    pub form: RouteForm,
    /// The only side that it is entered from, if there is one.
    pub from: Option<Side>,
    /// Whether the caller waits for an answer.
    pub waits: ExpectsReply,
    /// What a second call would do.
    pub effect: Effect,
    /// The hole of a frame that is the id of the call.
    pub id: Option<usize>,
    /// After what time without an answer the silence is one.
    pub silence: Option<Duration>,
    /// Bounds the upstream's answer in place of the upstream's own timeout.
    pub timeout: Option<Duration>,
    /// The hole whose value tells the sessions of its callers apart.
    pub affinity: Option<usize>,
    /// What to call instead, once the route is retired; in the words of each side's reader.
    pub successor: Option<String>,
    /// What answers look like on each side.
    pub outcomes: Outcomes,
    /// Why it may lose something, in the words of who wrote it.
    pub lossy: Option<String>,
    /// Calls that show what it does.
    pub examples: Vec<Example>,
    /// What params and results must be like.
    pub schema: Schemas,
}

/// The REST side of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestCall {
    /// The path.
    pub path: Template,
    /// The query, parameter by parameter.
    pub query: Vec<QueryItem>,
    /// The headers that are read and written; no other one matters.
    pub headers: Vec<HeaderItem>,
    /// The body, where there is one.
    pub body: Option<Pattern>,
    /// What is sent where the body has no members.
    pub empty: EmptyBody,
    /// Query names that only siblings of this route know: a call that bears one is not its.
    pub foreign: Vec<String>,
    /// Members of a body that only siblings of this route know, where it has no body of its own.
    pub foreign_members: Vec<String>,
}

impl RestCall {
    /// Whether the target is the same for every call: nothing of it is a hole, nor of a query.
    #[must_use]
    pub fn has_one_target(&self) -> bool {
        self.path.holes.is_empty() && self.query.is_empty()
    }

    /// Whether a parameter of the query must be a certain text.
    fn has_literal(&self) -> bool {
        let mut items = self.query.iter();
        items.any(|item| matches!(item.words, TextPatterns::Literal(_)))
    }
}

/// The RPC side of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcCall {
    /// The method.
    pub method: TextPatterns,
    /// The params.
    pub params: Pattern,
}

/// What is sent where a body that is an object has no members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyBody {
    /// `{}`: servers that expect a body refuse a request without content.
    Sent,
    /// No content.
    Omitted,
}

/// What happens to members and query names that a route does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// They are dropped, and counted.
    Drop,
    /// They are the caller's error.
    Reject,
    /// Members of the body are members of params, and back.
    Carry,
}

/// What happens to query names that a route does not know, on translated calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownQuery {
    /// The names that are dropped and counted.
    pub ignored: Vec<Glob>,
    /// What happens to the others.
    pub others: UnknownNames,
}

/// What happens to names that a route does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownNames {
    /// They are the caller's error.
    Refused,
    /// They are dropped, and counted: the route says `extra = "drop"`.
    Dropped,
}

impl UnknownQuery {
    /// Returns what a route does whose `ignore_query` and `extra` are these.
    fn new(ignored: Vec<Glob>, extra: Option<Extra>) -> UnknownQuery {
        let others = match extra {
            Some(Extra::Drop) => UnknownNames::Dropped,
            Some(Extra::Reject | Extra::Carry) | None => UnknownNames::Refused,
        };
        UnknownQuery { ignored, others }
    }

    /// Whether a name is dropped.
    #[must_use]
    pub fn drops(&self, name: &str) -> bool {
        self.others == UnknownNames::Dropped || self.ignored.iter().any(|glob| glob.fits(name))
    }
}

impl Extra {
    /// What reading does with them. What is carried has a place of its own, and is no stranger.
    #[must_use]
    pub fn unknown_members(self) -> UnknownMembers {
        match self {
            Extra::Drop | Extra::Carry => UnknownMembers::Dropped,
            Extra::Reject => UnknownMembers::Refused,
        }
    }

    /// The word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Extra::Drop => "drop",
            Extra::Reject => "reject",
            Extra::Carry => "carry",
        }
    }
}

/// How a route is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteForm {
    /// Params is an object of the holes by name and of the body's members.
    Short,
    /// `params` and `body` are spelled out.
    Full,
}

/// Whether the caller of a route waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectsReply {
    /// The call is answered.
    Yes,
    /// `notify = true`: a notification is sent, and the caller is answered at once.
    No,
}

/// What a second call would do (RFC 9110 §9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads only.
    Safe,
    /// Doing it twice is doing it once.
    Idempotent,
    /// Anything else.
    Unsafe,
}

impl Effect {
    /// The word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Effect::Safe => "safe",
            Effect::Idempotent => "idempotent",
            Effect::Unsafe => "unsafe",
        }
    }

    /// What an HTTP method promises.
    #[must_use]
    pub fn from_method(method: &Method) -> Effect {
        if method.is_safe() {
            Effect::Safe
        } else if method.is_idempotent() {
            Effect::Idempotent
        } else {
            Effect::Unsafe
        }
    }

    /// Whether the call may be sent again when it is not known to have been processed.
    #[must_use]
    pub fn may_repeat(self) -> bool {
        match self {
            Effect::Safe | Effect::Idempotent => true,
            Effect::Unsafe => false,
        }
    }
}

/// Whether calls of a route carry a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasRequestBody {
    /// The body is read and written.
    Body,
    /// GET, HEAD, DELETE, OPTIONS and TRACE that declare none: content has no defined meaning there
    /// (RFC 9110 §9.3).
    Nothing,
}

/// Whether content has a meaning in a request with this method.
#[must_use]
pub fn has_content(method: &Method) -> HasRequestBody {
    match *method {
        Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS | Method::TRACE => {
            HasRequestBody::Nothing
        }
        _ => HasRequestBody::Body,
    }
}

impl Route {
    /// Whether calls of this route carry a body.
    #[must_use]
    pub fn carries(&self) -> HasRequestBody {
        match self.rest_call.body {
            Some(_) => HasRequestBody::Body,
            None => has_content(&self.method),
        }
    }

    /// Returns whether a success without content is a result. It is one for calls that are not safe, because a caller
    /// would repeat a write that is reported as failed, and where the schema allows `null`.
    fn may_succeed_empty(&self) -> bool {
        let result = self.schema.result.as_ref();
        self.effect != Effect::Safe || result.is_some_and(|schema| schema.promises_null())
    }

    /// Whether a call may enter the route from a side.
    #[must_use]
    pub fn enters_from(&self, side: Side) -> bool {
        self.from.is_none_or(|only| only == side)
    }

    /// The slots of the REST side.
    #[must_use]
    pub fn rest_slots(&self) -> Vec<&Slot> {
        let call = &self.rest_call;
        let mut slots: Vec<&Slot> = call.path.holes.iter().map(|placed| &placed.slot).collect();
        slots.extend(call.query.iter().flat_map(|item| item.words.slots()));
        slots.extend(call.headers.iter().flat_map(|item| item.words.slots()));
        if let Some(body) = &call.body {
            body.slots(&mut |slot| slots.push(slot));
        }
        slots
    }

    /// The slots of the RPC side.
    #[must_use]
    pub fn rpc_slots(&self) -> Vec<&Slot> {
        let mut slots = self.rpc_call.method.slots();
        self.rpc_call.params.slots(&mut |slot| slots.push(slot));
        slots
    }
}

/// The path of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<H = Slot> {
    /// What each segment must be. The last one is the empty text where the path ends in a slash.
    pub segments: Vec<SegmentPattern>,
    /// Where the holes lie.
    pub holes: Vec<PlacedHole<H>>,
    /// The literal behind the last `:`, as in `/v1/{name}:cancel`.
    pub verb: Option<String>,
}

impl<H> Template<H> {
    /// Whether the path ends in a slash, and the segments before it.
    pub(in crate::domain) fn before_slash(&self) -> (&[SegmentPattern], bool) {
        match self.segments.split_last() {
            Some((SegmentPattern::Literal(last), before)) if last.is_empty() => (before, true),
            _ => (&self.segments, false),
        }
    }

    /// The place of a hole: all of one segment, or several.
    pub(in crate::domain) fn place(&self, placed: &PlacedHole<H>) -> HolePlace {
        match self.segments[placed.start..placed.end] {
            [SegmentPattern::One] => HolePlace::Segment,
            _ => HolePlace::Path,
        }
    }

    /// The only path that fits, in normal form, where there is no hole.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let mut path = String::new();
        for segment in &self.segments {
            let SegmentPattern::Literal(text) = segment else {
                return None;
            };
            path.push('/');
            path.push_str(text);
        }
        match &self.verb {
            Some(verb) => Some(format!("{path}:{verb}")),
            None if path.is_empty() => Some("/".to_owned()),
            None => Some(path),
        }
    }
}

/// What a segment of a path must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentPattern {
    /// This text, in normal form.
    Literal(String),
    /// Anything that is not empty.
    One,
    /// Any number of segments, none among them; always the last.
    Rest,
}

/// A hole and the segments that are its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedHole<H = Slot> {
    /// The hole.
    pub slot: H,
    /// Its first segment.
    pub start: usize,
    /// The segment behind its last one; a [`SegmentPattern::Rest`] counts as one here.
    pub end: usize,
}

/// One `key=value` of a query pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryItem<H = Slot> {
    /// The name in the URL.
    pub key: String,
    /// What stands behind it.
    pub words: TextPatterns<H>,
}

impl<H> HeaderItem<H> {
    /// Whether the header is a URL (RFC 9110 §10.2.2, §8.7).
    #[must_use]
    pub fn is_url(&self) -> bool {
        self.name == LOCATION || self.name == CONTENT_LOCATION
    }

    /// A text as the value of this header, if it comes out of a message as it went into it.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn value(&self, text: &str) -> Result<HeaderValue, &'static str> {
        let trimmed = text.trim_matches([' ', '\t']) == text;
        let fits = trimmed && (!self.is_url() || text.bytes().all(|byte| byte.is_ascii_graphic()));
        let value = HeaderValue::from_str(text).ok().filter(|_| fits);
        value.ok_or("its value cannot stand in a header (RFC 9110 §5.5)")
    }
}

/// One header of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderItem<H = Slot> {
    /// The name.
    pub name: HeaderName,
    /// What stands behind it.
    pub words: TextPatterns<H>,
}

#[cfg(test)]
pub(in crate::domain) mod arbitrary;
#[cfg(test)]
pub(in crate::domain) mod test_syntax;
#[cfg(test)]
mod tests;
