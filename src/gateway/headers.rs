//! Headers: what is of one connection only stays behind, and what names the path is added. What a translated
//! call takes along is told by the domain.

use std::net::IpAddr;

use http::header::{CONNECTION, HOST, HeaderName, HeaderValue, TE, UPGRADE, VIA};
use http::{HeaderMap, Version, request};

use crate::domain::forwarding::LastHop;
use crate::domain::headers::translated_in;
pub(super) use crate::domain::headers::{
    HasBody, credentials, credentials_of, first_value, from_response, named_by_connection,
    require_host, set, withhold_credentials,
};
use crate::domain::identity_headers::{Facts, IdentityFact};
use crate::domain::plan::{Plan, UpstreamPlan};
use crate::domain::wire::ADDED_TE;

use super::RequestOrigin;
use super::record::Record;

/// Whether a field is of one connection (RFC 9110 §7.6.1), whether `Http1Connection` names it or not. `Trailer` is not: it
/// announces what follows the body.
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

/// Removes the fields of one connection: those that `Http1Connection` names, in all its values, and the known ones.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Most heads have one of them or none: a look at each field costs less than a search for each name.
    while let Some(name) = headers.keys().find(|name| is_hop_by_hop(name)).cloned() {
        if name == CONNECTION {
            for named in named_by_connection(headers) {
                headers.remove(named);
            }
        }
        headers.remove(name);
    }
}

/// The value of `UpgradeHeader`, if `Http1Connection` asks for it (RFC 9110 §7.8). `h2c` is ignored, alone and in a list, which
/// RFC 9113 §3.1 has given up: behind it, requests would pass that nobody has looked at.
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

/// Whether the client itself said that it takes trailers.
pub(super) fn takes_trailers(headers: &HeaderMap) -> bool {
    let said = headers.iter().filter(|(name, _)| *name == TE);
    let values = said
        .map(|(_, value)| value)
        .filter(|value| value.as_bytes() != ADDED_TE.as_bytes());
    let mut values = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    values.any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// Says to an upstream that trailers are welcome; the field is of this connection only.
pub(super) fn welcome_trailers(headers: &mut HeaderMap) {
    headers.insert(TE, const { HeaderValue::from_static("trailers") });
    headers.insert(CONNECTION, const { HeaderValue::from_static("te") });
}

/// Adds this hop: `Via` (RFC 9110 §7.6.3), and what the plan tells of hops. `from` is what the client sent.
pub(super) fn add_hop(headers: &mut HeaderMap, from: InboundHop<'_>, plan: &Plan) {
    let via = match from.version {
        Version::HTTP_10 => const { HeaderValue::from_static("1.0 dualgauge") },
        Version::HTTP_2 => const { HeaderValue::from_static("2.0 dualgauge") },
        _ => const { HeaderValue::from_static("1.1 dualgauge") },
    };
    headers.append(VIA, via);
    let last = LastHop {
        peer: from.arrival.peer().address(),
        host: from.host,
        scheme: from.arrival.origin.scheme,
        cache: &from.arrival.origin.told,
    };
    plan.forwarding
        .tell(headers, last, plan.rollout.clients.hops());
}

/// The headers of a translated call, with this hop and the trace.
pub(super) fn translated(
    record: &Record,
    (head, arrival): (&request::Parts, &RequestOrigin),
    upstream: &UpstreamPlan,
    has_body: HasBody,
) -> HeaderMap {
    let room = record.worker().header_maps().take();
    let mut headers = translated_in(room, &head.headers, upstream, has_body);
    record.is_passthrough(&mut headers, InboundHop::new(head, arrival));
    headers
}

/// What is known of a call, for the headers by which servers know who calls.
pub(super) struct IdentityFields<'a> {
    record: &'a Record,
    arrival: &'a RequestOrigin,
    address: IpAddr,
}

impl<'a> IdentityFields<'a> {
    /// What is known of a call that came with these headers; none where no header is written.
    pub(super) fn new(
        record: &'a Record,
        (from, arrival): (&HeaderMap, &'a RequestOrigin),
    ) -> Option<IdentityFields<'a>> {
        let plan = &record.installed().plan;
        if plan.identity_headers.written.is_empty() {
            return None;
        }
        let hops = plan.rollout.clients.hops();
        Some(IdentityFields {
            record,
            arrival,
            address: hops.caller(arrival.peer().address(), from),
        })
    }

    /// Writes it into the headers of a request to a server.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let plan = &self.record.installed().plan;
        plan.identity_headers.write(headers, self);
    }
}

impl Facts for IdentityFields<'_> {
    fn text(&self, fact: IdentityFact) -> Option<String> {
        match fact {
            IdentityFact::Client => {
                let clients = &self.record.installed().plan.rollout.clients;
                Some(clients.name(self.record.client()).to_owned())
            }
            IdentityFact::Proof => Some(self.record.proof().as_str().to_owned()),
            IdentityFact::Address => Some(self.address.to_string()),
            IdentityFact::Subject => self.arrival.subject()?.text(),
        }
    }
}

/// The hop between the client and this proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct InboundHop<'a> {
    pub(super) version: Version,
    pub(super) host: Option<&'a HeaderValue>,
    pub(super) arrival: &'a RequestOrigin,
}

impl<'a> InboundHop<'a> {
    pub(super) fn new(head: &'a request::Parts, arrival: &'a RequestOrigin) -> InboundHop<'a> {
        InboundHop {
            version: head.version,
            host: first_value(&head.headers, &HOST),
            arrival,
        }
    }
}
