//! `[metrics]` Used by `decode`.

use figment::value::Value;

use crate::config::key::{Key, NamedValues, key, named_values, section};
use crate::config::kind::{other, whole};
use crate::config::raw::RawMetrics;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError};

/// A lower limit would not allow the histograms of one route with one client.
const LEAST: i64 = 1_000;
/// A page of more than a gigabyte is a typing error.
const MOST: i64 = 10_000_000;

section! {
    /// `[metrics]`
    pub(super) METRICS {
        /// Most series with names of routes, clients and flags; 100000 by default
        SERIES: Key<u64> = key("series", whole(LEAST, MOST));
        /// Labels to keep, by metric family; others are summed
        LABELS: NamedValues<Vec<String>> = named_values(
            "labels",
            other("list of strings", r#"{ "type": "array", "items": { "type": "string" } }"#, label_list),
        );
    }
}

pub(super) fn metrics(table: &mut Table<'_>) -> Option<RawMetrics> {
    let series = table.get(&SERIES);
    let labels = match table.shape(LABELS.name) {
        Shape::Absent => Some(Vec::new()),
        Shape::Table | Shape::Value => table.named_values(&LABELS),
    };
    Some(RawMetrics {
        series,
        labels: labels?,
    })
}

/// Decodes the labels that a family keeps.
fn label_list(found: RawValue<'_>) -> Result<Vec<String>, ValueError> {
    let Value::Array(_, items) = found.value else {
        return Err(ValueError::new(format!(
            "{} is not a list of labels; write the labels to keep, such as `[\"route\", \"side\"]`",
            found.describe()
        )));
    };
    let label = |item: &Value| match item.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(ValueError::new("an item of the list is not a string")),
    };
    items.iter().map(label).collect()
}
