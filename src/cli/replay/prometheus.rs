//! The results of a replay as Prometheus metrics, for a textfile collector or a push gateway. Used by `replay`.
//!
//! The labels are bounded: routes are those of the configuration; verdicts, conclusions and reasons are fixed words.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::summary::{Conclusion, Summary};

/// Renders the results.
pub(super) fn render(summary: &Summary) -> String {
    let mut text = String::new();
    head(&mut text, "calls", "Replayed calls by route and verdict.");
    for (route, results) in &summary.routes {
        for (verdict, calls) in &results.verdicts {
            let route = escaped(route);
            let labels = format!("route=\"{route}\",verdict=\"{verdict}\"");
            let _ = writeln!(text, "dualgauge_replay_calls{{{labels}}} {calls}");
        }
    }
    let what = "Calls that differ, or that fail on the side they are sent to.";
    head(&mut text, "different_calls", what);
    for (route, results) in &summary.routes {
        let (route, calls) = (escaped(route), results.different());
        let _ = writeln!(
            text,
            "dualgauge_replay_different_calls{{route=\"{route}\"}} {calls}"
        );
    }
    head(&mut text, "skipped_calls", "Skipped calls by reason.");
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for ((reason, _), group) in &summary.skipped {
        *reasons.entry(reason).or_default() += group.calls;
    }
    for (reason, calls) in reasons {
        let _ = writeln!(
            text,
            "dualgauge_replay_skipped_calls{{reason=\"{reason}\"}} {calls}"
        );
    }
    head(
        &mut text,
        "conclusion",
        "1 for the conclusion of the replay.",
    );
    for conclusion in Conclusion::ALL {
        let value = u8::from(conclusion == summary.conclusion());
        let word = conclusion.as_str();
        let _ = writeln!(
            text,
            "dualgauge_replay_conclusion{{conclusion=\"{word}\"}} {value}"
        );
    }
    text
}

fn head(text: &mut String, name: &str, what: &str) {
    // Writing to a string never fails.
    let _ = writeln!(text, "# HELP dualgauge_replay_{name} {what}");
    let _ = writeln!(text, "# TYPE dualgauge_replay_{name} gauge");
}

/// Escapes a label value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
