//! The unit tests of the alerts: each alert has one that fires and one that does not. That they pass is promtool's to say.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::expressions::{Rule, rules};
use super::{names, root};

#[derive(Deserialize)]
struct UnitFile {
    tests: Vec<Unit>,
}

/// Series as they grow, and what the alerts say to them.
#[derive(Deserialize)]
struct Unit {
    name: String,
    input_series: Vec<Input>,
    #[serde(default)]
    alert_rule_test: Vec<Expected>,
}

#[derive(Deserialize)]
struct Input {
    series: String,
}

#[derive(Deserialize)]
struct Expected {
    eval_time: String,
    alertname: String,
    #[serde(default)]
    exp_alerts: Vec<IgnoredAny>,
}

/// Every unit test, of whichever file.
fn units() -> Vec<Unit> {
    let files = fs::read_dir(root("deploy/prometheus")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let paths = paths.filter(|path| path.to_string_lossy().ends_with(".test.yml"));
    let units = paths.flat_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let file: UnitFile = serde_saphyr::from_str(&text).unwrap();
        file.tests
    });
    units.collect()
}

/// As Prometheus writes it, of one unit.
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        unit => panic!("{text}: the unit {unit}"),
    };
    Duration::from_secs(number.parse::<u64>().unwrap() * seconds)
}

/// The metrics that an expression looks at, those behind recorded series among them.
fn metrics(expression: &str, recorded: &[Rule]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let selected = |name: &str| expression.contains(&format!("{name}{{"));
    found.extend(selected("up").then(|| "up".to_owned()));
    for name in names(expression) {
        let rule = recorded
            .iter()
            .find(|rule| rule.record.as_deref() == Some(name));
        match rule {
            Some(rule) => found.extend(metrics(&rule.expr, recorded)),
            None => {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

impl Unit {
    /// Whether it has a series of one of these metrics.
    fn has_one_of(&self, metrics: &BTreeSet<String>) -> bool {
        let of = |input: &Input| input.series.split('{').next().unwrap().to_owned();
        self.input_series
            .iter()
            .any(|input| metrics.contains(&of(input)))
    }
}

#[test]
fn every_alert_has_a_unit_test_that_fires_and_one_with_data_that_stays_silent() {
    let rules = rules();
    let units = units();
    let mut lacking = Vec::new();
    for rule in &rules {
        let Some(alert) = &rule.alert else { continue };
        let metrics = metrics(&rule.expr, &rules);
        let lasting = duration(rule.lasting.as_deref().unwrap());
        let (mut fires, mut silent) = (false, false);
        for unit in units.iter().filter(|unit| unit.has_one_of(&metrics)) {
            let of_it = unit
                .alert_rule_test
                .iter()
                .filter(|test| test.alertname == *alert);
            for test in of_it {
                fires |= !test.exp_alerts.is_empty();
                // Before that it is silent whatever the data.
                silent |= test.exp_alerts.is_empty() && duration(&test.eval_time) > lasting;
            }
        }
        if !fires {
            lacking.push(format!("{alert} fires in no unit test"));
        }
        if !silent {
            lacking.push(format!("{alert} stays silent over data in no unit test"));
        }
    }
    assert_eq!(lacking, Vec::<String>::new());
}

#[test]
fn every_unit_test_is_of_an_alert_that_there_is() {
    let known: BTreeSet<_> = rules().into_iter().filter_map(|rule| rule.alert).collect();
    for unit in units() {
        for test in &unit.alert_rule_test {
            assert!(
                known.contains(&test.alertname),
                "{}: there is no {}",
                unit.name,
                test.alertname
            );
        }
    }
}
