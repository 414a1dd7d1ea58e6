//! Times that people write and read, and moments that a clock which was ahead has noted.

use super::*;

#[test]
fn a_report_has_no_time_after_the_clock_was_set_back() {
    let plan = plan(Side::Rest);
    let ahead = Timestamp::from_unix(now().unix() + 40 * DAY as i64);
    let mut usage = Usage::default();
    usage.note_routes(plan.routes.routes(), ahead);
    usage.note_observed("one", ago(31 * DAY), ahead);
    usage.note_observed("two", ahead, ahead);
    usage.note(
        "items.read",
        "known",
        Side::Rest,
        &seen(Some(Way::Old), ahead),
    );
    usage.note_unrouted("/api/items", &seen(None, ahead).all());
    let question = ReportQuery {
        route: Glob::new("*"),
        idle: 30 * DAY,
        at: now(),
    };
    let report = report(&plan, &usage, &question);
    let route = &report.routes[0];
    // A call without a time counts as one of now.
    assert_eq!(route.verdict, DeletionVerdict::NotYet);
    assert_eq!(route.callers[0].old.last, Some(now().to_string()));
    let unrouted = route.evidence.unrouted.as_ref().unwrap();
    assert_eq!(unrouted.last, Some(now().to_string()));
    let announced = serde_json::to_string(&report).unwrap();
    assert!(!announced.contains(&ahead.to_string()), "{announced}");
}

#[test]
fn times_are_parsed_and_formatted() {
    for (text, seconds) in [
        ("30d", Some(30 * DAY)),
        ("1s", Some(1)),
        ("3650d", Some(3_650 * DAY)),
        ("3651d", None),
        ("0d", None),
        ("", None),
        ("d", None),
        ("30", None),
        ("-1d", None),
        ("+1d", None),
        ("1ä", None),
        ("99999999999999999999d", None),
    ] {
        assert_eq!(parse_idle(text), seconds, "{text}");
    }
    for (seconds, text) in [
        (0, "0 seconds"),
        (60, "1 minute"),
        (7_199, "1 hour"),
        (DAY * 2, "2 days"),
    ] {
        assert_eq!(span(seconds), text);
    }
}
