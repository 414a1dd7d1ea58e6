//! Tests of `rest_api`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn options() -> RestApiOptions {
    RestApiOptions {
        reserved: vec![("POST", "/mcp"), ("GET", "/docs")],
    }
}

fn drafted(tools: Value) -> RestApi {
    draft_rest_api(&json!({ "tools": tools }), &options()).unwrap()
}

fn targets(api: &RestApi) -> Vec<String> {
    let all = api.operations.iter();
    all.map(|one| format!("{} {}", one.method, one.target))
        .collect()
}

#[test]
fn a_reading_tool_has_a_get_with_typed_parameters() {
    let schema = json!({
        "type": "object",
        "required": ["city"],
        "properties": {
            "city": { "type": "string", "description": "Its name" },
            "days": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "units": { "type": "array", "items": { "type": "string" } },
            "filter": { "$ref": "#/$defs/Filter" },
        },
        "$defs": { "Filter": { "type": "object", "properties": { "inner": { "$ref": "#/$defs/Filter" } } } },
    });
    let api = drafted(json!([{
        "name": "forecast",
        "description": "The weather\nof some days",
        "inputSchema": schema,
        "annotations": { "readOnlyHint": true },
    }]));
    assert_eq!(
        targets(&api),
        ["POST /forecast", "GET /forecast?city=&days=&filter=&units="]
    );
    let query = r#"rest = "GET /forecast?city={city:string}&days={days:integer?}&filter={filter:json?}&units={units:string[]?}""#;
    assert!(api.routes.contains(query), "{}", api.routes);
    let reference = r##""$ref":"#/properties/arguments/$defs/Filter""##;
    assert_eq!(api.routes.matches(reference).count(), 4, "{}", api.routes);
    assert!(
        api.routes.contains("summary = \"The weather\"\n"),
        "{}",
        api.routes
    );
    assert!(
        api.routes
            .contains("description = \"The weather\\nof some days\"\n"),
        "{}",
        api.routes
    );
    assert_eq!(api.operations[0].arguments, json!({ "city": "text" }));
    assert_eq!(api.operations[0].placeholders, ["city"]);
}

#[test]
fn example_arguments_are_those_of_the_schema_and_else_placeholders() {
    let sample = |required: Value, properties: Value| {
        let schema = json!({ "type": "object", "required": required, "properties": properties });
        let api = drafted(json!([{ "name": "t", "inputSchema": schema }]));
        let operation = api.operations.into_iter().next().unwrap();
        (operation.arguments, operation.placeholders)
    };
    let inner = json!({ "type": "object", "required": ["zone"], "properties": { "zone": { "type": "string" } } });
    for (property, value, placeholders) in [
        (
            json!({ "type": "string", "examples": ["UTC"], "default": "" }),
            json!("UTC"),
            None,
        ),
        (
            json!({ "type": "string", "default": "UTC", "enum": ["CET", "UTC"] }),
            json!("UTC"),
            None,
        ),
        (
            json!({ "type": "string", "enum": ["CET", "UTC"] }),
            json!("CET"),
            None,
        ),
        (json!({ "type": "integer", "minimum": 3 }), json!(3), None),
        (
            json!({ "anyOf": [{ "type": "boolean" }, { "type": "null" }] }),
            json!(true),
            None,
        ),
        (json!({ "type": "string" }), json!("text"), Some("a")),
        (json!({ "$ref": "#/$defs/Zone" }), json!("text"), Some("a")),
        (
            json!({ "type": "number", "maximum": 0 }),
            json!(1),
            Some("a"),
        ),
        (
            json!({ "type": "array", "minItems": 1 }),
            json!([]),
            Some("a"),
        ),
        (inner, json!({ "zone": "text" }), Some("a.zone")),
    ] {
        let wanted: Vec<String> = placeholders.into_iter().map(str::to_owned).collect();
        let found = sample(json!(["a"]), json!({ "a": property }));
        assert_eq!(found, (json!({ "a": value }), wanted));
    }
    let missing = sample(json!(["a"]), json!({}));
    assert_eq!(missing, (json!({}), vec!["a".to_owned()]));
}

#[test]
fn odd_names_and_clashes_are_served_and_noted() {
    let api = drafted(json!([
        { "name": "read file/é" },
        { "name": "read-file" },
        { "name": "mcp" },
        { "name": "docs", "annotations": { "readOnlyHint": true } },
        { "name": "docs" },
        { "description": "nameless" },
        { "name": "{x}" },
        { "name": ".." },
    ]));
    assert_eq!(
        targets(&api),
        [
            "POST /read-file-2",
            "POST /read-file",
            "POST /mcp-2",
            "POST /docs",
            "POST /x",
            "POST /tool",
        ]
    );
    let notes: Vec<String> = api
        .notes
        .iter()
        .map(|note| format!("{}: {}", note.what, note.why))
        .collect();
    insta::assert_debug_snapshot!(notes);
}

#[test]
fn names_that_are_segments_keep_their_paths_and_routes() {
    let api = drafted(json!([
        { "name": "a b" },
        { "name": "a-b" },
        { "name": "a-b-2" },
        { "name": "c.get", "annotations": { "readOnlyHint": true } },
        { "name": "c", "annotations": { "readOnlyHint": true } },
    ]));
    let posts = ["POST /a-b-3", "POST /a-b", "POST /a-b-2"];
    assert_eq!(targets(&api)[..3], posts);
    let names: Vec<&str> = api
        .routes
        .lines()
        .filter_map(|line| line.strip_prefix("name = "))
        .collect();
    let expected = [
        "\"a-b-3\"",
        "\"a-b\"",
        "\"a-b-2\"",
        "\"c.get\"",
        "\"c.get.get\"",
        "\"c\"",
        "\"c.get-2\"",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_huge_list_is_served_in_part() {
    let tools: Vec<Value> = (0..10_100)
        .map(|at| json!({ "name": format!("t{at}") }))
        .collect();
    let api = drafted(tools.into());
    assert_eq!(api.operations.len(), 10_000);
    assert_eq!(api.notes[0].what, "100 further tools");
}

#[test]
fn the_schema_of_a_wrapped_value_is_that_of_the_value() {
    let output = |more: Value| {
        let mut schema = json!({
            "type": "object",
            "properties": { "result": { "type": "array", "items": { "$ref": "#/$defs/A" } } },
            "required": ["result"],
            "$defs": { "A": { "type": "integer" } },
        });
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let api = drafted(json!([{ "name": "list", "outputSchema": schema }]));
        let line = api
            .routes
            .lines()
            .find(|line| line.starts_with("schema.result = "));
        let text = line.unwrap().strip_prefix("schema.result = '").unwrap();
        let value: Value = serde_json::from_str(text.strip_suffix('\'').unwrap()).unwrap();
        value["type"].clone()
    };
    assert_eq!(output(json!({ "x-fastmcp-wrap-result": true })), "array");
    assert_eq!(output(json!({ "title": "listOutput" })), "array");
    assert_eq!(output(json!({ "title": "Page" })), "object");
    let another = json!({ "title": "listOutput", "properties": { "result": {}, "next": {} } });
    assert_eq!(output(another), "object");
}

#[test]
fn something_else_is_no_list_of_tools() {
    assert!(draft_rest_api(&json!([]), &options()).is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z#/$]{0,6}|\\PC{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = "type|properties|required|anyOf|items|\\$ref|[a-z{}\"'?&]{0,4}";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_tool() -> impl Strategy<Value = Value> {
    let name = "[a-c]{1,2}|[a-z.{}/ ]{0,5}|\\PC{0,5}";
    (name, any_json(), any::<bool>(), any_json()).prop_map(|(name, schema, reads, words)| {
        json!({
            "name": name,
            "title": words,
            "inputSchema": { "properties": schema },
            "annotations": { "readOnlyHint": reads },
        })
    })
}

proptest! {
    #[test]
    fn every_tool_is_served_or_noted(tools in prop::collection::vec(any_tool(), 0..6)) {
        let api = drafted(tools.clone().into());
        let routes = api.routes.matches("[[route]]").count();
        prop_assert_eq!(routes, api.operations.len());
        let posts = api.operations.iter().filter(|one| one.method == "POST").count();
        prop_assert!(posts + api.notes.len() >= tools.len());
        let ids: Vec<&str> = api.routes.lines().filter(|line| line.starts_with("rest = ")).collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        prop_assert_eq!(unique.len(), ids.len());
    }
}
