//! Routes: each compiled on its own, then all of them as one table.

use http::Method;

use crate::config::problem::{Located, Problem};
use crate::config::raw::{RawConfig, RawRoute};
use crate::domain::route::{Route, RouteSource, RouteTable, Segments, parse_route};

/// The table of all routes that can be read; overlaps among them show also where others cannot.
pub(super) fn compile(raw: &RawConfig, problems: &mut Vec<Problem>) -> RouteTable {
    let mut sources = Vec::with_capacity(raw.routes.len());
    let mut routes = Vec::with_capacity(raw.routes.len());
    for source in &raw.routes {
        match parse_route(words(source)) {
            Ok(route) => {
                check_rpc_paths(source, &route, &raw.rpc.paths, problems);
                sources.push(source);
                routes.push(route);
            }
            Err(errors) => {
                for error in errors {
                    let key = error.key.rsplit('.').next().unwrap_or_default();
                    problems.push(of_key(source, key).problem(error.what));
                }
            }
        }
    }
    match RouteTable::build(routes) {
        Ok(table) => table,
        Err(errors) => {
            let located = errors
                .into_iter()
                .map(|error| of_key(sources[error.route], error.key).problem(error.what));
            problems.extend(located);
            RouteTable::default()
        }
    }
}

fn words(raw: &RawRoute) -> RouteSource {
    RouteSource {
        key: raw.key.clone(),
        name: raw.name.value.clone(),
        rest: raw.rest.value.clone(),
        rpc: raw.rpc.value.clone(),
        effect: raw.effect.as_ref().map(|effect| effect.value.into()),
        timeout: raw.timeout.as_ref().map(|timeout| timeout.value),
        successor: raw
            .successor
            .as_ref()
            .map(|successor| successor.value.clone()),
        ..RouteSource::default()
    }
}

/// The value that the domain finds fault with.
fn of_key<'r>(raw: &'r RawRoute, key: &str) -> &'r Located<String> {
    match key {
        "rest" => &raw.rest,
        "rpc" => &raw.rpc,
        _ => &raw.name,
    }
}

/// POST on an RPC path is JSON-RPC, so a route of exactly that path would never be called.
fn check_rpc_paths(
    raw: &RawRoute,
    route: &Route,
    paths: &[Located<String>],
    problems: &mut Vec<Problem>,
) {
    if route.method != Method::POST {
        return;
    }
    let Some(own) = route.rest_call.path.literal() else {
        return;
    };
    let taken = |path: &&Located<String>| Segments::split(&path.value).normal() == own;
    if let Some(path) = paths.iter().find(taken) {
        let message = format!(
            "`POST {own}` is taken by {}, so that the route is never called",
            path.key
        );
        let hint = format!(
            "remove `{}` from `rpc.paths`, or change the route",
            path.value
        );
        problems.push(raw.rest.problem(message).hint(hint));
    }
}
