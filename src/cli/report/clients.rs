//! The clients: moved, partly moved or left, and the routes that they still call the old way. Used by `report::compose`.

use std::collections::{BTreeMap, BTreeSet};

use super::data::{Collected, time};
use super::document::{Block, Column, Line, Table};
use super::period::Period;
use dualgauge_model::lifecycle::CountReport;
use dualgauge_model::time::Timestamp;

/// The routes that a row names.
const ROUTES: usize = 5;

/// The progress of a client on one side, within the period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// The server of its own side answered all its calls.
    NotMoved,
    /// The proxy translated some of its calls.
    Partly,
    /// The proxy translated all its calls.
    Moved,
    /// The proxy refused all its calls.
    Refused,
    /// It did not call.
    Silent,
}

impl Progress {
    const fn as_str(self) -> &'static str {
        match self {
            Progress::NotMoved => "not moved",
            Progress::Partly => "partly moved",
            Progress::Moved => "moved",
            Progress::Refused => "refused",
            Progress::Silent => "without calls in the period",
        }
    }
}

/// Calls, and the time of the last one.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    calls: u64,
    last: Option<Timestamp>,
}

impl Counted {
    fn add(&mut self, count: &CountReport) {
        self.calls = self.calls.saturating_add(count.calls);
        self.last = self.last.max(count.last.as_deref().map(time));
    }

    fn last(self) -> Line {
        Line::text(
            self.last
                .map_or("never".to_owned(), |last| last.to_string()),
        )
    }
}

/// The calls of a client on one side.
#[derive(Debug, Default)]
struct Caller<'c> {
    old: Counted,
    new: Counted,
    refused: Counted,
    /// The routes that it called the old way within the period.
    old_routes: BTreeSet<&'c str>,
}

impl Caller<'_> {
    fn progress(&self, period: &Period) -> Progress {
        let called = |count: Counted| count.last.is_some_and(|last| last >= period.since);
        match (called(self.old), called(self.new)) {
            (true, true) => Progress::Partly,
            (true, false) => Progress::NotMoved,
            (false, true) => Progress::Moved,
            (false, false) if called(self.refused) => Progress::Refused,
            (false, false) => Progress::Silent,
        }
    }
}

/// The calls of all clients, by name and side.
#[derive(Debug)]
pub(super) struct Clients<'c> {
    callers: BTreeMap<(&'c str, &'c str), Caller<'c>>,
    /// The configured clients that have never called.
    never: Vec<&'c str>,
    period: Period,
}

impl<'c> Clients<'c> {
    pub(super) fn new(collected: &'c Collected, period: Period) -> Clients<'c> {
        let mut callers: BTreeMap<(&str, &str), Caller<'_>> = BTreeMap::new();
        for route in &collected.usage.routes {
            for report in &route.callers {
                let key = (report.client.as_str(), report.side.as_str());
                let caller = callers.entry(key).or_default();
                caller.old.add(&report.old);
                caller.new.add(&report.new);
                caller.refused.add(&report.refused);
                if period.has_last(report.old.last.as_deref()) {
                    caller.old_routes.insert(&route.route);
                }
            }
        }
        let named = collected
            .plan
            .clients
            .iter()
            .map(|client| client.name.as_str());
        let has_called = |name: &&str| callers.keys().any(|(client, _)| client == name);
        let never = named.filter(|name| !has_called(name)).collect();
        Clients {
            callers,
            never,
            period,
        }
    }

    /// Returns the number of clients by progress. A client on both sides counts with the least progress.
    pub(super) fn counts(&self) -> BTreeMap<Progress, usize> {
        let mut least: BTreeMap<&str, Progress> = BTreeMap::new();
        for ((client, _), caller) in &self.callers {
            let progress = caller.progress(&self.period);
            let known = least.entry(client).or_insert(progress);
            *known = progress.min(*known);
        }
        let mut counts = BTreeMap::new();
        for progress in least.into_values() {
            *counts.entry(progress).or_default() += 1;
        }
        if !self.never.is_empty() {
            *counts.entry(Progress::Silent).or_default() += self.never.len();
        }
        counts
    }

    /// Returns the counts as a phrase.
    pub(super) fn summary(&self) -> String {
        let counts = self.counts().into_iter();
        let counts: Vec<String> = counts
            .map(|(progress, count)| format!("{count} {}", progress.as_str()))
            .collect();
        match counts.is_empty() {
            true => "none".to_owned(),
            false => counts.join(", "),
        }
    }

    /// Returns the section on all clients.
    pub(super) fn section(&self) -> Vec<Block> {
        let mut table = Table::new(&[
            Column::Text("Client"),
            Column::Text("Side"),
            Column::Text("In the period"),
            Column::Number("Old way"),
            Column::Text("Last call the old way"),
            Column::Number("New way"),
            Column::Text("Last call the new way"),
            Column::Number("Refused"),
        ]);
        let mut rows: Vec<_> = self.callers.iter().collect();
        rows.sort_by_key(|(_, caller)| caller.progress(&self.period));
        for ((client, side), caller) in rows {
            table.push(vec![
                Line::code(*client),
                Line::text(*side),
                Line::text(caller.progress(&self.period).as_str()),
                Line::number(caller.old.calls),
                caller.old.last(),
                Line::number(caller.new.calls),
                caller.new.last(),
                Line::number(caller.refused.calls),
            ]);
        }
        let explained = "The old way is the server of the side that the client calls; the new way is the translation for the \
                         server of the other side. The numbers are all calls since counting began, on all replicas.";
        let mut blocks = vec![Block::Heading("Clients")];
        if self.callers.is_empty() {
            blocks.push(Block::Paragraph(Line::text(
                "No client has called a route.",
            )));
        } else {
            blocks.push(Block::Paragraph(Line::text(explained)));
            blocks.push(Block::Table(table));
        }
        if !self.never.is_empty() {
            let line = Line::text("Configured, and never seen: ");
            blocks.push(Block::Paragraph(names(
                line,
                self.never.iter().copied(),
                50,
            )));
        }
        blocks
    }

    /// Returns the section on the calls that still go the old way, the latest first.
    pub(super) fn left(&self) -> Vec<Block> {
        let mut table = Table::new(&[
            Column::Text("Client"),
            Column::Text("Side"),
            Column::Text("Last call the old way"),
            Column::Text("Last call the new way"),
            Column::Number("Routes called the old way"),
            Column::Text("Which"),
        ]);
        let callers = self.callers.iter();
        let mut left: Vec<_> = callers
            .filter(|(_, caller)| !caller.old_routes.is_empty())
            .collect();
        left.sort_by_key(|(_, caller)| std::cmp::Reverse(caller.old.last));
        for ((client, side), caller) in &left {
            let routes = &caller.old_routes;
            table.push(vec![
                Line::code(*client),
                Line::text(*side),
                caller.old.last(),
                caller.new.last(),
                Line::number(routes.len() as u64),
                names(Line::default(), routes.iter().copied(), ROUTES),
            ]);
        }
        let heading = Block::Heading("Who is left");
        if left.is_empty() {
            let text = "Within the period, no client called any route the old way.";
            return vec![heading, Block::Paragraph(Line::text(text))];
        }
        let text = "These clients called routes the old way in the period.";
        vec![
            heading,
            Block::Paragraph(Line::text(text)),
            Block::Table(table),
        ]
    }
}

/// Adds names to a line, at most `most`.
pub(super) fn names<'n>(
    mut line: Line,
    names: impl ExactSizeIterator<Item = &'n str>,
    most: usize,
) -> Line {
    let more = names.len().saturating_sub(most);
    for (index, name) in names.take(most).enumerate() {
        if index > 0 {
            line = line.and(", ");
        }
        line = line.and_code(name);
    }
    match more {
        0 => line,
        _ => line.and(format!(" and {more} more")),
    }
}
