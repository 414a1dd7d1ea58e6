//! The families labelled with configured names, within the limit on their series. Used by `metrics::render`.

use std::collections::BTreeMap;

use prometheus::proto;

use super::call_counts::CallCounts;
use super::family::{self, Family};
use super::global::GlobalMetrics;
use super::histogram::Histogram;
use super::labels::{CallLabels, LabelId, NONE, RenderedTexts};
use super::protobuf::{counter, gauge, histogram, metric_family};
use super::series::{Earliest, Latest, ShownSeries};
use super::shard::{ShardCounts, Snapshot};
use crate::telemetry::clock::timestamp;
use dualgauge_model::failure::Blame;
use dualgauge_model::rollout::Stage;

/// Returns these families. Counters and gauges come first, because they are small and say more than histograms.
pub(super) fn families(
    texts: &RenderedTexts,
    sum: &Snapshot,
    process: &GlobalMetrics,
    shown: &mut ShownSeries,
) -> Vec<proto::MetricFamily> {
    let counts = &sum.counts;
    let mut families = vec![calls(texts, counts, shown)];
    families.extend(decisions(texts, counts, shown));
    families.extend(candidates(texts, counts, shown));
    families.extend(members_and_events(texts, counts, shown));
    families.extend(usage(texts, sum, process, shown));
    families.extend(eras(texts, sum, process, shown));
    families.extend(durations(texts, counts, shown));
    families
}

fn counters<const N: usize>(
    family: &Family,
    table: BTreeMap<[&str; N], u64>,
) -> proto::MetricFamily {
    let series = table.into_iter();
    let series = series.map(|(labels, count)| counter(family, &labels, count));
    metric_family(family, series.collect())
}

fn histograms<const N: usize>(
    family: &Family,
    table: BTreeMap<[&str; N], Histogram>,
) -> proto::MetricFamily {
    let series = table.into_iter();
    let series = series.map(|(labels, counts)| histogram(family, &labels, &counts));
    metric_family(family, series.collect())
}

fn calls(
    texts: &RenderedTexts,
    counts: &ShardCounts,
    shown: &mut ShownSeries,
) -> proto::MetricFamily {
    let rows = counts.calls.iter().map(|(labels, call)| {
        let [route, client, side, stage, outcome] = call_labels(texts, labels);
        let blame = labels.blame.map_or(NONE, Blame::as_str);
        let labels = [route, client, side, stage, outcome, blame];
        (labels, call.duration.count())
    });
    counters(&family::CALLS, shown.table(&family::CALLS, rows))
}

/// Returns the durations, which are not labelled with the party at fault.
fn durations(
    texts: &RenderedTexts,
    counts: &ShardCounts,
    shown: &mut ShownSeries,
) -> Vec<proto::MetricFamily> {
    let mut call_family = |family, histogram_of: fn(&CallCounts) -> &Histogram| {
        let rows = counts.calls.iter();
        let rows = rows.map(|(labels, call)| (call_labels(texts, labels), histogram_of(call)));
        let rows = rows.filter(|(_, durations)| durations.count() > 0);
        let rows = rows.map(|(labels, durations)| (labels, durations.clone()));
        histograms(family, shown.table(family, rows))
    };
    let mut families = vec![
        call_family(&family::CALL_DURATION, |call| &call.duration),
        call_family(&family::UPSTREAM_DURATION, |call| &call.upstream),
    ];
    let rows = counts.candidates.iter();
    let rows = rows.map(|((route, side, stage), durations)| {
        let labels = [texts.text(*route), side.as_str(), stage.as_str()];
        (labels, durations.clone())
    });
    let family = &family::CANDIDATE_DURATION;
    families.push(histograms(family, shown.table(family, rows)));
    families
}

fn members_and_events(
    texts: &RenderedTexts,
    counts: &ShardCounts,
    shown: &mut ShownSeries,
) -> Vec<proto::MetricFamily> {
    let dropped = counts.dropped.iter();
    let dropped = dropped.map(|(route, members)| ([texts.text(*route)], *members));
    let events = counts.events.iter().map(|((route, side, kind), count)| {
        let labels = [texts.text(*route), side.as_str(), kind.as_str()];
        (labels, *count)
    });
    let old = counts.old_messages.iter();
    let old = old.map(|((route, transport), count)| {
        let labels = [texts.text(*route), transport.as_str()];
        (labels, *count)
    });
    vec![
        counters(
            &family::DROPPED_MEMBERS,
            shown.table(&family::DROPPED_MEMBERS, dropped),
        ),
        counters(&family::EVENTS, shown.table(&family::EVENTS, events)),
        counters(
            &family::OLD_MESSAGES,
            shown.table(&family::OLD_MESSAGES, old),
        ),
    ]
}

fn decisions(
    texts: &RenderedTexts,
    counts: &ShardCounts,
    shown: &mut ShownSeries,
) -> Vec<proto::MetricFamily> {
    let decisions = counts.decisions.iter().map(|(labels, count)| {
        let labels = [
            texts.text(labels.client),
            labels.side.as_str(),
            labels.by.as_str(),
            texts.text(labels.flag),
        ];
        (labels, *count)
    });
    let keyless = counts.keyless.iter();
    let keyless = keyless.map(|(flag, count)| ([texts.text(*flag)], *count));
    vec![
        counters(
            &family::DECISIONS,
            shown.table(&family::DECISIONS, decisions),
        ),
        counters(
            &family::KEYLESS_CALLS,
            shown.table(&family::KEYLESS_CALLS, keyless),
        ),
    ]
}

fn candidates(
    texts: &RenderedTexts,
    counts: &ShardCounts,
    shown: &mut ShownSeries,
) -> Vec<proto::MetricFamily> {
    let verdicts = counts.verdicts.iter().map(|(labels, count)| {
        let labels = [
            texts.text(labels.route),
            texts.text(labels.client),
            labels.side.as_str(),
            labels.stage.as_str(),
            labels.verdict,
        ];
        (labels, *count)
    });
    let skipped = counts.skipped.iter();
    let skipped = skipped.map(|((route, why), count)| ([texts.text(*route), why.as_str()], *count));
    let failed = counts.failed_candidates.iter();
    let failed =
        failed.map(|((route, reason), count)| ([texts.text(*route), reason.row().label], *count));
    vec![
        counters(&family::VERDICTS, shown.table(&family::VERDICTS, verdicts)),
        counters(
            &family::CANDIDATES_SKIPPED,
            shown.table(&family::CANDIDATES_SKIPPED, skipped),
        ),
        counters(
            &family::CANDIDATES_FAILED,
            shown.table(&family::CANDIDATES_FAILED, failed),
        ),
    ]
}

fn usage(
    texts: &RenderedTexts,
    sum: &Snapshot,
    process: &GlobalMetrics,
    shown: &mut ShownSeries,
) -> Vec<proto::MetricFamily> {
    let mut fields: BTreeMap<LabelId, u64> = BTreeMap::new();
    for (route, _) in sum.mismatching.iter() {
        *fields.entry(*route).or_default() += 1;
    }
    let fields = fields.into_iter();
    let fields = fields.map(|(route, fields)| ([texts.text(route)], fields));
    let fields = shown.table(&family::MISMATCHING_FIELDS, fields);
    let fields = fields.into_iter();
    let fields =
        fields.map(|(labels, count)| gauge(&family::MISMATCHING_FIELDS, &labels, count as f64));
    let seen = sum.counts.seen.iter().filter_map(|(caller, seen)| {
        let (route, client, side) = *caller;
        let labels = [texts.text(route), texts.text(client), side.as_str()];
        Some((labels, Latest(seen.all().last?)))
    });
    let seen = shown.table(&family::LAST_SEEN, seen).into_iter();
    let now = timestamp(process.now);
    let seen = seen.map(|(labels, Latest(at))| {
        let at = at.min(now);
        gauge(&family::LAST_SEEN, &labels, at.unix() as f64)
    });
    let sunsets = process.sunsets.iter().map(|sunset| {
        let labels = [sunset.route.as_str(), sunset.side.as_str()];
        (labels, Earliest(sunset.at))
    });
    let sunsets = shown.table(&family::SUNSET, sunsets).into_iter();
    let sunsets =
        sunsets.map(|(labels, Earliest(at))| gauge(&family::SUNSET, &labels, at.unix() as f64));
    let unrouted = sum.counts.unrouted.prefixes.iter();
    let unrouted = unrouted.map(|(prefix, count)| ([texts.text(*prefix)], count.calls));
    let paths = &sum.counts.unrouted.paths;
    let entries = gauge(
        &family::UNROUTED_REMEMBERED,
        &[],
        paths.entry_count() as f64,
    );
    let left_out = counter(&family::UNROUTED_LEFT_OUT, &[], paths.left_out());
    vec![
        metric_family(&family::UNROUTED_REMEMBERED, vec![entries]),
        metric_family(&family::UNROUTED_LEFT_OUT, vec![left_out]),
        metric_family(&family::MISMATCHING_FIELDS, fields.collect()),
        metric_family(&family::LAST_SEEN, seen.collect()),
        metric_family(&family::SUNSET, sunsets.collect()),
        counters(
            &family::UNROUTED_CALLS,
            shown.table(&family::UNROUTED_CALLS, unrouted),
        ),
    ]
}

/// Returns the calls of MCP clients by era.
fn eras(
    texts: &RenderedTexts,
    sum: &Snapshot,
    process: &GlobalMetrics,
    shown: &mut ShownSeries,
) -> Vec<proto::MetricFamily> {
    let counts = sum.counts.mcp.eras.iter();
    let calls = counts.clone().map(|((client, era), count)| {
        let labels = [texts.text(*client), era.era().as_str(), era.revision()];
        (labels, count.calls)
    });
    let last = counts.filter_map(|((client, era), count)| {
        let labels = [texts.text(*client), era.era().as_str()];
        Some((labels, Latest(count.last?)))
    });
    let now = timestamp(process.now);
    let calls = counters(&family::MCP_CALLS, shown.table(&family::MCP_CALLS, calls));
    let last = shown.table(&family::MCP_LAST_SEEN, last).into_iter();
    let last = last.map(|(labels, Latest(at))| {
        let at = at.min(now);
        gauge(&family::MCP_LAST_SEEN, &labels, at.unix() as f64)
    });
    let last = metric_family(&family::MCP_LAST_SEEN, last.collect());
    vec![calls, last]
}

fn call_labels<'a>(texts: &'a RenderedTexts, labels: &CallLabels) -> [&'a str; 5] {
    [
        texts.text(labels.route),
        texts.text(labels.client),
        labels.side.as_str(),
        labels.stage.map_or(NONE, Stage::as_str),
        labels.outcome.as_str(),
    ]
}
