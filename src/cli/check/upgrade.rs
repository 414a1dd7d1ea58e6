//! Notes on routes that a changed default affects. Used by `check` and `check::verdict`.

use crate::config::configuration::Configuration;
use crate::config::problem::Problem;
use crate::config::raw::{RawMatch, RawRoute};
use dualgauge_model::check::{WrittenKeys, changes, general_changes};

/// The key of the note on all routes.
pub(super) const ALL_ROUTES: &str = "route";

/// Returns a note on all routes, at the place of the first, if changed defaults affect them alike.
pub(super) fn general(configuration: &Configuration) -> Option<Problem> {
    let changes = general_changes(&configuration.plan);
    let first = configuration.raw.routes.first()?;
    if changes.is_empty() {
        return None;
    }
    let words = listed(changes.iter().map(|change| change.as_str()));
    let what = format!("changed defaults affect all routes: {words} (CHANGELOG.md, Upgrading)");
    let at_first = configuration.raw.places.problem(&first.key, what);
    Some(Problem {
        key: ALL_ROUTES.to_owned(),
        ..at_first
    })
}

/// Returns a note on the route at `index` of the plan, if a changed default affects it.
pub(super) fn note(configuration: &Configuration, index: usize, raw: &RawRoute) -> Option<Problem> {
    let written = WrittenKeys {
        extra: raw.extra.as_ref().map(|extra| extra.value),
    };
    let changes = changes(&configuration.plan, index, written);
    if changes.is_empty() {
        return None;
    }
    let words = listed(changes.iter().map(|change| change.as_str()));
    let what = format!("changed defaults affect it: {words} (CHANGELOG.md, Upgrading)");
    Some(configuration.raw.places.problem(&raw.key, what))
}

/// Returns a note on each client whose `match.subject` is compared in another way than before.
pub(super) fn clients(configuration: &Configuration) -> Vec<Problem> {
    let clients = configuration.raw.clients.iter();
    let subjects = clients.filter_map(|client| match &client.matches {
        RawMatch::Subject(patterns) => Some(patterns),
        RawMatch::ApiKeys(_)
        | RawMatch::Claims(_)
        | RawMatch::Headers(_)
        | RawMatch::Addresses(_)
        | RawMatch::McpClient(_)
        | RawMatch::UserAgent(_) => None,
    });
    let what = "a changed default affects it: `match_subject` (CHANGELOG.md, Upgrading)";
    subjects.map(|patterns| patterns.problem(what)).collect()
}

/// Returns a note on each client that is recognised by a name that anyone can declare.
pub(super) fn declared_names(configuration: &Configuration) -> Vec<Problem> {
    let clients = configuration.raw.clients.iter();
    let names = clients.filter_map(|client| match &client.matches {
        RawMatch::McpClient(globs) => Some(globs),
        RawMatch::Subject(_)
        | RawMatch::ApiKeys(_)
        | RawMatch::Claims(_)
        | RawMatch::Headers(_)
        | RawMatch::Addresses(_)
        | RawMatch::UserAgent(_) => None,
    });
    let what = "`mcp_client` is a declared identity: any MCP client can send this `clientInfo`; use it to choose stages, not to protect anything";
    names.map(|globs| globs.problem(what)).collect()
}

fn listed<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
