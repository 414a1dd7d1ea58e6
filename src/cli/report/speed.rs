//! Latency and errors, the old way against the new way. Used by `report::compose`.

use super::data::{Collected, Durations, Errors, PerformanceRow};
use super::document::{Block, Column, Line, Table};
use super::progress::share;

/// The number of routes; they have up to three rows each.
const ROUTES: usize = 15;

/// Returns the section on latency and errors.
pub(super) fn section(collected: &Collected) -> Vec<Block> {
    let performance = &collected.performance;
    let mut table = Table::new(&[
        Column::Text("Route"),
        Column::Text("Way"),
        Column::Number("Calls"),
        Column::Number("Errors"),
        Column::Number("Share"),
        Column::Number("p50 ms"),
        Column::Number("p95 ms"),
        Column::Number("p99 ms"),
    ]);
    push(&mut table, &Line::text("all"), &performance.all);
    let routes = performance.items.iter().filter(|route| has_run(&route.row));
    for route in routes.clone().take(ROUTES) {
        push(&mut table, &Line::code(&route.route), &route.row);
    }
    let text = "Errors are responses that report one, failures of the proxy, and cut responses. Candidates are the second run of \
                compared calls, which no client waits for. Latency is estimated from histograms.";
    let mut blocks = vec![
        Block::Heading("Latency and errors"),
        Block::Table(table),
        Block::Paragraph(Line::text(text)),
    ];
    let left_out = routes.count().saturating_sub(ROUTES);
    let beyond = performance.total.saturating_sub(performance.items.len());
    if left_out + beyond > 0 {
        let text = format!("The table has the {ROUTES} busiest routes.");
        blocks.push(Block::Paragraph(Line::text(text)));
    }
    blocks
}

fn has_run(row: &PerformanceRow) -> bool {
    row.old.calls + row.new.calls + row.latency.candidates.count > 0
}

fn push(table: &mut Table, name: &Line, row: &PerformanceRow) {
    let latency = &row.latency;
    let served = [("old", row.old, latency.old), ("new", row.new, latency.new)];
    for (way, errors, durations) in served.into_iter().filter(|(_, errors, _)| errors.calls > 0) {
        let Errors { calls, errors } = errors;
        let counts = [Line::number(errors), Line::text(share(errors, calls))];
        push_row(table, [name.clone(), Line::text(way)], counts, durations);
    }
    if latency.candidates.count > 0 {
        let names = [name.clone(), Line::text("candidates")];
        push_row(
            table,
            names,
            [Line::default(), Line::default()],
            latency.candidates,
        );
    }
}

fn push_row(table: &mut Table, names: [Line; 2], errors: [Line; 2], durations: Durations) {
    let Durations {
        count,
        p50_ms,
        p95_ms,
        p99_ms,
    } = durations;
    let times = [p50_ms, p95_ms, p99_ms].map(|ms| Line::text(format!("{ms:.2}")));
    let calls = std::iter::once(Line::number(count));
    table.push(
        names
            .into_iter()
            .chain(calls)
            .chain(errors)
            .chain(times)
            .collect(),
    );
}
