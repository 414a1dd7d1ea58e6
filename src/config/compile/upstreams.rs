//! Upstreams: at least one, and the assignment of calls to them.
//!
//! Used by `compile::identity`, `compile::rollout` and `compile::streams`.

use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderName, Uri};

use super::authority::{authority, is_secured, port};
use super::route_upstreams::check;
use super::{addresses, headers, login, mcp, pair, stdio, tls, websocket};
use crate::config::problem::{Problem, SourceLocation, Spanned, nearest};
use crate::config::raw::{RawConfig, RawEnvelopeHeader, RawOld, RawRoute, RawServer, RawUpstream};
use dualgauge_model::envelope::EnvelopeHeader;
use dualgauge_model::plan::{Authority, Sharing, Transport, UpstreamPlan, Upstreams};
use dualgauge_model::route::Wire;
use dualgauge_patterns::side::Side;
use dualgauge_transport::multiplexing::Multiplexing;
use dualgauge_transport::tls::ClientTls;

/// Hop-by-hop headers, framing headers, and headers of the rewritten body: the client's values are wrong for the
/// translated call.
pub(super) const NOT_FORWARDED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Compiles the upstreams of both sides.
pub(super) fn compile(raw: &RawConfig, problems: &mut Vec<Problem>) -> Upstreams {
    if raw.upstreams.is_empty() {
        problems.push(none(raw));
    }
    for upstream in &raw.upstreams {
        match &upstream.server {
            RawServer::Url(url) => {
                for url in std::iter::once(url).chain(&upstream.addresses.more) {
                    check_url(url, problems);
                }
            }
            RawServer::Command(child) => {
                stdio::check(child, upstream.side.value, problems);
                if let Some(own) = &child.login {
                    let credentials = upstream.credentials.value;
                    login::check(own, Sharing::Shared, credentials, raw, problems);
                }
            }
            RawServer::Socket(socket) => {
                check_url(&socket.url, problems);
                headers::check(&socket.headers, problems);
                if let Some(own) = &socket.login {
                    let credentials = upstream.credentials.value;
                    login::check(own, socket.sharing.value, credentials, raw, problems);
                }
            }
            RawServer::Mcp(server) => {
                check_url(&server.url, problems);
                mcp::check(server, upstream.side.value, problems);
            }
        }
        check_forward(&upstream.forward, problems);
    }
    let mut upstreams = Upstreams {
        all: raw
            .upstreams
            .iter()
            .map(|own| plan(own, raw, problems))
            .collect(),
        ..Upstreams::default()
    };
    let kinds = [UpstreamKind::Rest, UpstreamKind::Rpc, UpstreamKind::Frames];
    let [rest, rpc, frames] = kinds.map(|kind| usual(&raw.upstreams, kind, problems));
    upstreams.defaults = [rest, rpc];
    upstreams.frames = frames;
    upstreams.pair = pair::compile(raw, &upstreams, problems);
    upstreams
}

/// Returns the sides with an upstream. If there is none at all, that is reported once, and not again for each stage.
pub(super) fn sides(raw: &RawConfig) -> Vec<Side> {
    // The candidate of a pair takes the place of the other side's upstream.
    let has_pair = raw
        .upstreams
        .iter()
        .any(|upstream| upstream.candidate.is_some());
    if raw.upstreams.is_empty() || has_pair {
        return Side::ALL.to_vec();
    }
    raw.upstreams
        .iter()
        .map(|upstream| upstream.side.value)
        .collect()
}

fn none(raw: &RawConfig) -> Problem {
    let place = raw
        .file
        .as_deref()
        .map_or(SourceLocation::Default, SourceLocation::file);
    let problem = Problem::for_file(place, "there is no upstream to send calls to")
        .hint("add `[upstream.NAME]` with `side` and `url`");
    Problem {
        key: "upstream".to_owned(),
        ..problem
    }
}

/// The kind of calls that an upstream accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpstreamKind {
    /// HTTP calls.
    Rest,
    /// JSON-RPC.
    Rpc,
    /// Frames, which belong to the REST side as well.
    Frames,
}

impl UpstreamKind {
    fn new(upstream: &RawUpstream) -> UpstreamKind {
        match (upstream.side.value, &upstream.server) {
            (Side::Rpc, _) => UpstreamKind::Rpc,
            (Side::Rest, RawServer::Socket(_)) => UpstreamKind::Frames,
            (Side::Rest, RawServer::Url(_) | RawServer::Command(_) | RawServer::Mcp(_)) => {
                UpstreamKind::Rest
            }
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            UpstreamKind::Rest => "the `rest` side",
            UpstreamKind::Rpc => "the `rpc` side",
            UpstreamKind::Frames => "the `rest` side for frames",
        }
    }
}

/// Returns the default upstream: the only one, or the one marked so.
fn usual(
    upstreams: &[RawUpstream],
    kind: UpstreamKind,
    problems: &mut Vec<Problem>,
) -> Option<usize> {
    let side = kind.describe();
    let indexes: Vec<usize> = (0..upstreams.len())
        .filter(|place| UpstreamKind::new(&upstreams[*place]) == kind)
        .filter(|place| !pair::is_candidate(upstreams, &upstreams[*place].name.value))
        .collect();
    let is_default = |place: &&usize| {
        let usual = upstreams[**place].usual.as_ref();
        usual.is_some_and(|usual| usual.value)
    };
    let mut defaults = indexes.iter().filter(is_default);
    match (&indexes[..], defaults.next(), defaults.next()) {
        ([], _, _) => None,
        ([only], _, _) => Some(*only),
        (_, Some(one), None) => Some(*one),
        (_, Some(one), Some(other)) => {
            let other = upstreams[*other].usual.as_ref()?;
            problems.push(other.problem(format!(
                "{side} already has the default upstream `{}`",
                upstreams[*one].name.value
            )));
            Some(*one)
        }
        ([first, second, ..], None, _) => {
            let name = &upstreams[*second].name;
            let problem = name.problem(format!(
                "{side} has several upstreams, and none is the default for routes that name no upstream"
            ));
            problems.push(problem.hint("write `default = true` in one of them"));
            Some(*first)
        }
    }
}

/// Returns the upstreams of a route: those that it names, else the defaults for its kinds of calls.
pub(super) fn for_route(
    raw: &RawConfig,
    upstreams: &Upstreams,
    route: &RawRoute,
    problems: &mut Vec<Problem>,
) -> [Option<usize>; 2] {
    let [rest, rpc] = upstreams.defaults;
    let (wire, rest) = match &route.old {
        Some(RawOld::Socket) => (Wire::Frame, upstreams.frames),
        Some(RawOld::Http { .. }) | None => (Wire::Http, rest),
    };
    let [own_rest, own_rpc] = named(raw, &route.upstreams, wire, problems);
    let found = [own_rest.or(rest), own_rpc.or(rpc)];
    check(raw, upstreams, route, found, problems);
    found
}

/// The name of an upstream, with the side that it is configured for.
type NamedUpstream = (Option<Side>, Spanned<String>);

/// Returns the upstreams of these names, by side.
pub(super) fn named(
    raw: &RawConfig,
    names: &[NamedUpstream],
    wire: Wire,
    problems: &mut Vec<Problem>,
) -> [Option<usize>; 2] {
    let mut found = [None, None];
    for (side, name) in names {
        let place = raw
            .upstreams
            .iter()
            .position(|known| known.name.value == name.value);
        let Some(place) = place else {
            let names = raw.upstreams.iter().map(|known| known.name.value.as_str());
            let near = nearest(&name.value, names);
            let problem = name.problem(format!("there is no upstream `{}`", name.value));
            problems.push(match near {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            });
            continue;
        };
        let own = raw.upstreams[place].side.value;
        if side.is_some_and(|side| side != own) {
            problems.push(name.problem(format!(
                "the upstream `{}` is on the `{own}` side",
                name.value
            )));
            continue;
        }
        let accepted = match UpstreamKind::new(&raw.upstreams[place]) {
            UpstreamKind::Frames => Wire::Frame,
            UpstreamKind::Rest | UpstreamKind::Rpc => Wire::Http,
        };
        if own == Side::Rest && accepted != wire {
            let message = match wire {
                Wire::Http | Wire::Old => {
                    "uses frames over a WebSocket, which cannot carry HTTP calls"
                }
                Wire::Frame => "accepts only HTTP calls, not frames",
            };
            let problem = name.problem(format!("the upstream `{}` {message}", name.value));
            let hint =
                "for `frame`, name one with a `ws://` url; for `rest`, one with an `http://` url";
            problems.push(problem.hint(hint));
            continue;
        }
        found[usize::from(own == Side::Rpc)] = Some(place);
    }
    found
}

/// Compiles the pairs of an `envelope`.
pub(super) fn envelope(
    raw: &[RawEnvelopeHeader],
    problems: &mut Vec<Problem>,
) -> Vec<EnvelopeHeader> {
    for (place, pair) in raw.iter().enumerate() {
        let name = pair.header.value.as_str();
        if NOT_FORWARDED.contains(&name) || name.starts_with("proxy-") {
            problems.push(pair.header.problem(format!(
                "`{name}` applies to one connection or body, so a member of a message cannot set it"
            )));
        }
        let twin = |other: &&RawEnvelopeHeader| other.header.value == pair.header.value;
        if let Some(twin) = raw[..place].iter().find(twin) {
            problems.push(pair.header.problem(format!(
                "`{name}` is already the header of `{}`",
                twin.member.value
            )));
        }
    }
    let pairs = raw.iter().filter_map(|pair| {
        let (member, value) = (&pair.member.value, &pair.value.value);
        let parsed = EnvelopeHeader::parse(member, pair.header.value.clone(), value);
        parsed
            .map_err(|error| {
                let located = if error.key == "value" {
                    &pair.value
                } else {
                    &pair.member
                };
                problems.push(located.problem(error.what));
            })
            .ok()
    });
    pairs.collect()
}

/// Checks that a URL has only the parts `scheme://host[:port]/path`.
fn check_url(url: &Spanned<Uri>, problems: &mut Vec<Problem>) {
    if url.value.query().is_some() {
        let message = "a server address cannot have a query; remove `?` and everything after it";
        problems.push(url.problem(message));
    }
    if port(&url.value).is_none() {
        problems.push(url.problem("the port is not a number from 1 to 65535"));
    }
}

/// Returns the path of an upstream's URL; a query was reported already.
fn path(url: &Uri) -> PathAndQuery {
    let path = url.path_and_query().cloned();
    path.unwrap_or(PathAndQuery::from_static("/"))
}

/// Returns the URL of an upstream; a child process has none.
fn url(server: &RawServer) -> Option<&Spanned<Uri>> {
    match server {
        RawServer::Url(url) => Some(url),
        RawServer::Mcp(server) => Some(&server.url),
        RawServer::Socket(socket) => Some(&socket.url),
        RawServer::Command(_) => None,
    }
}

fn check_forward(forward: &[Spanned<HeaderName>], problems: &mut Vec<Problem>) {
    for header in forward {
        let name = header.value.as_str();
        if NOT_FORWARDED.contains(&name) || name.starts_with("proxy-") {
            problems.push(header.problem(format!(
                "`{name}` applies to one connection or body and is never forwarded; remove it"
            )));
        }
    }
}

/// Returns the further addresses of an HTTP upstream.
fn more(raw: &RawUpstream, problems: &mut Vec<Problem>) -> Vec<String> {
    match &raw.server {
        RawServer::Url(url) => addresses::more(&raw.addresses, url, problems),
        RawServer::Command(_) | RawServer::Socket(_) | RawServer::Mcp(_) => Vec::new(),
    }
}

/// Compiles the TLS of an upstream, if its URL requires TLS.
fn secured(raw: &RawUpstream, problems: &mut Vec<Problem>) -> Option<Arc<ClientTls>> {
    let url = url(&raw.server).filter(|url| is_secured(&url.value))?;
    let host = url.value.host().unwrap_or_default();
    Some(Arc::new(tls::upstream(
        raw.tls.as_ref(),
        host,
        url,
        problems,
    )))
}

/// Returns the use of HTTP/2; without TLS it cannot be negotiated.
fn http2(raw: &RawUpstream, problems: &mut Vec<Problem>) -> Multiplexing {
    let Some(http2) = &raw.http2 else {
        return Multiplexing::Off;
    };
    let is_plain = url(&raw.server).is_some_and(|url| !is_secured(&url.value));
    if http2.value == Multiplexing::Offered && is_plain {
        let message =
            "`auto` negotiates the version over TLS, but the upstream has an `http://` url";
        let hint = "write `true` if the server supports HTTP/2 without TLS, else remove it";
        problems.push(http2.problem(message).hint(hint));
    }
    http2.value
}

/// Compiles the envelope members that the upstream accepts as credentials.
fn envelope_of(
    raw: &RawUpstream,
    config: &RawConfig,
    problems: &mut Vec<Problem>,
) -> Vec<EnvelopeHeader> {
    let pairs = match (&raw.envelope, raw.side.value) {
        (Some(own), Side::Rpc) => own,
        (None, Side::Rpc) => &config.rpc.envelope,
        (Some(_), Side::Rest) => {
            let message = "a REST upstream cannot have an envelope; it receives the envelope members as headers";
            problems.push(raw.name.problem(message));
            &Vec::new()
        }
        (None, Side::Rest) => &Vec::new(),
    };
    // Those of `[rpc]` are checked separately.
    let mut known = Vec::new();
    let found = if raw.envelope.is_some() {
        &mut *problems
    } else {
        &mut known
    };
    envelope(pairs, found)
}

fn plan(raw: &RawUpstream, config: &RawConfig, problems: &mut Vec<Problem>) -> UpstreamPlan {
    let envelope = envelope_of(raw, config, problems);
    let (transport, authority, path) = match &raw.server {
        RawServer::Url(url) => {
            let url = &url.value;
            (Transport::Http, authority(url), path(url))
        }
        RawServer::Mcp(server) => {
            let (url, plan) = (&server.url.value, mcp::plan(server, config));
            let transport = Transport::Mcp(Box::new(plan));
            (transport, authority(url), path(url))
        }
        RawServer::Command(child) => {
            let child = stdio::plan(child, config);
            let program = child.command.first().cloned().unwrap_or_default();
            let root = PathAndQuery::from_static("/");
            (Transport::Stdio(Box::new(child)), program, root)
        }
        RawServer::Socket(socket) => {
            let url = &socket.url.value;
            let transport = websocket::transport(socket, raw.side.value, config);
            (transport, authority(url), path(url))
        }
    };
    UpstreamPlan {
        tls: secured(raw, problems),
        more: more(raw, problems),
        watch: addresses::watch(&raw.addresses),
        name: raw.name.value.clone(),
        side: raw.side.value,
        envelope,
        transport,
        authority: Authority::new(authority),
        http2: http2(raw, problems),
        max_age: raw.max_age.as_ref().map(|age| age.value),
        path,
        timeout: raw.timeout.value,
        connect_timeout: raw.connect_timeout.value,
        queue_timeout: raw.queue_timeout.as_ref().map(|timeout| timeout.value),
        keep_alive: raw.keep_alive.value,
        idle_timeout: raw.idle_timeout.value,
        connections: raw.connections.value,
        queue: raw.queue.as_ref().map_or(0, |queue| queue.value),
        credentials: raw.credentials.value,
        forward: raw
            .forward
            .iter()
            .map(|header| header.value.clone())
            .collect(),
    }
}
