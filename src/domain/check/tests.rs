//! The corpus, with each rule taken away in turn, and random tables.

use super::corpus::{corpus, said};
use super::prove::check_by;
use super::rules::RULES;

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
