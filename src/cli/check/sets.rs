//! Outcome sets that several routes share. Each set is reported once, with the statements about its rows.
//!
//! A row may have another verdict in a route where another row precedes it. A statement that does not hold for every
//! route of its set names the routes that it holds for.
//!
//! Used by `check::text`.

use std::collections::{BTreeMap, BTreeSet};

use super::statements::{Statement, set_of};
use dualgauge_model::check::{Direction, FindingKind, RouteReport};
use dualgauge_model::route::Route;

/// The outcome sets in use, by name.
#[derive(Debug, Default)]
pub(super) struct ReportedSets<'r>(pub(super) BTreeMap<&'r str, ReportedSet<'r>>);

/// An outcome set.
#[derive(Debug, Default)]
pub(super) struct ReportedSet<'r> {
    /// The keys of its rows.
    pub(super) rows: BTreeSet<&'r str>,
    /// The number of routes that use it.
    pub(super) routes: usize,
    /// The directions of its rows, for each route.
    pub(super) directions: Vec<&'r Direction>,
    /// The statements about it, each once.
    pub(super) notes: Vec<SetNote<'r>>,
    /// The index of each text in `notes`.
    indices: BTreeMap<String, usize>,
}

/// A statement with the routes that it holds for.
#[derive(Debug)]
pub(super) struct SetNote<'r> {
    pub(super) statement: Statement<'r>,
    first: &'r str,
    routes: usize,
}

impl<'r> ReportedSets<'r> {
    /// Records the sets that a route uses, and the directions of their rows.
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
            let FindingKind::Outcome(index) = direction.kind else {
                continue;
            };
            if let Some(name) = rows.get(index).and_then(|row| set_of(&row.key)) {
                self.0.entry(name).or_default().directions.push(direction);
            }
        }
    }

    /// Adds a statement about a set, unless another route has added it.
    pub(super) fn add(&mut self, set: &'r str, route: &'r str, statement: Statement<'r>) {
        let set = self.0.entry(set).or_default();
        if let Some(note) = set
            .indices
            .get(&statement.text)
            .and_then(|&index| set.notes.get_mut(index))
        {
            note.routes += 1;
            return;
        }
        set.indices.insert(statement.text.clone(), set.notes.len());
        set.notes.push(SetNote {
            statement,
            first: route,
            routes: 1,
        });
    }
}

impl SetNote<'_> {
    /// Returns the statement, with the routes that it holds for if these are not all of the set's.
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
