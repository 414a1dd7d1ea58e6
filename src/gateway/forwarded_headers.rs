//! Headers of requests that the proxy sends: those of a translated call, the caller's identity, and the secrets that a
//! TRACE must not carry.
//!
//! Used throughout `gateway`.

use std::net::IpAddr;

use http::{HeaderMap, Method};

use super::call_context::CallContext;
use super::headers::{HasBody, InboundHop};
use super::request_origin::{ClientRequest, RequestOrigin};
use dualgauge_model::headers::translated;
use dualgauge_model::identity_headers::{Facts, IdentityFact};
use dualgauge_model::plan::UpstreamPlan;
use dualgauge_net::OutgoingRequest;

/// Returns the headers of a translated call, with this hop and the trace context.
pub(super) fn translated_headers(
    context: &CallContext,
    request: ClientRequest<'_>,
    upstream: &UpstreamPlan,
    has_body: HasBody,
) -> HeaderMap {
    let mut headers = translated(&request.head.headers, upstream, has_body);
    context.add_forwarding_headers(&mut headers, InboundHop::new(request));
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
