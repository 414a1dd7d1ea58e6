//! What the files under `deploy/` ask Prometheus for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;
use serde_json::Value;

use super::{read, root};

/// A dashboard of Grafana.
pub(super) struct Board {
    pub(super) json: Value,
}

impl Board {
    pub(super) fn title(&self) -> &str {
        self.json["title"].as_str().unwrap()
    }

    /// Its panels, without the rows that head them.
    pub(super) fn panels(&self) -> impl Iterator<Item = &Value> {
        let panels = self.json["panels"].as_array().unwrap().iter();
        panels.filter(|panel| panel["type"] != "row")
    }

    /// Every expression of its panels and annotations, with its place.
    pub(super) fn expressions(&self) -> Vec<(String, String)> {
        let marks = self.json["annotations"]["list"].as_array().unwrap();
        let marks = marks.iter().map(|mark| (&mark["name"], &mark["expr"]));
        let panels = self.panels().flat_map(|panel| {
            let targets = panel["targets"].as_array().unwrap();
            targets
                .iter()
                .map(|target| (&panel["title"], &target["expr"]))
        });
        let of = |(name, expression): (&Value, &Value)| {
            let place = format!("{}: {}", self.title(), name.as_str().unwrap());
            (place, expression.as_str().unwrap().to_owned())
        };
        marks.chain(panels).map(of).collect()
    }

    /// The names of its variables.
    pub(super) fn variables(&self) -> BTreeSet<String> {
        let variables = self.json["templating"]["list"].as_array().unwrap().iter();
        variables
            .map(|variable| variable["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The label whose values each variable asks for, and the metric that bears it.
    pub(super) fn asked_labels(&self) -> Vec<(String, String)> {
        let variables = self.json["templating"]["list"].as_array().unwrap().iter();
        let queries = variables.filter_map(|variable| variable["query"]["query"].as_str());
        let asked = queries.map(|query| {
            let inside = query.strip_prefix("label_values(").unwrap();
            let (metric, label) = inside.trim_end_matches(')').split_once(", ").unwrap();
            (metric.to_owned(), label.to_owned())
        });
        asked.collect()
    }
}

/// Every dashboard.
pub(super) fn boards() -> Vec<Board> {
    let files = fs::read_dir(root("deploy/grafana/dashboards")).unwrap();
    let boards: Vec<Board> = files
        .map(|file| Board {
            json: serde_json::from_str(&fs::read_to_string(file.unwrap().path()).unwrap()).unwrap(),
        })
        .collect();
    assert_eq!(boards.len(), 2);
    boards
}

#[derive(Deserialize)]
struct RuleFile {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

/// A recording rule or an alert.
#[derive(Deserialize)]
pub(super) struct Rule {
    pub(super) record: Option<String>,
    pub(super) alert: Option<String>,
    pub(super) expr: String,
    /// How long it holds before the alert fires.
    #[serde(default, rename = "for")]
    pub(super) lasting: Option<String>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

impl Rule {
    pub(super) fn name(&self) -> String {
        let name = self.record.as_ref().or(self.alert.as_ref());
        name.unwrap().clone()
    }
}

/// Every rule.
pub(super) fn rules() -> Vec<Rule> {
    let files = ["recording.rules.yml", "alerts.rules.yml"];
    let groups = files.iter().flat_map(|file| {
        let text = read(&format!("deploy/prometheus/{file}"));
        let file: RuleFile = serde_saphyr::from_str(&text).unwrap();
        file.groups
    });
    groups.flat_map(|group| group.rules).collect()
}

/// What stands in where there is nothing to count: it is data whatever happens.
pub(super) const NOTHING: &str = "vector(0)";

/// Everything that is to have data, with its place: the variables filled in, thresholds of alerts taken off.
pub(super) fn with_data() -> Vec<(String, String)> {
    let panels = boards().into_iter().flat_map(|board| board.expressions());
    let panels = panels.map(|(place, expression)| (place, filled_in(&expression)));
    let rules = rules().into_iter().map(|rule| {
        let expression = match rule.alert {
            Some(_) => without_threshold(&rule.expr),
            None => rule.expr.clone(),
        };
        (rule.name(), expression)
    });
    panels.chain(rules).collect()
}

fn filled_in(expression: &str) -> String {
    let values = [
        ("$__rate_interval", "5m"),
        ("$__range", "5m"),
        ("$job", "dualgauge"),
        ("$target", "rpc"),
        ("$client", ".*"),
        ("$route", ".*"),
        ("$instance", ".*"),
    ];
    let mut filled = expression.to_owned();
    for (variable, value) in values {
        filled = filled.replace(variable, value);
    }
    // Marks are there when something happens; what they look at is always there.
    let looks_at_changes = filled.starts_with("changes(") || filled.starts_with("increase(");
    match filled.strip_suffix(" > 0") {
        Some(looked_at) if looks_at_changes => looked_at.to_owned(),
        _ => filled,
    }
}

fn without_threshold(expression: &str) -> String {
    let (looked_at, _) = expression.trim_end().rsplit_once('\n').unwrap();
    looked_at.to_owned()
}
