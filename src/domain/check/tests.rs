//! The corpus, with each rule taken away in turn, and random tables.

use proptest::prelude::*;

use super::arbitrary::{Dice, dice};
use super::check;
use super::corpus::{corpus, said};
use super::prove::check_by;
use super::report::{Finding, Verdict};
use super::rules::{RULES, Rule};
use crate::domain::route::{RouteSource, RouteTable, parse_route};

#[test]
fn every_verdict_of_the_corpus_is_the_one_written_beside_it() {
    let cases = corpus();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let found = said(&check_by(&case.table, RULES)[0]);
            (found != case.expected).then(|| {
                format!(
                    "{}:\n  expected {:#?}\n  found    {found:#?}",
                    case.name, case.expected
                )
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_witness_of_the_corpus_differs_from_what_comes_back() {
    for case in corpus() {
        for report in check_by(&case.table, RULES) {
            for direction in &report.directions {
                for finding in direction.losses.iter().chain(&direction.norms) {
                    let witness = &finding.witness;
                    let survives = witness
                        .back
                        .as_ref()
                        .is_ok_and(|back| back.same(&witness.sent));
                    assert!(!survives, "{}: {}", case.name, witness.sent);
                }
            }
        }
    }
}

#[test]
fn the_corpus_misses_every_rule_that_is_taken_away() {
    let cases = corpus();
    for missing in 0..RULES.len() {
        let mut rules = RULES.to_vec();
        rules.remove(missing);
        let notices = cases
            .iter()
            .any(|case| said(&check_by(&case.table, &rules)[0]) != case.expected);
        assert!(notices, "rule {missing} can be taken away");
    }
}

/// A table of those routes that can be loaded.
fn table(dice: &mut Dice, routes: usize) -> RouteTable {
    let sources: Vec<RouteSource> = (0..routes).map(|index| dice.route(index)).collect();
    let routes = sources
        .into_iter()
        .filter_map(|source| parse_route(source).ok());
    RouteTable::build(routes.collect()).unwrap_or_default()
}

fn shown(finding: &Finding) -> String {
    let witness = &finding.witness;
    let back = match &witness.back {
        Ok(back) => back.to_string(),
        Err(what) => format!("refused: {what}"),
    };
    format!(
        "{} {}\n  {}\n  -> {}\n  -> {back}",
        finding.rule.as_str(),
        finding.at,
        witness.sent,
        witness.there
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_made_up_message_refutes_a_verdict_on_a_random_table(mut dice in dice()) {
        let table = table(&mut dice, 2);
        for report in check(&table) {
            let route = table.route(report.route);
            for direction in &report.directions {
                for finding in &direction.losses {
                    prop_assert!(finding.rule != Rule::Unexplained, "{} {:?}\n{}", route.rest, direction.kind, shown(finding));
                    let witness = &finding.witness;
                    prop_assert!(!witness.back.as_ref().is_ok_and(|back| back.same(&witness.sent)));
                }
                prop_assert_eq!(direction.verdict() == Verdict::Lossy, !direction.losses.is_empty());
            }
        }
    }
}
