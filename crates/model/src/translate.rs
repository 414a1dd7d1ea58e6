//! Translation between the two sides: total functions over a route and a call.
//!
//! Laws: content that no hole names keeps its bytes and its place; translating a call there and back gives the call or
//! its normal form; an object that a rule opens has each name once, in any letter case.
//!
//! Used by `model` and `gateway`.

mod context;
mod method_call;

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memchr_iter;

use super::route::{
    EmptyBody, Extra, Query, RestCall, Route, Segments, as_texts, has_content, read_headers,
    read_url, refuse_unknown, typed, write_headers, write_message, write_url,
};
use crate::form;
use dualgauge_patterns::json::{Json, JsonKind, same_ignoring_case};
use dualgauge_patterns::pattern::{
    Bindings, MatchError, Pattern, PatternReader, PatternWriter, TextPatterns, WriteScope,
};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::schema::{Schema, SchemaError};

pub use context::TranslateContext;
pub use method_call::MethodCall;

/// The head of a REST call.
#[derive(Debug, Clone, Copy)]
pub struct RestHead<'a> {
    /// The path.
    pub segments: &'a Segments<'a>,
    /// The query, as it came.
    pub query: Option<&'a str>,
    /// The headers.
    pub headers: &'a HeaderMap,
}

/// A REST call as an RPC call.
#[derive(Debug)]
pub struct ToRpc<'r> {
    /// The method; the route's own where it is one text.
    pub method: Cow<'r, str>,
    /// The params.
    pub params: Rope,
    /// The headers written by the pattern.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The values of the holes, for the response.
    pub bindings: Bindings,
    /// Members and query parameters unknown to the route.
    pub dropped: usize,
}

/// An RPC call as a REST call; the route determines the HTTP method.
#[derive(Debug)]
pub struct ToRest {
    /// Path and query.
    pub target: String,
    /// The headers written by the pattern.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, where there is one.
    pub body: Option<Rope>,
    /// The values of the holes, for the response.
    pub bindings: Bindings,
    /// Members without a place in the route.
    pub dropped: usize,
}

/// The member that a client may add to the params of every method; it belongs to the protocol, not to the route.
const PROTOCOL_MEMBER: &str = "_meta";

/// Reads the head of a REST call, before its body. Query parameters unknown to all routes do not affect the choice of a
/// route.
///
/// # Errors
/// [`MatchError`] names the place that does not fit.
pub fn read_rest(
    route: &Route,
    head: RestHead<'_>,
    context: TranslateContext,
) -> Result<PatternReader, MatchError> {
    let holes = route.facts.holes.len();
    let mut reading = PatternReader::new(holes, route.extra.unknown_members(), context.depth);
    read_url(
        route,
        head.segments,
        &Query::parse(head.query)?,
        &mut reading,
    )?;
    route.rest_call.read_headers(head.headers, &mut reading)?;
    Ok(reading)
}

/// Reads the head of a translated REST call. Query parameters unknown to the route are rejected, unless it drops them.
///
/// # Errors
/// [`MatchError`] names the place that does not fit.
pub fn read_rest_call(
    route: &Route,
    head: RestHead<'_>,
    context: TranslateContext,
) -> Result<PatternReader, MatchError> {
    let reading = read_rest(route, head, context)?;
    // Only the query of a head has names that could be dropped.
    if reading.dropped > 0 {
        refuse_unknown(route, &Query::parse(head.query)?)?;
    }
    Ok(reading)
}

/// Reads the body of a REST call whose head has been read.
///
/// # Errors
/// [`MatchError`] names the place that does not fit.
pub fn read_body(
    route: &Route,
    body: Option<&Json>,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    let Some(pattern) = &route.rest_call.body else {
        return match body {
            None => Ok(()),
            Some(body) => unexpected_body(route, body, reading),
        };
    };
    // A missing body counts as the empty object if the pattern is an object.
    let empty = Json::literal("{}");
    let body = match pattern {
        Pattern::Object(_) => body.or(Some(&empty)),
        Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => body,
    };
    let within = |misfit: MatchError| misfit.within(route.rest_protocol.content());
    let typed = body.map(|body| typed(&route.rest_call, body, reading.depth));
    let typed = typed.transpose().map_err(within)?;
    pattern.read(typed.as_deref(), reading).map_err(within)
}

/// Accepts a body for a route without one, if its members may be dropped.
fn unexpected_body(
    route: &Route,
    body: &Json,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    if !has_content(&route.method) || body.kind() != JsonKind::Object {
        return Err(no_body(route));
    }
    let members = body.open()?;
    let overlaps = |name: &str| {
        let mut foreign = route.rest_call.foreign_members.iter();
        foreign.any(|foreign| same_ignoring_case(foreign, name))
    };
    if let Some(member) = members.iter().find(|member| overlaps(&member.name)) {
        let location = format!("body/{}", member.name);
        return Err(MatchError::new(location, "the route does not accept it"));
    }
    match (route.extra, members.first()) {
        (Extra::Reject, Some(member)) => {
            let location = format!("body/{}", member.name);
            Err(MatchError::new(location, "the route does not know it"))
        }
        (Extra::Reject, None) | (Extra::Drop | Extra::Carry, _) => {
            reading.dropped += members.len();
            Ok(())
        }
    }
}

/// Writes the RPC call of a REST call from its head and its body.
///
/// # Errors
/// [`MatchError`] names the place that does not fit.
pub fn rest_to_rpc(
    route: &Route,
    mut reading: PatternReader,
    body: Option<Json>,
    context: TranslateContext,
) -> Result<ToRpc<'_>, MatchError> {
    read_body(route, body.as_ref(), &mut reading)?;
    let content = route.rest_protocol.content();
    let settled = reading.settle();
    settled
        .map_err(|misfit| misfit.located(|name| route.rest_call.page_location(name, content)))?;
    refuse_protocol(route, body.as_ref())?;
    let writing = writing(&reading.bindings, context);
    let call = &route.rpc_call;
    let params = call.params.pieces(&writing, size_hint(body.as_ref()));
    let params = params.map_err(|misfit| misfit.within(route.rest_protocol.content()))?;
    let params = params.unwrap_or_default();
    let method = match &call.method {
        TextPatterns::Literal(method) => Cow::Borrowed(method.as_str()),
        method @ (TextPatterns::Hole(_) | TextPatterns::Mixed(_)) => {
            let texts = method.write(&writing)?.last();
            Cow::Owned(texts.unwrap_or_default().into_owned())
        }
    };
    let headers = match call.headers.is_empty() {
        true => Vec::new(),
        false => write_headers(&call.headers, &writing)?,
    };
    if let Some(schema) = &route.schema.params {
        let whole = Json::written(params.clone().into_bytes());
        fits_schema(schema, &whole, "params")?;
    }
    Ok(ToRpc {
        method,
        params,
        headers,
        bindings: reading.bindings,
        dropped: reading.dropped,
    })
}

/// Rejects a body that would set the protocol's own member of params.
fn refuse_protocol(route: &Route, body: Option<&Json>) -> Result<(), MatchError> {
    let carries = receives_others(&route.rpc_call.params);
    let Some(body) = body.filter(|body| carries && names_protocol(body)) else {
        return Ok(());
    };
    match body.member(PROTOCOL_MEMBER) {
        None => Ok(()),
        Some(_) => {
            let what = "the protocol of the other side reserves this member name";
            Err(MatchError::new(format!("body/{PROTOCOL_MEMBER}"), what))
        }
    }
}

fn names_protocol(value: &Json) -> bool {
    // Few values contain the member, and the search for its first letter is cheap.
    let text = value.as_bytes();
    memchr_iter(b'_', text).any(|at| text[at..].starts_with(b"_meta\""))
}

/// Estimates the bytes that writing a value copies, so that the buffer does not grow.
fn size_hint(value: Option<&Json>) -> usize {
    256 + value.map_or(0, |value| value.as_bytes().len().min(512))
}

/// Validates a value against the schema of its route.
///
/// # Errors
/// [`MatchError`] with `whole` and the JSON pointer of the violation, or with the exceeded limit.
pub fn fits_schema(schema: &Schema, value: &Json, whole: &str) -> Result<(), MatchError> {
    schema.check(value).map_err(|error| match error {
        SchemaError::Violation(violation) => {
            MatchError::new(format!("{whole}{}", violation.pointer), violation.what)
        }
        SchemaError::Exceeded(exceeded) => MatchError::exceeding(exceeded, error).within(whole),
    })
}

fn writing(bindings: &Bindings, context: TranslateContext) -> PatternWriter<'_> {
    PatternWriter::new(WriteScope {
        bindings,
        call: None,
        now: context.now,
    })
}

/// Returns the error of a body for a route without one.
#[must_use]
pub fn no_body(route: &Route) -> MatchError {
    MatchError::new(
        "body",
        format!("{} of this route takes no body", route.method),
    )
}

/// Reads an RPC call.
///
/// # Errors
/// [`MatchError`] names the member that does not fit.
pub fn read_rpc(
    route: &Route,
    rpc_call: MethodCall<'_>,
    context: TranslateContext,
) -> Result<PatternReader, MatchError> {
    let holes = route.facts.holes.len();
    let mut reading = PatternReader::new(holes, route.extra.unknown_members(), context.depth);
    let call = &route.rpc_call;
    if !matches!(call.method, TextPatterns::Literal(_)) {
        let read = call.method.read(&[rpc_call.method], &mut reading);
        read.map_err(|misfit| misfit.within("method"))?;
    }
    // Without headers, the caller only selects a route.
    if !call.headers.is_empty()
        && let Some(headers) = rpc_call.headers
    {
        read_headers(&call.headers, headers, &mut reading)?;
    }
    let params = named_params(route, rpc_call.params);
    // A fast read accepts only the members of the pattern.
    if let Some(params) = params
        && call.params.read_at_once(params, &mut reading).is_some()
    {
        settle_params(route, &mut reading)?;
        return Ok(reading);
    }
    let bare = params.map(|params| without_protocol(&call.params, params));
    let bare = bare.transpose().map_err(|misfit| misfit.within("params"))?;
    // Missing params count as the empty object, whatever the pattern is.
    let empty = || match &call.params {
        Pattern::List(_) | Pattern::Each(_) => Json::literal("[]"),
        Pattern::Either(_)
        | Pattern::Object(_)
        | Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_) => Json::literal("{}"),
    };
    let bare = bare.unwrap_or_else(empty);
    let read = call.params.read(Some(&bare), &mut reading);
    read.map_err(|misfit| misfit.within("params"))?;
    settle_params(route, &mut reading)?;
    Ok(reading)
}

fn settle_params(route: &Route, reading: &mut PatternReader) -> Result<(), MatchError> {
    let location = |name: &str| route.rpc_call.params.path_of_page(name);
    let settled = reading.settle();
    settled.map_err(|misfit| misfit.located(|name| Some(format!("params{}", location(name)?))))
}

/// Returns the params, or `None` for `[]` where the route names its params: clients of positional params send `[]`
/// for none.
fn named_params<'p>(route: &Route, params: Option<&'p Json>) -> Option<&'p Json> {
    let is_named = matches!(route.rpc_call.params, Pattern::Object(_));
    params.filter(|params| {
        !(is_named && params.kind() == JsonKind::Array && params.elements().next().is_none())
    })
}

/// Returns true when the protocol's own member is not removed: the pattern names it, or is no object.
fn names_protocol_member(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Object(object) => object
            .members
            .iter()
            .any(|(name, _)| name == PROTOCOL_MEMBER),
        Pattern::Either(either) => either.alternatives.iter().all(names_protocol_member),
        Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_) => true,
    }
}

/// Returns true when a pattern receives members that it does not name.
fn receives_others(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Object(object) => object.rest.is_some(),
        Pattern::Either(either) => either.alternatives.iter().any(receives_others),
        Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_) => false,
    }
}

/// Returns the params without the protocol's own member, unless the pattern names it.
fn without_protocol(pattern: &Pattern, params: &Json) -> Result<Json, MatchError> {
    let names_it = names_protocol_member(pattern);
    // Nested members of this name do not belong to the protocol, and an unopened value keeps its bytes.
    let occurs = || names_protocol(params) && params.has(PROTOCOL_MEMBER);
    if names_it || params.kind() != JsonKind::Object || !occurs() {
        return Ok(params.clone());
    }
    let mut text = Vec::with_capacity(params.as_bytes().len());
    for member in params.open()? {
        if member.name != PROTOCOL_MEMBER {
            text.push(if text.is_empty() { b'{' } else { b',' });
            text.extend_from_slice(&params.as_bytes()[member.whole]);
        }
    }
    if text.is_empty() {
        text.push(b'{');
    }
    text.push(b'}');
    Ok(Json::written(text))
}

/// Reads an RPC call and writes its REST call.
///
/// # Errors
/// [`MatchError`] names the member that does not fit.
pub fn rpc_to_rest(
    route: &Route,
    call: MethodCall<'_>,
    context: TranslateContext,
) -> Result<ToRest, MatchError> {
    let reading = read_rpc(route, call, context)?;
    write_rest_call(route, reading, call.params, context)
}

/// Writes the REST call of an RPC call that has been read.
pub(crate) fn write_rest_call(
    route: &Route,
    reading: PatternReader,
    params: Option<&Json>,
    context: TranslateContext,
) -> Result<ToRest, MatchError> {
    if let Some(schema) = &route.schema.params {
        let params = named_params(route, params);
        fits_schema(schema, params.unwrap_or(&Json::literal("{}")), "params")?;
    }
    let writing = writing(&reading.bindings, context);
    let in_params = |misfit: MatchError| {
        // Writing knows the hole; the error for the caller names the place that its value came from.
        let hole = route.facts.find(&misfit.location);
        let location = hole.and_then(|hole| route.rpc_call.params.path_of(hole));
        match location {
            Some(location) => MatchError::new(format!("params{location}"), misfit.what),
            None => misfit.within("params"),
        }
    };
    let target = write_url(route, &writing).map_err(in_params)?;
    let headers = route.rest_call.write_headers(&writing).map_err(in_params)?;
    let body = match &route.rest_call.body {
        Some(_) => write_body(&route.rest_call, &writing, size_hint(params)).map_err(in_params)?,
        None => None,
    };
    Ok(ToRest {
        target,
        headers,
        body,
        bindings: reading.bindings,
        dropped: reading.dropped,
    })
}

/// Writes the body of a REST call as JSON; [`encode_body`] makes a form of it. An optional body without members is sent
/// only if the route asks for it.
pub(crate) fn write_body(
    call: &RestCall,
    writing: &PatternWriter<'_>,
    usual: usize,
) -> Result<Option<Rope>, MatchError> {
    let Some(pattern) = &call.body else {
        return Ok(None);
    };
    let Some(mut body) = pattern.pieces(writing, usual)? else {
        return Ok(None);
    };
    if call.format.is_form() {
        let texts = as_texts(pattern, &Json::sent(body))?;
        body = Rope::from(texts.into_bytes());
    }
    if call.empty == EmptyBody::Sent {
        return Ok(Some(body));
    }
    let is_empty = |chunk: &bytes::Bytes| {
        chunk.first() == Some(&b'{')
            && chunk.last() == Some(&b'}')
            && chunk[1..chunk.len() - 1]
                .iter()
                .all(u8::is_ascii_whitespace)
    };
    // A hole whose value is the empty object still counts as content.
    let may_be_absent = matches!(pattern, Pattern::Object(object) if object.is_empty())
        || (matches!(pattern, Pattern::Object(_)) && pattern.may_be_absent());
    let says_nothing = may_be_absent && matches!(body.chunks(), [one] if is_empty(one));
    Ok((!says_nothing).then_some(body))
}

/// Makes a form or a query parameter of the body of a written call, where the route says so.
///
/// # Errors
/// [`MatchError`] names the field that a form cannot have.
pub(crate) fn encode_body(route: &Route, mut written: ToRest) -> Result<ToRest, MatchError> {
    let call = &route.rest_call;
    if call.format.is_form()
        && let Some(body) = written.body.take()
    {
        let encoded = form::encode(call.format, &Json::sent(body), &call.json_fields);
        let encoded = encoded.map_err(|misfit| misfit.within("params"))?;
        written.headers.push((CONTENT_TYPE, encoded.content_type));
        written.body = Some(Rope::from(bytes::Bytes::from(encoded.body)));
    }
    if let Some(parameter) = &call.message_parameter
        && let Some(message) = written.body.take()
    {
        write_message(&mut written.target, parameter, &message.into_bytes());
    }
    Ok(written)
}

#[cfg(test)]
mod tests;
