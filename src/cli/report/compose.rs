//! The sections of a report, in their order. Used by `cli::report`.

use super::clients::Clients;
use super::comparisons::{self, Differences};
use super::data::{Collected, Errors, Since, time};
use super::deletion;
use super::document::{Block, Document, Line};
use super::period::Period;
use super::progress::{self, share, trips};
use super::speed;
use crate::cli::plural::count;
use dualgauge_model::lifecycle::DeletionVerdict;

/// Returns the report of the period that begins at `since`.
pub(super) fn compose(collected: &Collected, since: Since) -> Document {
    let until = time(&collected.usage.at);
    let period = Period {
        since: since.at(until).min(until),
        until,
    };
    let findings = Findings {
        clients: Clients::new(collected, period),
        differences: Differences::new(collected, &period),
    };
    let mut blocks = vec![
        Block::Paragraph(Line::text(format!(
            "From {} to {}, by dualgauge {}.",
            period.since, period.until, collected.status.version
        ))),
        Block::Heading("Summary"),
        Block::List(summary(collected, &period, &findings)),
        Block::Heading("Data"),
        Block::List(period.gaps(collected)),
    ];
    blocks.extend(attention(collected));
    blocks.extend(progress::section(collected, &period));
    blocks.extend(findings.clients.section());
    blocks.extend(findings.clients.left());
    blocks.extend(comparisons::section(collected, &findings.differences));
    blocks.extend(progress::changes(collected, &period));
    blocks.extend(speed::section(collected));
    blocks.extend(deletion::section(collected));
    Document {
        title: "Migration report".to_owned(),
        blocks,
    }
}

/// The findings that the summary counts.
struct Findings<'a> {
    clients: Clients<'a>,
    differences: Differences<'a>,
}

fn summary(collected: &Collected, period: &Period, findings: &Findings<'_>) -> Vec<Line> {
    let calls = progress::calls(collected, period);
    let answered = calls.old.saturating_add(calls.new);
    let all = &collected.performance.all;
    let compared = all.compared();
    let safe = deletion::with(collected, DeletionVerdict::Safe).len();
    let lines = [
        format!("Clients: {}.", findings.clients.summary()),
        match answered {
            0 => format!("Calls in the period: none; refused: {}.", calls.refused),
            _ => format!(
                "Calls in the period: {} of {answered} went the new way ({}); refused: {}.",
                calls.new,
                calls.share(),
                calls.refused
            ),
        },
        match compared {
            0 => "Calls compared: 0.".to_owned(),
            _ => {
                let failed = ["candidate-failed", "control-failed", "both-failed"];
                let failed: u64 = failed.iter().map(|verdict| all.verdict(verdict)).sum();
                format!(
                    "Calls compared: {compared}; {} equal, {} different, {failed} in which a side failed.",
                    share(all.verdict("match"), compared),
                    all.verdict("mismatch")
                )
            }
        },
        format!("Differences: {}.", findings.differences.summary()),
        format!(
            "Guard trips in the period: {}.",
            trips(collected, period).len()
        ),
        format!(
            "Errors since the start of the process: {} the old way, {} the new way.",
            errors(all.old),
            errors(all.new)
        ),
        format!(
            "Routes that may be deleted: {safe} of {}.",
            collected.usage.routes.len()
        ),
    ];
    lines.into_iter().map(Line::text).collect()
}

fn errors(of: Errors) -> String {
    let Errors { calls, errors } = of;
    match calls {
        0 => "no calls".to_owned(),
        _ => {
            let of = count(calls, "call");
            format!("{errors} of {of} ({})", share(errors, calls))
        }
    }
}

/// Returns the items that need attention now.
fn attention(collected: &Collected) -> Vec<Block> {
    let overview = &collected.overview;
    if overview.attention.is_empty() {
        return Vec::new();
    }
    let items = overview.attention.iter().map(|item| {
        let line = match &item.subject {
            Some(subject) => Line::code(subject).and(": "),
            None => Line::default(),
        };
        let line = line.and(&item.text);
        match &item.at {
            Some(at) => line.and(format!(" ({})", time(at))),
            None => line,
        }
    });
    let more = (overview.more > 0).then(|| Line::text(format!("and {} more", overview.more)));
    vec![
        Block::Heading("Needs attention now"),
        Block::List(items.chain(more).collect()),
    ]
}
