//! A compiled route: the patterns of both sides, and its options. Used by `cli`, `config`, `model` and `gateway`.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::captured::{HeaderPrefix, read_prefixed, write_prefixed};
use super::docs::RouteDocs;
use super::headers::{HeaderItem, header_of_page, read_headers, write_headers};
use super::http_pass::HttpPass;
use super::options::{Effect, EmptyBody, Extra, RouteForm, TOOL_CALL, UnknownQuery, has_content};
use super::source::{Example, Schemas};
use super::template::{QueryItem, Template};
use super::wire::Wire;
use crate::form::BodyFormat;
use crate::outcome::Outcomes;
use crate::stream_format::RouteStream;
use crate::subscription::SubscriptionRule;
use dualgauge_patterns::pattern::{
    HoleFacts, MatchError, Pattern, PatternReader, PatternWriter, Slot, TextPatterns,
    UnknownMembers,
};
use dualgauge_patterns::side::Side;

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
    pub rest_protocol: Wire,
    /// The HTTP responses that both dialects of an old RPC server share.
    pub pass: HttpPass,
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
    /// The names of routes that take the calls which fit both.
    pub after: Vec<String>,
    /// The only side from which the route can be called, if it is limited to one.
    pub from: Option<Side>,
    /// True if stages choose between two MCP servers for its calls. Its REST side is never used.
    pub is_paired: bool,
    /// True if the call is answered; otherwise a notification is sent, and the caller is answered immediately.
    pub expects_reply: bool,
    /// True if calls always go to the server of their own side, whatever flags and defaults say.
    pub always_passes: bool,
    /// The effect of a second call.
    pub effect: Effect,
    /// The hole of a frame that is the id of the call.
    pub id: Option<usize>,
    /// The time without an answer after which silence counts as the answer.
    pub silence: Option<Duration>,
    /// The timeout for the upstream's answer, in place of the upstream's own.
    pub timeout: Option<Duration>,
    /// The declaration about responses that stream.
    pub stream: RouteStream,
    /// The maximum duration of a response that streams, if it is limited.
    pub stream_timeout: Option<Duration>,
    /// The rule of the subscription that a call opens, if it opens one.
    pub subscription: Option<Arc<SubscriptionRule>>,
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
    /// The schemas that params and results are checked against.
    pub schema: Schemas,
    /// Texts and schemas for API documents and lists of tools.
    pub docs: RouteDocs,
}

impl Route {
    /// Returns true when calls of this route have a body.
    #[must_use]
    pub fn has_request_body(&self) -> bool {
        self.rest_call.body.is_some() || has_content(&self.method)
    }

    /// Returns true when a success without content is a result: where the schema allows `null`, and for unsafe calls,
    /// whose caller would repeat a write that is reported as failed.
    pub(super) fn may_succeed_empty(&self) -> bool {
        let result = self.schema.result.as_ref();
        self.effect != Effect::Safe || result.is_some_and(|schema| schema.promises_null())
    }

    /// Returns the name of the tool that the route calls, if it is a literal.
    #[must_use]
    pub fn tool_name(&self) -> Option<String> {
        let Pattern::Object(params) = &self.rpc_call.params else {
            return None;
        };
        let mut members = params.members.iter();
        let (_, name) = members.find(|(name, _)| name == "name")?;
        match name {
            Pattern::Literal(name) if self.rpc == TOOL_CALL => name.text()?.ok(),
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::Object(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => None,
        }
    }

    /// Returns true when a side may call the route.
    #[must_use]
    pub fn enters_from(&self, side: Side) -> bool {
        self.from.is_none_or(|only| only == side)
    }

    /// Returns true when an RPC method matches the pattern of the route.
    #[must_use]
    pub fn has_rpc_method(&self, method: &str) -> bool {
        let holes = self.facts.holes.len();
        let mut reading = PatternReader::new(holes, UnknownMembers::Dropped, 0);
        self.rpc_call.method.read(&[method], &mut reading).is_ok()
    }

    /// Returns the slots of the REST side.
    #[must_use]
    pub fn rest_slots(&self) -> Vec<&Slot> {
        let call = &self.rest_call;
        let mut slots: Vec<&Slot> = call.path.holes.iter().map(|placed| &placed.slot).collect();
        slots.extend(call.query.iter().flat_map(|item| item.words.slots()));
        slots.extend(&call.other_query);
        slots.extend(call.headers.iter().flat_map(|item| item.words.slots()));
        slots.extend(call.header_prefixes.iter().map(|prefix| &prefix.slot));
        if let Some(body) = &call.body {
            body.slots(&mut |slot| slots.push(slot));
        }
        slots
    }

    /// Returns the slots of the RPC side.
    #[must_use]
    pub fn rpc_slots(&self) -> Vec<&Slot> {
        let mut slots = self.rpc_call.method.slots();
        let headers = self.rpc_call.headers.iter();
        slots.extend(headers.flat_map(|item| item.words.slots()));
        self.rpc_call.params.slots(&mut |slot| slots.push(slot));
        slots
    }

    /// Returns the holes in order of first use, each with its constraints on the REST side: `limit:integer=50`.
    #[must_use]
    pub fn hole_notations(&self) -> Vec<String> {
        let mut slots: Vec<&Slot> = self.rest_slots();
        slots.extend(self.rpc_slots());
        self.facts.to_notations(&slots)
    }

    /// Returns true when both routes read, write and answer every call in the same way. Names, places in the file,
    /// examples and notes for people may differ.
    #[must_use]
    pub fn translates_like(&self, other: &Route) -> bool {
        // Names all fields, so that a new one cannot be forgotten here.
        let Route {
            name: _,
            rest,
            rpc,
            rest_protocol,
            pass,
            method,
            facts,
            rest_call,
            rpc_call,
            extra,
            unknown_query,
            form,
            after,
            from,
            is_paired,
            expects_reply,
            always_passes,
            effect,
            id,
            silence,
            timeout,
            stream,
            stream_timeout,
            subscription,
            affinity,
            successor: _,
            outcomes,
            lossy: _,
            examples: _,
            schema,
            docs: _,
        } = self;
        (rest, rpc) == (&other.rest, &other.rpc)
            && (rest_protocol, method) == (&other.rest_protocol, &other.method)
            && (facts, pass) == (&other.facts, &other.pass)
            && (rest_call, rpc_call) == (&other.rest_call, &other.rpc_call)
            && (extra, unknown_query) == (&other.extra, &other.unknown_query)
            && (form, from, expects_reply) == (&other.form, &other.from, &other.expects_reply)
            && (after, is_paired) == (&other.after, &other.is_paired)
            && *always_passes == other.always_passes
            && (effect, id, affinity) == (&other.effect, &other.id, &other.affinity)
            && (silence, timeout) == (&other.silence, &other.timeout)
            && (stream, stream_timeout) == (&other.stream, &other.stream_timeout)
            && *subscription == other.subscription
            && outcomes.answers_like(&other.outcomes)
            && schema.allows_like(&other.schema)
    }
}

/// The REST side of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestCall {
    /// The path.
    pub path: Template,
    /// Further paths without holes at which calls arrive; none is written.
    pub other_paths: Vec<Template>,
    /// The query, by parameter.
    pub query: Vec<QueryItem>,
    /// The hole of all query names that the route does not know.
    pub other_query: Option<Slot>,
    /// The headers that are read and written; all others are ignored.
    pub headers: Vec<HeaderItem>,
    /// The prefixes of further headers.
    pub header_prefixes: Vec<HeaderPrefix>,
    /// The body, if there is one.
    pub body: Option<Pattern>,
    /// The query parameter that has the body of an old message, in place of the content of the request.
    pub message_parameter: Option<String>,
    /// The format of the body.
    pub format: BodyFormat,
    /// The fields of a form that contain JSON.
    pub json_fields: Vec<String>,
    /// The content that is sent where the body has no members.
    pub empty: EmptyBody,
    /// Query names of overlapping routes only: a call with one is not for this route.
    pub overlapping_names: Vec<String>,
    /// Body members of overlapping routes only, if this route has no body of its own.
    pub foreign_members: Vec<String>,
}

impl RestCall {
    /// Returns true when every call has the same target: path and query have no holes.
    #[must_use]
    pub fn has_one_target(&self) -> bool {
        self.path.holes.is_empty()
            && self.query.is_empty()
            && self.other_query.is_none()
            && self.message_parameter.is_none()
    }

    /// Returns true when a query parameter has the message of a call.
    pub(super) fn has_message_in(&self, parameter: &str) -> bool {
        self.message_parameter.as_deref() == Some(parameter)
    }

    /// Returns true when the route reads and writes a header.
    #[must_use]
    pub fn names_header(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|item| item.name == *name)
            || (self.header_prefixes.iter()).any(|prefix| prefix.takes(name, &self.headers))
    }

    /// Returns the location of the page whose offset is the hole with this name.
    #[must_use]
    pub fn page_location(&self, name: &str, content: &str) -> Option<String> {
        let mut items = self.query.iter();
        let query = items.find(|item| item.words.has_page_of(name));
        let mut path = self.path.holes.iter();
        if path.any(|placed| placed.slot.is_page_of(name)) {
            return Some(format!("path parameter `{name}`"));
        }
        query
            .map(|item| format!("query parameter `{}`", item.key))
            .or_else(|| header_of_page(&self.headers, name))
            .or_else(|| {
                Some(format!(
                    "{content}{}",
                    self.body.as_ref()?.path_of_page(name)?
                ))
            })
    }

    /// Reads the headers of a call.
    ///
    /// # Errors
    /// [`MatchError`] names the header that does not fit.
    pub fn read_headers(
        &self,
        headers: &HeaderMap,
        reading: &mut PatternReader,
    ) -> Result<(), MatchError> {
        read_headers(&self.headers, headers, reading)?;
        read_prefixed(&self.header_prefixes, &self.headers, headers, reading)
    }

    /// Writes the headers of a call.
    ///
    /// # Errors
    /// [`MatchError`] names the header, or the hole, with a value that does not fit.
    pub fn write_headers(
        &self,
        writing: &PatternWriter<'_>,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, MatchError> {
        let mut headers = write_headers(&self.headers, writing)?;
        write_prefixed(&self.header_prefixes, &self.headers, writing, &mut headers)?;
        Ok(headers)
    }

    /// Returns true when a query parameter must have a literal value.
    pub(super) fn has_literal(&self) -> bool {
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
    /// The headers of the HTTP request that are read and written; all others are ignored.
    pub headers: Vec<HeaderItem>,
}
