//! The laws, for all values and rules.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::spelled::{Choices, Value, any_value};
use super::{TERMS, json, leads, rules};
use crate::compare::*;
use dualgauge_patterns::json::Json;

fn any_path() -> impl Strategy<Value = Path> {
    let token = prop::sample::select(vec!["*", "a", "b", "0", "1", "~2", "~1", ""]);
    prop::collection::vec(token, 0..4).prop_map(|tokens| {
        let text: String = tokens.iter().map(|token| format!("/{token}")).collect();
        Path::parse(&format!("/result{text}")).unwrap()
    })
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let paths = || prop::collection::vec(any_path(), 0..3);
    let near = prop::sample::select(vec!["0", "0.01", "1", "100"]);
    let near = near.prop_map(|text| Tolerance::parse(text).unwrap());
    let tolerance = prop::collection::vec((any_path(), near), 0..3);
    (paths(), paths(), tolerance).prop_map(|(ignore, unordered, tolerance)| {
        Rules::compile(RuleSource {
            ignore,
            unordered,
            tolerance,
            ..RuleSource::default()
        })
    })
}

fn any_choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..12)
}

fn spelled(value: &Value, choices: &[u8]) -> Json {
    json(&value.spell(&mut Choices::new(choices.to_vec())))
}

fn of(control: &Json, candidate: &Json, rules: &Rules) -> Comparison {
    compare(
        &ComparedResponse::Result(control),
        &ComparedResponse::Result(candidate),
        rules,
        &TERMS,
    )
}

/// The part of a comparison that does not depend on the order of spellings or elements.
fn essence(found: &Comparison) -> (BTreeSet<(String, Kind, usize)>, usize) {
    let differences = found.differences.iter();
    let differences = differences.map(|one| (one.field.clone(), one.kind, one.times));
    (differences.collect(), found.more)
}

/// The same value with some changes.
fn changed(value: &Value, choices: &mut Choices) -> Value {
    match (value, choices.next(6)) {
        (_, 0) => Value::Hundredths(7),
        (Value::List(items), 1) => Value::List(items.iter().rev().cloned().collect()),
        (Value::List(items), 2) => Value::List(items.iter().skip(1).cloned().collect()),
        (Value::Table(members), 1) => Value::Table(members.iter().skip(1).cloned().collect()),
        (Value::List(items), _) => {
            Value::List(items.iter().map(|item| changed(item, choices)).collect())
        }
        (Value::Table(members), _) => Value::Table(
            members
                .iter()
                .map(|(name, member)| (name.clone(), changed(member, choices)))
                .collect(),
        ),
        (other, _) => other.clone(),
    }
}

/// All lists in another order.
fn turned(value: &Value, choices: &mut Choices) -> Value {
    match value {
        Value::List(items) => {
            let mut items: Vec<_> = items.iter().map(|item| turned(item, choices)).collect();
            if !items.is_empty() {
                let turn = choices.next(items.len());
                items.rotate_left(turn);
                if choices.next(2) == 0 {
                    items.reverse();
                }
            }
            Value::List(items)
        }
        Value::Table(members) => Value::Table(
            members
                .iter()
                .map(|(name, member)| (name.clone(), turned(member, choices)))
                .collect(),
        ),
        Value::Word(_) | Value::Hundredths(_) | Value::Text(_) => value.clone(),
    }
}

/// Makes the order of every list irrelevant.
fn all_unordered() -> Rules {
    let paths = (0..8).map(|depth| format!("unordered /result{}", "/*".repeat(depth)));
    let paths: Vec<String> = paths.collect();
    rules(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn an_answer_equals_itself_in_every_spelling(
        value in any_value(), one in any_choices(), two in any_choices(), rules in any_rules()
    ) {
        let found = of(&spelled(&value, &one), &spelled(&value, &two), &rules);
        prop_assert_eq!(found, Comparison::default());
    }

    #[test]
    fn spelling_changes_nothing_that_is_found(
        value in any_value(), choices in any_choices(), one in any_choices(), two in any_choices(), rules in any_rules()
    ) {
        let other = changed(&value, &mut Choices::new(choices));
        let plain = of(&spelled(&value, &[0]), &spelled(&other, &[0]), &rules);
        let found = of(&spelled(&value, &one), &spelled(&other, &two), &rules);
        prop_assert_eq!(essence(&found), essence(&plain));
        prop_assert_eq!(found.ignored, plain.ignored);
    }

    #[test]
    fn comparison_is_symmetric(
        value in any_value(), choices in any_choices(), rules in any_rules()
    ) {
        let (one, two) = (spelled(&value, &[1]), spelled(&changed(&value, &mut Choices::new(choices)), &[2]));
        let (there, back) = (of(&one, &two, &rules), of(&two, &one, &rules));
        let turned: BTreeSet<_> = back.differences.iter().map(|one| (one.field.clone(), one.kind.other(), one.times)).collect();
        prop_assert_eq!(essence(&there), (turned, back.more));
        prop_assert_eq!(there.ignored, back.ignored);
        for difference in &there.differences {
            let mirrored = back.differences.iter().find(|other| other.pointer == difference.pointer && other.kind == difference.kind.other());
            if let Some(mirrored) = mirrored {
                prop_assert_eq!((&mirrored.candidate, &mirrored.control), (&difference.control, &difference.candidate));
            }
        }
    }

    #[test]
    fn every_pointer_leads_somewhere(
        value in any_value(), choices in any_choices(), rules in any_rules()
    ) {
        let (one, two) = (spelled(&value, &[1]), spelled(&changed(&value, &mut Choices::new(choices)), &[2]));
        for found in of(&one, &two, &rules).differences {
            let text = if found.kind == Kind::Extra { &two } else { &one };
            prop_assert!(leads(std::str::from_utf8(text.as_bytes()).unwrap(), &found.pointer), "{found:?}");
        }
    }

    #[test]
    fn the_field_of_a_difference_can_be_used_to_ignore_it(
        value in any_value(), choices in any_choices()
    ) {
        let (one, two) = (spelled(&value, &[1]), spelled(&changed(&value, &mut Choices::new(choices)), &[2]));
        let found = of(&one, &two, &Rules::default());
        let ignore = found.differences.iter().map(|one| Path::parse(&one.field).unwrap());
        let rules = Rules::compile(RuleSource { ignore: ignore.collect(), ..RuleSource::default() });
        let left = of(&one, &two, &rules);
        let fields = |found: &Comparison| found.differences.iter().map(|one| one.field.clone()).collect::<BTreeSet<_>>();
        prop_assert!(fields(&left).is_disjoint(&fields(&found)), "{left:?}");
        prop_assert_eq!(left.ignored > 0, !found.differences.is_empty());
    }

    #[test]
    fn ignoring_the_answer_ignores_everything(
        value in any_value(), other in any_value(), root in prop::sample::select(vec!["ignore ", "ignore /result", "ignore /*"])
    ) {
        let found = of(&spelled(&value, &[1]), &spelled(&other, &[2]), &rules(&[root]));
        prop_assert!(found.is_match());
    }

    #[test]
    fn the_order_of_unordered_lists_changes_nothing(
        value in any_value(), choices in any_choices(), turns in any_choices()
    ) {
        let rules = all_unordered();
        let other = changed(&value, &mut Choices::new(choices));
        let turn = turned(&other, &mut Choices::new(turns.clone()));
        let found = of(&spelled(&value, &[1]), &spelled(&turn, &[2]), &rules);
        prop_assert_eq!(essence(&found), essence(&of(&spelled(&value, &[1]), &spelled(&other, &[2]), &rules)));
        let itself = of(&spelled(&value, &[1]), &spelled(&turned(&value, &mut Choices::new(turns)), &[2]), &rules);
        prop_assert_eq!(itself, Comparison::default());
    }

    #[test]
    fn a_wider_tolerance_finds_no_more(one in -9999_i32..9999, two in -9999_i32..9999, near in 0_u32..20_000, wider in 0_u32..20_000) {
        let [near, wider] = [near, near + wider].map(|by| rules(&[&format!("near /result {by}")]));
        let (one, two) = (json(&one.to_string()), json(&two.to_string()));
        prop_assert!(!of(&one, &two, &near).is_match() || of(&one, &two, &wider).is_match());
    }

    #[test]
    fn no_bytes_panic(
        bodies in prop::collection::vec(prop_oneof!["[\\[\\]{}\":,0-9a-c\\\\ue.-]{0,24}".prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..12)], 2..3),
        statuses in (any::<u16>(), any::<u16>()),
        kind in prop::option::of(prop::sample::select(vec!["application/json", "text/plain", "a/b+json;x"])),
    ) {
        let mut headers = http::HeaderMap::new();
        if let Some(kind) = kind {
            headers.insert("content-type", kind.parse().unwrap());
        }
        let bodies: Vec<bytes::Bytes> = bodies.into_iter().map(bytes::Bytes::from).collect();
        let answer = |status, body| ComparedResponse::Rest { status, headers: &headers, body };
        let rules = rules(&["unordered /body", "near /body/*/a 1", "header content-type", "show"]);
        let found = compare(&answer(statuses.0, &bodies[0]), &answer(statuses.1, &bodies[1]), &rules, &TERMS);
        prop_assert!(found.differences.len() <= DIFFERENCES);
        let itself = compare(&answer(1, &bodies[0]), &answer(1, &bodies[0]), &rules, &TERMS);
        prop_assert_eq!(itself, Comparison::default());
    }
}
