//! The eras of MCP clients, and the verdict on the old one.

use super::*;
use crate::mcp::{CallEra, ClientInfo};

fn handshake() -> CallEra {
    CallEra::from_words("handshake", "2025-06-18").unwrap()
}

fn stateless() -> CallEra {
    CallEra::from_words("stateless", "2026-07-28").unwrap()
}

fn called(usage: &mut Usage, era: CallEra, name: &str, at: Timestamp) {
    usage.eras_mut().note("known", era, &seen(None, at).all());
    let info = ClientInfo::new(name, "1.0").unwrap();
    usage.eras_mut().note_name("known", era, &info, at);
}

fn reported(usage: &Usage) -> EraReport {
    let query = ReportQuery {
        route: Glob::new("*"),
        idle: 30 * DAY,
        at: now(),
    };
    report(&plan(Side::Rest), usage, &query).eras.unwrap()
}

#[test]
fn an_era_that_nobody_used_for_the_whole_time_can_be_switched_off() {
    let mut usage = watched(&plan(Side::Rest), 31 * DAY);
    called(&mut usage, stateless(), "new app", now());
    called(&mut usage, handshake(), "old app", ago(30 * DAY + 1));
    let report = reported(&usage);
    assert_eq!(report.verdict, EraVerdict::Unused);
    let rows = report.clients.iter();
    let rows: Vec<_> = rows
        .map(|row| {
            (
                &*row.client,
                &*row.era,
                &*row.revision,
                &*row.programs[0].name,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("known", "handshake", "2025-06-18", "old app"),
            ("known", "stateless", "2026-07-28", "new app"),
        ]
    );
}

#[test]
fn each_client_that_still_begins_with_a_handshake_is_a_reason() {
    let mut usage = watched(&plan(Side::Rest), 31 * DAY);
    for (name, at) in [("a", 4), ("b", 3), ("c", 2), ("d", 1), ("gone", 31 * DAY)] {
        called(&mut usage, handshake(), name, ago(at));
    }
    let report = reported(&usage);
    assert_eq!(report.verdict, EraVerdict::InUse);
    assert_eq!(report.reasons.len(), 1);
    let wanted = "`known` (d 1.0, c 1.0, b 1.0 and 1 more) called with a handshake (revision 2025-06-18), last 1 second ago";
    assert!(
        report.reasons[0].starts_with(wanted),
        "{:?}",
        report.reasons
    );
}

#[test]
fn too_short_a_time_gives_no_verdict() {
    let report = reported(&watched(&plan(Side::Rest), 29 * DAY));
    assert_eq!(report.verdict, EraVerdict::Unknown);
    assert_eq!(reported(&Usage::default()).verdict, EraVerdict::Unknown);
}

#[test]
fn a_replica_of_an_earlier_version_counts_no_eras_and_is_a_doubt() {
    let usage = watched(&plan(Side::Rest), 31 * DAY);
    let mut text: serde_json::Value = serde_json::from_str(&usage.to_json()).unwrap();
    text["watching"]["old"] = text["watching"]["one"].clone();
    let usage = Usage::from_json(&text.to_string()).unwrap();
    let report = reported(&usage);
    assert_eq!(report.verdict, EraVerdict::Unknown);
    assert_eq!(
        report.reasons,
        ["replica `old` counted calls without their eras, as earlier versions do"]
    );
    // A record of such a version as a whole.
    text.as_object_mut().unwrap().remove("eras");
    let usage = Usage::from_json(&text.to_string()).unwrap();
    assert_eq!(reported(&usage).verdict, EraVerdict::Unknown);
}

#[test]
fn a_replica_that_was_upgraded_longer_ago_than_the_time_is_no_doubt() {
    let mut usage = watched(&plan(Side::Rest), 31 * DAY);
    let mut text: serde_json::Value = serde_json::from_str(&usage.to_json()).unwrap();
    let earlier = serde_json::to_value(ago(300 * DAY)).unwrap();
    text["watching"]["one"]["intervals"][0]["from"] = earlier;
    usage = Usage::from_json(&text.to_string()).unwrap();
    assert_eq!(reported(&usage).verdict, EraVerdict::Unused);
}

#[test]
fn names_are_bounded_and_the_counts_stay_whole() {
    let mut usage = watched(&plan(Side::Rest), 31 * DAY);
    for number in 0..200_u64 {
        called(
            &mut usage,
            handshake(),
            &format!("app {number}"),
            ago(1_000 - number),
        );
    }
    let report = reported(&usage);
    assert_eq!(
        (report.clients[0].calls, report.clients[0].programs.len()),
        (200, 64)
    );
    assert_eq!(report.clients[0].programs[0].name, "app 199");
}

#[test]
fn calls_of_a_removed_client_count_as_other() {
    let mut usage = watched(&plan(Side::Rest), 31 * DAY);
    called(&mut usage, handshake(), "app", now());
    usage
        .eras_mut()
        .note("removed", handshake(), &seen(None, now()).all());
    usage.keep(&plan(Side::Rest));
    let report = reported(&usage);
    let clients: Vec<_> = report.clients.iter().map(|row| &*row.client).collect();
    assert_eq!(clients, ["known", "other"]);
}
