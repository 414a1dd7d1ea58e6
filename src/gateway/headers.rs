//! Headers: what is of one connection only stays behind, what names the path is added, and a translated
//! call takes along just what the other side can use.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION,
    CONTENT_LENGTH, CONTENT_TYPE, COOKIE, FORWARDED, HOST, HeaderName, HeaderValue, RETRY_AFTER,
    SET_COOKIE, TE, TRANSFER_ENCODING, UPGRADE, USER_AGENT, VIA, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Version};

use crate::domain::plan::{Credentials, UpstreamPlan};
use crate::domain::wire::ADDED_TE;

use super::Arrival;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");
const PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");

/// Fields of one connection (RFC 9110 §7.6.1), whether `Connection` names them or not. `Trailer` is not
/// among them: it announces what follows the body.
const HOP_BY_HOP: [HeaderName; 7] = [
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHORIZATION,
    PROXY_AUTHENTICATE,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes the fields of one connection: those that `Connection` names, in all its values, and the known ones.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// The fields that `Connection` names, in all its values.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
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

/// The value of `Upgrade`, if `Connection` asks for it (RFC 9110 §7.8). `h2c` is ignored, which RFC 9113 §3.1
/// has given up: behind it, requests would pass that nobody has looked at.
pub(super) fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let upgrade = headers
        .get(UPGRADE)
        .filter(|upgrade| !upgrade.as_bytes().eq_ignore_ascii_case(b"h2c"))?;
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut named = named.flat_map(|value| value.split(','));
    named
        .any(|name| name.trim().eq_ignore_ascii_case("upgrade"))
        .then(|| upgrade.clone())
}

/// Whether the client itself said that it takes trailers.
pub(super) fn takes_trailers(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(TE)
        .iter()
        .filter(|value| value.as_bytes() != ADDED_TE.as_bytes());
    let mut values = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    values.any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// Says to an upstream that trailers are welcome; the field is of this connection only.
pub(super) fn welcome_trailers(headers: &mut HeaderMap) {
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(CONNECTION, HeaderValue::from_static("te"));
}

/// Adds this hop: `Via` (RFC 9110 §7.6.3) and `Forwarded` (RFC 7239), behind what is there already. `from` is
/// what the client sent.
pub(super) fn add_hop(headers: &mut HeaderMap, from: Hop<'_>) {
    let via = if from.version == Version::HTTP_10 {
        "1.0 dualgauge"
    } else {
        "1.1 dualgauge"
    };
    headers.append(VIA, HeaderValue::from_static(via));
    let mut value = String::with_capacity(80);
    value.push_str(&from.arrival.forwarded_for);
    let host = from.host.and_then(|host| host.to_str().ok());
    if let Some(host) = host.filter(|host| !host.contains(['"', '\\'])) {
        value.push_str(";host=\"");
        value.push_str(host);
        value.push('"');
    }
    value.push_str(";proto=http");
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(value)) {
        headers.append(FORWARDED, value);
    }
}

/// A client's address as RFC 7239 §6 writes it: an IPv6 address in brackets and quotes.
pub(super) fn forwarded_for(peer: IpAddr) -> String {
    match peer {
        IpAddr::V4(address) => format!("for={address}"),
        IpAddr::V6(address) => format!("for=\"[{address}]\""),
    }
}

/// The hop between the client and this proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop<'a> {
    pub(super) version: Version,
    pub(super) host: Option<&'a HeaderValue>,
    pub(super) arrival: &'a Arrival,
}

impl<'a> Hop<'a> {
    pub(super) fn of(head: &'a http::request::Parts, arrival: &'a Arrival) -> Hop<'a> {
        Hop {
            version: head.version,
            host: head.headers.get(HOST),
            arrival,
        }
    }
}

/// Keeps the caller's credentials from an upstream that does not get them.
pub(super) fn withhold_credentials(headers: &mut HeaderMap, upstream: &UpstreamPlan) {
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
pub(super) fn require_host(headers: &mut HeaderMap, upstream: &UpstreamPlan) {
    if !headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::try_from(upstream.authority.as_str())
    {
        headers.insert(HOST, host);
    }
}

/// What a translated call takes along besides credentials: who asks, in which language, and its trace.
const CARRIED: [HeaderName; 7] = [
    ACCEPT_LANGUAGE,
    USER_AGENT,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
];

/// Credentials of the caller, which an upstream gets only as its plan says.
const CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, COOKIE];

/// The headers of a translated call.
pub(super) fn translated(
    from: &HeaderMap,
    upstream: &UpstreamPlan,
    has_body: HasBody,
) -> HeaderMap {
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
    // A client may have sent its own hops already; this one comes behind them.
    carry(from, &mut headers, &[VIA, FORWARDED]);
    headers
}

/// Sets the headers that a pattern has written, in place of others of their names.
pub(super) fn set(headers: &mut HeaderMap, written: Vec<(HeaderName, HeaderValue)>) {
    for (name, _) in &written {
        headers.remove(name);
    }
    for (name, value) in written {
        headers.append(name, value);
    }
}

/// Whether a translated call has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HasBody {
    Yes,
    No,
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

/// What a translated answer brings back besides its content.
pub(super) fn brought_back(from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    carry(
        from,
        &mut headers,
        &[SET_COOKIE, WWW_AUTHENTICATE, RETRY_AFTER, CACHE_CONTROL],
    );
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
