//! Progress over time, guard trips and changes. Used by `report::compose`.

use super::data::{Change, Collected, time};
use super::document::{Block, Column, Line, Table};
use super::period::Period;
use crate::cli::plural::duration;
use dualgauge_model::lifecycle::TimelineInterval;
use dualgauge_model::time::Timestamp;

/// The number of rows of the timeline.
const ROWS: u64 = 14;

/// Calls of several intervals.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calls {
    pub(super) old: u64,
    pub(super) new: u64,
    pub(super) refused: u64,
    /// The most clients of one interval: the old way only, both ways, the new way only.
    clients: [u64; 3],
}

impl Calls {
    fn add(&mut self, interval: &TimelineInterval) {
        self.old = self.old.saturating_add(interval.old);
        self.new = self.new.saturating_add(interval.new);
        self.refused = self.refused.saturating_add(interval.refused);
        let clients = [
            interval.clients_old,
            interval.clients_both,
            interval.clients_new,
        ];
        for (most, clients) in self.clients.iter_mut().zip(clients) {
            *most = (*most).max(clients);
        }
    }

    /// Returns the share of calls that went the new way, of those that were not refused.
    pub(super) fn share(&self) -> String {
        share(self.new, self.old.saturating_add(self.new))
    }
}

/// Formats a part of a whole in per cent.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub(super) fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "none".to_owned(),
        // A rounded share must not hide the last calls.
        _ if part > 0 && part < whole => {
            let share = part as f64 * 100.0 / whole as f64;
            format!("{:.1} %", share.clamp(0.1, 99.9))
        }
        _ if part == 0 => "0 %".to_owned(),
        _ => "100 %".to_owned(),
    }
}

/// Returns the calls of the period.
pub(super) fn calls(collected: &Collected, period: &Period) -> Calls {
    let mut calls = Calls::default();
    period
        .intervals(collected)
        .for_each(|interval| calls.add(interval));
    calls
}

/// Returns the section on calls over time.
pub(super) fn section(collected: &Collected, period: &Period) -> Vec<Block> {
    let Some(start) = period.timeline_start(collected) else {
        return Vec::new();
    };
    let length = period.until.since(start).div_ceil(ROWS).max(1);
    let mut rows: Vec<(u64, Timestamp, Calls)> = Vec::new();
    for interval in period.intervals(collected) {
        let row = interval.until.since(start).saturating_sub(1) / length;
        if rows.last().is_none_or(|(last, _, _)| *last != row) {
            let from = interval.until.before(collected.overview.timeline.seconds);
            rows.push((row, from.max(start), Calls::default()));
        }
        if let Some((_, _, calls)) = rows.last_mut() {
            calls.add(interval);
        }
    }
    let mut table = Table::new(&[
        Column::Text("From"),
        Column::Number("Old way"),
        Column::Number("New way"),
        Column::Number("Share new"),
        Column::Number("Refused"),
        Column::Number("Clients old only"),
        Column::Number("Both"),
        Column::Number("New only"),
    ]);
    for (_, from, calls) in rows {
        let clients = calls.clients.map(Line::number);
        let counts = [
            Line::text(from.to_string()),
            Line::number(calls.old),
            Line::number(calls.new),
            Line::text(calls.share()),
            Line::number(calls.refused),
        ];
        table.push(counts.into_iter().chain(clients).collect());
    }
    let text = format!(
        "Clients are counted in intervals of {}; a row has the largest number of each kind.",
        duration(collected.overview.timeline.seconds)
    );
    vec![
        Block::Heading("Progress"),
        Block::Table(table),
        Block::Paragraph(Line::text(text)),
    ]
}

/// Returns the trips of guards in the period, the latest first.
pub(super) fn trips<'c>(collected: &'c Collected, period: &Period) -> Vec<&'c Change> {
    let trips = collected
        .history
        .iter()
        .filter(|change| change.what == "trip");
    trips.filter(|change| period.has(&change.by.at)).collect()
}

/// Returns the section on trips and changes.
pub(super) fn changes(collected: &Collected, period: &Period) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Guard trips and changes")];
    let trips = trips(collected, period);
    if trips.is_empty() {
        blocks.push(Block::Paragraph(Line::text(
            "No guard tripped in the period.",
        )));
    } else {
        let columns = [
            Column::Text("Tripped at"),
            Column::Text("Flag"),
            Column::Text("Reason"),
        ];
        let mut table = Table::new(&columns);
        for trip in trips {
            let flag = &trip.after["flag"];
            let reason = flag["standing"]["trip"]["reason"].as_str();
            table.push(vec![
                Line::text(time(&trip.by.at).to_string()),
                Line::code(flag["flag"].as_str().unwrap_or("?")),
                Line::text(reason.unwrap_or("unknown")),
            ]);
        }
        blocks.push(Block::Table(table));
    }
    let others = collected
        .history
        .iter()
        .filter(|change| change.what != "trip");
    let mut others = others.filter(|change| period.has(&change.by.at)).peekable();
    if others.peek().is_none() {
        return blocks;
    }
    let text = "Changes in the period, the latest first:";
    blocks.push(Block::Paragraph(Line::text(text)));
    let mut table = Table::new(&[
        Column::Text("Changed at"),
        Column::Text("Change"),
        Column::Text("By"),
        Column::Text("Why"),
    ]);
    for change in others {
        table.push(vec![
            Line::text(time(&change.by.at).to_string()),
            describe(change),
            Line::text(&change.by.who),
            Line::text(change.by.why.as_deref().unwrap_or_default()),
        ]);
    }
    blocks.push(Block::Table(table));
    blocks
}

/// Describes a change other than a trip.
fn describe(change: &Change) -> Line {
    let kind = match change.what.as_str() {
        "flip" => "flag set",
        "unflip" => "flag reset to the file",
        "drop" => "change dropped after an edit of the file",
        "rearm" => "guard re-armed",
        "advance" => "ramp advanced",
        "kill" => "kill switch on",
        "revive" => "kill switch off",
        "call_off" => "brownouts cancelled",
        "call_on" => "brownouts resumed",
        "undo" => "undone",
        other => other,
    };
    let flag = &change.after["flag"];
    let Some(name) = flag["flag"].as_str() else {
        return Line::text(kind);
    };
    let line = Line::text(format!("{kind}: ")).and_code(name);
    let flip = &flag["standing"]["flip"];
    match (flip["stage"].as_str(), flip["percent"].as_str()) {
        (Some(stage), Some(percent)) => line.and(format!(" to {stage}, {percent} %")),
        _ => line,
    }
}
