//! Families and series as the types of the Prometheus library, which encodes them. Used by `metrics`.

use prometheus::proto;

use super::family::Family;
use super::histogram::Histogram;

/// Creates a family with its series.
pub(super) fn metric_family(family: &Family, series: Vec<proto::Metric>) -> proto::MetricFamily {
    let mut rendered = proto::MetricFamily::default();
    rendered.set_name(family.name.to_owned());
    rendered.set_help(family.help.to_owned());
    rendered.set_field_type(family.kind);
    rendered.set_metric(series);
    rendered
}

/// Creates a counter. `labels` are the values of the labels of `family`, in their order.
pub(super) fn counter(family: &Family, labels: &[&str], value: u64) -> proto::Metric {
    let mut count = proto::Counter::default();
    count.set_value(value as f64);
    let mut metric = labelled(family, labels);
    metric.set_counter(count);
    metric
}

/// Creates a gauge.
pub(super) fn gauge(family: &Family, labels: &[&str], value: f64) -> proto::Metric {
    let mut level = proto::Gauge::default();
    level.set_value(value);
    let mut metric = labelled(family, labels);
    metric.set_gauge(level);
    metric
}

/// Creates a histogram.
pub(super) fn histogram(family: &Family, labels: &[&str], counts: &Histogram) -> proto::Metric {
    let buckets = counts.cumulative().map(|(bound, under)| {
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(under);
        bucket
    });
    let mut rendered = proto::Histogram::default();
    rendered.set_bucket(buckets.collect());
    rendered.set_sample_count(counts.count());
    rendered.set_sample_sum(counts.seconds());
    let mut metric = labelled(family, labels);
    metric.set_histogram(rendered);
    metric
}

/// Creates a metric with its labels. Empty values are omitted, which Prometheus treats as equal.
fn labelled(family: &Family, values: &[&str]) -> proto::Metric {
    debug_assert_eq!(family.labels.len(), values.len());
    let pairs = family.labels.iter().zip(values);
    let pairs = pairs.filter(|(_, value)| !value.is_empty());
    let pairs = pairs.map(|(label, value)| {
        let mut pair = proto::LabelPair::default();
        pair.set_name((*label).to_owned());
        pair.set_value((*value).to_owned());
        pair
    });
    proto::Metric::from_label(pairs.collect())
}
