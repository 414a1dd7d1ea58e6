//! The order in which the rows of a route are tried: the declared one, then more specific rows first.
//!
//! `after` of a row names rows of its table that come first: where a response fits both, they take it. The order is
//! transitive. Rows that overlap only in part need it. Used by `outcome::table`.

use std::cmp::Reverse;

use super::compare;
use super::row::{OutcomeRow, RowOrder};
use crate::precedence::reached;
use dualgauge_patterns::pattern::PatternError;
use dualgauge_patterns::side::Side;

/// The declared order of the rows of a route.
#[derive(Debug, Default)]
pub(super) struct DeclaredRows {
    /// The rows that come before each row, directly or not; empty if no row declares an order.
    fronts: Vec<Vec<usize>>,
}

impl DeclaredRows {
    /// Resolves `after` of all rows, and reports repeated and unknown names, and cycles.
    pub(super) fn new(rows: &[OutcomeRow], errors: &mut Vec<PatternError>) -> DeclaredRows {
        if rows.iter().all(|row| row.order == RowOrder::default()) {
            return DeclaredRows::default();
        }
        let mut fault = |row: &OutcomeRow, key: &str, what: String| {
            errors.push(PatternError::new(what).under(key).under(&row.key));
        };
        let find = |row: &OutcomeRow, name: &str| {
            let is_it = |other: &OutcomeRow| {
                other.origin == row.origin && other.order.name.as_deref() == Some(name)
            };
            rows.iter().position(is_it)
        };
        let mut direct = vec![Vec::new(); rows.len()];
        for (index, row) in rows.iter().enumerate() {
            if let Some(name) = &row.order.name
                && find(row, name).is_some_and(|first| first != index)
            {
                fault(row, "name", format!("another row has the name `{name}`"));
            }
            for name in &row.order.after {
                match find(row, name) {
                    Some(front) => direct[index].push(front),
                    None => {
                        let what = format!(
                            "no row of this table has the name `{name}`; write `name = \"{name}\"` in a row"
                        );
                        fault(row, "after", what);
                    }
                }
            }
        }
        let fronts = (0..rows.len()).map(|row| reached(&direct, row));
        let mut fronts: Vec<Vec<usize>> = fronts.collect();
        for (index, row) in rows.iter().enumerate() {
            if fronts[index].contains(&index) {
                fault(row, "after", "the order has a cycle".to_owned());
                // A cycle is no order.
                fronts[index].clear();
            }
        }
        DeclaredRows { fronts }
    }

    /// Returns true when a row comes before another one.
    fn is_before(&self, front: usize, back: usize) -> bool {
        let fronts = self.fronts.get(back);
        fronts.is_some_and(|fronts| fronts.contains(&front))
    }

    fn relates(&self, one: usize, other: usize) -> bool {
        self.is_before(one, other) || self.is_before(other, one)
    }
}

/// Returns the order in which rows are tried on responses of a side's upstream, and reports rows that overlap without
/// an order.
pub(super) fn order(
    rows: &[OutcomeRow],
    side: Side,
    declared: &DeclaredRows,
    errors: &mut Vec<PatternError>,
) -> Vec<usize> {
    let mut narrower = vec![Vec::new(); rows.len()];
    for (index, one) in rows.iter().enumerate() {
        for (other_index, other) in rows.iter().enumerate().skip(index + 1) {
            let down = compare::within(one, other, side);
            let up = compare::within(other, one, side);
            match (down, up) {
                (true, false) => narrower[index].push(other_index),
                (false, true) => narrower[other_index].push(index),
                (true, true) => {}
                (false, false) if one.origin == other.origin => {
                    if !declared.relates(index, other_index) && compare::overlaps(one, other, side)
                    {
                        let what = format!(
                            "it matches answers of {} servers that {} matches as well, and neither is more specific; name a member or a text that distinguishes them, or write `name` in one row and `after` in the other",
                            side, one.key
                        );
                        errors.push(PatternError::new(what).under(&other.key));
                    }
                }
                (false, false) => {}
            }
        }
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|index| {
        let row = &rows[*index];
        // Of two rows that match the same responses, the one that names more members loses less.
        (
            Reverse(narrower[*index].len()),
            Reverse(row.binds(side)),
            row.origin,
            *index,
        )
    });
    match declared.fronts.is_empty() {
        true => order,
        false => declared_first(order, rows, (declared, &narrower), errors),
    }
}

/// Sorts rows by the declared order, and keeps more specific rows first where it leaves the choice.
fn declared_first(
    mut left: Vec<usize>,
    rows: &[OutcomeRow],
    (declared, narrower): (&DeclaredRows, &[Vec<usize>]),
    errors: &mut Vec<PatternError>,
) -> Vec<usize> {
    let comes_first = |one: usize, other: usize| {
        declared.is_before(one, other)
            || narrower[one].contains(&other) && !declared.is_before(other, one)
    };
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_next = |row: &usize| !left.iter().any(|other| comes_first(*other, *row));
        let Some(at) = left.iter().position(is_next) else {
            let mut stuck = left.iter().map(|row| &rows[*row]);
            if let Some(row) = stuck.find(|row| !row.order.after.is_empty()) {
                let what = "a row that is more specific than one of these rows is more general than this one; name it in `after`, too";
                errors.push(PatternError::new(what).under("after").under(&row.key));
            }
            order.append(&mut left);
            break;
        };
        order.push(left.remove(at));
    }
    order
}
