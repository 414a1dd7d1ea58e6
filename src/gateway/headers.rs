//! Headers of forwarded messages: hop-by-hop fields are removed, and this hop, the trace and the caller's identity are
//! added. The model decides which headers a translated call carries.
//!
//! Used throughout `gateway`.

use std::net::IpAddr;

use http::header::{CONNECTION, HOST, HeaderName, HeaderValue, MAX_FORWARDS, TE, UPGRADE, VIA};
use http::{HeaderMap, Method, Version, request};

use super::call_context::CallContext;
use super::request_origin::{ClientRequest, RequestOrigin};
use dualgauge_model::forwarding::LastHop;
use dualgauge_model::headers::translated;
pub(super) use dualgauge_model::headers::{
    HasBody, accept_values_of, credentials, credentials_of, first_value, from_response,
    named_by_connection, require_host, set, withhold_credentials,
};
use dualgauge_model::identity_headers::{Facts, IdentityFact};
use dualgauge_model::plan::{Plan, UpstreamPlan};
use dualgauge_net::OutgoingRequest;
use dualgauge_transport::wire::ADDED_TE;

/// Returns true for hop-by-hop fields (RFC 9110 §7.6.1), whether or not `Connection` names them. `Trailer` is
/// end-to-end: it announces fields after the body.
pub(super) fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authorization"
            | "proxy-authenticate"
            | "te"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Removes the hop-by-hop fields: those that any `Connection` value names, and the known ones.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Most heads have at most one of them, and one pass over all fields is cheaper than a lookup of each name.
    while let Some(name) = headers.keys().find(|name| is_hop_by_hop(name)).cloned() {
        if name == CONNECTION {
            for named in named_by_connection(headers) {
                headers.remove(named);
            }
        }
        headers.remove(name);
    }
}

/// Returns the value of `Upgrade` if `Connection` names it (RFC 9110 §7.8). `h2c`, alone or in a list, is ignored: RFC
/// 9113 §3.1 made it obsolete, and the proxy could not inspect the requests that follow the upgrade.
pub(super) fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let is_h2c = |protocol: &[u8]| protocol.trim_ascii().eq_ignore_ascii_case(b"h2c");
    let upgrade = first_value(headers, &UPGRADE).filter(|upgrade| {
        let mut protocols = upgrade.as_bytes().split(|byte| *byte == b',');
        !protocols.any(is_h2c)
    })?;
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut named = named.flat_map(|value| value.split(','));
    named
        .any(|name| name.trim().eq_ignore_ascii_case("upgrade"))
        .then(|| upgrade.clone())
}

/// Returns true when the client itself accepts trailers.
pub(super) fn accepts_trailers(headers: &HeaderMap) -> bool {
    let te_fields = headers.iter().filter(|(name, _)| *name == TE);
    let values = te_fields
        .map(|(_, value)| value)
        .filter(|value| value.as_bytes() != ADDED_TE.as_bytes());
    let mut values = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    values.any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// Announces to an upstream that the client accepts trailers; the field is hop-by-hop.
pub(super) fn announce_trailers(headers: &mut HeaderMap) {
    headers.insert(TE, const { HeaderValue::from_static("trailers") });
    headers.insert(CONNECTION, const { HeaderValue::from_static("te") });
}

/// Adds this proxy's hop headers and the trace context of a call to a forwarded request.
pub(super) fn add_forwarding_headers(
    context: &CallContext,
    headers: &mut HeaderMap,
    from: InboundHop<'_>,
) {
    add_hop(headers, from, &context.runtime_plan().plan);
    if let Some(trace) = context.trace() {
        trace.propagate(headers);
    }
}

/// Adds this hop: `Via` (RFC 9110 §7.6.3) and the forwarding headers of the plan. `from` describes the client's
/// request.
fn add_hop(headers: &mut HeaderMap, from: InboundHop<'_>, plan: &Plan) {
    let via = match from.version {
        Version::HTTP_10 => const { HeaderValue::from_static("1.0 dualgauge") },
        Version::HTTP_2 => const { HeaderValue::from_static("2.0 dualgauge") },
        _ => const { HeaderValue::from_static("1.1 dualgauge") },
    };
    headers.append(VIA, via);
    let last = LastHop {
        peer: from.origin.peer().address(),
        host: from.host,
        scheme: from.origin.scheme(),
        cache: from.origin.header_cache(),
    };
    plan.forwarding
        .apply(headers, last, plan.rollout.clients.hops());
}

/// The hop between the client and this proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct InboundHop<'a> {
    pub(super) version: Version,
    pub(super) host: Option<&'a HeaderValue>,
    pub(super) origin: &'a RequestOrigin,
}

impl<'a> InboundHop<'a> {
    pub(super) fn new(request: ClientRequest<'a>) -> InboundHop<'a> {
        let ClientRequest { head, origin } = request;
        InboundHop {
            version: head.version,
            host: first_value(&head.headers, &HOST),
            origin,
        }
    }
}

/// Returns the headers of a translated call, with this hop and the trace context.
pub(super) fn translated_headers(
    context: &CallContext,
    request: ClientRequest<'_>,
    upstream: &UpstreamPlan,
    has_body: HasBody,
) -> HeaderMap {
    let mut headers = translated(&request.head.headers, upstream, has_body);
    add_forwarding_headers(context, &mut headers, InboundHop::new(request));
    headers
}

/// The caller's identity, as it is written to identity headers for servers.
pub(super) struct IdentityFields<'a> {
    context: &'a CallContext,
    origin: &'a RequestOrigin,
    address: IpAddr,
}

impl<'a> IdentityFields<'a> {
    /// Reads the identity from a request; `None` if the plan writes no identity headers.
    pub(super) fn new(
        context: &'a CallContext,
        from: &HeaderMap,
        origin: &'a RequestOrigin,
    ) -> Option<IdentityFields<'a>> {
        let plan = &context.runtime_plan().plan;
        if plan.identity_headers.written.is_empty() {
            return None;
        }
        let hops = plan.rollout.clients.hops();
        Some(IdentityFields {
            context,
            origin,
            address: hops.caller(origin.peer().address(), from),
        })
    }

    /// Writes the identity headers of a request to a server.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let plan = &self.context.runtime_plan().plan;
        plan.identity_headers.write(headers, self);
    }
}

impl Facts for IdentityFields<'_> {
    fn text(&self, fact: IdentityFact) -> Option<String> {
        match fact {
            IdentityFact::Client => {
                let clients = &self.context.runtime_plan().plan.rollout.clients;
                Some(clients.name(self.context.client()).to_owned())
            }
            IdentityFact::Proof => Some(self.context.proof().as_str().to_owned()),
            IdentityFact::Address => Some(self.address.to_string()),
            IdentityFact::Subject => self.origin.subject()?.text(),
        }
    }
}

/// Removes credentials and other secrets from a TRACE request, because its recipient returns all fields in the
/// response.
pub(super) fn strip_trace_secrets(
    context: &CallContext,
    mut outgoing: OutgoingRequest,
) -> OutgoingRequest {
    if outgoing.head.method == Method::TRACE {
        let plan = &context.runtime_plan().plan;
        let headers = &mut outgoing.head.headers;
        let secret_names = headers.keys().filter(|name| plan.is_secret(name));
        let secret_names: Vec<_> = secret_names.cloned().collect();
        for name in secret_names {
            headers.remove(name);
        }
    }
    outgoing
}

/// Removes the fields of the opening handshake of a WebSocket.
pub(super) fn strip_websocket_handshake(headers: &mut HeaderMap) {
    let is_of_handshake = |name: &&HeaderName| name.as_str().starts_with("sec-websocket-");
    let names: Vec<HeaderName> = headers.keys().filter(is_of_handshake).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// Decrements `Max-Forwards` of TRACE and OPTIONS (RFC 9110 §7.6.2); returns true if the proxy is the final recipient.
/// Other methods and invalid values are left unchanged.
pub(super) fn decrement_max_forwards(head: &mut request::Parts) -> bool {
    match head.method {
        Method::TRACE | Method::OPTIONS => decrement_hops(&mut head.headers),
        _ => false,
    }
}

#[cold]
fn decrement_hops(headers: &mut HeaderMap) -> bool {
    let mut values = headers.get_all(MAX_FORWARDS).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let digits = value.as_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    // A number that exceeds 64 bits is larger than any number of hops.
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    match number.unwrap_or(u64::MAX) {
        0 => true,
        number => {
            headers.insert(MAX_FORWARDS, (number - 1).into());
            false
        }
    }
}
