//! Outcome sets: the rows that a route gets from them, and the errors in their rows, each reported once.
//!
//! A row of a set is compiled with each route that uses the set, since it may borrow holes of the call. So one error
//! may occur for all routes of the set, or only for some, which are then named.
//!
//! Used by `compile::routes`.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::problem::{Problem, SourceMap, nearest};
use crate::config::raw::{RawConfig, RawRoute, RawSet};
use dualgauge_model::outcome::RowSource;
use dualgauge_patterns::pattern::PatternError;

/// The sets, with the results of compiling routes with them.
pub(super) struct OutcomeSets<'r> {
    sets: &'r [RawSet],
    /// The number of routes compiled with each set, by its key.
    users: BTreeMap<&'r str, usize>,
    /// The routes with an error in a row of a set.
    errors: BTreeMap<(String, String), Vec<&'r str>>,
}

impl<'r> OutcomeSets<'r> {
    pub(super) fn new(raw: &'r RawConfig) -> Self {
        OutcomeSets {
            sets: &raw.sets,
            users: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    /// Returns the rows of a route, followed by those of its sets.
    pub(super) fn rows(
        &mut self,
        route: &'r RawRoute,
        problems: &mut Vec<Problem>,
    ) -> Vec<RowSource> {
        let mut rows = route.rows.clone();
        let mut seen = BTreeSet::new();
        for (place, name) in route.sets.iter().enumerate() {
            if !seen.insert(&name.value) {
                problems.push(name.problem(format!("the set `{}` is named twice", name.value)));
                continue;
            }
            let Some(set) = self.find(&name.value) else {
                let message = format!(
                    "there is no set `{}`; write `[[outcomes.NAME]]` rows, or name another",
                    name.value
                );
                let known = self.sets.iter().map(|set| set.name.value.as_str());
                let near = nearest(&name.value, known);
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                problems.push(Problem {
                    hint,
                    ..name.problem(message)
                });
                continue;
            };
            rows.extend(set.rows.iter().map(|row| RowSource {
                origin: place + 1,
                ..row.clone()
            }));
        }
        rows
    }

    /// Returns the errors of the route itself; those in rows of sets are kept for [`OutcomeSets::finish`].
    pub(super) fn errors<'e>(
        &mut self,
        route: &'r RawRoute,
        errors: &'e [PatternError],
    ) -> Vec<&'e PatternError> {
        let sets: Vec<&RawSet> = route
            .sets
            .iter()
            .filter_map(|name| self.find(&name.value))
            .collect();
        let own_rows = format!("{}.outcome[", route.key);
        let of_set = |error: &PatternError| sets.iter().any(|set| lies_in(set, &error.key));
        let (theirs, own): (Vec<_>, Vec<_>) = errors.iter().partition(|error| of_set(error));
        // Rows are compiled only if the call itself is valid.
        if own.iter().all(|error| error.key.starts_with(&own_rows)) {
            for set in &sets {
                *self.users.entry(&set.name.key).or_default() += 1;
            }
        }
        for error in theirs {
            let met = (error.key.clone(), error.what.clone());
            let routes = self.errors.entry(met).or_default();
            routes.push(&route.name.value);
        }
        own
    }

    /// Reports the errors in the sets.
    pub(super) fn finish(self, places: &SourceMap, problems: &mut Vec<Problem>) {
        for ((key, what), routes) in self.errors {
            let set = self.sets.iter().find(|set| lies_in(set, &key));
            let users = set.and_then(|set| self.users.get(set.name.key.as_str()));
            let message = if users.is_none_or(|users| *users == routes.len()) {
                what
            } else {
                format!("{what} (with {})", listed(&routes))
            };
            problems.push(places.problem(key, message));
        }
    }

    fn find(&self, name: &str) -> Option<&'r RawSet> {
        self.sets.iter().find(|set| set.name.value == name)
    }
}

fn lies_in(set: &RawSet, key: &str) -> bool {
    key.strip_prefix(&*set.name.key)
        .is_some_and(|rest| rest.starts_with('['))
}

/// Formats a list of routes, truncated: `the routes `a` and `b``.
fn listed(routes: &[&str]) -> String {
    match routes {
        [one] => format!("the route `{one}`"),
        [one, other] => format!("the routes `{one}` and `{other}`"),
        [one, other, rest @ ..] => {
            format!("the routes `{one}`, `{other}` and {} more", rest.len())
        }
        [] => String::new(),
    }
}
