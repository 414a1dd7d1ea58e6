use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Exceeded, MemoryShare, Schema, SchemaError};
use crate::json::Json;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), 512).unwrap()
}

fn schema(value: &Value) -> Schema {
    Schema::compile(value).unwrap_or_else(|why| panic!("{why}"))
}

/// `pointer | what`
fn fault(schema: &Schema, text: &str) -> String {
    let violation = match schema.check(&json(text)) {
        Err(SchemaError::Violation(violation)) => violation,
        other => panic!("{other:?}"),
    };
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
fn the_first_faults_are_reported_with_pointers() {
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
        let message = fault(&person, text);
        assert!(!message.contains("hunter2"), "{message}");
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
            "`$ref` points to `{out}`, outside the schema; copy its target to `$defs` and write `#/$defs/NAME`"
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
fn a_schema_that_refers_to_itself_without_going_down_is_refused() {
    let long: Vec<Value> = (0..300)
        .map(|next| json!({ "$ref": format!("#/$defs/{}", next + 1) }))
        .collect();
    let rings = [
        (json!({ "$ref": "#" }), "#"),
        (json!({ "allOf": [{ "$ref": "#" }] }), "#"),
        (
            json!({ "not": { "anyOf": [{ "type": "null" }, { "$ref": "#/not" }] } }),
            "#/not",
        ),
        (json!({ "if": { "$ref": "#" } }), "#"),
        (json!({ "dependentSchemas": { "a": { "$ref": "#" } } }), "#"),
        (
            json!({ "$dynamicAnchor": "node", "oneOf": [{ "$dynamicRef": "#node" }] }),
            "#",
        ),
        (json!({ "$id": "http://h/a", "$ref": "http://h/a" }), "#"),
        (
            json!({
                "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } },
                "properties": { "x": { "$ref": "#/$defs/a" } },
            }),
            "#/$defs/a",
        ),
        (
            json!({
                "$schema": "http://json-schema.org/draft-07/schema#",
                "definitions": { "a~/": { "$ref": "#/definitions/a~0~1" } },
            }),
            "#/definitions/a~0~1",
        ),
    ];
    for (ring, pointer) in rings.into_iter().chain(rings_under_names_of_keywords()) {
        let shown = refused(&ring);
        let expected = format!("the schema at `{pointer}` refers to itself without going down");
        assert!(shown.starts_with(&expected), "{ring}: {shown}");
    }
    let mut chain: Vec<Value> = long;
    chain.push(json!(true));
    let chain = refused(&json!({ "$ref": "#/$defs/0", "$defs": named(chain) }));
    assert!(chain.starts_with("more than 200 references"), "{chain}");
    let twice = |next: usize| json!({ "$ref": format!("#/$defs/{next}") });
    let mut doubling: Vec<Value> = (1..30)
        .map(|next| json!({ "anyOf": [twice(next), twice(next)] }))
        .collect();
    doubling.push(json!({ "type": "null" }));
    let doubling = refused(&json!({ "$ref": "#/$defs/0", "$defs": named(doubling) }));
    assert!(
        doubling.contains("applies more than 100000 subschemas"),
        "{doubling}"
    );
}

fn rings_under_names_of_keywords() -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({ "properties": { "default": { "$ref": "#/properties/default" } } }),
            "#/properties/default",
        ),
        (
            json!({ "patternProperties": { "enum": { "$ref": "#/patternProperties/enum" } } }),
            "#/patternProperties/enum",
        ),
        (
            json!({ "$defs": { "const": { "not": { "$ref": "#/$defs/const" } } } }),
            "#/$defs/const",
        ),
        (
            json!({ "properties": { "properties": { "properties": {
                "examples": { "$ref": "#/properties/properties/properties/examples" },
            } } } }),
            "#/properties/properties/properties/examples",
        ),
        (
            json!({ "items": { "$ref": "#/default" }, "default": { "$ref": "#/default" } }),
            "#/default",
        ),
    ]
}

fn named(all: Vec<Value>) -> Value {
    let all = all.into_iter().enumerate();
    all.map(|(name, schema)| (name.to_string(), schema))
        .collect()
}

#[test]
fn a_schema_that_recurs_deeper_in_the_value_is_accepted() {
    for fine in [
        json!({ "properties": { "next": { "$ref": "#" } } }),
        json!({ "items": { "$ref": "#" }, "not": { "type": "null" } }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "definitions": { "a": {
            "$ref": "#/definitions/b", "allOf": [{ "$ref": "#/definitions/a" }],
        }, "b": true } }),
        json!({ "properties": { "not": { "$ref": "#" }, "allOf": { "$ref": "#" } } }),
        json!({ "enum": [{ "$ref": "#" }], "const": { "allOf": [{ "$ref": "#" }] } }),
        json!({ "properties": { "a": { "default": { "$ref": "#/properties/a/default" } } } }),
        json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" }),
    ] {
        assert_eq!(
            schema(&fine).check(&json("{}")).is_ok(),
            fine.get("enum").is_none()
        );
    }
}

/// Conditions of `and`, `or`, `not` and leaves: an ordinary recursive schema.
fn conditions() -> Schema {
    let list = |name: &str| {
        json!({
            "type": "object", "required": [name], "additionalProperties": false,
            "properties": { name: { "type": "array", "items": { "$ref": "#/$defs/condition" } } },
        })
    };
    schema(&json!({
        "$ref": "#/$defs/condition",
        "$defs": { "condition": { "anyOf": [
            list("and"),
            list("or"),
            {
                "type": "object", "required": ["not"], "additionalProperties": false,
                "properties": { "not": { "$ref": "#/$defs/condition" } },
            },
            {
                "type": "object", "required": ["field", "value"],
                "properties": { "field": { "type": "string" }, "value": { "type": "string" } },
            },
        ] } },
    }))
}

#[test]
fn errors_of_a_recursive_schema_do_not_grow_with_its_depth() {
    let conditions = conditions();
    let nested = |depth: usize, leaf: &str| {
        format!(
            "{}{leaf}{}",
            r#"{"and":["#.repeat(depth),
            "]}".repeat(depth)
        )
    };
    let fits = nested(200, r#"{"field":"a","value":"b"}"#);
    assert_eq!(conditions.check(&json(&fits)), Ok(()));
    for depth in [1, 10, 30, 200] {
        let message = fault(&conditions, &nested(depth, r#"{"field":1}"#));
        assert!(message.len() < 200, "{message}");
    }
    let wide = format!("[{}0]", r#"{"field":1},"#.repeat(50_000));
    let message = fault(&schema(&json!({ "items": { "required": ["b"] } })), &wide);
    assert!(
        message.starts_with(r#"/0 | "b" is a required property"#),
        "{message}"
    );
}

/// Room for so many bytes, and what is taken.
#[derive(Debug)]
struct Limit(usize, AtomicUsize);

impl MemoryShare for Limit {
    fn take(&self, bytes: usize) -> bool {
        let fits = self.1.load(Relaxed) + bytes <= self.0;
        if fits {
            self.1.fetch_add(bytes, Relaxed);
        }
        fits
    }

    fn release(&self, bytes: usize) {
        self.1.fetch_sub(bytes, Relaxed);
    }
}

fn limited(schema: &Schema, bytes: usize) -> Arc<Limit> {
    let limit = Arc::new(Limit(bytes, AtomicUsize::new(0)));
    let memory: Arc<dyn MemoryShare> = limit.clone();
    schema.count_memory_in(&memory);
    limit
}

#[test]
fn memory_of_a_validation_counts_in_the_shared_limit_and_is_given_back() {
    let text = format!("[{}0]", "{},".repeat(100_000));
    let any = schema(&json!({ "items": true }));
    let limit = limited(&any, 1 << 20);
    assert_eq!(
        any.check(&json(&text)),
        Err(SchemaError::Exceeded(Exceeded::Memory))
    );
    assert_eq!(limit.1.load(Relaxed), 0);
    assert_eq!(any.check(&json("[1]")), Ok(()));
    assert_eq!(limit.1.load(Relaxed), 0);
    let any = schema(&json!({ "items": true }));
    let limit = limited(&any, 32 << 20);
    assert_eq!(any.check(&json(&text)), Ok(()));
    assert_eq!(limit.1.load(Relaxed), 0);
}

#[test]
fn a_validation_ends_when_its_steps_are_spent() {
    // Each level looks at the rest twice: for the verdict, and for what was evaluated.
    let costly = schema(&json!({
        "$ref": "#/$defs/node",
        "$defs": { "node": {
            "anyOf": [
                { "properties": { "a": { "$ref": "#/$defs/node" } }, "required": ["x"] },
                { "properties": { "a": { "$ref": "#/$defs/node" } }, "required": ["y"] },
                { "properties": { "a": { "$ref": "#/$defs/node" } } },
            ],
            "unevaluatedProperties": false,
        } },
    }));
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    assert_eq!(costly.check(&json(&nested(3))), Ok(()));
    let ended = costly.check(&json(&nested(200)));
    assert!(
        matches!(ended, Ok(()) | Err(SchemaError::Exceeded(_))),
        "{ended:?}"
    );
    let names = schema(
        &json!({ "contains": { "uniqueItems": true, "minItems": 100_000 }, "items": {
        "anyOf": (0..400).map(|name| json!({ "required": [name.to_string()] })).collect::<Vec<_>>(),
    } }),
    );
    let many = format!("[{}{{}}]", r#"{"399":1},"#.repeat(20_000));
    let ended = names.check(&json(&many));
    assert_eq!(ended, Err(SchemaError::Exceeded(Exceeded::Steps)));
}

#[test]
fn the_draft_is_2020_12_unless_the_schema_names_another() {
    let tuple = json!({ "prefixItems": [{ "type": "string" }] });
    assert!(schema(&tuple).check(&json("[1]")).is_err());
    let mut old = json!({ "items": [{ "type": "string" }] });
    assert!(refused(&old).starts_with("is not a JSON Schema: at `/items`"));
    old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert!(schema(&old).check(&json("[1]")).is_err());
}

#[test]
fn a_regular_expression_takes_linear_time_and_bounded_space() {
    let pattern = |text: &str| json!({ "properties": { "a": { "pattern": text } } });
    for bad in ["(", "(?=a)b", r"(a)\1", "((a{1000}){1000}){1000}"] {
        let shown = refused(&pattern(bad));
        assert!(
            shown.starts_with("is not a JSON Schema: at `/properties/a/pattern`"),
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
        "/0 | a lone surrogate escape is not Unicode text"
    );
    assert!(fault(&any, r#"{"\ud800":1}"#).contains("lone surrogate"));
    assert_eq!(
        fault(&any, r#"{"~/":[1e400]}"#),
        "/~0~1/0 | it is not a 64-bit number"
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
        json!({ "propertyNames": { "maxLength": 1, "pattern": "[a-z]" } }),
        json!({ "dependentRequired": { "a": ["b"] }, "minProperties": 1 }),
        json!({ "unevaluatedProperties": false, "properties": { "b": true } }),
        json!({ "patternProperties": { "^[ab]$": { "type": "array" } } }),
        json!({ "const": { "a": [] } }),
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
            if let Err(SchemaError::Violation(violation)) = checked {
                prop_assert!(!violation.what.is_empty());
            }
        }
    }

    #[test]
    fn within_its_budget_the_verdict_is_that_of_the_validator(
        written in any_schema(),
        text in any_json(),
    ) {
        // What the tree refuses by itself is no matter of the validator.
        let any = schema(&json!(true));
        let value = json(&text);
        if let (Ok(checked), Ok(())) = (Schema::compile(&written), any.check(&value)) {
            let plain = jsonschema::options().offline().build(&written).unwrap();
            let opened: Value = serde_json::from_str(&text).unwrap();
            let verdict = checked.check(&value);
            let in_budget = !matches!(verdict, Err(SchemaError::Exceeded(_)));
            prop_assert!(in_budget);
            prop_assert_eq!(verdict.is_ok(), plain.is_valid(&opened));
        }
    }

    #[test]
    fn arrays_are_unique_as_the_validator_says(
        items in prop::collection::vec(any_json(), 0..20),
        expected in any_json(),
    ) {
        let any = schema(&json!(true));
        let text = format!("[{}]", items.join(","));
        if let (Ok(()), Ok(())) = (any.check(&json(&text)), any.check(&json(&expected))) {
            let opened: Value = serde_json::from_str(&text).unwrap();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            for written in [
                json!({ "uniqueItems": true }),
                json!({ "contains": { "const": expected } }),
                json!({ "contains": { "enum": [1, expected] } }),
            ] {
                let plain = jsonschema::options().offline().build(&written).unwrap();
                prop_assert_eq!(schema(&written).check(&json(&text)).is_ok(), plain.is_valid(&opened));
            }
        }
    }
}
