//! All routes: one from each pair, and one from each operation without a twin.
//!
//! Law: if two drafts match the same call, the first becomes a route and the second a comment, so that the table loads.
//!
//! Used by `import` and `import::write`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::documenting::Documenting;
use super::drafted::Drafted;
use super::keys::{ClaimedKeys, RouteKeys, RouteOrigin};
use super::model::{CallModel, Operations};
use super::pair::{self, Mismatches, Pairs};
use super::refs::shown;
use super::report::{ImportReport, LeftOut, RouteNote};
use super::route;
use super::sources::Sources;
use super::tool_rows::{ItemPaths, RestDeclaration};

/// All routes, and the operations without one.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) routes: Vec<Drafted>,
    pub(super) notes: Vec<String>,
    /// The schemas that routes share.
    pub(super) schemas: Map<String, Value>,
    pub(super) report: ImportReport,
}

/// Drafts all routes.
pub(super) fn table(found: Operations, sources: &Sources<'_>, mismatches: Mismatches) -> Table {
    let mut pairs = pair::pair(&found.rest, &found.rpc, mismatches);
    let mut drafts: Vec<(usize, Drafted, RouteKeys)> = Vec::new();
    let mut claimed = ClaimedKeys::default();
    let mut refusals: Vec<(usize, usize, String)> = Vec::new();
    let mut proposed = std::mem::take(&mut pairs.pairs);
    proposed.sort_by_key(|pair| pair.rest);
    let items = ItemPaths::new(&found.rest);
    for pair in proposed {
        let (rest, rpc) = (&found.rest[pair.rest], &found.rpc[pair.rpc]);
        let declared = match rpc.call {
            CallModel::Tool => RestDeclaration {
                responses: sources.responses(rest),
                item: items.of(rest),
            },
            CallModel::ByName | CallModel::ByPosition => RestDeclaration::default(),
        };
        let drafted = route::from_pair((rest, rpc, mismatches), &pair, &declared).and_then(
            |(mut drafted, keys)| {
                claimed.claim(&mut drafted, &keys);
                // A pair that cannot be one route may be two: each side is tried alone.
                match drafted.refused.take() {
                    None => Ok((pair.rest, drafted, keys)),
                    Some(why) => Err(why),
                }
            },
        );
        match drafted {
            Ok(drafted) => {
                drafts.push(drafted);
                pairs.pairs.push(pair);
            }
            Err(why) => refusals.push((pair.rest, pair.rpc, why)),
        }
    }
    // A name of an RPC operation is not available to a REST operation without a twin.
    claimed.reserve(&found);
    let doubts = SkipReasons::new(&found, &pairs, &refusals);
    add_alone(&found, &doubts, &mut claimed, &mut drafts);
    drafts.sort_by_key(|(at, _, _)| *at);
    let schemas = document(&found, sources, &mut drafts);
    let left_out = [found.left_out, found.rpc_left_out].concat();
    Table {
        schemas,
        ..finish(left_out, found.notes, drafts)
    }
}

/// Adds texts and schemas to the routes, and returns the shared schemas.
fn document(
    found: &Operations,
    sources: &Sources<'_>,
    drafts: &mut [(usize, Drafted, RouteKeys)],
) -> Map<String, Value> {
    let mut documenting = Documenting::new(sources);
    // A route that is a comment stays short.
    for (at, drafted, _) in drafts.iter_mut() {
        match at.checked_sub(found.rest.len()) {
            _ if drafted.refused.is_some() => {}
            None => {
                documenting.rest(&found.rest[*at], drafted);
            }
            Some(at) => documenting.rpc(&found.rpc[at], drafted),
        }
    }
    documenting.finish()
}

fn add_alone(
    found: &Operations,
    doubts: &SkipReasons<'_>,
    claimed: &mut ClaimedKeys,
    drafts: &mut Vec<(usize, Drafted, RouteKeys)>,
) {
    let paired_rest: BTreeSet<usize> = doubts.pairs.pairs.iter().map(|pair| pair.rest).collect();
    let paired_rpc: BTreeSet<usize> = doubts.pairs.pairs.iter().map(|pair| pair.rpc).collect();
    for (at, rest) in found.rest.iter().enumerate() {
        if !paired_rest.contains(&at) {
            let (mut drafted, keys) = route::rest_alone(rest, claimed, !found.rpc.is_empty());
            drafted.comments.extend(doubts.for_rest(at));
            claimed.claim(&mut drafted, &keys);
            drafts.push((at, drafted, keys));
        }
    }
    for (at, rpc) in found.rpc.iter().enumerate() {
        if !paired_rpc.contains(&at) {
            let (mut drafted, keys) = route::rpc_alone(rpc, claimed, !found.rest.is_empty());
            drafted.comments.extend(doubts.for_rpc(at));
            claimed.claim(&mut drafted, &keys);
            drafts.push((found.rest.len() + at, drafted, keys));
        }
    }
}

/// Names the routes and counts them.
fn finish(
    left_out: Vec<LeftOut>,
    notes: Vec<String>,
    drafts: Vec<(usize, Drafted, RouteKeys)>,
) -> Table {
    let mut table = Table {
        notes,
        report: ImportReport {
            left_out,
            ..ImportReport::default()
        },
        ..Table::default()
    };
    let mut names = UniqueNames::default();
    for (_, mut drafted, keys) in drafts {
        drafted.name = names.unique(&drafted.name);
        if let Some(named) = &mut drafted.by_name {
            named.name = names.unique(&named.name);
            if named.refused.is_none() {
                named.refused.clone_from(&drafted.refused);
            }
        }
        if let Some(why) = &drafted.refused {
            table.report.left_out.push(LeftOut {
                what: keys.title,
                why: why.clone(),
            });
        } else {
            match keys.origin {
                RouteOrigin::Pair => table.report.paired += 1,
                RouteOrigin::Rest => table.report.rest_alone += 1,
                RouteOrigin::Rpc => table.report.rpc_alone += 1,
            }
            table.report.notes.extend(to_check(&drafted));
        }
        table.routes.push(drafted);
    }
    table
}

/// Returns the notes of a route that a person should check.
fn to_check(drafted: &Drafted) -> impl Iterator<Item = RouteNote> {
    let comments = drafted.comments.iter();
    let texts = comments.filter_map(|comment| comment.strip_prefix("look: "));
    texts.map(|text| RouteNote {
        route: drafted.name.clone(),
        text: text.to_owned(),
    })
}

/// The reasons why operations have no twin.
#[derive(Debug)]
pub(super) struct SkipReasons<'d> {
    found: &'d Operations,
    pairs: &'d Pairs,
    /// For each operation of a pair that cannot be one route: the other operation and the reason.
    for_rest: BTreeMap<usize, (usize, &'d str)>,
    for_rpc: BTreeMap<usize, (usize, &'d str)>,
}

impl<'d> SkipReasons<'d> {
    /// Collects the reasons. `refusals` are pairs that cannot be one route: a REST operation, an RPC operation, the
    /// reason.
    pub(super) fn new(
        found: &'d Operations,
        pairs: &'d Pairs,
        refusals: &'d [(usize, usize, String)],
    ) -> SkipReasons<'d> {
        let why = |refusal: &'d (usize, usize, String)| refusal.2.as_str();
        let for_rest = refusals.iter();
        let for_rest = for_rest.map(|refusal| (refusal.0, (refusal.1, why(refusal))));
        let for_rpc = refusals.iter();
        let for_rpc = for_rpc.map(|refusal| (refusal.1, (refusal.0, why(refusal))));
        SkipReasons {
            found,
            pairs,
            for_rest: for_rest.collect(),
            for_rpc: for_rpc.collect(),
        }
    }

    pub(super) fn for_rest(&self, at: usize) -> Option<String> {
        if let Some((rpc, why)) = self.for_rest.get(&at) {
            let title = shown(&self.found.rpc[*rpc].title());
            return Some(format!("look: it seems to match `{title}`, but {why}"));
        }
        let titles = self.pairs.rest_doubts[at].iter();
        ambiguous(titles.map(|rpc| self.found.rpc[*rpc].title()))
    }

    fn for_rpc(&self, at: usize) -> Option<String> {
        if let Some((rest, why)) = self.for_rpc.get(&at) {
            let title = shown(&self.found.rest[*rest].title());
            return Some(format!("look: it seems to match `{title}`, but {why}"));
        }
        let titles = self.pairs.rpc_doubts[at].iter();
        ambiguous(titles.map(|rest| self.found.rest[*rest].title()))
    }
}

fn ambiguous(titles: impl Iterator<Item = String>) -> Option<String> {
    let titles: Vec<String> = titles.map(|title| format!("`{}`", shown(&title))).collect();
    (!titles.is_empty()).then(|| {
        format!(
            "look: it may match any of {}; choose one",
            titles.join(", ")
        )
    })
}

/// The names in use, with the next number for each name.
#[derive(Debug, Default)]
pub(super) struct UniqueNames {
    claimed: BTreeSet<String>,
    numbers: BTreeMap<String, usize>,
}

impl UniqueNames {
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let mut found = wanted.to_owned();
        while !self.claimed.insert(found.clone()) {
            let number = self.numbers.entry(wanted.to_owned()).or_insert(1);
            *number += 1;
            found = format!("{wanted}-{number}");
        }
        found
    }
}
