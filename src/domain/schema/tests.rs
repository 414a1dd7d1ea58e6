use proptest::prelude::*;
use serde_json::{Value, json};

use super::Schema;
use crate::domain::json::Json;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), 512).unwrap()
}

fn schema(value: &Value) -> Schema {
    Schema::compile(value).unwrap_or_else(|why| panic!("{why}"))
}

/// `pointer | what`
fn fault(schema: &Schema, text: &str) -> String {
    let violation = schema.check(&json(text)).unwrap_err();
    format!("{} | {violation}", violation.pointer)
}

fn refused(value: &Value) -> String {
    Schema::compile(value).unwrap_err()
}

fn person() -> Schema {
    schema(&json!({
        "type": "object",
        "required": ["id"],
        "additionalProperties": false,
        "properties": {
            "id": { "type": "integer" },
            "tags": { "items": { "enum": ["a", "b"] }, "maxItems": 2 },
            "~x/y": { "type": "string" },
        },
    }))
}

#[test]
fn the_first_faults_are_told_with_their_pointers() {
    let person = person();
    assert_eq!(person.check(&json(r#"{"id":1,"tags":["a"]}"#)), Ok(()));
    assert_eq!(fault(&person, "[]"), r#" | it is not of type "object""#);
    assert_eq!(fault(&person, "{}"), r#" | "id" is a required property"#);
    assert_eq!(
        fault(&person, r#"{"id":1,"~x/y":1}"#),
        r#"/~0x~1y | it is not of type "string""#
    );
    assert_eq!(
        fault(&person, r#"{"id":1,"b":1}"#),
        " | Additional properties are not allowed ('b' was unexpected)"
    );
    assert_eq!(
        fault(&person, r#"{"id":"x","tags":["e","c","d"]}"#),
        "/id | it is not of type \"integer\"; /tags: it has more than 2 items; \
         /tags/0: it is not one of \"a\" or \"b\""
    );
}

#[test]
fn no_fault_quotes_a_value() {
    let person = person();
    for text in [
        r#""hunter2""#,
        r#"{"id":"hunter2"}"#,
        r#"{"id":1,"tags":["hunter2"]}"#,
        r#"{"id":1,"tags":["hunter2","hunter2","hunter2"]}"#,
    ] {
        let told = fault(&person, text);
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn a_reference_stays_within_the_schema() {
    let local = schema(&json!({
        "$defs": { "node": {
            "properties": { "next": { "$ref": "#/$defs/node" }, "at": { "type": "string" } },
        } },
        "$ref": "#/$defs/node",
    }));
    assert_eq!(local.check(&json(r#"{"next":{"next":{"at":""}}}"#)), Ok(()));
    let deep = fault(&local, r#"{"next":{"next":{"at":1}}}"#);
    assert_eq!(deep, r#"/next/next/at | it is not of type "string""#);
    for out in ["other.json", "http://h/other.json", "file:///etc/passwd"] {
        let expected = format!(
            "`$ref` leads to `{out}`, out of the schema; write what it names under `$defs`, and `#/$defs/NAME`"
        );
        assert_eq!(refused(&json!({ "allOf": [{ "$ref": out }] })), expected);
    }
    assert_eq!(
        refused(&json!({ "$ref": "#/$defs/none" })),
        "the schema cannot be resolved: Pointer '/$defs/none' does not exist"
    );
    let unknown = refused(&json!({ "$schema": "http://h/none" }));
    assert!(
        unknown.contains("Unknown meta-schema: 'http://h/none'"),
        "{unknown}"
    );
}

#[test]
fn references_in_a_ring_end() {
    let ring = json!({
        "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } },
        "$ref": "#/$defs/a",
    });
    for ring in [
        ring,
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
    ] {
        assert_eq!(schema(&ring).check(&json("1")), Ok(()));
    }
}

#[test]
fn the_draft_is_2020_12_unless_the_schema_names_another() {
    let tuple = json!({ "prefixItems": [{ "type": "string" }] });
    assert!(schema(&tuple).check(&json("[1]")).is_err());
    let mut old = json!({ "items": [{ "type": "string" }] });
    assert!(refused(&old).starts_with("is no JSON Schema: at `/items`"));
    old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert!(schema(&old).check(&json("[1]")).is_err());
}

#[test]
fn a_regular_expression_takes_linear_time_and_bounded_space() {
    let pattern = |text: &str| json!({ "properties": { "a": { "pattern": text } } });
    for bad in ["(", "(?=a)b", r"(a)\1", "((a{1000}){1000}){1000}"] {
        let shown = refused(&pattern(bad));
        assert!(
            shown.starts_with("is no JSON Schema: at `/properties/a/pattern`"),
            "{shown}"
        );
    }
    let slow = schema(&pattern("^(a+)+$"));
    let text = format!(r#"{{"a":"{}!"}}"#, "a".repeat(100_000));
    assert!(slow.check(&json(&text)).is_err());
}

#[test]
fn what_two_parsers_could_read_differently_is_refused() {
    let any = schema(&json!(true));
    assert_eq!(
        fault(&any, r#"{"a":[1,{"b":1,"b":2}]}"#),
        "/a/1 | member `b`: it is given twice"
    );
    assert!(fault(&any, r#"{"b":1,"B":2}"#).contains("only in letter case"));
    assert_eq!(
        fault(&any, r#"["\ud800"]"#),
        "/0 | a lone surrogate escape is no Unicode text"
    );
    assert!(fault(&any, r#"{"\ud800":1}"#).contains("lone surrogate"));
    assert_eq!(
        fault(&any, r#"{"~/":[1e400]}"#),
        "/~0~1/0 | it is no number of 64 bits"
    );
    assert_eq!(any.check(&json("123456789012345678901234567890")), Ok(()));
    let whole = schema(&json!({ "type": "integer" }));
    assert_eq!(whole.check(&json("123456789012345678901234567890")), Ok(()));
    assert_eq!(whole.check(&json("1.0")), Ok(()));
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    assert_eq!(any.check(&json(&deep)), Ok(()));
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "null",
        "true",
        "0",
        "-1.5e3",
        "1e999",
        "-0",
        "\"\"",
        "\"a\"",
        r#""\ud83d""#,
        r#""\u0041""#,
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 24, 4, |value| {
            let name = prop::sample::select(vec!["a", "b", "A", "~/", ""]);
            let members = prop::collection::vec((name, value.clone()), 0..4);
            let table = members.prop_map(|members| {
                let members = members
                    .iter()
                    .map(|(name, value)| format!("\"{name}\":{value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            });
            let list = prop::collection::vec(value, 0..4);
            prop_oneof![
                table,
                list.prop_map(|items| format!("[{}]", items.join(",")))
            ]
        })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!(true),
        json!({ "type": "string" }),
        json!({ "minimum": 3, "multipleOf": 0.5 }),
        json!({ "uniqueItems": true, "maxItems": 2 }),
        json!({ "pattern": "^a*$", "minLength": 1 }),
        json!({ "enum": [null, 1e308, "a"] }),
        json!({ "required": ["a"], "additionalProperties": false }),
        json!({ "$ref": "#" }),
        json!({ "$ref": "#/properties/a" }),
        json!({ "type": 3 }),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let named = prop::sample::select(vec!["not", "items", "contains", "unevaluatedItems"]);
        prop_oneof![
            (named, inner.clone()).prop_map(|(name, inner)| json!({ name: inner })),
            inner
                .clone()
                .prop_map(|inner| json!({ "properties": { "a": inner } })),
            prop::collection::vec(inner, 1..3).prop_map(|all| json!({ "anyOf": all })),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(schema in any_schema(), text in any_json()) {
        if let Ok(schema) = Schema::compile(&schema) {
            let checked = schema.check(&json(&text));
            prop_assert_eq!(&checked, &schema.check(&json(&text)));
            if let Err(violation) = checked {
                prop_assert!(!violation.what.is_empty());
            }
        }
    }
}
