use serde_json::{Value, json};

use super::*;
use crate::outcome::{RestReplySource, RowOrder, RowSource, RpcReplySource};
use crate::route::{DescribedSchema, Route, RouteSource, parse_route};
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

fn source(name: &str, rest: &str, rpc: &str) -> RouteSource {
    RouteSource {
        name: name.into(),
        rest: rest.into(),
        rpc: rpc.into(),
        ..RouteSource::default()
    }
}

fn routes(sources: Vec<RouteSource>) -> Vec<Route> {
    sources
        .into_iter()
        .map(|source| parse_route(source).unwrap())
        .collect()
}

#[test]
fn a_member_of_one_side_is_required_in_its_direction_only() {
    let part = json!({
        "required": ["id", "key", "name"],
        "properties": { "id": { "readOnly": true }, "key": { "writeOnly": true }, "name": {} },
    });
    let list = json!({ "required": ["id"], "properties": { "id": { "readOnly": true }, "parts": { "items": { "$ref": "#/schemas/Part" } } } });
    let mut shared = serde_json::Map::new();
    shared.insert("Part".to_owned(), part);
    let source = DescribedSchema {
        schema: list.into(),
        shared: shared.into(),
    };
    for (messages, part, list) in [
        (Messages::Requests, json!(["key", "name"]), None),
        (
            Messages::Responses,
            json!(["id", "name"]),
            Some(json!(["id"])),
        ),
        (Messages::Shared, json!(["name"]), None),
        (
            Messages::OpenApi,
            json!(["id", "key", "name"]),
            Some(json!(["id"])),
        ),
    ] {
        let whole = bundled(&source, messages).unwrap();
        assert_eq!(whole["$defs"]["Part"]["required"], part, "{messages:?}");
        assert_eq!(whole.get("required"), list.as_ref(), "{messages:?}");
    }
}

/// Converts a JSON value to a table, as in a route table.
fn tree(value: &Value) -> SourceTree {
    match value {
        Value::String(text) => SourceTree::Text(text.clone()),
        Value::Array(items) => SourceTree::List(items.iter().map(tree).collect()),
        Value::Object(members) => {
            let members = members.iter();
            SourceTree::Table(
                members
                    .map(|(name, member)| (name.clone(), tree(member)))
                    .collect(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            SourceTree::Literal(Json::parse(value.to_string().into(), 16).unwrap())
        }
    }
}

fn row(status: Value, body: Option<Value>, rpc: RpcReplySource) -> RowSource {
    RowSource {
        key: "outcome".into(),
        origin: 0,
        order: RowOrder::default(),
        rest: RestReplySource {
            rest_protocol: Default::default(),
            status: tree(&status),
            headers: Vec::new(),
            body: body.as_ref().map(tree),
            text: None,
        },
        rpc,
        lossy: None,
    }
}

fn operation(rest: &str) -> Value {
    let routes = routes(vec![source("r", rest, "m")]);
    let mut document = openapi(&routes, &ApiInfo::default());
    let paths = document["paths"].take();
    let item = paths.as_object().unwrap().values().next().unwrap().clone();
    item.as_object().unwrap().values().next().unwrap().clone()
}

#[test]
fn a_parameter_has_its_type_its_default_and_how_its_list_is_written() {
    let found = operation(
        "GET /a/{id}?q={q}&n={n:integer=50}&b={b:boolean?}&e={e:enum(x|y)}&r={r:string[]?}&s={s:integer[,]?}&t=v{t}",
    );
    let expected = json!([
        {"in": "path", "name": "id", "required": true, "schema": {"type": "string"}},
        {"in": "query", "name": "q", "required": true, "schema": {"type": "string"}},
        {"in": "query", "name": "n", "required": false, "schema": {"type": "integer", "default": 50}},
        {"in": "query", "name": "b", "required": false, "schema": {"type": "boolean"}},
        {"in": "query", "name": "e", "required": true, "schema": {"type": "string", "enum": ["x", "y"]}},
        {"in": "query", "name": "r", "required": false, "style": "form", "explode": true,
            "schema": {"type": "array", "items": {"type": "string"}}},
        {"in": "query", "name": "s", "required": false, "style": "form", "explode": false,
            "schema": {"type": "array", "items": {"type": "integer"}}},
        {"in": "query", "name": "t", "required": true, "schema": {"type": "string", "pattern": "^v[\\s\\S]*$"}},
    ]);
    assert_eq!(found["parameters"], expected);
    assert_eq!(found["x-dualgauge-route"], "r");
}

#[test]
fn a_hole_of_several_segments_is_a_parameter_for_each_that_is_open() {
    for (rest, path, names) in [
        ("GET /v1/{x=items/*}:undo", "/v1/items/{x}:undo", &["x"][..]),
        (
            "GET /v1/{x=items/*/parts/*}",
            "/v1/items/{x}/parts/{x_2}",
            &["x", "x_2"],
        ),
        ("GET /files/{path=**}", "/files/{path}", &["path"]),
        ("GET /c/{a}...{b}.json", "/c/{a}...{b}.json", &["a", "b"]),
        ("GET /", "/", &[]),
    ] {
        let routes = routes(vec![source("r", rest, "m")]);
        let document = openapi(&routes, &ApiInfo::default());
        let item = &document["paths"][path]["get"];
        let parameters = item["parameters"].as_array().cloned().unwrap_or_default();
        let found: Vec<&str> = parameters
            .iter()
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names, "{rest}: {document}");
        let with_slashes: Vec<&str> = parameters
            .iter()
            .filter(|parameter| parameter["x-dualgauge-segments"] == "any")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let expected: &[&str] = if rest.contains("**") { names } else { &[] };
        assert_eq!(with_slashes, expected, "{rest}: {document}");
    }
}

#[test]
fn routes_of_one_path_and_method_are_one_operation() {
    let routes = routes(vec![
        source("one", "DELETE /s/{id}?kind=a&x={x}", "s/a"),
        source("two", "DELETE /s/{key}?kind=b", "s/b"),
        source("three", "GET /s/{other}", "s/c"),
    ]);
    let document = openapi(&routes, &ApiInfo::default());
    let paths = document["paths"].as_object().unwrap();
    // Paths that differ only in the names of their parameters are one path.
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["/s/{id}"]);
    let delete = &paths["/s/{id}"]["delete"];
    assert_eq!(delete["x-dualgauge-route"], json!(["one", "two"]));
    let expected = json!([
        {"in": "path", "name": "id", "required": true, "schema": {"type": "string"}},
        {"in": "query", "name": "kind", "required": true, "schema": {"enum": ["a", "b"]}},
        {"in": "query", "name": "x", "required": false, "schema": {"type": "string"}},
    ]);
    assert_eq!(delete["parameters"], expected);
    assert_eq!(paths["/s/{id}"]["get"]["parameters"][0]["name"], "id");
}

#[test]
fn a_route_is_in_the_documents_of_the_sides_that_it_is_entered_from() {
    let from = |name: &str, side| RouteSource {
        from: side,
        ..source(name, &format!("GET /{name}"), name)
    };
    let routes = routes(vec![
        from("both", None),
        from("rest", Some(Side::Rest)),
        from("rpc", Some(Side::Rpc)),
    ]);
    let rest = openapi(&routes, &ApiInfo::default());
    let rpc = openrpc(&routes, &ApiInfo::default());
    let paths: Vec<&String> = rest["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/both", "/rest"]);
    let methods = rpc["methods"].as_array().unwrap().iter();
    let methods: Vec<&str> = methods
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert_eq!(methods, ["both", "rpc"]);
}

#[test]
fn a_body_is_the_schema_of_its_pattern() {
    let full = |extra| RouteSource {
        params: Some(tree(
            &json!({"a": "{a:integer}", "b": "{b?}", "c": ["*", "{c}"]}),
        )),
        body: Some(tree(
            &json!({"a": "{a}", "in": {"b": "{b}", "k": true}, "l": ["*", "{c}"]}),
        )),
        extra: Some(extra),
        ..source("r", "POST /a", "m")
    };
    let schema = |extra| {
        let routes = routes(vec![full(extra)]);
        let mut document = openapi(&routes, &ApiInfo::default());
        document["paths"]["/a"]["post"]["requestBody"].take()
    };
    let open = schema(crate::route::Extra::Drop);
    let expected = json!({
        "type": "object",
        "required": ["a", "in", "l"],
        "properties": {
            "a": {"type": "integer"},
            "in": {"type": "object", "required": ["k"], "properties": {"b": {}, "k": {"const": true}}},
            "l": {"type": "array", "items": {}},
        },
    });
    assert_eq!(open["content"]["application/json"]["schema"], expected);
    assert_eq!(open["required"], true);
    let closed = schema(crate::route::Extra::Reject);
    let closed = &closed["content"]["application/json"]["schema"];
    assert_eq!(closed["additionalProperties"], false);
    assert_eq!(closed["properties"]["in"]["additionalProperties"], false);
    // The short form accepts any object, or none.
    let short = operation("POST /a/{id}");
    assert_eq!(
        short["requestBody"],
        json!({"required": false, "content": {"application/json": {"schema": {"type": "object"}}}})
    );
}

#[test]
fn the_row_of_a_failed_tool_is_no_success() {
    let mut tool = source("tool", "GET /a/{id}", "m");
    let failed =
        json!({ "isError": true, "content": [{ "type": "text", "text": "{m}" }, "{_...}"] });
    let failed = RpcReplySource::Result(tree(&failed));
    tool.rows = vec![row(json!(404), Some(json!({"e": "{m}"})), failed)];
    let document = openapi(&routes(vec![tool]), &ApiInfo::default());
    let responses = &document["paths"]["/a/{id}"]["get"]["responses"];
    let statuses: Vec<&String> = responses.as_object().unwrap().keys().collect();
    assert_eq!(statuses, ["200", "204", "404", "default"]);
}

#[test]
fn answers_are_those_of_the_rows_and_a_problem_else() {
    let result = |value: Value| RpcReplySource::Result(tree(&value));
    let error = |code: i64| RpcReplySource::Error {
        code: tree(&json!(code)),
        message: Some(tree(&json!("{m}"))),
        data: None,
    };
    let mut one = source("r", "GET /a/{id}", "m");
    one.rows = vec![
        row(
            json!(201),
            Some(json!("{x}")),
            result(json!({"made": "{x}"})),
        ),
        row(
            json!([404, "5xx"]),
            Some(json!({"e": "{m}"})),
            error(-32001),
        ),
    ];
    let routes = routes(vec![one, source("plain", "GET /b", "n")]);
    let document = openapi(&routes, &ApiInfo::default());
    let responses = &document["paths"]["/a/{id}"]["get"]["responses"];
    let statuses: Vec<&String> = responses.as_object().unwrap().keys().collect();
    assert_eq!(statuses, ["201", "404", "5XX", "default"]);
    assert_eq!(
        responses["404"]["content"]["application/json"]["schema"]["required"],
        json!(["e"])
    );
    assert_eq!(
        responses["default"]["$ref"],
        "#/components/responses/Problem"
    );
    let plain = document["paths"]["/b"]["get"]["responses"]
        .as_object()
        .unwrap();
    assert_eq!(plain.keys().collect::<Vec<_>>(), ["200", "204", "default"]);

    let method = &openrpc(&routes, &ApiInfo::default())["methods"][0];
    assert_eq!(
        method["result"]["schema"],
        json!({"type": "object", "required": ["made"], "properties": {"made": {}}})
    );
    assert_eq!(
        method["errors"],
        json!([{"code": -32001, "message": "{m}"}])
    );
}

#[test]
fn several_routes_on_one_method_are_one_method() {
    let tool = |name: &str, argument: &str| RouteSource {
        params: Some(tree(&json!({
            "name": name,
            "arguments": {argument: format!("{{{argument}}}")},
            "dry": format!("{{dry_{name}:boolean?}}"),
        }))),
        ..source(
            name,
            &format!("GET /{name}/{{{argument}}}?dry={{dry_{name}}}"),
            "tools/call",
        )
    };
    let routes = routes(vec![tool("get", "id"), tool("list", "kind")]);
    let document = openrpc(&routes, &ApiInfo::default());
    let method = &document["methods"][0];
    assert_eq!(document["methods"].as_array().unwrap().len(), 1);
    assert_eq!(method["x-dualgauge-route"], json!(["get", "list"]));
    assert_eq!(method["paramStructure"], "by-name");
    let params = method["params"].as_array().unwrap();
    let param = |name: &str| params.iter().find(|param| param["name"] == name).unwrap();
    assert_eq!(param("name")["schema"], json!({"enum": ["get", "list"]}));
    assert_eq!(
        param("arguments")["schema"]["anyOf"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(param("dry")["required"], false);
    let whole = &method["x-dualgauge-params"]["oneOf"];
    assert_eq!(whole[1]["properties"]["name"]["const"], "list");
    assert_eq!(whole[1]["x-dualgauge-route"], "list");
}

#[test]
fn params_by_position_and_methods_with_holes_are_spelled_out() {
    let positional = RouteSource {
        params: Some(tree(&json!(["{a:integer}", "{b?}"]))),
        ..source("p", "GET /p/{a}?b={b}", "p")
    };
    let tools = source("t", "POST /t/{tool}", "run.{tool}");
    let words = source("w", "GET /w/{w:enum(one|two)}", "{w}");
    let routes = routes(vec![positional, tools, words]);
    let document = openrpc(&routes, &ApiInfo::default());
    let methods = document["methods"].as_array().unwrap();
    let names: Vec<&str> = methods
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["one", "p", "run.{tool}", "two"]);
    assert_eq!(methods[1]["paramStructure"], "by-position");
    assert_eq!(
        methods[1]["params"],
        json!([
            {"name": "a", "required": true, "schema": {"type": "integer"}},
            {"name": "b", "required": false, "schema": {"type": "string"}},
        ])
    );
}

#[test]
fn a_route_that_notifies_has_no_result() {
    let notify = RouteSource {
        is_notification: true,
        ..source("n", "POST /n", "n")
    };
    let routes = routes(vec![notify]);
    assert_eq!(
        openrpc(&routes, &ApiInfo::default())["methods"][0].get("result"),
        None
    );
    let document = openapi(&routes, &ApiInfo::default());
    let responses = document["paths"]["/n"]["post"]["responses"]
        .as_object()
        .unwrap();
    assert_eq!(responses.keys().collect::<Vec<_>>(), ["202", "default"]);
}

#[test]
fn a_document_is_rendered_as_the_json_that_it_is() {
    let routes = routes(vec![source("r", "GET /a?q={q=\"\\u00e9\"}", "m")]);
    let document = openapi(&routes, &ApiInfo::default().titled("a \"title\""));
    let rendered = rendered(&document);
    let back: Value = serde_json::from_slice(rendered.as_bytes()).unwrap();
    assert_eq!(back, document);
}
