//! Objects and lists in a query, a path and a header.

use super::{DocumentKind, drafted, json, left_out, rest, routes, rpc};
use serde_json::Value;

/// `GET /items` with one parameter.
fn with(parameter: Value) -> (DocumentKind, Value) {
    let operation = json!({ "operationId": "items", "parameters": [parameter] });
    rest(json!({ "/items": { "get": operation } }))
}

fn filter() -> Value {
    json!({
        "type": "object",
        "required": ["eq"],
        "properties": { "eq": { "type": "string" }, "gt": { "type": "integer" } },
    })
}

fn deep() -> Value {
    json!({ "name": "filter", "in": "query", "required": true, "style": "deepObject",
        "explode": true, "schema": filter() })
}

fn optional_deep() -> Value {
    let mut parameter = deep();
    parameter["required"] = json!(false);
    parameter
}

#[test]
fn a_deep_object_is_read_member_by_member() {
    assert_eq!(
        routes([with(deep())]),
        "[[route]]\n\
         name = \"items\"\n\
         rest = \"GET /items?filter%5Beq%5D={filter_eq:string}&filter%5Bgt%5D={filter_gt:integer?}\"\n\
         rpc = \"items\"\n\
         params = { filter = { eq = \"{filter_eq}\", gt = \"{filter_gt}\" } }"
    );
    let optional = routes([with(optional_deep())]);
    assert!(optional.contains("{filter_eq:string?}"), "{optional}");
}

#[test]
fn a_deep_object_belongs_to_the_param_of_its_name() {
    let params = json!([{ "name": "Filter", "schema": { "type": "object" } }]);
    for (structure, expected) in [
        (
            "by-name",
            "params = { Filter = { eq = \"{filter_eq}\", gt = \"{filter_gt}\" } }",
        ),
        (
            "by-position",
            "params = [{ eq = \"{filter_eq}\", gt = \"{filter_gt}\" }]",
        ),
    ] {
        let method = json!({ "name": "items", "params": params, "paramStructure": structure });
        let documents = [with(deep()), rpc(json!([method]))];
        assert_eq!(drafted(documents.clone()).report.paired, 1);
        let found = routes(documents);
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn an_exploded_object_is_read_member_by_member() {
    let parameter =
        json!({ "name": "filter", "in": "query", "required": true, "schema": filter() });
    let found = routes([with(parameter)]);
    assert!(
        found.contains("GET /items?eq={eq:string}&gt={gt:integer?}"),
        "{found}"
    );
}

#[test]
fn an_object_in_one_text_is_left_out() {
    for style in ["form", "spaceDelimited", "pipeDelimited"] {
        let parameter = json!({ "name": "filter", "in": "query", "style": style, "explode": false,
            "schema": filter() });
        let found = drafted([with(parameter)]).toml;
        let reason = "it is an object in one text, in which its members may have any order";
        assert!(found.contains(reason), "{style}: {found}");
    }
}

#[test]
fn a_member_without_one_spelling_is_left_out() {
    let inner = json!({ "type": "object", "properties": { "a": {}, "list": { "type": "array" } } });
    let parameter = json!({ "name": "f", "in": "query", "style": "deepObject", "schema": inner });
    let found = drafted([with(parameter)]).toml;
    assert!(
        found.contains("look: the parameter `f[list]` is left out"),
        "{found}"
    );
    assert!(found.contains("f%5Ba%5D={f_a?}"), "{found}");
}

#[test]
fn an_object_gets_a_name_unlike_other_params() {
    let parameters = json!([
        { "name": "filter", "in": "path", "required": true },
        optional_deep(),
    ]);
    let paths = json!({ "/items/{filter}": { "get": { "parameters": parameters } } });
    let found = routes([rest(paths)]);
    assert!(found.contains("filter = \"{filter}\""), "{found}");
    assert!(found.contains("filter_2 = { eq = "), "{found}");
}

#[test]
fn a_list_in_a_header_is_cut_at_commas() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let parameter = json!({ "name": "X-Ids", "in": "header", "required": true, "schema": list });
    let found = routes([with(parameter)]);
    assert!(
        found.contains("headers = { x-ids = \"{x_ids:integer[,]}\" }"),
        "{found}"
    );
}

#[test]
fn a_list_in_one_text_is_cut_at_its_delimiter() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let path = json!([{ "name": "ids", "in": "path", "required": true, "schema": list }]);
    let in_path = rest(json!({ "/items/{ids}": { "get": { "parameters": path } } }));
    let styled = |style: &str, explode: bool| {
        with(
            json!({ "name": "ids", "in": "query", "required": true, "style": style,
            "explode": explode, "schema": list }),
        )
    };
    for (document, expected) in [
        (in_path, "GET /items/{ids:integer[,]}\""),
        (styled("form", false), "ids={ids:integer[,]}\""),
        (styled("pipeDelimited", false), "ids={ids:integer[|]}\""),
        (styled("spaceDelimited", false), "ids={ids:integer[ ]}\""),
        (styled("pipeDelimited", true), "ids={ids:integer[]}\""),
    ] {
        assert_eq!(left_out([document.clone()]), Vec::<String>::new());
        let found = drafted([document]).toml;
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("look: the list"), "{found}");
    }
}

#[test]
fn a_list_in_a_path_is_an_array_of_its_pair() {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let path = json!([{ "name": "ids", "in": "path", "required": true, "schema": list }]);
    let operation = json!({ "operationId": "items", "parameters": path });
    let params = json!([{ "name": "ids", "required": true, "schema": list }]);
    let documents = [
        rest(json!({ "/items/{ids}": { "get": operation } })),
        rpc(json!([{ "name": "items", "params": params }])),
    ];
    let found = routes(documents);
    assert!(
        found.contains("rest = \"GET /items/{ids:string[,]}\""),
        "{found}"
    );
}
