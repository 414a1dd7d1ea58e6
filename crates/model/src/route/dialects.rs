//! Old routes whose messages are also JSON-RPC 2.0 calls, so that the proxy cannot distinguish the dialects.
//!
//! Used by `config`.

use http::Method;

use super::definition::Route;
use super::overlaps::TableError;
use super::segments::{Segments, without_slash};
use super::wire::Wire;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    MemberPolicy, ObjectPattern, Pattern, TextPatterns, intersection,
};
use dualgauge_patterns::side::Side;

/// The members of a JSON-RPC 2.0 request (JSON-RPC 2.0 §4).
const MEMBERS: [&str; 4] = ["jsonrpc", "method", "params", "id"];

/// A method that no route has.
const ANY: &str = "zz\u{0}";

/// Reports the old routes that read JSON-RPC calls of a route, or all JSON-RPC calls, on one of these RPC paths.
#[must_use]
pub fn indistinguishable(routes: &[Route], rpc_paths: &[&str]) -> Vec<TableError> {
    let old = routes.iter().enumerate();
    let old = old.filter(|(_, route)| {
        route.enters_from(Side::Rest)
            && match route.rest_protocol {
                Wire::Http => false,
                Wire::Old => {
                    route.method == Method::POST
                        && rpc_paths.iter().any(|path| has_path(route, path))
                }
                // Sockets are served on each of the RPC paths.
                Wire::Frame => route.has_version(),
            }
    });
    let called = || routes.iter().filter(|route| route.enters_from(Side::Rpc));
    let errors = old.filter_map(|(index, route)| {
        let Some(Pattern::Object(message)) = &route.rest_call.body else {
            return None;
        };
        if !reads_envelope(message) {
            return None;
        }
        let takes = |other: &&Route| {
            let (method, params) = (method(&other.rpc_call.method), &other.rpc_call.params);
            meets(message, "method", &method) && meets_params(message, params)
        };
        let what = match called().find(takes) {
            Some(other) => format!("JSON-RPC calls of the route `{}`", other.name),
            None if meets(message, "method", &text(ANY)) => "all JSON-RPC calls".to_owned(),
            None => return None,
        };
        let what = format!(
            "its messages match {what}, so the proxy cannot distinguish them: name a member or a literal that such calls do not have, such as `jsonrpc = \"{{<version:enum(1.0)}}\"` for `\"1.0\"` or none"
        );
        Some(TableError {
            route: index,
            key: match route.is_frame() {
                true => "frame",
                false => "old",
            },
            what,
        })
    });
    errors.collect()
}

/// Returns true when an RPC path, or the same with a slash at its end, is a path of a route.
fn has_path(route: &Route, path: &str) -> bool {
    let path = without_slash(path);
    let slashed = format!("{path}/");
    let call = &route.rest_call;
    let mut own = [&call.path].into_iter().chain(&call.other_paths);
    own.any(|own| own.fits(&Segments::split(path)) || own.fits(&Segments::split(&slashed)))
}

/// Returns true when a message may have the version, and no member that a JSON-RPC call has not.
fn reads_envelope(message: &ObjectPattern) -> bool {
    let mut others = message.members.iter();
    meets(message, "jsonrpc", &text("2.0"))
        && others.all(|(name, member)| MEMBERS.contains(&&**name) || member.may_be_absent())
}

/// Returns true when a member of a message may have a value of another pattern.
fn meets(message: &ObjectPattern, name: &str, other: &Pattern) -> bool {
    let mut members = message.members.iter();
    match members.find(|(known, _)| known == name) {
        Some((_, member)) => intersection(member, other, MemberPolicy::Closed).is_some(),
        None => message.rest.is_some(),
    }
}

/// Returns true when a message may have the params of a route, or both may have none.
fn meets_params(message: &ObjectPattern, params: &Pattern) -> bool {
    let own = message.members.iter().find(|(name, _)| name == "params");
    let own_absent = own.is_none_or(|(_, member)| member.may_be_absent());
    let both_absent =
        own_absent && intersection(params, &empty(params), MemberPolicy::Closed).is_some();
    both_absent || meets(message, "params", params)
}

/// Returns the params of a call without any.
fn empty(params: &Pattern) -> Pattern {
    Pattern::Literal(Json::literal(match params {
        Pattern::List(_) | Pattern::Each(_) => "[]",
        Pattern::Object(_)
        | Pattern::Either(_)
        | Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_) => "{}",
    }))
}

fn method(words: &TextPatterns) -> Pattern {
    match words {
        TextPatterns::Literal(method) => text(method),
        TextPatterns::Hole(slot) => Pattern::Hole(slot.clone()),
        TextPatterns::Mixed(mixed) => Pattern::Text(mixed.clone()),
    }
}

fn text(text: &str) -> Pattern {
    Pattern::Literal(Json::string(text))
}
