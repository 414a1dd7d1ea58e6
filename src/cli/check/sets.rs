//! The sets of outcomes that routes share. Each set is reported once, with the statements about its rows.
//!
//! A row may fare differently in one of the routes, where another row is before it. A statement that does not hold
//! for every route of its set names the routes that it holds for.

use std::collections::{BTreeMap, BTreeSet};

use super::statements::{Statement, set_of};
use crate::domain::check::{Direction, FindingKind, RouteReport};
use crate::domain::route::Route;

/// The sets that routes name, by name.
#[derive(Debug, Default)]
pub(super) struct ReportedSets<'r>(pub(super) BTreeMap<&'r str, ReportedSet<'r>>);

/// A set of outcomes.
#[derive(Debug, Default)]
pub(super) struct ReportedSet<'r> {
    /// The keys of its rows.
    pub(super) rows: BTreeSet<&'r str>,
    /// How many routes name it.
    pub(super) routes: usize,
    /// The directions of its rows, in each route.
    pub(super) directions: Vec<&'r Direction>,
    /// What is said of it, each statement once.
    pub(super) said: Vec<SetNote<'r>>,
    /// Where each text stands in `said`.
    places: BTreeMap<String, usize>,
}

/// A statement with the routes that it holds for.
#[derive(Debug)]
pub(super) struct SetNote<'r> {
    pub(super) statement: Statement<'r>,
    first: &'r str,
    routes: usize,
}

impl<'r> ReportedSets<'r> {
    /// Notes the sets that a route names, and the directions of their rows.
    pub(super) fn note(&mut self, route: &'r Route, report: &'r RouteReport) {
        let rows = route.outcomes.rows();
        let mut named = BTreeSet::new();
        for row in rows {
            if let Some(name) = set_of(&row.key) {
                self.0.entry(name).or_default().rows.insert(&row.key);
                named.insert(name);
            }
        }
        for name in named {
            self.0.entry(name).or_default().routes += 1;
        }
        for direction in &report.directions {
            let FindingKind::Outcome(place) = direction.kind else {
                continue;
            };
            if let Some(name) = rows.get(place).and_then(|row| set_of(&row.key)) {
                self.0.entry(name).or_default().directions.push(direction);
            }
        }
    }

    /// Adds a statement that a route makes about a set, unless another route has made it.
    pub(super) fn add(&mut self, (set, route): (&'r str, &'r str), statement: Statement<'r>) {
        let set = self.0.entry(set).or_default();
        if let Some(said) = set
            .places
            .get(&statement.text)
            .and_then(|&place| set.said.get_mut(place))
        {
            said.routes += 1;
            return;
        }
        set.places.insert(statement.text.clone(), set.said.len());
        set.said.push(SetNote {
            statement,
            first: route,
            routes: 1,
        });
    }
}

impl SetNote<'_> {
    /// Returns the statement, with the routes that it holds for where these are not all of the set.
    pub(super) fn text(&self, of: usize) -> String {
        let text = &self.statement.text;
        match self.routes {
            all if all == of => text.clone(),
            1 => format!("{text} (in {})", self.first),
            some => format!(
                "{text} (in {} and {} more of {of} routes)",
                self.first,
                some - 1
            ),
        }
    }
}
