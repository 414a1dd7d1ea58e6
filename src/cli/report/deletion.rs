//! The routes that may be deleted, and those that may not yet. Used by `report::compose`.

use super::clients::names;
use super::data::Collected;
use super::document::{Block, Column, Line, Table};
use crate::cli::plural::count;
use dualgauge_model::lifecycle::{DeletionVerdict, RouteReport, span};

/// The reasons that a row shows.
const REASONS: usize = 3;

/// Returns the routes with a verdict.
pub(super) fn with(collected: &Collected, verdict: DeletionVerdict) -> Vec<&RouteReport> {
    let routes = collected.usage.routes.iter();
    routes.filter(|route| route.verdict == verdict).collect()
}

/// Returns the section on deletion.
pub(super) fn section(collected: &Collected) -> Vec<Block> {
    let idle = span(collected.usage.idle_seconds);
    let mut blocks = vec![Block::Heading("Routes that may be deleted")];
    let safe = with(collected, DeletionVerdict::Safe);
    let line = match safe.len() {
        0 => Line::text("No route may be deleted yet."),
        _ => {
            let line = Line::text(format!("No call needed these routes for {idle}: "));
            names(line, safe.iter().map(|route| route.route.as_str()), 200)
        }
    };
    blocks.push(Block::Paragraph(line));
    let not_yet = with(collected, DeletionVerdict::NotYet);
    let unknown = with(collected, DeletionVerdict::Unknown);
    if !(not_yet.is_empty() && unknown.is_empty()) {
        let mut table = Table::new(&[
            Column::Text("Deprecated route"),
            Column::Text("Side"),
            Column::Text("Sunset"),
            Column::Text("Verdict"),
            Column::Text("Because"),
        ]);
        for route in not_yet.into_iter().chain(unknown) {
            let deprecated = route.deprecated.as_ref();
            let sunset = deprecated.and_then(|it| it.sunset.clone());
            table.push(vec![
                Line::code(&route.route),
                Line::text(deprecated.map_or("", |it| it.side.as_str())),
                Line::text(sunset.unwrap_or_default()),
                Line::text(route.verdict.as_str()),
                reasons(route),
            ]);
        }
        blocks.push(Block::Table(table));
    }
    let rest = with(collected, DeletionVerdict::NotDeprecated).len();
    if rest > 0 {
        let line = Line::text("Routes without an announced deprecation (").and_code("deprecated");
        let line = line.and(format!(
            " of the route): {rest} of {}. There is no verdict on them.",
            collected.usage.routes.len()
        ));
        blocks.push(Block::Paragraph(line));
    }
    blocks
}

fn reasons(route: &RouteReport) -> Line {
    let more = route.reasons.len().saturating_sub(REASONS);
    let mut text = route
        .reasons
        .iter()
        .take(REASONS)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if more > 0 {
        text.push_str(&format!("; and {}", count(more, "more reason")));
    }
    Line::text(text.replace('`', ""))
}
