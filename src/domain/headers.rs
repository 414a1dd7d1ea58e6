//! The headers of translated calls and answers: each takes along just what the other side can use.
//!
//! What is of one connection only stays behind, and credentials go to an upstream only as its plan says.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION,
    CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHORIZATION, RETRY_AFTER, SET_COOKIE, USER_AGENT, VIA, WWW_AUTHENTICATE,
};

use super::failure::{Failure, Reason};
use super::forwarding::tells_hops;
use super::json::Json;
use super::jsonrpc::Call;
use super::plan::{Credentials, RpcFace, UpstreamPlan};

/// The fields that `Connection` names, in all its values.
#[must_use]
pub fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        // A message is not read without them, whoever names them.
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect()
}

/// Keeps the caller's credentials from an upstream that does not get them.
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

/// HTTP/1.1 has no request without `Host`; a client of HTTP/1.0 may have sent none.
pub fn require_host(headers: &mut HeaderMap, upstream: &UpstreamPlan) {
    if !headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::try_from(upstream.authority.as_str())
    {
        headers.insert(HOST, host);
    }
}

/// What a translated call takes along besides credentials: who asks, in which language, and its trace.
static CARRIED: [HeaderName; 7] = [
    ACCEPT_LANGUAGE,
    USER_AGENT,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
];

/// What a translated answer brings back besides rate limits.
static BROUGHT_BACK: [HeaderName; 4] = [SET_COOKIE, WWW_AUTHENTICATE, RETRY_AFTER, CACHE_CONTROL];

/// Credentials of the caller, which an upstream gets only as its plan says.
static CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, COOKIE];

/// The headers of a translated call.
#[must_use]
pub fn translated(from: &HeaderMap, upstream: &UpstreamPlan, has_body: HasBody) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    require_host(&mut headers, upstream);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if has_body == HasBody::Yes {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    carry(from, &mut headers, &CARRIED);
    match upstream.credentials {
        Credentials::Forward => carry(from, &mut headers, &CREDENTIALS),
        Credentials::Drop => {}
    }
    for name in &upstream.forward {
        if !headers.contains_key(name) {
            carry(from, &mut headers, std::slice::from_ref(name));
        }
    }
    // A client may have sent its own hops already; this one comes behind them, or in place of them.
    carry(from, &mut headers, &[VIA]);
    let hops = from.keys().filter(|name| tells_hops(name));
    for name in hops.filter(|name| !upstream.forward.contains(name)) {
        carry(from, &mut headers, std::slice::from_ref(name));
    }
    headers
}

/// Sets the headers that a pattern has written, in place of others of their names.
pub fn set(headers: &mut HeaderMap, written: Vec<(HeaderName, HeaderValue)>) {
    for (name, _) in &written {
        headers.remove(name);
    }
    for (name, value) in written {
        headers.append(name, value);
    }
}

/// Whether a translated call has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasBody {
    /// It has, and it is JSON.
    Yes,
    /// It has none.
    No,
}

impl HasBody {
    /// Whether this is a body.
    #[must_use]
    pub fn of<B>(body: &Option<B>) -> HasBody {
        if body.is_some() {
            HasBody::Yes
        } else {
            HasBody::No
        }
    }
}

/// Whether a header bears a credential: nobody but the servers reads its value.
#[must_use]
pub fn is_credential(name: &HeaderName) -> bool {
    CREDENTIALS.contains(name) || *name == PROXY_AUTHORIZATION || *name == SET_COOKIE
}

/// Copies fields, but for those of one connection.
fn carry(from: &HeaderMap, to: &mut HeaderMap, names: &[HeaderName]) {
    let of_connection = named_by_connection(from);
    for name in names.iter().filter(|name| !of_connection.contains(name)) {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

/// The members by which an upstream takes the credentials that a caller's headers bear.
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

/// The headers of the credentials that a message bears in its envelope.
///
/// # Errors
/// A [`Failure`] where a value has no place in its header.
pub fn said_credentials(face: &RpcFace, said: &Call, depth: u16) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for paired in &face.envelope {
        let Some(value) = said.text.member(&paired.member) else {
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

/// What a translated answer brings back besides its content.
#[must_use]
pub fn brought_back(from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    carry(from, &mut headers, &BROUGHT_BACK);
    for (name, value) in from {
        if name.as_str().starts_with("ratelimit") || name.as_str().starts_with("x-ratelimit") {
            headers.append(name, value.clone());
        }
    }
    if !headers.contains_key(CACHE_CONTROL) {
        // The validators of the original do not belong to what was made from it.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    headers
}
