//! Laws of operations on values that were validated before.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::json::inline_bytes::InlineBytes;
use crate::json::trusted_scan::{self, StringForm};

/// White space of every kind, and none.
fn white() -> impl Strategy<Value = String> {
    "[ \n\r\t]{0,2}"
}

/// The inside of a string as some writer may spell it: brackets, quotes and runs of backslashes in it.
fn inner() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-c\\[\\]{}:, /é€😀]{1,3}",
        "(\\\\\\\\){1,4}",
        Just("\\\"".to_owned()),
        Just("\\n".to_owned()),
        Just("\\u00e9".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        "[a-z]{20,70}",
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        inner().prop_map(|inner| format!("\"{inner}\"")),
        any::<i64>().prop_map(|number| number.to_string()),
        prop_oneof![
            Just("1.10"),
            Just("-0"),
            Just("1e400"),
            Just("true"),
            Just("false"),
            Just("null")
        ]
        .prop_map(str::to_owned),
        Just("\"\\ud800\"".to_owned()),
    ]
}

/// A valid text with white space wherever it may be, names given twice included.
fn text() -> impl Strategy<Value = String> {
    scalar().prop_recursive(5, 40, 5, |value| {
        let item = (white(), value, white())
            .prop_map(|(before, value, after)| before + &value + &after)
            .boxed();
        let name = (white(), inner(), white())
            .prop_map(|(before, inner, after)| format!("{before}\"{inner}\"{after}"));
        let member = (name, item.clone()).prop_map(|(name, item)| format!("{name}:{item}"));
        prop_oneof![
            proptest::collection::vec(item, 1..5)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(member, 1..5)
                .prop_map(|members| format!("{{{}}}", members.join(","))),
            white().prop_map(|white| format!("[{white}]")),
            white().prop_map(|white| format!("{{{white}}}")),
        ]
    })
}

fn json(text: &str) -> Json {
    parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// A value whose numbers have one spelling each, so that serde's equality is ours.
fn plain() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_u8).prop_map(Value::from),
        "[ab\"\\\\\n\u{1}é]{0,2}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, |value| {
        prop_oneof![
            proptest::collection::vec(value.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[ab]{0,2}", value, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value, its members turned around and its strings spelled with escapes only.
fn respelled(value: &Value, out: &mut String) {
    let spelled = |text: &str| -> String {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
        format!("\"{}\"", units.collect::<String>())
    };
    match value {
        Value::String(text) => out.push_str(&spelled(text)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "[ " } else { " ,\n" });
                respelled(item, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(members) => {
            for (index, (name, item)) in members.iter().rev().enumerate() {
                out.push_str(if index == 0 { "{" } else { "\t," });
                out.push_str(&spelled(name));
                out.push_str(" : ");
                respelled(item, out);
            }
            out.push_str(if members.is_empty() { "{ }" } else { "}" });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

/// An object whose members have these names and their index as value.
fn object(names: &[String]) -> Json {
    let mut text = b"{".to_vec();
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        encode(name, &mut text);
        text.extend_from_slice(format!(":{index}").as_bytes());
    }
    text.push(b'}');
    Json::written(text)
}

/// The members of an object by the validating scan.
fn scanned(text: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let _ = scan_object(text, u16::MAX, |member| {
        found.push((member.name, member.value))
    });
    found
}

fn skipping_agrees_with_the_scan(value: &Json) -> Result<(), TestCaseError> {
    let text = value.as_bytes();
    let members: Vec<_> = trusted_scan::members(text).collect();
    for member in &members {
        let plain = !text[member.name.clone()].contains(&b'\\');
        prop_assert_eq!(member.spelling == StringForm::Plain, plain);
    }
    let ranges: Vec<_> = members
        .into_iter()
        .map(|member| (member.name, member.value))
        .collect();
    prop_assert_eq!(&ranges, &scanned(text));
    let elements: Vec<_> = value.elements().collect();
    let mut expected = Vec::new();
    let _ = scan_array(text, u16::MAX, |range| expected.push(range));
    prop_assert_eq!(&elements, &expected);
    for range in ranges.into_iter().map(|(_, range)| range).chain(elements) {
        skipping_agrees_with_the_scan(&value.piece(range))?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn skipping_finds_what_the_validating_scan_finds(text in text()) {
        skipping_agrees_with_the_scan(&json(&text))?;
    }

    #[test]
    fn skipping_over_any_bytes_ends_and_never_panics(text in r#"[{\[]["\\a{}\[\]:, 1é]{0,140}"#) {
        let json = Json(InlineBytes::Shared(Bytes::from(text)));
        for range in trusted_scan::members(json.as_bytes()) {
            let _ = (json.piece(range.name), json.piece(range.value));
        }
        for range in json.elements() {
            let _ = json.piece(range);
        }
        let _ = (json.open(), json.member("a"), json.same(&Json::literal("{}")));
    }

    #[test]
    fn opening_an_object_gives_the_members_that_serde_sees(
        members in proptest::collection::btree_map("[a-z]{1,3}|[\"\\\\é\n]{2,3}", plain(), 0..24),
    ) {
        let value = Value::Object(members.clone().into_iter().collect());
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let opened = json(&text);
            let found: BTreeMap<String, Value> = opened
                .open()
                .unwrap()
                .iter()
                .map(|member| (member.name.clone().into_owned(), serde_json::from_str(&text[member.value.clone()]).unwrap()))
                .collect();
            prop_assert_eq!(&found, &members);
            for OpenMember { name, whole, value } in opened.open().unwrap() {
                let alone: Value = serde_json::from_str(&format!("{{{}}}", &text[whole])).unwrap();
                prop_assert_eq!(&alone[&*name], &members[&*name]);
                prop_assert_eq!(opened.member(&name), Some(opened.piece(value)));
            }
            prop_assert_eq!(opened.member("absent"), None);
        }
    }

    #[test]
    fn twins_are_found_wherever_they_are(
        count in 2..60_usize, ranges in any::<(prop::sample::Index, prop::sample::Index)>(), twin in 0..4_usize,
    ) {
        let mut names: Vec<String> = (0..count).map(|index| format!("k{index}")).collect();
        prop_assert!(object(&names).open().is_ok());
        let (one, other) = (ranges.0.index(count), ranges.1.index(count));
        prop_assume!(one != other);
        let pair = [("name", "name"), ("name", "NaMe"), ("tokens_of_the_client", "tokens_Of_the_client"), ("\u{212a}ey", "key")][twin];
        names[one] = pair.0.to_owned();
        prop_assert!(object(&names).open().is_ok());
        names[other] = pair.1.to_owned();
        let fault = object(&names).open().unwrap_err();
        let expected = match twin {
            0 => OpenFault::Twice("name".into()),
            _ => OpenFault::Twins(pair.0.max(pair.1).into(), pair.0.min(pair.1).into()),
        };
        prop_assert_eq!(fault, expected);
        prop_assert_eq!(object(&names).member(pair.0), None);
        prop_assert_eq!(object(&names).member(pair.1), None);
    }

    #[test]
    fn names_are_twins_exactly_when_they_are_the_same_ignoring_case(
        names in proptest::collection::vec("[aAkK\u{212a}sSſßé_@`]{1,2}", 1..40),
    ) {
        let expected = names.iter().enumerate().any(|(index, name)| {
            names[..index].iter().any(|before| same_ignoring_case(before, name))
        });
        prop_assert_eq!(object(&names).open().is_err(), expected);
    }

    #[test]
    fn twins_are_found_among_names_that_differ_only_in_their_middle(
        count in 2..80_usize, ranges in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let (one, other) = (ranges.0.index(count), ranges.1.index(count));
        prop_assume!(one != other);
        let mut names: Vec<String> = (0..count).map(|index| format!("the start {index:02} the end")).collect();
        prop_assert!(object(&names).open().is_ok());
        names[one] = names[other].to_uppercase();
        let expected = OpenFault::Twins(names[other].clone(), names[one].clone());
        prop_assert_eq!(object(&names).open().unwrap_err(), expected);
    }

    #[test]
    fn same_is_reflexive_and_symmetric(one in text(), other in text()) {
        let (one, other) = (json(&one), json(&other));
        prop_assert!(one.same(&one.clone()) && other.same(&other.compact()) && other.compact().same(&other));
        prop_assert_eq!(one.same(&other), other.same(&one));
    }

    #[test]
    fn same_is_the_equality_of_serde_where_numbers_are_plain(one in plain(), other in plain()) {
        let mut text = String::new();
        respelled(&one, &mut text);
        prop_assert!(json(&one.to_string()).same(&json(&text)), "{} {}", one, text);
        prop_assert_eq!(json(&other.to_string()).same(&json(&text)), one == other, "{} {}", other, text);
    }

    #[test]
    fn compact_text_is_the_same_value_without_white_space(text in text()) {
        let json = json(&text);
        let compact = json.compact();
        prop_assert!(compact.same(&json));
        prop_assert_eq!(compact.compact(), compact.clone());
        // `RawValue` keeps strings and numbers as they are, as the expected text must.
        let expected = without_white(json.as_bytes());
        prop_assert_eq!(compact.as_bytes(), &expected[..]);
    }
}

#[test]
fn runs_of_backslashes_are_counted_wherever_a_block_cuts_them() {
    for lead in 0..140 {
        for run in 0..5 {
            let inner = format!("{}{}\\\"]}}", "a".repeat(lead), "\\\\".repeat(run));
            let text = format!("[[[\"{}\"],\"{inner}\",\"[\"],0]", "b".repeat(64));
            let json = json(&text);
            let last = json.elements().last().map(|range| &text[range]);
            assert_eq!(last, Some("0"), "{text}");
        }
    }
}

#[test]
fn escapes_are_stepped_over_wherever_a_block_cuts_them() {
    for lead in 0..140 {
        let text = format!("[\"\\n{}\\\"b\\\\\",0]", "a".repeat(lead));
        let json = json(&text);
        let last = json.elements().last().map(|range| &text[range]);
        assert_eq!(last, Some("0"), "{text}");
    }
}

/// Removes white space outside of strings, byte by byte.
fn without_white(text: &[u8]) -> Vec<u8> {
    let (mut inside, mut escaped) = (false, false);
    let keep = |byte: &&u8| {
        let keeps = inside || !byte.is_ascii_whitespace();
        inside ^= **byte == b'"' && !escaped;
        escaped = **byte == b'\\' && !escaped;
        keeps
    };
    text.iter().filter(keep).copied().collect()
}

#[test]
fn numbers_are_the_same_by_their_text_and_lone_surrogates_by_their_spelling() {
    let rows = [
        ("[1.0]", "[1]", false),
        ("[1e2]", "[100]", false),
        ("[-0]", "[0]", false),
        (r#""é""#, r#""\u00e9""#, true),
        (r#"["\ud800"]"#, r#"[ "\ud800"]"#, true),
        (r#"["\ud800"]"#, r#"["\uD800"]"#, false),
        (r#"{"\ud800":1,"a":2}"#, r#"{"a":2,"\ud800":1}"#, true),
        (r#"{"a":1,"a":2,"b":3}"#, r#"{"b":3,"a":1,"a":2}"#, true),
        (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false),
        (r#"{"a":1,"a":1}"#, r#"{"a":1}"#, false),
        ("[[],[]]", "[[[]]]", false),
        ("[]", "{}", false),
        ("[1]", "[1,2]", false),
        (r#""1""#, "1", false),
    ];
    for (one, other, expected) in rows {
        assert_eq!(json(one).same(&json(other)), expected, "{one} {other}");
    }
}

#[test]
fn a_name_that_is_no_text_cannot_be_opened_and_other_kinds_have_no_members() {
    assert_eq!(json(r#"{"a":1,"\ud800":2}"#).open(), Err(OpenFault::NoText));
    for text in ["[1]", "\"{}\"", "7", "null"] {
        assert_eq!(json(text).open(), Ok(Vec::new()));
        assert_eq!(json(text).member("a"), None);
    }
    assert_eq!(json("{\"a\":[1]}").elements().count(), 0);
}

#[test]
fn one_member_is_distinguished_from_its_twins_and_not_from_those_of_others() {
    let value = json(r#"{"a":1,"b":2,"B":3,"\u0063":4,"d":5,"d":6}"#);
    let member = |name: &str| value.member(name).map(|value| value.into_bytes());
    assert_eq!(member("a").unwrap(), "1");
    assert_eq!(member("c").unwrap(), "4");
    assert_eq!(
        (member("b"), member("B"), member("d"), member("C")),
        (None, None, None, None)
    );
}

#[test]
fn a_value_without_white_space_is_compact_without_being_copied() {
    let value = json(r#"{"a b":[1,"\" \\"]}"#);
    assert_eq!(
        value.compact().as_bytes().as_ptr(),
        value.as_bytes().as_ptr()
    );
}

#[test]
fn names_borrow_from_the_text_unless_they_are_spelled_with_escapes() {
    let value = json(r#"{"plain":1,"\u0065scaped":2}"#);
    let members = value.open().unwrap();
    assert!(matches!(
        members[0].name,
        std::borrow::Cow::Borrowed("plain")
    ));
    assert_eq!(members[1].name, "escaped");
}
