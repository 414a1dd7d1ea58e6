//! `[metrics]`: the maximum number of series, and the labels that families keep.

use crate::config::problem::{Problem, nearest};
use crate::config::raw::RawMetrics;
use dualgauge_model::series::{FAMILIES, SeriesRules, labels_of};

pub(super) fn compile(raw: &RawMetrics, problems: &mut Vec<Problem>) -> SeriesRules {
    for (family, kept) in &raw.labels {
        let Some(labels) = labels_of(&family.value) else {
            let message = format!(
                "no metric family with optional labels is named `{}`",
                family.value
            );
            let problem = family.problem(message);
            problems.push(
                match nearest(&family.value, FAMILIES.map(|(name, _)| name)) {
                    Some(known) => problem.hint(format!("did you mean `{known}`?")),
                    None => problem,
                },
            );
            continue;
        };
        let unknown = kept
            .value
            .iter()
            .find(|label| !labels.contains(&label.as_str()));
        if let Some(label) = unknown {
            problems.push(kept.problem(format!(
                "`{}` has no label `{label}`; its labels are `{}`",
                family.value,
                labels.join("`, `")
            )));
        }
    }
    let labels = raw.labels.iter();
    let labels = labels.map(|(family, kept)| (family.value.clone(), kept.value.clone()));
    SeriesRules {
        limit: raw
            .series
            .as_ref()
            .map_or(SeriesRules::LIMIT, |series| series.value),
        labels: labels.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::{SourceLocation, Spanned};

    fn labels(family: &str, kept: &[&str]) -> RawMetrics {
        let at = |key: &str| (SourceLocation::Default, key.to_owned());
        let located = |(place, key): (SourceLocation, String)| Spanned {
            value: (),
            place,
            key,
        };
        let family_name = located(at("metrics.labels")).map(|()| family.to_owned());
        let kept = kept.iter().map(|label| (*label).to_owned()).collect();
        let kept = located(at("metrics.labels")).map(|()| kept);
        RawMetrics {
            series: None,
            labels: vec![(family_name, kept)],
        }
    }

    #[test]
    fn labels_are_kept_of_families_that_have_them() {
        let mut problems = Vec::new();
        let rules = compile(&labels("dualgauge_calls_total", &["route"]), &mut problems);
        assert_eq!(problems.len(), 0);
        assert!(rules.keeps("dualgauge_calls_total", "route"));
        assert!(!rules.keeps("dualgauge_calls_total", "client"));
        assert!(rules.keeps("dualgauge_verdicts_total", "client"));
    }

    #[test]
    fn unknown_families_and_labels_are_problems() {
        let mut problems = Vec::new();
        compile(&labels("dualgauge_call_total", &["route"]), &mut problems);
        compile(&labels("dualgauge_calls_total", &["routes"]), &mut problems);
        compile(&labels("dualgauge_store_up", &[]), &mut problems);
        let told: Vec<_> = problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        assert_eq!(
            told,
            [
                "no metric family with optional labels is named `dualgauge_call_total`",
                "`dualgauge_calls_total` has no label `routes`; its labels are `route`, `client`, `side`, `stage`, `outcome`, `blame`",
                "no metric family with optional labels is named `dualgauge_store_up`",
            ]
        );
        let hint = problems[0].hint.as_deref();
        assert_eq!(hint, Some("did you mean `dualgauge_calls_total`?"));
    }
}
