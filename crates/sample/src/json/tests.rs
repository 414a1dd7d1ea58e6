use super::*;
use crate::value::Value;

fn broken(text: &str) -> (&'static str, i64) {
    match parse(text) {
        Err(Fault::Broken { message, place }) => (message, place),
        other => panic!("{text} is not broken: {other:?}"),
    }
}

#[test]
fn a_broken_text_is_told_in_the_words_of_python() {
    let table = [
        (" ", "Expecting value", 1),
        ("nul", "Expecting value", 0),
        ("[1,", "Expecting value", 3),
        ("[1,]", "Expecting value", 3),
        ("{\"name\":", "Expecting value", 8),
        ("{\"a\":-}", "Expecting value", 5),
        ("[1 2", "Expecting ',' delimiter", 3),
        ("{\"name\":\"x\"", "Expecting ',' delimiter", 11),
        ("{\"a\":01}", "Expecting ',' delimiter", 6),
        ("{\"a\":1.}", "Expecting ',' delimiter", 6),
        ("{\"é\":1 x", "Expecting ',' delimiter", 7),
        ("{\"name\"", "Expecting ':' delimiter", 7),
        ("{", "Expecting property name enclosed in double quotes", 1),
        (
            "{\"a\":1,}",
            "Expecting property name enclosed in double quotes",
            7,
        ),
        (
            "{a:1}",
            "Expecting property name enclosed in double quotes",
            1,
        ),
        ("{\"a\":1} x", "Extra data", 8),
        ("{\"a\":\"x", "Unterminated string starting at", 5),
        ("{\"a\":\"\\", "Unterminated string starting at", 5),
        ("{\"a\":\"\\q\"}", "Invalid \\escape", 6),
        ("{\"a\":\"\\u12\"}", "Invalid \\uXXXX escape", 7),
        ("{\"a\":\"\n\"}", "Invalid control character at", 6),
    ];
    for (text, message, place) in table {
        assert_eq!(broken(text), (message, place), "{text}");
    }
}

#[test]
fn nothing_of_a_number_is_lost() {
    let number = |text: &str| parse(text).unwrap();
    let long = "123456789012345678901234567890";
    assert_eq!(number(long), Value::Big(long.into()));
    assert_eq!(number("9223372036854775807"), Value::Int(i64::MAX));
    assert_eq!(number("-0"), Value::Int(0));
    assert_eq!(number("2.0"), Value::Float(2.0));
    assert_eq!(number("1e400"), Value::Float(f64::INFINITY));
    assert_eq!(number("-Infinity"), Value::Float(f64::NEG_INFINITY));
}

#[test]
fn the_last_of_equal_names_wins_at_the_place_of_the_first() {
    let value = parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
    assert_eq!(write(&value, Spacing::Compact), r#"{"a":3,"b":2}"#);
}

#[test]
fn a_plain_dumps_has_spaces_and_only_ascii() {
    let value = parse(r#"{"a":[1,"é😀\u007f\"\\\u0001"],"b":null}"#).unwrap();
    assert_eq!(
        write(&value, Spacing::Dumps),
        r#"{"a": [1, "\u00e9\ud83d\ude00\u007f\"\\\u0001"], "b": null}"#
    );
    assert_eq!(
        write(&value, Spacing::Compact),
        "{\"a\":[1,\"é😀\u{7f}\\\"\\\\\\u0001\"],\"b\":null}"
    );
}

#[test]
fn a_text_too_deep_for_the_stack_is_refused() {
    assert!(parse(&format!("{}{}", "[".repeat(100), "]".repeat(100))).is_ok());
    assert_eq!(parse(&"[".repeat(1_000_000)), Err(Fault::TooDeep));
}

#[test]
fn half_a_surrogate_pair_becomes_the_replacement_character() {
    let text = |text: &str| parse(text).unwrap();
    assert_eq!(text(r#""\ud83d\ude00""#), Value::from("😀"));
    assert_eq!(text(r#""\ud83dx""#), Value::from("\u{fffd}x"));
    assert_eq!(text(r#""\ud83d\u0041""#), Value::from("\u{fffd}A"));
    assert_eq!(text(r#""\ude00""#), Value::from("\u{fffd}"));
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    /// Any JSON text, as `serde_json` prints it.
    fn document() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            // Eighths, because the reference may miss the last digit of a float that is not a short one.
            any::<i32>().prop_map(|eighths| (f64::from(eighths) / 8.0).into()),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_serde_json_prints_comes_back_as_the_same_document(document in document()) {
            let value = parse(&document.to_string()).unwrap();
            for spacing in [Spacing::Compact, Spacing::Dumps] {
                let text = write(&value, spacing);
                prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&text).unwrap(), &document);
            }
        }

        #[test]
        fn a_damaged_text_is_refused_just_where_serde_json_refuses_it(
            document in document(),
            cut in any::<prop::sample::Index>(),
            put in prop::sample::select(vec!["", "\"", "{", "]", ",", ":", "-", "0", "e", ".", "\\", " ", "\n"]),
        ) {
            let text = document.to_string();
            let mut place = cut.index(text.len() + 1);
            while !text.is_char_boundary(place) {
                place -= 1;
            }
            let rest: String = text[place..].chars().skip(1).collect();
            let damaged = format!("{}{put}{rest}", &text[..place]);
            // Where the two differ by intent: numbers out of range, and halves of surrogate pairs.
            prop_assume!(!damaged.contains("\\u") && !damaged.contains(['e', 'E']));
            let reference = serde_json::from_str::<serde_json::Value>(&damaged);
            prop_assert_eq!(parse(&damaged).is_ok(), reference.is_ok(), "{}", damaged);
        }
    }
}
