//! The results of a replay as JUnit XML: one test case for each route and for each reason of skipped calls. A route
//! without a valid control is skipped.
//!
//! Used by `replay`.

use super::summary::{RouteSummary, Summary};
use super::text::{names, redacted_mark, redacted_share, verdicts};
use crate::cli::plural::{count, differ};

/// Renders the results.
pub(super) fn render(summary: &Summary) -> String {
    let (control, candidate) = names(summary.way);
    let failures = summary
        .routes
        .values()
        .filter(|route| route.different() > 0)
        .count();
    let tests = summary.routes.len() + summary.skipped.len();
    let unproven = summary.routes.values().filter(|route| !route.is_proven());
    let skipped = summary.skipped.len() + unproven.count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"dualgauge replay: {candidate} with {control}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n"
    );
    for (name, route) in &summary.routes {
        text.push_str(&test_case(name, route));
    }
    for ((reason, of), group) in &summary.skipped {
        text.push_str(&format!(
            "<testcase classname=\"dualgauge.replay.skipped\" name=\"{}\"><skipped message=\"{}\"/></testcase>\n",
            escaped(&format!("{reason} {of}")),
            count(group.calls, "call")
        ));
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

fn test_case(name: &str, route: &RouteSummary) -> String {
    let begin = format!(
        "<testcase classname=\"dualgauge.replay\" name=\"{}\"",
        escaped(name)
    );
    if !route.is_proven() {
        let failed = count(route.unproven(), "call");
        return format!("{begin}><skipped message=\"control of {failed} failed\"/></testcase>\n");
    }
    // A route that passes may still have placeholders, which hide differences, and calls that prove nothing.
    let output = match route.redacted.is_empty() && route.unproven() == 0 {
        true => String::new(),
        false => format!("<system-out>{}</system-out>", escaped(&verdicts(route))),
    };
    if route.different() == 0 {
        return match output.is_empty() {
            true => format!("{begin}/>\n"),
            false => format!("{begin}>{output}</testcase>\n"),
        };
    }
    let mut lines = Vec::new();
    for (field, found) in &route.fields {
        let kinds: Vec<&str> = found.kinds.keys().copied().collect();
        let first = found.samples.first();
        let first = first.map_or(String::new(), |first| {
            let mark = redacted_mark(first.is_redacted);
            format!(", first in call {}{mark}", first.place.number)
        });
        let calls = count(found.calls, "call");
        let redacted = redacted_share(found.redacted);
        lines.push(format!(
            "{field}: {calls}{redacted} ({}){first}",
            kinds.join(", ")
        ));
    }
    for failed in &route.failed {
        let cause = failed.cause.as_deref().unwrap_or("no cause known");
        lines.push(format!(
            "candidate of call {}{} failed: {cause}",
            failed.place.number,
            redacted_mark(failed.is_redacted)
        ));
    }
    format!(
        "{begin}><failure message=\"{} of {} {}\">{}</failure>{output}</testcase>\n",
        route.different(),
        count(route.calls(), "call"),
        differ(route.different()),
        escaped(&lines.join("\n"))
    )
}

/// Escapes a text for XML 1.0, which has no control characters but line feeds.
fn escaped(text: &str) -> String {
    let mut found = String::new();
    for c in text.chars() {
        match c {
            '&' => found.push_str("&amp;"),
            '<' => found.push_str("&lt;"),
            '>' => found.push_str("&gt;"),
            '"' => found.push_str("&quot;"),
            '\n' => found.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => found.push('\u{fffd}'),
            c => found.push(c),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_valid_xml() {
        assert_eq!(
            escaped("a<b>&\"\u{1}\nc"),
            "a&lt;b&gt;&amp;&quot;\u{fffd}\nc"
        );
    }
}
