use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::telemetry::metrics::labels::{CallLabels, LabelNames};
use crate::telemetry::metrics::shard::{Shard, Timing};
use crate::telemetry::metrics::tests::{page_with, process};
use crate::telemetry::metrics::{GlobalMetrics, render};

fn rules(limit: u64, labels: &[(&str, &[&str])]) -> SeriesRules {
    let labels = labels.iter().map(|(family, enabled)| {
        let enabled = enabled.iter().map(|label| (*label).to_owned());
        ((*family).to_owned(), enabled.collect())
    });
    SeriesRules {
        limit,
        labels: labels.collect(),
    }
}

/// Records one call for each pair of a route and a client.
fn calls(names: &LabelNames, shard: &mut Shard, routes: usize, clients: usize) {
    for route in 0..routes {
        for client in 0..clients {
            let labels = CallLabels {
                route: names.intern(&format!("route-{route}")),
                client: names.intern(&format!("client-{client}")),
                side: Side::Rest,
                stage: Some(Stage::Passthrough),
                outcome: Outcome::Success,
                blame: None,
            };
            let took = Duration::from_millis(3);
            let timing = Timing {
                total: took,
                upstream: Some(took),
                head: took,
            };
            shard.record(labels, timing, None);
            shard.seen(labels, None, Timestamp::from_unix(1_800_000_000));
        }
    }
}

/// The values of a family, by its labels.
fn values(page: &str, family: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let labels = series.strip_prefix(family)?;
        (labels.is_empty() || labels.starts_with('{'))
            .then(|| (labels.to_owned(), value.parse().unwrap()))
    });
    lines.collect()
}

#[test]
fn the_configuration_knows_exactly_the_limited_families() {
    let bounded = BOUNDED.map(|family| (family.name, family.labels));
    assert_eq!(bounded, dualgauge_model::series::FAMILIES);
}

#[test]
fn pairs_beyond_the_limit_are_counted_together() {
    let (names, mut shard) = (LabelNames::new(), Shard::new());
    calls(&names, &mut shard, 200, 400);
    let snapshots = [shard.snapshot()];
    let mut shown = ShownSeries::default();
    let page = page_with(&names, &snapshots, &rules(10_000, &[]), &mut shown);
    assert!(page.lines().count() < 11_000, "{}", page.lines().count());
    assert!(page.len() < 3_000_000, "{}", page.len());
    let counted = values(&page, "dualgauge_calls_total");
    assert_eq!(counted.values().sum::<f64>(), 80_000.0);
    let overflow = r#"{route="overflow",client="overflow",side="rest",stage="passthrough",outcome="success",blame="none"}"#;
    assert!(counted[overflow] > 70_000.0, "{}", counted[overflow]);
    let durations = values(&page, "dualgauge_call_duration_seconds_count");
    assert_eq!(durations.values().sum::<f64>(), 80_000.0);
    let over = values(&page, "dualgauge_metrics_series_overflow")[""];
    assert!(over > 80_000.0 && over == shown.over() as f64, "{over}");
    assert!(values(&page, "dualgauge_metrics_series")[""] <= 10_000.0);
}

#[test]
fn new_series_neither_lower_nor_remove_others() {
    let (names, mut shard) = (LabelNames::new(), Shard::new());
    let (rules, mut shown) = (rules(1_000, &[]), ShownSeries::default());
    let mut before = BTreeMap::new();
    for clients in [1, 5, 50, 50] {
        calls(&names, &mut shard, 30, clients);
        let page = page_with(&names, &[shard.snapshot()], &rules, &mut shown);
        let now = values(&page, "dualgauge_calls_total");
        for (labels, count) in &before {
            assert!(now.get(labels).is_some_and(|now| now >= count), "{labels}");
        }
        before = now;
    }
    assert!(shown.over() > 0);
}

#[test]
fn histograms_leave_part_of_the_limit_to_counters() {
    let (names, mut shard) = (LabelNames::new(), Shard::new());
    let (rules, mut shown) = (rules(1_000, &[]), ShownSeries::default());
    // 40 pairs would fill the limit with their histograms alone.
    calls(&names, &mut shard, 2, 20);
    let _ = page_with(&names, &[shard.snapshot()], &rules, &mut shown);
    calls(&names, &mut shard, 4, 20);
    let page = page_with(&names, &[shard.snapshot()], &rules, &mut shown);
    let counted = values(&page, "dualgauge_calls_total");
    assert_eq!(counted.len(), 80, "{counted:?}");
    let durations = values(&page, "dualgauge_call_duration_seconds_count");
    // 41 histograms have 738 lines: 40 of calls, 1 of upstreams.
    assert_eq!(durations.len(), 40 + 1, "{durations:?}");
}

#[test]
fn a_disabled_label_is_summed_over() {
    let (names, mut shard) = (LabelNames::new(), Shard::new());
    calls(&names, &mut shard, 3, 4);
    let enabled: &[&str] = &["route", "side"];
    let rules = rules(
        1_000,
        &[
            ("dualgauge_call_duration_seconds", enabled),
            ("dualgauge_last_seen_timestamp_seconds", &["side"]),
        ],
    );
    let page = page_with(
        &names,
        &[shard.snapshot()],
        &rules,
        &mut ShownSeries::default(),
    );
    let durations = values(&page, "dualgauge_call_duration_seconds_count");
    let wanted = (0..3).map(|route| (format!(r#"{{route="route-{route}",side="rest"}}"#), 4.0));
    assert_eq!(durations, wanted.collect());
    let last = values(&page, "dualgauge_last_seen_timestamp_seconds");
    let wanted = (r#"{side="rest"}"#.to_owned(), 1_800_000_000.0);
    assert_eq!(last, BTreeMap::from([wanted]));
    assert_eq!(values(&page, "dualgauge_calls_total").len(), 12);
}

#[test]
fn a_call_was_last_seen_no_later_than_now() {
    let (names, mut shard) = (LabelNames::new(), Shard::new());
    calls(&names, &mut shard, 1, 1);
    let now = UNIX_EPOCH + Duration::from_secs(1_799_999_000);
    let process = GlobalMetrics { now, ..process() };
    let rules = rules(1_000, &[]);
    let snapshots = [shard.snapshot()];
    let page = render(
        &names,
        &snapshots,
        &process,
        &rules,
        &mut ShownSeries::default(),
    );
    let last = values(&page, "dualgauge_last_seen_timestamp_seconds");
    assert_eq!(last.into_values().collect::<Vec<_>>(), [1_799_999_000.0]);
}

#[test]
fn changed_rules_clear_the_series() {
    let (names, mut shard) = (LabelNames::new(), Shard::new());
    calls(&names, &mut shard, 10, 100);
    let snapshots = [shard.snapshot()];
    let mut shown = ShownSeries::default();
    let _ = page_with(&names, &snapshots, &rules(1_000, &[]), &mut shown);
    assert!(shown.over() > 0);
    let _ = page_with(&names, &snapshots, &rules(1_000_000, &[]), &mut shown);
    assert_eq!(shown.over(), 0);
}

#[test]
fn a_histogram_has_as_many_lines_as_it_counts_for() {
    let (names, mut shard) = (LabelNames::new(), Shard::new());
    calls(&names, &mut shard, 1, 1);
    let mut shown = ShownSeries::default();
    let page = page_with(&names, &[shard.snapshot()], &rules(1_000, &[]), &mut shown);
    let found = page.lines();
    let found = found.filter(|line| line.starts_with("dualgauge_call_duration_seconds"));
    assert_eq!(found.count() as u64, LINES);
}
