//! Reports of fixed answers of the API.

use serde_json::{Value, json};

use super::compose::compose;
use super::data::{Collected, Since};
use super::html::html;
use super::markdown::markdown;

/// Answers with all kinds of content, and with names that look like markup.
const ANSWERS: &str = include_str!("tests.json");

fn collected(change: impl FnOnce(&mut Value)) -> Collected {
    let mut answers: Value = serde_json::from_str(ANSWERS).unwrap();
    change(&mut answers);
    serde_json::from_value(answers).unwrap()
}

fn week() -> Since {
    Since::parse("7d").unwrap()
}

#[test]
fn a_report_in_markdown() {
    insta::assert_snapshot!(markdown(&compose(&collected(|_| {}), week())));
}

#[test]
fn a_report_in_html() {
    let page = html(&compose(&collected(|_| {}), week()));
    for tag in [
        "<script", "<link", "<img", "<a ", "<i>", "<b>", "http://", "https://", "url(",
    ] {
        assert!(!page.contains(tag), "{tag}");
    }
    insta::assert_snapshot!(page);
}

#[test]
fn a_report_of_a_proxy_without_calls() {
    let silent = collected(|answers| {
        answers["usage"]["routes"] = json!([]);
        answers["overview"]["timeline"]["intervals"] = json!([]);
        answers["overview"]["attention"] = json!([]);
        answers["performance"]["items"] = json!([]);
        let verdicts = answers["performance"]["all"]["verdicts"]
            .as_object_mut()
            .unwrap();
        verdicts.values_mut().for_each(|count| *count = json!(0));
        answers["mismatches"] = json!({ "routes": [], "more": 0, "forgotten": [] });
        answers["history"] = json!([]);
        answers["plan"]["clients"] = json!([]);
    });
    insta::assert_snapshot!(markdown(&compose(&silent, week())));
}

#[test]
fn the_start_of_a_period_is_a_duration_or_a_time() {
    for (text, start) in [
        ("2d", "From 2026-11-20T06:00:00Z to 2026-11-22T06:00:00Z"),
        ("2026-11-21T12:00:00+02:00", "From 2026-11-21T10:00:00Z to"),
        // The future has no data.
        (
            "2027-01-01",
            "From 2026-11-22T06:00:00Z to 2026-11-22T06:00:00Z",
        ),
    ] {
        let since = Since::parse(text).unwrap();
        let report = markdown(&compose(&collected(|_| {}), since));
        assert!(report.contains(start), "{text}: {report}");
    }
    for wrong in ["", "7", "7w", "yesterday", "2026-11-21T12:00:00"] {
        assert!(Since::parse(wrong).is_err(), "{wrong}");
    }
}
