//! The mismatches and failed candidates of all routes as one list. Used by `admin::views`.

use serde::Serialize;

use super::page::ListQuery;
use crate::telemetry::clock::rfc3339_ms;
use dualgauge_model::compare::{Mismatches, Tally};
use dualgauge_model::rollout::Glob;

/// A field of a route that differed, or the failed candidates of a route.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct DifferenceRow<'m> {
    route: &'m str,
    /// The path under which `ignore` would skip the field; `null` for failed candidates.
    field: Option<&'m str>,
    /// The number of calls.
    count: u64,
    /// The time of the last one.
    last: String,
}

/// Returns the found differences, those of most calls first; failed candidates come before fields.
pub(super) fn differences<'m>(
    mismatches: &'m Mismatches,
    routes: &Glob,
    query: &ListQuery,
) -> Vec<DifferenceRow<'m>> {
    let mut rows = Vec::new();
    for route in mismatches.routes().filter(|route| routes.fits(route)) {
        let failed = mismatches.failed(route).map(|failed| failed.tally());
        let failed = failed.filter(|tally| tally.count > 0 && query.finds(&[route]));
        rows.extend(failed.map(|tally| row(route, None, tally)));
        for (name, field) in mismatches.fields(route) {
            if query.finds(&[route, name]) {
                rows.push(row(route, Some(name), field.tally()));
            }
        }
    }
    rows.sort_by_key(|row| (row.field.is_some(), std::cmp::Reverse(row.count)));
    rows
}

fn row<'m>(route: &'m str, field: Option<&'m str>, tally: Tally) -> DifferenceRow<'m> {
    DifferenceRow {
        route,
        field,
        count: tally.count,
        last: rfc3339_ms(tally.last_ms),
    }
}
