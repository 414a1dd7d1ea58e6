//! Comparison rules of each route: the global ones, plus those of the route.

use std::sync::Arc;

use super::pair;
use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawCompare, RawConfig, RawRoute};
use dualgauge_model::compare::{Path, RuleSource, Rules};
use dualgauge_model::redact::Redaction;
use dualgauge_patterns::side::Side;

/// Maximum number of paths in one table: each is visited for every response.
const MOST: usize = 256;

/// Compiles the rules of each route, by its index in the file.
pub(super) fn compile(
    raw: &RawConfig,
    redaction: &Arc<Redaction>,
    problems: &mut Vec<Problem>,
) -> Vec<Arc<Rules>> {
    check_count(&raw.compare, problems);
    let with = |own: &RawCompare| {
        let mut source = RuleSource {
            redaction: redaction.clone(),
            ignore: pair::ignored(raw),
            ..RuleSource::default()
        };
        add(&raw.compare, &mut source);
        add(own, &mut source);
        Arc::new(Rules::compile(source))
    };
    let none = RawCompare::default();
    let usual = with(&none);
    let routes = raw.routes.iter();
    let rules = routes.map(|route| {
        check_count(&route.compare, problems);
        check_side(route, problems);
        match route.compare == none {
            true => usual.clone(),
            false => with(&route.compare),
        }
    });
    rules.collect()
}

/// Adds rules: lists are appended; later numbers and words replace earlier ones.
fn add(raw: &RawCompare, source: &mut RuleSource) {
    let values = |paths: &[Spanned<Path>]| {
        paths
            .iter()
            .map(|path| path.value.clone())
            .collect::<Vec<_>>()
    };
    source.ignore.extend(values(&raw.ignore));
    source.unordered.extend(values(&raw.unordered));
    for (path, tolerance) in &raw.tolerance {
        source
            .tolerance
            .push((path.value.clone(), tolerance.value.clone()));
    }
    source
        .headers
        .extend(raw.headers.iter().map(|header| header.value.clone()));
    if let Some(show) = &raw.show {
        source.show = show.value;
    }
}

fn paths(raw: &RawCompare) -> impl Iterator<Item = &Spanned<Path>> {
    let tolerated = raw.tolerance.iter().map(|(path, _)| path);
    raw.ignore.iter().chain(&raw.unordered).chain(tolerated)
}

fn check_count(raw: &RawCompare, problems: &mut Vec<Problem>) {
    if let Some(path) = paths(raw).nth(MOST) {
        let message = format!("too many paths; one table can have at most {MOST}");
        problems.push(path.problem(message));
    }
}

/// Reports a path on the side that no call of the route uses: nothing is ever compared there.
fn check_side(raw: &RawRoute, problems: &mut Vec<Problem>) {
    let Some(from) = &raw.from else { return };
    let (others, own): (&[&str], &str) = match from.value {
        Side::Rest => (&["result", "error"], "`/status`, `/headers` or `/body`"),
        Side::Rpc => (&["status", "headers", "body"], "`/result` or `/error`"),
    };
    for path in paths(&raw.compare) {
        if path
            .value
            .root()
            .is_some_and(|place| others.contains(&place))
        {
            let message = format!(
                "only `{}` clients call the route, and their responses have no `{}`",
                from.value, path.value
            );
            problems.push(path.problem(message).hint(format!("begin with {own}")));
        }
    }
}
