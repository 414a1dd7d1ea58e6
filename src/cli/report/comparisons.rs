//! Compared calls, and the differences that were found and fixed. Used by `report::compose`.

use super::data::{Collected, time};
use super::document::{Block, Column, Line, Table};
use super::period::Period;
use crate::cli::plural::count;

/// A difference between control and candidate.
#[derive(Debug, Clone, Copy)]
struct Difference<'c> {
    route: &'c str,
    /// The field; `None` for failed candidates.
    field: Option<&'c str>,
    calls: u64,
    last: &'c str,
    /// The time when it was forgotten.
    forgotten: Option<&'c str>,
}

impl Difference<'_> {
    fn place(&self) -> Line {
        self.field
            .map_or_else(|| Line::text("candidate failed"), Line::code)
    }
}

/// All differences, sorted into those that occur and those that do not any more.
#[derive(Debug, Default)]
pub(super) struct Differences<'c> {
    /// Those that occurred in the period.
    open: Vec<Difference<'c>>,
    /// Those that were forgotten in the period, because the route changed or on request, and did not occur again.
    fixed: Vec<Difference<'c>>,
    /// Those that did not occur in the period, although nothing tells that they were fixed.
    quiet: usize,
    /// The calls with differences that had no room.
    more: u64,
}

impl<'c> Differences<'c> {
    pub(super) fn new(collected: &'c Collected, period: &Period) -> Differences<'c> {
        let mut found = Differences {
            more: collected.mismatches.more,
            ..Differences::default()
        };
        let mut known = Vec::new();
        for of_route in &collected.mismatches.routes {
            let route = of_route.route.as_str();
            let failed = of_route.failed.last.as_deref();
            let failed = failed.map(|last| (None, of_route.failed.count, last));
            let fields = of_route.fields.iter();
            let fields = fields.map(|it| (Some(it.field.as_str()), it.count, it.last.as_str()));
            for (field, calls, last) in failed.into_iter().chain(fields) {
                known.push((route, field));
                if period.has(last) {
                    found.open.push(Difference {
                        route,
                        field,
                        calls,
                        last,
                        forgotten: None,
                    });
                } else {
                    found.quiet += 1;
                }
            }
        }
        for it in &collected.mismatches.forgotten {
            let (route, field) = (it.route.as_str(), it.field.as_deref());
            if period.has(&it.forgotten) && !known.contains(&(route, field)) {
                found.fixed.push(Difference {
                    route,
                    field,
                    calls: it.count,
                    last: &it.last,
                    forgotten: Some(&it.forgotten),
                });
            }
        }
        let busiest = |it: &Difference<'_>| std::cmp::Reverse(it.calls);
        found.open.sort_by_key(busiest);
        found.fixed.sort_by_key(busiest);
        found
    }

    /// Returns the numbers as a phrase.
    pub(super) fn summary(&self) -> String {
        let quiet = match self.quiet {
            0 => String::new(),
            quiet => format!(", {quiet} not seen in the period"),
        };
        format!(
            "{} found, {} fixed{quiet}",
            self.open.len() + self.fixed.len(),
            self.fixed.len()
        )
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let columns = [
            Column::Text("Route"),
            Column::Text("Where"),
            Column::Number("Calls"),
            Column::Text("Last"),
        ];
        let row = |it: &Difference<'_>| {
            vec![
                Line::code(it.route),
                it.place(),
                Line::number(it.calls),
                Line::text(time(it.last).to_string()),
            ]
        };
        if !self.open.is_empty() {
            let mut table = Table::new(&columns);
            self.open.iter().for_each(|it| table.push(row(it)));
            blocks.push(Block::Paragraph(Line::text(
                "Differences that occurred in the period:",
            )));
            blocks.push(Block::Table(table));
        }
        if !self.fixed.is_empty() {
            let mut table = Table::new(&[&columns[..], &[Column::Text("Fixed")]].concat());
            for it in &self.fixed {
                let mut row = row(it);
                let fixed = it.forgotten.map(|at| time(at).to_string());
                row.push(Line::text(fixed.unwrap_or_default()));
                table.push(row);
            }
            let text = "Fixed differences: the route changed, or the difference was reset, and it has not occurred since:";
            blocks.push(Block::Paragraph(Line::text(text)));
            blocks.push(Block::Table(table));
        }
        if self.more > 0 {
            let text = format!(
                "{} with differences had no room in the list.",
                count(self.more, "call")
            );
            blocks.push(Block::Paragraph(Line::text(text)));
        }
        blocks
    }
}

/// Returns the section on comparisons.
pub(super) fn section(collected: &Collected, differences: &Differences<'_>) -> Vec<Block> {
    let all = &collected.performance.all;
    let mut blocks = vec![Block::Heading("Comparisons")];
    if all.compared() == 0 {
        let text = "No call was compared. The stages shadow and verify compare.";
        blocks.push(Block::Paragraph(Line::text(text)));
    } else {
        let mut table = Table::new(&[
            Column::Text("Route"),
            Column::Number("Compared"),
            Column::Number("Equal"),
            Column::Number("Different"),
            Column::Number("Candidate failed"),
            Column::Number("Control failed"),
            Column::Number("Both failed"),
        ]);
        let routes = collected.performance.items.iter();
        let routes = routes.filter(|route| route.row.compared() > 0);
        let rows = routes.map(|route| (Line::code(&route.route), &route.row));
        for (name, row) in std::iter::once((Line::text("all"), all)).chain(rows) {
            let verdicts = [
                "match",
                "mismatch",
                "candidate-failed",
                "control-failed",
                "both-failed",
            ];
            let verdicts = verdicts.map(|verdict| Line::number(row.verdict(verdict)));
            let numbers = std::iter::once(Line::number(row.compared())).chain(verdicts);
            table.push(std::iter::once(name).chain(numbers).collect());
        }
        blocks.push(Block::Table(table));
    }
    blocks.extend(differences.blocks());
    blocks
}
