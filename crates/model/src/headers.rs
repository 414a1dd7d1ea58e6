//! Headers of translated calls and responses: each takes only the fields that the other side can use.
//!
//! Hop-by-hop fields are dropped, and credentials go to an upstream only as its plan allows.
//!
//! Used by `model` and `gateway`.

mod first_value;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH,
    CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION,
    SET_COOKIE,
};

use super::envelope::EnvelopeHeader;
use super::failure::{Failure, Reason};
use super::forwarding::is_hop_field;
use super::jsonrpc::Call;
use super::outcome::ToolValue;
use super::plan::{Credentials, UpstreamPlan};
use super::route::{HttpPass, Route};
use dualgauge_patterns::json::Json;

pub use first_value::first_value;

/// The media type of JSON (RFC 8259 §11).
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns the fields that `Connection` names, in all its values.
#[must_use]
pub fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    if first_value(headers, &CONNECTION).is_none() {
        return Vec::new();
    }
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        // A message cannot be read without these, so `Connection` cannot remove them.
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect()
}

impl HttpPass {
    /// Copies the headers that pass from one message to another, but for those that `Connection` names.
    pub fn copy(&self, from: &HeaderMap, to: &mut HeaderMap) {
        // Most routes pass none.
        if self.headers.is_empty() {
            return;
        }
        let of_connection = named_by_connection(from);
        for name in &self.headers {
            to.remove(name);
            if of_connection.contains(name) {
                continue;
            }
            for value in from.get_all(name) {
                to.append(name, value.clone());
            }
        }
    }

    /// Returns the headers of a response that passes.
    #[must_use]
    pub fn response_headers(&self, from: &HeaderMap) -> HeaderMap {
        let mut headers = from_response(from.clone());
        self.copy(from, &mut headers);
        if let Some(kind) = from.get(CONTENT_TYPE) {
            // A body cannot be read without it.
            headers.insert(CONTENT_TYPE, kind.clone());
        }
        headers
    }
}

/// Removes the client's credentials if the upstream must not get them.
pub fn withhold_credentials(headers: &mut HeaderMap, upstream: &UpstreamPlan) {
    match upstream.credentials {
        Credentials::Forward => {}
        Credentials::Drop => {
            for name in &CREDENTIALS {
                headers.remove(name);
            }
        }
    }
}

/// Adds `Host`, which HTTP/1.1 requires and an HTTP/1.0 client may omit.
pub fn require_host(headers: &mut HeaderMap, upstream: &UpstreamPlan) {
    if let Some(host) = upstream.authority.host()
        && first_value(headers, &HOST).is_none()
    {
        headers.insert(HOST, host.clone());
    }
}

/// Client credentials, which an upstream gets only as its plan allows.
static CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, COOKIE];

/// Returns whether a translated call keeps a field by default: client, language, trace and forwarding fields, and
/// `Last-Event-ID` (WHATWG HTML Living Standard §9.2.4).
fn is_forwarded(name: &HeaderName, credentials: Credentials) -> bool {
    match name.as_str() {
        "accept-language" | "user-agent" | "idempotency-key" | "x-request-id" | "traceparent"
        | "tracestate" | "baggage" | "via" | "last-event-id" => true,
        _ if CREDENTIALS.contains(name) => credentials == Credentials::Forward,
        _ => is_hop_field(name),
    }
}

/// Returns the headers of a translated call.
#[must_use]
pub fn translated(from: &HeaderMap, upstream: &UpstreamPlan, has_body: HasBody) -> HeaderMap {
    // Enough for most calls, including the fields that are added later.
    let mut headers = HeaderMap::with_capacity(12);
    require_host(&mut headers, upstream);
    headers.insert(ACCEPT, JSON);
    headers.insert(
        ACCEPT_ENCODING,
        const { HeaderValue::from_static("identity") },
    );
    if has_body == HasBody::Yes {
        headers.insert(CONTENT_TYPE, JSON);
    }
    let of_connection = named_by_connection(from);
    let mut last = None;
    for (name, value) in from {
        // The values of one name are adjacent.
        let (_, passes) = last.filter(|(own, _)| *own == name).unwrap_or_else(|| {
            let is_listed = upstream.forward.contains(name) && !headers.contains_key(name);
            let passes = is_listed || is_forwarded(name, upstream.credentials);
            (name, passes && !of_connection.contains(name))
        });
        last = Some((name, passes));
        if passes {
            headers.append(name, value.clone());
        }
    }
    headers
}

/// Accepts every content type for a route whose response is the value of a tool, and prefers JSON.
pub fn accept_values_of(headers: &mut HeaderMap, route: &Route) {
    if route.outcomes.tool_value() != ToolValue::Whole {
        headers.insert(
            ACCEPT,
            const { HeaderValue::from_static("application/json, */*;q=0.5") },
        );
    }
}

/// Sets the headers that a pattern wrote, replacing others of the same name.
pub fn set(headers: &mut HeaderMap, written: Vec<(HeaderName, HeaderValue)>) {
    for (name, _) in &written {
        headers.remove(name);
    }
    for (name, value) in written {
        headers.append(name, value);
    }
}

/// The presence of a body in a translated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasBody {
    /// The call has a JSON body.
    Yes,
    /// The call has no body.
    No,
}

impl HasBody {
    /// Returns `Yes` for a body, else `No`.
    #[must_use]
    pub fn new<B>(body: &Option<B>) -> HasBody {
        if body.is_some() {
            HasBody::Yes
        } else {
            HasBody::No
        }
    }
}

/// Returns whether a header holds a credential, which only upstreams may read.
#[must_use]
pub fn is_credential(name: &HeaderName) -> bool {
    CREDENTIALS.contains(name) || *name == PROXY_AUTHORIZATION || *name == SET_COOKIE
}

/// Returns the envelope members in which an upstream takes the client's credentials.
#[must_use]
pub fn credentials<'u>(
    upstream: &'u UpstreamPlan,
    headers: &HeaderMap,
    depth: u16,
) -> Vec<(&'u str, Json)> {
    if upstream.credentials == Credentials::Drop {
        return Vec::new();
    }
    let members = upstream.envelope.iter().filter_map(|paired| {
        let value = paired.from_headers(headers, depth)?;
        Some((paired.member.as_str(), value))
    });
    members.collect()
}

/// Returns the credentials in these envelope members of a message, as headers.
///
/// # Errors
/// A [`Failure`] if a value is not a valid header value.
pub fn credentials_of<'p>(
    envelope: impl IntoIterator<Item = &'p EnvelopeHeader>,
    call: &Call,
    depth: u16,
) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for paired in envelope {
        let Some(value) = call.text.member(&paired.member) else {
            continue;
        };
        let header = paired.to_header(&value, depth);
        let header =
            header.map_err(|error| Failure::new(Reason::InvalidRequest, error.to_string()))?;
        if let Some((name, value)) = header {
            headers.insert(name, value);
        }
    }
    Ok(headers)
}

/// Returns the headers of a translated response, reusing the map of the original.
#[must_use]
pub fn from_response(mut headers: HeaderMap) -> HeaderMap {
    let of_connection = named_by_connection(&headers);
    let is_brought = |name: &HeaderName| match name.as_str() {
        "set-cookie" | "www-authenticate" | "retry-after" | "cache-control" => true,
        other => other.starts_with("ratelimit") || other.starts_with("x-ratelimit"),
    };
    let fields = headers
        .iter()
        .filter(|(name, _)| is_brought(name) && !of_connection.contains(name));
    let fields: Vec<_> = fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    headers.clear();
    for (name, value) in fields {
        headers.append(name, value);
    }
    if !headers.contains_key(CACHE_CONTROL) {
        // The validators of the original do not match the translated body.
        headers.insert(
            CACHE_CONTROL,
            const { HeaderValue::from_static("no-store") },
        );
    }
    headers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_that_is_of_the_connection_is_not_brought_back(
            name in "set-cookie|www-authenticate|retry-after|(x-)?ratelimit-(limit|reset)",
        ) {
            let name = HeaderName::try_from(name).unwrap();
            let mut headers = HeaderMap::new();
            headers.insert(name.clone(), HeaderValue::from_static("5"));
            prop_assert!(from_response(headers.clone()).contains_key(&name));
            headers.insert(CONNECTION, name.clone().into());
            prop_assert!(!from_response(headers).contains_key(&name));
        }

        #[test]
        fn a_header_that_is_of_the_connection_does_not_pass(
            name in "x-session-id|set-cookie",
        ) {
            let name = HeaderName::try_from(name).unwrap();
            let pass = HttpPass { statuses: vec![409], headers: vec![name.clone()] };
            let mut headers = HeaderMap::new();
            headers.insert(name.clone(), HeaderValue::from_static("5"));
            prop_assert!(pass.response_headers(&headers).contains_key(&name));
            headers.insert(CONNECTION, name.clone().into());
            prop_assert!(!pass.response_headers(&headers).contains_key(&name));
        }
    }
}
