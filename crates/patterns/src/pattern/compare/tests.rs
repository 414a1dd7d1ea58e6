mod cost;

use proptest::prelude::*;

use super::acceptance::reads;
use super::repeated_holes::Split;
use super::*;
use crate::json::Json;
use crate::pattern::arbitrary::{Dice, dice, near, pattern, plain_pattern, texts, value, words};
use crate::pattern::{
    BoundValue, HoleFacts, HolePosition, HoleResolver, Pattern, PatternReader, Slot, SourceTree,
    TextPart, TextPattern, TextPatterns, UnknownMembers,
};
use crate::side::Side;

const WORLDS: [MemberPolicy; 2] = [MemberPolicy::Open, MemberPolicy::Closed];

fn matches_texts(words: &TextPatterns, given: &[String]) -> bool {
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let holes = words.slots().len() + 8;
    let mut reading = PatternReader::new(holes, UnknownMembers::Refused, 64);
    words.read(&given, &mut reading).is_ok()
}

/// A pattern, short enough to be read in a failure.
fn shown(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Literal(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        Pattern::Hole(slot) => shown_slot(slot),
        Pattern::Text(text) => shown_text(text),
        Pattern::Object(object) => {
            let members = object.members.iter();
            let mut members: Vec<String> = members
                .map(|(name, member)| format!("{name}: {}", shown(member)))
                .collect();
            members.extend(
                object
                    .rest
                    .iter()
                    .map(|rest| format!("...{}", shown_slot(rest))),
            );
            members.extend(
                object
                    .overlapping_names
                    .iter()
                    .map(|name| format!("!{name}")),
            );
            format!("{{{}}}", members.join(", "))
        }
        Pattern::List(list) => {
            let mut items: Vec<String> = list.items.iter().map(shown).collect();
            items.extend(
                list.rest
                    .iter()
                    .map(|rest| format!("...{}", shown_slot(rest))),
            );
            format!("[{}]", items.join(", "))
        }
        Pattern::Each(each) => format!("[*, {}]", shown(&each.item)),
        Pattern::Either(_) => pattern.to_notation(),
    }
}

fn shown_text(text: &TextPattern) -> String {
    let parts = text.parts.iter().map(|part| match part {
        TextPart::Text(text) => text.clone(),
        TextPart::Hole(slot) => shown_slot(slot),
    });
    format!("\"{}\"", parts.collect::<String>())
}

fn shown_texts(words: &TextPatterns) -> String {
    match words {
        TextPatterns::Literal(text) => format!("\"{text}\""),
        TextPatterns::Hole(slot) => shown_slot(slot),
        TextPatterns::Mixed(text) => shown_text(text),
    }
}

fn shown_slot(slot: &Slot) -> String {
    let hole = slot.binds().map_or("_".to_owned(), |hole| hole.to_string());
    format!(
        "<{hole} {:?} {:?} {:?} {:?}>",
        slot.shape, slot.absence, slot.codec, slot.null
    )
}

/// JSON inside of a string is compared by a few samples only, which a text may miss.
fn has_gap(one: &Pattern, other: &Pattern) -> bool {
    let shown = format!("{} {}", shown(one), shown(other));
    shown.contains('"') && shown.contains(" Json ")
}

fn laws_of_two(one: &Pattern, other: &Pattern, dice: &mut Dice) -> Result<(), TestCaseError> {
    for policy in WORLDS {
        let inside = within(one, other, policy);
        let common = intersection(one, other, policy);
        if let Some(common) = &common {
            prop_assert!(
                reads(one, common, policy),
                "{common:?} is not read by the first of {} {}",
                shown(one),
                shown(other)
            );
            prop_assert!(
                reads(other, common, policy),
                "{common:?} is not read by the second of {} {}",
                shown(one),
                shown(other)
            );
        }
        for from in [one, one, other] {
            let value = value(from, dice);
            let (first, second) = (reads(one, &value, policy), reads(other, &value, policy));
            prop_assert!(
                !(inside && first && !second),
                "within, but {policy:?} {value:?} fits the first only of {} {}",
                shown(one),
                shown(other)
            );
            prop_assert!(
                !(first && second && common.is_none()) || has_gap(one, other),
                "{policy:?} {value:?} fits both, and nothing was found: {} {}",
                shown(one),
                shown(other)
            );
        }
        if inside && reads(one, &sample(one), policy) && !has_gap(one, other) {
            prop_assert!(
                common.is_some(),
                "within, and they do not meet: {policy:?} {} {}",
                shown(one),
                shown(other)
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_pattern_is_within_itself(mut dice in dice()) {
        let one = pattern(&mut dice);
        for policy in WORLDS {
            prop_assert!(within(&one, &one, policy), "{}", shown(&one));
        }
    }

    #[test]
    fn within_carries_over(mut dice in dice()) {
        let one = plain_pattern(&mut dice);
        let other = near(&one, &mut dice);
        let third = near(&other, &mut dice);
        for policy in WORLDS {
            if within(&one, &other, policy) && within(&other, &third, policy) {
                prop_assert!(within(&one, &third, policy), "{policy:?} {}\n{}\n{}", shown(&one), shown(&other), shown(&third));
            }
        }
    }

    #[test]
    fn an_intersection_matches_both_and_a_subsumed_value_matches(mut dice in dice()) {
        let one = pattern(&mut dice);
        let other = near(&one, &mut dice);
        laws_of_two(&one, &other, &mut dice)?;
        laws_of_two(&other, &one, &mut dice)?;
        let third = pattern(&mut dice);
        laws_of_two(&one, &third, &mut dice)?;
    }

    #[test]
    fn a_sample_fits(mut dice in dice()) {
        let one = pattern(&mut dice);
        let value = value(&one, &mut dice);
        if reads(&one, &value, MemberPolicy::Closed) {
            prop_assert!(reads(&one, &sample(&one), MemberPolicy::Closed), "{} {:?}", shown(&one), sample(&one));
        }
    }

    #[test]
    fn the_laws_hold_for_texts(mut dice in dice()) {
        let (one, other, third) = (words(&mut dice), words(&mut dice), words(&mut dice));
        prop_assert!(words_within(&one, &one), "{}", shown_texts(&one));
        let inside = words_within(&one, &other);
        prop_assert!(!(inside && words_within(&other, &third)) || words_within(&one, &third));
        let common = words_intersection(&one, &other);
        if let Some(common) = &common {
            prop_assert!(matches_texts(&one, common) && matches_texts(&other, common), "{common:?}");
        }
        for from in [&one, &one, &other] {
            let given = texts(from, &mut dice);
            let (first, second) = (matches_texts(&one, &given), matches_texts(&other, &given));
            prop_assert!(!(inside && first && !second), "{} is not within {}: {given:?}", shown_texts(&one), shown_texts(&other));
            prop_assert!(!(first && second && common.is_none()), "{} and {} share {given:?}", shown_texts(&one), shown_texts(&other));
        }
    }
}

fn tree(value: &serde_json::Value) -> SourceTree {
    match value {
        serde_json::Value::String(text) => SourceTree::Text(text.clone()),
        serde_json::Value::Array(items) => SourceTree::List(items.iter().map(tree).collect()),
        serde_json::Value::Object(members) => {
            let members = members.iter();
            SourceTree::Table(
                members
                    .map(|(name, member)| (name.clone(), tree(member)))
                    .collect(),
            )
        }
        other @ (serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)) => {
            SourceTree::Literal(Json::written(other.to_string().into_bytes()))
        }
    }
}

/// The pattern that a route table spells, in JSON.
fn spelled(text: &str) -> Pattern {
    let mentioned = tree(&serde_json::from_str(text).unwrap())
        .pattern()
        .unwrap();
    let mut resolver = HoleResolver::default();
    resolver.pattern(Side::Rest, &mentioned).unwrap();
    resolver.pattern(Side::Rpc, &mentioned).unwrap();
    let facts = resolver.finish(&HoleFacts::default()).unwrap();
    facts.resolve(Side::Rpc, &mentioned).unwrap()
}

fn text_patterns(text: &str) -> TextPatterns {
    let mentioned = TextPatterns::parse(text).unwrap();
    let mut resolver = HoleResolver::default();
    resolver
        .words(Side::Rest, &mentioned, HolePosition::Words)
        .unwrap();
    resolver
        .words(Side::Rpc, &mentioned, HolePosition::Words)
        .unwrap();
    let facts = resolver.finish(&HoleFacts::default()).unwrap();
    facts
        .words(Side::Rpc, &mentioned, HolePosition::Words)
        .unwrap()
}

/// The narrower pattern, the wider one, and where this holds.
const NARROWER: &[(&str, &str, &[MemberPolicy])] = &[
    (r#"1"#, r#""{x:integer}""#, &WORLDS),
    (r#"null"#, r#""{x}""#, &WORLDS),
    (r#""{x:integer}""#, r#""{x:number}""#, &WORLDS),
    (r#""{x:enum(a|b)}""#, r#""{x:string}""#, &WORLDS),
    (r#""{x:enum(a|b)}""#, r#""{x:enum(a|b|c)}""#, &WORLDS),
    (r#""{x:string[]}""#, r#""{x:array}""#, &WORLDS),
    (r#""{x:json}""#, r#""{x:string}""#, &WORLDS),
    (r#""session not found: {s}""#, r#""{m:string}""#, &WORLDS),
    (r#""session not found: {s}""#, r#""session {x}""#, &WORLDS),
    (
        r#""session not found: {s}""#,
        r#""{x} not found: {y}""#,
        &WORLDS,
    ),
    (r#""session not found: {s}""#, r#""{x}: {y}""#, &WORLDS),
    (r#""session not found""#, r#""{x} not {y}""#, &WORLDS),
    (
        r#""row {n:integer} of {m:integer}""#,
        r#""row {n:number} of {m}""#,
        &WORLDS,
    ),
    (
        r#"{"kind": "a", "x": "{x}"}"#,
        r#"{"kind": "{k}", "x": "{x}"}"#,
        &WORLDS,
    ),
    (
        r#"{"kind": "a", "x": "{x}"}"#,
        r#"{"x": "{x}"}"#,
        &[MemberPolicy::Open],
    ),
    (
        r#"{"x": "{x}", "z": 1}"#,
        r#"{"x": "{x}", "...": "{more}"}"#,
        &WORLDS,
    ),
    (r#"{}"#, r#"{"x": "{x?}"}"#, &WORLDS),
    (r#"{"x": "{x}"}"#, r#""{o:object}""#, &WORLDS),
    (
        r#"["{a}", "{b:integer}"]"#,
        r#"["{a}", "{b:number}", "{c?}"]"#,
        &WORLDS,
    ),
    (r#"["{a}", "{b}"]"#, r#"["{a}", "{rest...}"]"#, &WORLDS),
    (
        r#"[{"type": "text", "text": "{t}"}]"#,
        r#"["*", {"type": "{y}", "text": "{t}"}]"#,
        &WORLDS,
    ),
    (
        r#"["*", {"id": "{i:integer}"}]"#,
        r#"["*", {"id": "{i}"}]"#,
        &WORLDS,
    ),
    (r#"["*", "{i:integer}"]"#, r#""{x:number[]}""#, &WORLDS),
    (
        r#"{"a": "{x}", "b": "{x}"}"#,
        r#"{"a": "{x}", "b": "{y}"}"#,
        &WORLDS,
    ),
];

#[test]
fn a_pattern_with_distinct_positions_has_a_value_of_each() {
    let pattern = spelled(r#"{"a": "{x}", "b": "{x}", "t": "{v}", "y": {"z": "{v}"}}"#);
    let value = Json::literal(r#"{"a": 1, "b": 2, "t": 4, "y": {"z": 2}}"#);
    let each = ["4", "2"].map(|text| BoundValue::Value(Json::literal(text)));
    assert_eq!(Split::new(&pattern).values(1, &value), each);
}

#[test]
fn a_more_specific_pattern_is_within_a_more_general_one() {
    for (one, other, worlds) in NARROWER {
        let (narrow, wide) = (spelled(one), spelled(other));
        for policy in WORLDS {
            assert_eq!(
                within(&narrow, &wide, policy),
                worlds.contains(&policy),
                "{one} {other} {policy:?}"
            );
            let back = worlds.contains(&policy) && within(&wide, &narrow, policy);
            assert!(!back, "{other} {one} {policy:?}");
            let common = intersection(&narrow, &wide, policy);
            assert!(
                common.is_some() || !worlds.contains(&policy),
                "{one} {other} {policy:?}"
            );
        }
    }
}

#[test]
fn patterns_without_a_common_value_have_no_intersection() {
    let apart = [
        (r#"1"#, r#"2"#),
        (r#""1""#, r#""{x:integer}""#),
        (r#""{x:enum(a|b)}""#, r#""{x:enum(c|d)}""#),
        (r#""{x:object}""#, r#"["{rest...}"]"#),
        (r#""a {x}""#, r#""b {x}""#),
        (r#""{x}: a""#, r#""{x}: b""#),
        // A hole ends where the text after it first occurs.
        (r#""{x}.json""#, r#""a.json.json""#),
        (r#""Error: {m}""#, r#""{x:json}""#),
        (r#""n {n:integer}""#, r#""n {e:enum(a|b)}""#),
        (r#"{"kind": "a"}"#, r#"{"kind": "b"}"#),
        (r#"["{a}"]"#, r#"["{a}", "{b}"]"#),
        (r#"{"a": "{x}", "b": "{x}"}"#, r#"{"a": 1, "b": 2}"#),
    ];
    for (one, other) in apart {
        for policy in WORLDS {
            assert_eq!(
                intersection(&spelled(one), &spelled(other), policy),
                None,
                "{one} {other}"
            );
        }
    }
    let (none, more) = (
        spelled(r#"{"x": "{x}"}"#),
        spelled(r#"{"x": "{x}", "...": "{m}"}"#),
    );
    assert!(
        within(&none, &more, MemberPolicy::Closed) && !within(&more, &none, MemberPolicy::Closed)
    );
    // In replies an unnamed member may have any value or none.
    let (none, any) = (
        spelled(r#"{"x": "{x}"}"#),
        spelled(r#"{"x": "{x}", "y": "{y?}"}"#),
    );
    assert!(
        within(&none, &any, MemberPolicy::Closed) && !within(&any, &none, MemberPolicy::Closed)
    );
    assert!(within(&none, &any, MemberPolicy::Open) && within(&any, &none, MemberPolicy::Open));
    let (a, b) = (spelled(r#"{"a": "{x}"}"#), spelled(r#"{"b": "{x}"}"#));
    assert_eq!(intersection(&a, &b, MemberPolicy::Closed), None);
    assert!(intersection(&a, &b, MemberPolicy::Open).is_some());
    let (empty, any) = (spelled("{}"), spelled(r#"{"a": "{x}"}"#));
    assert_eq!(intersection(&empty, &any, MemberPolicy::Open), None);
}

#[test]
fn a_meeting_is_a_value_that_people_can_read() {
    let rows = [
        (
            r#""session not found: {s}""#,
            r#""session {x} y""#,
            r#""session not found: y""#,
        ),
        (
            r#"{"a": "{x}", "b": "{x}"}"#,
            r#"{"a": "{y:enum(p|q)}", "b": "{z:enum(q|r)}"}"#,
            r#"{"a":"q","b":"q"}"#,
        ),
        (
            r#"{"a": "{x}", "b": "<{x}>"}"#,
            r#"{"b": "<k{y}"}"#,
            r#"{"a":"k","b":"<k>"}"#,
        ),
        (
            r#"{"a": "{x:json}", "b": "{x}"}"#,
            r#"{"b": [1]}"#,
            r#"{"a":"[1]","b":[1]}"#,
        ),
        (r#"["{a}", 2, "{c?}"]"#, r#"["*", "{n:integer}"]"#, "[1,2]"),
    ];
    for (one, other, common) in rows {
        let found = intersection(&spelled(one), &spelled(other), MemberPolicy::Open);
        let found = found.map(|found| String::from_utf8(found.as_bytes().to_vec()).unwrap());
        assert_eq!(found.as_deref(), Some(common), "{one} {other}");
    }
    assert_eq!(
        sample(&spelled(r#"{"id": "{i:integer}", "n": "{n?}"}"#)),
        Json::literal(r#"{"id":1}"#)
    );
}

#[test]
fn absence_counts_as_a_value_of_an_optional_position() {
    let (may, must) = (spelled(r#"{"x": "{x?}"}"#), spelled(r#"{"x": "{x}"}"#));
    for policy in WORLDS {
        assert!(within(&must, &may, policy) && !within(&may, &must, policy));
    }
    let (may, must) = (spelled(r#""{x?}""#), spelled(r#""{x}""#));
    assert!(optional_within(
        Some(&must),
        Some(&may),
        MemberPolicy::Closed
    ));
    assert!(!optional_within(
        Some(&may),
        Some(&must),
        MemberPolicy::Closed
    ));
    assert!(!optional_within(Some(&must), None, MemberPolicy::Closed));
    assert!(optional_within(Some(&must), None, MemberPolicy::Open));
    assert!(optional_within(None, Some(&may), MemberPolicy::Closed));
    assert_eq!(
        optional_intersection(Some(&may), None, MemberPolicy::Closed),
        Some(None)
    );
    assert_eq!(
        optional_intersection(Some(&must), None, MemberPolicy::Closed),
        None
    );
    assert!(matches!(
        optional_intersection(Some(&must), Some(&may), MemberPolicy::Closed),
        Some(Some(_))
    ));
}

#[test]
fn in_a_url_all_values_are_texts() {
    let narrower = [
        ("7", "{x:integer}"),
        ("{x:integer}", "{x:string}"),
        ("{x:boolean}", "{x:enum(true|false|maybe)}"),
        ("{x}", "{x?}"),
        ("{x:integer}", "{x:integer[]}"),
        ("{x:integer[]}", "{x:string[]}"),
        ("{x:integer[,]}", "{x:string[,]}"),
        ("{x:integer[,]}", "{x}"),
        ("Bearer {token}", "{x}"),
        ("{x}", "{_}"),
    ];
    for (one, other) in narrower {
        let (narrow, wide) = (text_patterns(one), text_patterns(other));
        assert!(words_within(&narrow, &wide), "{one} {other}");
        assert!(!words_within(&wide, &narrow), "{other} {one}");
        assert!(
            words_intersection(&narrow, &wide).is_some(),
            "{one} {other}"
        );
    }
    for (one, other) in [
        ("a", "b"),
        ("x", "{x:integer}"),
        ("Bearer {t}", "Basic {t}"),
        ("", "{x}"),
    ] {
        assert_eq!(
            words_intersection(&text_patterns(one), &text_patterns(other)),
            None,
            "{one} {other}"
        );
    }
    let both = words_intersection(
        &text_patterns("{x:integer?}"),
        &text_patterns("{x:enum(a|b)?}"),
    );
    assert_eq!(both, Some(Vec::new()));
}
