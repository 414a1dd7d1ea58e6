//! Routes: one operation seen from both sides, and the table that finds the route of a call.
//!
//! A route is a pair of patterns with shared holes: an HTTP request and a JSON-RPC call. Reading one side binds the
//! holes, writing the other fills them. Laws: the route of a call does not depend on the order of declaration. Among
//! the matching routes the most specific one wins. Two routes that match the same call, neither of them more specific,
//! are refused.

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
use super::pattern::{HoleFacts, HolePosition, Pattern, Slot, TextPatterns, UnknownMembers};
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

/// The reason why a call cannot be translated.
pub use super::pattern::MatchError as BindError;

/// One operation seen from both sides.
#[derive(Debug, Clone)]
pub struct Route {
    /// The name used by flags, metrics and logs.
    pub name: String,
    /// The REST side, as written: `GET /items/{id}`.
    pub rest: String,
    /// The RPC method, as written.
    pub rpc: String,
    /// The protocol of the REST side.
    pub speech: Wire,
    /// The HTTP method.
    pub method: Method,
    /// The holes that both sides share.
    pub facts: HoleFacts,
    /// The HTTP request.
    pub rest_call: RestCall,
    /// The JSON-RPC call.
    pub rpc_call: RpcCall,
    /// The treatment of members and query names that the route does not know.
    pub extra: Extra,
    /// The treatment of unknown query names in translated calls.
    pub unknown_query: UnknownQuery,
    /// The form of the declaration: short, or with `params` and `body`.
    pub form: RouteForm,
    /// The only side from which the route can be called, if it is limited to one.
    pub from: Option<Side>,
    /// Records whether the caller waits for an answer.
    pub waits: ExpectsReply,
    /// The effect of a second call.
    pub effect: Effect,
    /// The hole of a frame that is the id of the call.
    pub id: Option<usize>,
    /// The time without an answer after which silence counts as the answer.
    pub silence: Option<Duration>,
    /// The timeout for the upstream's answer, in place of the upstream's own.
    pub timeout: Option<Duration>,
    /// The hole whose value identifies the session of a caller.
    pub affinity: Option<usize>,
    /// The replacement of the route, once it is retired; a text for each side.
    pub successor: Option<String>,
    /// The answers on each side.
    pub outcomes: Outcomes,
    /// The reason why it may lose data, as written by its author.
    pub lossy: Option<String>,
    /// Example calls.
    pub examples: Vec<Example>,
    /// The schemas of params and results.
    pub schema: Schemas,
}

/// The REST side of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestCall {
    /// The path.
    pub path: Template,
    /// The query, by parameter.
    pub query: Vec<QueryItem>,
    /// The headers that are read and written; all others are ignored.
    pub headers: Vec<HeaderItem>,
    /// The body, if there is one.
    pub body: Option<Pattern>,
    /// The content that is sent where the body has no members.
    pub empty: EmptyBody,
    /// Query names of overlapping routes only: a call with one is not for this route.
    pub foreign: Vec<String>,
    /// Body members of overlapping routes only, if this route has no body of its own.
    pub foreign_members: Vec<String>,
}

impl RestCall {
    /// Returns true when every call has the same target: path and query have no holes.
    #[must_use]
    pub fn has_one_target(&self) -> bool {
        self.path.holes.is_empty() && self.query.is_empty()
    }

    /// Returns true when a query parameter must have a literal value.
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

/// The content that is sent where an object body has no members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyBody {
    /// `{}`: servers that expect a body refuse a request without content.
    Sent,
    /// No content.
    Omitted,
}

/// The treatment of members and query names that a route does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Dropped and counted.
    Drop,
    /// Refused as an error of the caller.
    Reject,
    /// Carried: unknown members of the body become members of params, and the other way round.
    Carry,
}

/// The treatment of unknown query names in translated calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownQuery {
    /// The names that are dropped and counted.
    pub ignored: Vec<Glob>,
    /// The treatment of all other names.
    pub others: UnknownNames,
}

/// The treatment of names that a route does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownNames {
    /// Refused as an error of the caller.
    Refused,
    /// Dropped and counted: the route has `extra = "drop"`.
    Dropped,
}

impl UnknownQuery {
    /// Returns the treatment for a route's `ignore_query` and `extra`.
    fn new(ignored: Vec<Glob>, extra: Option<Extra>) -> UnknownQuery {
        let others = match extra {
            Some(Extra::Drop) => UnknownNames::Dropped,
            Some(Extra::Reject | Extra::Carry) | None => UnknownNames::Refused,
        };
        UnknownQuery { ignored, others }
    }

    /// Returns true when a name is dropped.
    #[must_use]
    pub fn drops(&self, name: &str) -> bool {
        self.others == UnknownNames::Dropped || self.ignored.iter().any(|glob| glob.fits(name))
    }
}

impl Extra {
    /// Returns the treatment by a pattern reader. A carried member has a place, so it is not unknown.
    #[must_use]
    pub fn unknown_members(self) -> UnknownMembers {
        match self {
            Extra::Drop | Extra::Carry => UnknownMembers::Dropped,
            Extra::Reject => UnknownMembers::Refused,
        }
    }

    /// Returns the word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Extra::Drop => "drop",
            Extra::Reject => "reject",
            Extra::Carry => "carry",
        }
    }
}

/// The form of a route's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteForm {
    /// The params are an object of the holes by name and of the body's members.
    Short,
    /// `params` and `body` are spelled out.
    Full,
}

/// A named boolean: the caller of a route waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectsReply {
    /// The call is answered.
    Yes,
    /// `notify = true`: a notification is sent, and the caller is answered immediately.
    No,
}

/// The effect of a second call (RFC 9110 §9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads only.
    Safe,
    /// A second call has no further effect.
    Idempotent,
    /// Anything else.
    Unsafe,
}

impl Effect {
    /// Returns the word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Effect::Safe => "safe",
            Effect::Idempotent => "idempotent",
            Effect::Unsafe => "unsafe",
        }
    }

    /// Returns the effect that an HTTP method promises.
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

    /// Returns true when the call may be repeated although the first one may have been processed.
    #[must_use]
    pub fn may_repeat(self) -> bool {
        match self {
            Effect::Safe | Effect::Idempotent => true,
            Effect::Unsafe => false,
        }
    }
}

/// A named boolean: calls of a route have a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasRequestBody {
    /// The body is read and written.
    Body,
    /// GET, HEAD, DELETE, OPTIONS or TRACE without a declared body: content has no defined meaning there (RFC 9110
    /// §9.3).
    Nothing,
}

/// Returns whether content has a defined meaning in requests with this method.
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
    /// Returns whether calls of this route have a body.
    #[must_use]
    pub fn carries(&self) -> HasRequestBody {
        match self.rest_call.body {
            Some(_) => HasRequestBody::Body,
            None => has_content(&self.method),
        }
    }

    /// Returns true when a success without content is a result: where the schema allows `null`, and for unsafe calls,
    /// whose caller would repeat a write that is reported as failed.
    fn may_succeed_empty(&self) -> bool {
        let result = self.schema.result.as_ref();
        self.effect != Effect::Safe || result.is_some_and(|schema| schema.promises_null())
    }

    /// Returns true when a side may call the route.
    #[must_use]
    pub fn enters_from(&self, side: Side) -> bool {
        self.from.is_none_or(|only| only == side)
    }

    /// Returns the slots of the REST side.
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

    /// Returns the slots of the RPC side.
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
    /// The pattern of each segment. The last one is the empty text if the path ends in a slash.
    pub segments: Vec<SegmentPattern>,
    /// The holes with their segments.
    pub holes: Vec<PlacedHole<H>>,
    /// The literal after the last `:`, as in `/v1/{name}:cancel`.
    pub verb: Option<String>,
}

impl<H> Template<H> {
    /// Returns the segments before a trailing slash, and whether there is such a slash.
    pub(in crate::domain) fn before_slash(&self) -> (&[SegmentPattern], bool) {
        match self.segments.split_last() {
            Some((SegmentPattern::Literal(last), before)) if last.is_empty() => (before, true),
            _ => (&self.segments, false),
        }
    }

    /// Returns the position of a hole: one whole segment, or several.
    pub(in crate::domain) fn position(&self, placed: &PlacedHole<H>) -> HolePosition {
        match self.segments[placed.start..placed.end] {
            [SegmentPattern::One] => HolePosition::Segment,
            _ => HolePosition::Path,
        }
    }

    /// Returns the only path that matches, in normal form; `None` if there is a hole.
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

/// The pattern of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentPattern {
    /// This text, in normal form.
    Literal(String),
    /// Any text that is not empty.
    One,
    /// Any number of segments, including none; always the last pattern.
    Rest,
}

/// A hole with its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedHole<H = Slot> {
    /// The hole.
    pub slot: H,
    /// The index of its first segment.
    pub start: usize,
    /// The index after its last segment; a [`SegmentPattern::Rest`] counts as one.
    pub end: usize,
}

/// One `key=value` of a query pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryItem<H = Slot> {
    /// The name in the URL.
    pub key: String,
    /// The pattern of the value.
    pub words: TextPatterns<H>,
}

impl<H> HeaderItem<H> {
    /// Returns true when the value of the header is a URL (RFC 9110 §10.2.2, §8.7).
    #[must_use]
    pub fn is_url(&self) -> bool {
        self.name == LOCATION || self.name == CONTENT_LOCATION
    }

    /// Returns a text as the value of this header. Fails when a message cannot carry it unchanged.
    ///
    /// # Errors
    /// Returns the fault of the text.
    pub fn value(&self, text: &str) -> Result<HeaderValue, &'static str> {
        let trimmed = text.trim_matches([' ', '\t']) == text;
        let fits = trimmed && (!self.is_url() || text.bytes().all(|byte| byte.is_ascii_graphic()));
        let value = HeaderValue::from_str(text).ok().filter(|_| fits);
        value.ok_or("its value is not allowed in a header (RFC 9110 §5.5)")
    }
}

/// One header of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderItem<H = Slot> {
    /// The name.
    pub name: HeaderName,
    /// The pattern of the value.
    pub words: TextPatterns<H>,
}

#[cfg(test)]
pub(in crate::domain) mod arbitrary;
#[cfg(test)]
pub(in crate::domain) mod test_syntax;
#[cfg(test)]
mod tests;
