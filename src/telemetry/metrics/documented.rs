//! `docs/reference/metrics.md` has one row for each family that is rendered, and no other row.

use std::collections::BTreeSet;

use prometheus::proto::MetricType;

use super::family::{self, Family};
use super::tests::{page, two_workers};

const PAGE: &str = include_str!("../../../docs/reference/metrics.md");

/// What a value of 1 may stand for.
const UNITS: [&str; 31] = [
    "address",
    "byte",
    "call",
    "candidate",
    "connection",
    "ejection",
    "event",
    "failure",
    "field",
    "file descriptor",
    "flag",
    "line",
    "login",
    "member",
    "message",
    "opening",
    "percent",
    "reload",
    "recording",
    "request",
    "second",
    "second since 1970",
    "series",
    "session",
    "span",
    "start",
    "subscription",
    "token",
    "trip",
    "yes",
    "yes or no",
];

/// The cells of each row of the table of families.
fn rows() -> Vec<Vec<&'static str>> {
    let rows = PAGE.lines().filter(|line| {
        ["| `dualgauge_", "| `process_"]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let cells = |row: &'static str| {
        let row = row.trim_start_matches("| ").trim_end_matches(" |");
        row.split(" | ").map(str::trim).collect()
    };
    rows.map(cells).collect()
}

fn kind(family: &Family) -> &'static str {
    if family.kind == MetricType::COUNTER {
        "counter"
    } else if family.kind == MetricType::HISTOGRAM {
        "histogram"
    } else {
        "gauge"
    }
}

#[test]
fn the_table_has_every_family_as_it_is_and_no_other() {
    let found: Vec<_> = rows()
        .into_iter()
        .map(|row| {
            let [name, kind, labels, _, meaning] = row[..] else {
                panic!("five cells in {row:?}");
            };
            [name, kind, labels, meaning].map(str::to_owned)
        })
        .collect();
    let wanted: Vec<_> = family::ALL
        .iter()
        .map(|family| {
            [
                format!("`{}`", family.name),
                kind(family).to_owned(),
                family.labels.join(", "),
                family.help.to_owned(),
            ]
        })
        .collect();
    let row = |[name, kind, labels, meaning]: &[String; 4]| {
        format!("| {name} | {kind} | {labels} | … | {meaning} |")
    };
    for cells in &wanted {
        assert!(
            found.contains(cells),
            "docs/reference/metrics.md lacks {}",
            row(cells)
        );
    }
    for cells in &found {
        assert!(wanted.contains(cells), "there is no {}", row(cells));
    }
    assert_eq!(found.len(), wanted.len(), "a row is there twice");
}

#[test]
fn the_table_has_every_family_of_a_page_and_no_other() {
    let (names, snapshots) = two_workers();
    let page = page(&names, &snapshots);
    let rendered: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(str::to_owned)
        .collect();
    let documented: BTreeSet<String> = rows()
        .iter()
        .map(|row| format!("{} {}", row[0].trim_matches('`'), row[1]))
        .collect();
    assert_eq!(documented, rendered);
}

#[test]
fn units_are_of_a_closed_list_and_what_the_names_say() {
    for row in rows() {
        let (name, unit) = (row[0].trim_matches('`'), row[3]);
        assert!(UNITS.contains(&unit), "{name}: {unit}");
        let expected =
            if name.ends_with("_timestamp_seconds") || name.ends_with("_start_time_seconds") {
                "second since 1970"
            } else if name.ends_with("_seconds") {
                "second"
            } else if name.ends_with("_percent") {
                "percent"
            } else {
                continue;
            };
        assert_eq!(unit, expected, "{name}");
    }
}

/// `dualgauge_<noun>_<unit|total>`: counters, and only they, end in `total`. What every program has is called as in
/// every program.
#[test]
fn names_follow_the_rule() {
    let gauge_ends = [
        "_connections",
        "_in_flight",
        "_seconds",
        "_percent",
        "_info",
        "_tripped",
        "_ruling",
        "_switch",
        "_up",
        "_limit",
        "_series",
        "_overflow",
        "_fields",
        "_flags",
        "_remembered",
        "_left_out",
        "_open",
        "_bytes",
        "_fds",
    ];
    for family in family::ALL {
        let name = family.name;
        let ours = name.starts_with("dualgauge_");
        assert!(ours || name.starts_with("process_"), "{name}");
        assert!(
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
            "{name}"
        );
        assert_eq!(
            name.ends_with("_total"),
            family.kind == MetricType::COUNTER,
            "{name}"
        );
        if family.kind == MetricType::HISTOGRAM {
            assert!(name.ends_with("_seconds"), "{name}");
        }
        if family.kind == MetricType::GAUGE {
            assert!(gauge_ends.iter().any(|end| name.ends_with(end)), "{name}");
        }
        assert!(family.help.ends_with('.'), "{name}");
    }
}
