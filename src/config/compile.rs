//! Compilation of the raw configuration into a [`Plan`], or every problem.
//!
//! Each check is a function that adds to one list of problems and still returns a result, so that one invalid key hides
//! no other. The model defines patterns, flags and overlaps; this module adds file, line and key. Law: no raw
//! configuration causes a panic.
//!
//! Used by `app`, `compile` and `configuration`.

mod addresses;
mod authority;
mod candidates;
mod compare;
mod cors;
mod declared_responses;
pub mod docs_page;
pub(super) mod guard;
mod headers;
mod identity;
mod lifecycle;
mod local;
mod local_frames;
mod login;
mod mcp;
mod mcp_server_info;
mod metrics;
mod outcome_sets;
mod pair;
mod readiness;
mod record;
mod redaction;
mod rollout;
mod route_upstreams;
mod routes;
pub mod source;
mod stdio;
mod streams;
#[cfg(test)]
mod tests;
pub mod tls;
mod trace;
mod upstreams;
mod websocket;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use http::StatusCode;

use local::Published;
use redaction::redaction;

use crate::config::problem::{Problem, Problems, SourceLocation, Spanned};
use crate::config::raw::{RawConfig, RawFlag, RawLimits, RawRpc};
use dualgauge_model::card_plan::CardPlan;
use dualgauge_model::event::{EventForm, Events};
use dualgauge_model::forwarding::Forwarding;
use dualgauge_model::hosts::Reach;
use dualgauge_model::lenient::LenientPaths;
use dualgauge_model::local_reply::LocalReplies;
use dualgauge_model::plan::{
    ClientSocketPlan, EventStreamPlan, Limits, Plan, RpcFace, SocketProtocol, Upstreams,
};
use dualgauge_model::redact::Redaction;
use dualgauge_model::route::{Route, RouteTable, Segments, without_slash};
use dualgauge_model::stream::Streams;
use dualgauge_patterns::side::Side;
use dualgauge_transport::proxy_protocol::ProxyProtocolUse;
use dualgauge_transport::upload_rate::MinimumRate;

/// Compiles the configuration and the flags into a plan. Listeners, files and the log stay in the [`RawConfig`].
///
/// # Errors
/// Every problem, each with the location and key of its value.
pub fn compile(raw: &RawConfig, flags: &[RawFlag]) -> Result<Plan, Problems> {
    let (plan, problems) = compile_parts(raw, flags);
    Problems::unless(problems, plan)
}

/// Compiles as much as possible. The plan may serve calls only if there is no problem.
pub(super) fn compile_parts(raw: &RawConfig, flags: &[RawFlag]) -> (Plan, Vec<Problem>) {
    let mut problems = Vec::new();
    check_addresses(raw, &mut problems);
    let tls = raw.listen.tls.as_ref();
    let tls = tls.map(|tls| Arc::new(tls::listener(tls, &mut problems)));
    check_store(raw, &mut problems);
    let mut upstreams = upstreams::compile(raw, &mut problems);
    let mut face = face(raw, &mut problems);
    let routes = routes::compile(raw, &mut problems);
    let of_routes = raw.routes.iter();
    let of_routes =
        of_routes.map(|route| upstreams::for_route(raw, &upstreams, route, &mut problems));
    upstreams.of_routes = of_routes.collect();
    let streams = streams::streams(raw, &routes, &mut upstreams, &mut problems);
    let events = streams::events(raw, &mut problems);
    let rollout = rollout::compile(raw, flags, &mut problems);
    streams::check_flags(raw, flags, &mut problems);
    let workers = raw.listen.workers.value;
    let candidates = candidates::compile(&raw.rollout.candidates, workers, &mut problems);
    let published = Published::new(&routes, &rollout);
    let locals = local::compile(raw, &published, &face, &mut problems);
    face.sockets = sockets(
        &raw.rpc,
        &upstreams,
        socket_protocol(&routes, &locals, &events),
    );
    let cors = raw.cors.as_ref();
    let cors = cors.map(|cors| cors::compile(cors, &mut problems));
    let hosts = raw.listen.hosts.iter().map(|host| host.value.clone());
    let lifecycle = lifecycle::compile(raw, &routes, &face, &mut problems);
    let redaction = Arc::new(redaction(raw));
    let mut plan = Plan {
        tls,
        proxy_protocol: proxy_protocol(raw, &mut problems),
        forwarding: forwarding(raw),
        identity_headers: identity::headers(raw, &mut problems),
        trace: trace::compile(raw.trace.as_ref(), &mut problems),
        series: metrics::compile(&raw.metrics, &mut problems),
        comparing: compare::compile(raw, &redaction, &mut problems),
        ready: readiness::compile(raw, &upstreams, &mut problems),
        redaction: Arc::new(Redaction::clone(&redaction).of_routes(routes.routes())),
        record: None,
        lifecycle,
        cors,
        hosts: hosts.collect(),
        public_url: raw.listen.public_url.as_ref().map(|url| url.value.clone()),
        reach: Reach::from_address(raw.listen.address.value.ip()),
        irregular: irregular(raw, &routes, &streams, &locals, &face),
        locals,
        routes,
        streams,
        events,
        rollout,
        candidates,
        upstreams,
        face,
        unrouted: raw.unrouted.value,
        limits: limits(&raw.limits),
    };
    plan.record = record::compile(raw.record.as_ref(), &plan, &mut problems);
    (plan, problems)
}

/// Checks the shared store and the source of flags, which are compiled again when they are opened.
fn check_store(raw: &RawConfig, problems: &mut Vec<Problem>) {
    if let Some(store) = &raw.rollout.store {
        let _ = tls::store(store, problems);
    }
    if let Some(flags) = &raw.rollout.source {
        let _ = source::source(flags, problems);
    }
}

/// Returns the paths that a lenient server may find in another path; `None` if such paths pass.
fn irregular(
    raw: &RawConfig,
    routes: &RouteTable,
    streams: &Streams,
    locals: &LocalReplies,
    face: &RpcFace,
) -> Option<LenientPaths> {
    let rejects = raw.rejects_irregular.value;
    rejects.then(|| LenientPaths::new(routes, streams, locals, &face.paths))
}

/// Compiles the forwarding headers for upstreams.
fn forwarding(raw: &RawConfig) -> Forwarding {
    let headers = raw.listen.forwarded.iter().map(|header| header.value);
    Forwarding {
        trust: raw.listen.forwarded_from.value,
        writes: headers.collect(),
    }
}

/// Checks that the admin listener and the listener for calls differ. Port 0 is another one each time.
fn check_addresses(raw: &RawConfig, problems: &mut Vec<Problem>) {
    let (listen, admin) = (&raw.listen.address, &raw.admin);
    let (calls, console) = (listen.value, admin.value);
    let everywhere = calls.ip().is_unspecified() || console.ip().is_unspecified();
    let same_host = calls.ip() == console.ip() || everywhere;
    if calls.port() == 0 || calls.port() != console.port() || !same_host {
        return;
    }
    // The problem is reported at the address that was set explicitly.
    let (explicit, other) = match admin.place {
        SourceLocation::Default => (listen, admin),
        SourceLocation::File { .. }
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_) => (admin, listen),
    };
    problems.push(explicit.problem(format!(
        "`{}` conflicts with `{}` of {}; write another port",
        explicit.value, other.value, other.key
    )));
}

/// Checks the PROXY protocol: without trusted proxies, any peer could claim any client address.
fn proxy_protocol(raw: &RawConfig, problems: &mut Vec<Problem>) -> ProxyProtocolUse {
    let Some(configured) = &raw.listen.proxy_protocol else {
        return ProxyProtocolUse::Off;
    };
    if configured.value == ProxyProtocolUse::Required && raw.listen.trusted.is_empty() {
        let message =
            "the PROXY protocol is accepted only from trusted proxies, and none is configured";
        let hint = "add the networks of the load balancers to `trusted` of `[listen]`";
        problems.push(configured.problem(message).hint(hint));
    }
    configured.value
}

fn face(config: &RawConfig, problems: &mut Vec<Problem>) -> RpcFace {
    let raw = &config.rpc;
    let mut seen: BTreeMap<String, &Spanned<String>> = BTreeMap::new();
    for path in &raw.paths {
        let normal = normal(&path.value);
        if let Some(first) = seen.get(&normal) {
            let message = format!(
                "the path `{}` is given twice; see {}",
                path.value, first.key
            );
            problems.push(path.problem(message));
        } else {
            seen.insert(normal, path);
        }
    }
    let notification_status = raw.notification_status.as_ref().and_then(|status| {
        let known = StatusCode::from_u16(status.value);
        let wrong = || status.problem(format!("`{}` is not an HTTP status", status.value));
        known.map_err(|_| problems.push(wrong())).ok()
    });
    RpcFace {
        paths: raw.paths.iter().map(|path| normal(&path.value)).collect(),
        notification_status,
        failure_codes: raw.failure_codes.clone(),
        error_status: raw.error_status,
        batch_concurrency: raw.batch_concurrency.value,
        envelope: upstreams::envelope(&raw.envelope, problems),
        sockets: None,
        event_streams: event_streams(raw, problems),
        agent_card: agent_card(config, problems),
    }
}

/// Returns the agent card. Only `listen.public_url` says what it must name.
fn agent_card(raw: &RawConfig, problems: &mut Vec<Problem>) -> Option<CardPlan> {
    let versions = &raw.rpc.agent_card_versions;
    let Some(path) = raw.rpc.agent_card.as_ref() else {
        if let Some(version) = versions.first() {
            let message = "`agent_card_versions` has no effect without `agent_card`";
            let hint =
                "set `agent_card` to the path of the card, such as `/.well-known/agent-card.json`";
            problems.push(version.problem(message).hint(hint));
        }
        return None;
    };
    if raw.listen.public_url.is_none() {
        let message = "the agent card names the proxy only if its URL is known";
        let hint = "set `public_url` of `[listen]` to the URL at which clients reach the proxy";
        problems.push(path.problem(message).hint(hint));
    }
    Some(CardPlan {
        path: path.value.clone(),
        versions: versions.iter().map(|version| version.value).collect(),
    })
}

/// Compiles the event streams of clients.
fn event_streams(raw: &RawRpc, problems: &mut Vec<Problem>) -> Option<EventStreamPlan> {
    let configured = raw.sse_path.as_ref()?;
    let path = normal(&configured.value);
    if raw.paths.iter().any(|other| normal(&other.value) == path) {
        let message = format!("`{}` is one of `paths` already", configured.value);
        problems.push(
            configured
                .problem(message)
                .hint("write another path, such as `/sse`"),
        );
    }
    Some(EventStreamPlan {
        path,
        session: ClientSocketPlan {
            concurrency: raw.socket_concurrency.value,
            idle_timeout: raw.socket_idle_timeout.value,
            protocol: SocketProtocol::Rpc,
        },
    })
}

/// Returns the protocol that clients may use over WebSockets.
fn socket_protocol(routes: &RouteTable, locals: &LocalReplies, events: &Events) -> SocketProtocol {
    let mut events = events.all().iter();
    let has_events = events.any(|event| event.pattern_for(EventForm::Frame).is_some());
    let has_frames = locals.answers_frames() || routes.routes().iter().any(Route::is_frame);
    match has_events || has_frames {
        true => SocketProtocol::Both,
        false => SocketProtocol::Rpc,
    }
}

/// Compiles client WebSockets. Without them, upgrade requests pass to an HTTP upstream. A link cannot take them, and
/// only the proxy distinguishes frames from JSON-RPC.
fn sockets(
    raw: &RawRpc,
    upstreams: &Upstreams,
    protocol: SocketProtocol,
) -> Option<ClientSocketPlan> {
    let usual = upstreams.of(None, Side::Rpc);
    let usual = usual.and_then(|place| upstreams.all.get(place));
    let served = match &raw.websocket {
        Some(served) => served.value,
        None => {
            protocol == SocketProtocol::Both
                || usual.is_some_and(|usual| usual.transport.link().is_some())
        }
    };
    served.then_some(ClientSocketPlan {
        concurrency: raw.socket_concurrency.value,
        idle_timeout: raw.socket_idle_timeout.value,
        protocol,
    })
}

fn limits(raw: &RawLimits) -> Limits {
    Limits {
        body: raw.body.value,
        answer: raw.answer.value,
        head: raw.head.value,
        target: raw.target.value,
        batch: raw.batch.value,
        depth: u16::try_from(raw.depth.value).unwrap_or(u16::MAX),
        error_text: raw.error_text.value,
        in_flight: raw.in_flight.value,
        connections: raw.connections.value,
        memory: raw.memory.value,
        header_timeout: raw.header_timeout.value,
        idle_timeout: raw.idle_timeout.value,
        body_timeout: raw.body_timeout.value,
        body_rate: NonZeroU64::new(raw.body_rate.value as u64).map(|bytes| MinimumRate {
            bytes,
            grace: raw.body_grace.value,
        }),
        total_timeout: raw.total_timeout.as_ref().map(|limit| limit.value),
        write_timeout: raw.write_timeout.value,
        drain: raw.drain.value,
    }
}

/// Returns the path in the form for comparison: without a trailing slash. A path with empty or dot segments stays,
/// since it matches only itself.
fn normal(path: &str) -> String {
    let segments = Segments::split(path);
    if segments.irregular().is_some() {
        path.to_owned()
    } else {
        without_slash(&segments.normal()).to_owned()
    }
}
