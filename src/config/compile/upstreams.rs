//! The servers behind: at most one for each side in this version, and at least one.

use http::HeaderName;

use crate::config::problem::{Located, Place, Problem};
use crate::config::raw::{RawConfig, RawUpstream};
use crate::domain::plan::{UpstreamPlan, Upstreams};
use crate::domain::side::Side;

/// Headers of one connection, of the framing and of the body that is written anew: what the caller said of them does
/// not hold for the translated call.
const NOT_FORWARDED: &[&str] = &[
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

/// The upstreams of both sides.
pub(super) fn compile(raw: &RawConfig, problems: &mut Vec<Problem>) -> Upstreams {
    if raw.upstreams.is_empty() {
        problems.push(none(raw));
    }
    for upstream in &raw.upstreams {
        check_url(upstream, problems);
        check_forward(&upstream.forward, problems);
    }
    let mut upstreams = Upstreams {
        all: raw.upstreams.iter().map(plan).collect(),
        ..Upstreams::default()
    };
    upstreams.usual = Side::ALL.map(|side| {
        let name = &only(&raw.upstreams, side, problems)?.name.value;
        raw.upstreams.iter().position(|raw| raw.name.value == *name)
    });
    upstreams
}

/// The sides that have an upstream. Where there is none at all, that is said once, and not again by each stage.
pub(super) fn sides(raw: &RawConfig) -> Vec<Side> {
    if raw.upstreams.is_empty() {
        return Side::ALL.to_vec();
    }
    raw.upstreams
        .iter()
        .map(|upstream| upstream.side.value)
        .collect()
}

fn none(raw: &RawConfig) -> Problem {
    let place = raw.file.as_deref().map_or(Place::Default, Place::file);
    let problem = Problem::of_file(place, "there is no upstream to send calls to")
        .hint("add `[upstream.NAME]` with `side` and `url`");
    Problem {
        key: "upstream".to_owned(),
        ..problem
    }
}

fn only<'r>(
    upstreams: &'r [RawUpstream],
    side: Side,
    problems: &mut Vec<Problem>,
) -> Option<&'r RawUpstream> {
    let mut ours: Vec<&RawUpstream> = upstreams
        .iter()
        .filter(|upstream| upstream.side.value == side)
        .collect();
    ours.sort_by(|one, other| one.name.place.cmp(&other.name.place));
    let (first, others) = ours.split_first()?;
    for other in others {
        problems.push(other.name.problem(format!(
            "the `{side}` side has its upstream, `{}` at {}; more than one is not supported in this version",
            first.name.value, first.name.place
        )));
    }
    Some(first)
}

/// What the raw half leaves to check: `http://host[:port]/path` and no more.
fn check_url(upstream: &RawUpstream, problems: &mut Vec<Problem>) {
    let url = &upstream.url;
    if url.value.query().is_some() {
        let message = "the address of a server has no query; remove it from `?` on";
        problems.push(url.problem(message));
    }
    let path = url.value.path();
    if upstream.side.value == Side::Rest && path != "/" {
        problems.push(
            url.problem(format!(
                "a path before those of the calls, `{path}`, is not supported in this version"
            ))
            .hint("write it into the routes, and remove it here"),
        );
    }
    if port(upstream).is_none() {
        problems.push(url.problem("the port is no number from 1 to 65535"));
    }
}

/// The port of `http`, which `Host` leaves out (RFC 9110 §4.2.1).
const HTTP: u16 = 80;

/// The port of the url; 80 where it has none.
fn port(upstream: &RawUpstream) -> Option<u16> {
    let url = &upstream.url.value;
    let authority = url.authority()?;
    let after_host = &authority.as_str()[authority.host().len()..];
    match after_host.strip_prefix(':') {
        None => Some(HTTP),
        Some(port) => port.parse().ok().filter(|port| *port != 0),
    }
}

fn check_forward(forward: &[Located<HeaderName>], problems: &mut Vec<Problem>) {
    for header in forward {
        let name = header.value.as_str();
        if NOT_FORWARDED.contains(&name) || name.starts_with("proxy-") {
            problems.push(header.problem(format!(
                "`{name}` belongs to a single connection or body and is never forwarded; remove it"
            )));
        }
    }
}

fn plan(raw: &RawUpstream) -> UpstreamPlan {
    let url = &raw.url.value;
    let host = url.host().unwrap_or_default();
    UpstreamPlan {
        name: raw.name.value.clone(),
        side: raw.side.value,
        envelope: Vec::new(),
        authority: match port(raw) {
            None | Some(HTTP) => host.to_owned(),
            Some(port) => format!("{host}:{port}"),
        },
        path: url.path().to_owned(),
        timeout: raw.timeout.value,
        connect_timeout: raw.connect_timeout.value,
        keep_alive: raw.keep_alive.value,
        idle_timeout: raw.idle_timeout.value,
        connections: raw.connections.value,
        credentials: raw.credentials.value.into(),
        forward: raw
            .forward
            .iter()
            .map(|header| header.value.clone())
            .collect(),
    }
}
