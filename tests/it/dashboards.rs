//! Dashboards, rules and alerts under `deploy/`: that they are whole and name what there is, and that a real Prometheus
//! gets data for every expression in them.

mod expressions;
mod prometheus;
mod town;
mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use expressions::{Board, Rule, boards, rules};

/// A path of the repository.
fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words of a text that can be names of metrics or of recorded series.
fn names(expression: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = expression.split(|c| !is_name(c));
    let ours = |word: &&str| word.contains("dualgauge_") || word.starts_with("process_");
    words.filter(ours).collect()
}

/// The families of `docs/reference/metrics.md`, with the series of histograms.
fn series() -> BTreeSet<String> {
    let page = read("docs/reference/metrics.md");
    let rows = page.lines().filter(|line| {
        ["| `dualgauge_", "| `process_"]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let mut series = BTreeSet::new();
    for row in rows {
        let mut cells = row.trim_start_matches("| `").split("` | ");
        let name = cells.next().unwrap();
        if cells.next().unwrap().starts_with("histogram") {
            series.extend(["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")));
        } else {
            series.insert(name.to_owned());
        }
    }
    series
}

/// What GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    kept.filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| {
            if c == ' ' {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// A link to a page of the repository leads to a heading that is there.
fn expect_page(link: &str) {
    let Some(page) = link.strip_prefix("https://github.com/dualgauge/dualgauge/blob/main/") else {
        panic!("{link} leads elsewhere");
    };
    let (page, wanted) = page.split_once('#').unwrap_or((page, ""));
    let found = anchors(&read(page));
    assert!(
        wanted.is_empty() || found.contains(wanted),
        "{link}: {found:?}"
    );
}

#[test]
fn every_series_that_a_panel_or_a_rule_names_is_counted_or_recorded_and_every_family_is_shown() {
    let rules = rules();
    let recorded = rules.iter().filter_map(|rule| rule.record.clone());
    let known: BTreeSet<String> = series().into_iter().chain(recorded).collect();
    let mut shown = BTreeSet::new();
    let boards = boards();
    let panels = boards.iter().flat_map(Board::expressions);
    let ruled = rules.iter().map(|rule| (rule.name(), rule.expr.clone()));
    for (place, expression) in panels.chain(ruled) {
        for name in names(&expression) {
            assert!(known.contains(name), "{place}: there is no {name}");
            shown.insert(name.to_owned());
        }
    }
    for name in known {
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|part| name.strip_suffix(part))
            .unwrap_or(&name);
        let is_shown = shown.iter().any(|shown| shown.starts_with(family));
        assert!(is_shown, "no panel and no rule shows {name}");
    }
}

#[test]
fn every_panel_says_what_it_shows_and_in_which_unit() {
    for board in boards() {
        for panel in board.panels() {
            let place = format!("{}: {}", board.title(), panel["title"]);
            assert!(
                panel["title"]
                    .as_str()
                    .is_some_and(|title| !title.is_empty()),
                "{place}"
            );
            let description = panel["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "{place} says nothing of itself");
            let config = &panel["fieldConfig"];
            let says_unit = config["defaults"]["unit"].is_string()
                || config["defaults"]["mappings"].is_array()
                || config["overrides"].to_string().contains("\"unit\"")
                || panel["type"] == "heatmap";
            assert!(says_unit, "{place} has no unit");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{place}");
            for target in panel["targets"].as_array().unwrap() {
                let has_legend = target["legendFormat"] != "" || target["format"] == "table";
                assert!(has_legend, "{place} has a line without a name");
            }
            for link in panel["links"].as_array().into_iter().flatten() {
                expect_page(link["url"].as_str().unwrap());
            }
        }
        for link in board.json["links"].as_array().unwrap() {
            if let Some(link) = link["url"].as_str() {
                expect_page(link);
            }
        }
    }
}

#[test]
fn panels_lie_beside_one_another_and_have_numbers_of_their_own() {
    let mut uids = BTreeSet::new();
    for board in boards() {
        assert!(uids.insert(board.json["uid"].to_string()));
        let mut ids = BTreeSet::new();
        let mut taken = BTreeMap::new();
        for panel in board.json["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
            let edge = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(
                edge("x") + edge("w") <= 24,
                "{} is too wide",
                panel["title"]
            );
            for x in edge("x")..edge("x") + edge("w") {
                for y in edge("y")..edge("y") + edge("h") {
                    let before = taken.insert((x, y), panel["title"].clone());
                    assert_eq!(before, None, "under {}", panel["title"]);
                }
            }
        }
    }
}

#[test]
fn every_variable_in_an_expression_is_one_of_its_dashboard() {
    for board in boards() {
        let mut known = board.variables();
        known.extend(["__rate_interval", "__range"].map(str::to_owned));
        for (place, expression) in board.expressions() {
            let used = expression.split('$').skip(1);
            for name in used {
                let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let name = &name[..end.unwrap_or(name.len())];
                assert!(known.contains(name), "{place}: ${name}");
            }
        }
    }
}

#[test]
fn every_alert_has_its_section_and_every_section_its_alert() {
    let alerts: BTreeSet<String> = rules().into_iter().filter_map(|rule| rule.alert).collect();
    let page = read("docs/reference/alerts.md");
    let sections = page.lines().filter_map(|line| line.strip_prefix("## "));
    assert_eq!(alerts, sections.map(str::to_owned).collect());
    for Rule {
        labels,
        annotations,
        expr,
        alert,
        ..
    } in rules()
    {
        let Some(alert) = alert else { continue };
        let severity = labels["severity"].as_str();
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{alert}"
        );
        assert!(annotations.contains_key("summary") && annotations.contains_key("description"));
        expect_page(&annotations["runbook_url"]);
        let last = expr.trim_end().lines().next_back().unwrap_or_default();
        let operator = last.split(' ').next().unwrap_or_default();
        assert!(
            ["==", "<", ">"].contains(&operator),
            "{alert}: the threshold stands alone"
        );
    }
}

#[test]
fn a_prometheus_of_the_documented_configuration_reads_the_rules_that_there_are() {
    let config = read("deploy/prometheus/prometheus.yml");
    for entry in fs::read_dir(root("deploy/prometheus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".rules.yml") {
            assert!(
                config.contains(&name),
                "prometheus.yml does not load {name}"
            );
        }
    }
}
