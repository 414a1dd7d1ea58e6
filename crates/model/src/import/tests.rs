//! Import: each kind of document on a small scale, and the laws for documents of any kind.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{DocumentKind, ImportDraft, SourceDocument, draft};

mod any;
mod either;
mod forms;
mod names;
mod objects;
mod pairs;
mod references;
mod size;
mod tools;
mod version_3_2;
mod weak_pairs;

fn given(kind: DocumentKind, document: Value) -> SourceDocument {
    SourceDocument {
        name: "document".to_owned(),
        kind,
        document,
    }
}

fn drafted(documents: impl IntoIterator<Item = (DocumentKind, Value)>) -> ImportDraft {
    let given = documents
        .into_iter()
        .map(|(kind, value)| given(kind, value));
    draft(&given.collect::<Vec<_>>()).unwrap()
}

fn fault(kind: DocumentKind, document: Value) -> String {
    draft(&[given(kind, document)]).unwrap_err().to_string()
}

/// A document with these paths.
fn rest(paths: Value) -> (DocumentKind, Value) {
    (
        DocumentKind::OpenApi,
        json!({ "openapi": "3.0.0", "paths": paths }),
    )
}

/// A document with these methods, with params by name unless a method declares another form.
fn rpc(mut methods: Value) -> (DocumentKind, Value) {
    for method in methods.as_array_mut().into_iter().flatten() {
        if method.get("name").is_some() && method.get("paramStructure").is_none() {
            method["paramStructure"] = json!("by-name");
        }
    }
    (
        DocumentKind::OpenRpc,
        json!({ "openrpc": "1.3.2", "methods": methods }),
    )
}

/// The lines of a draft that are neither comments nor documentation.
fn routes(documents: impl IntoIterator<Item = (DocumentKind, Value)>) -> String {
    const OF_DOCS: [&str; 5] = ["#", "schema.", "summary = ", "description = ", "tags = "];
    let toml = drafted(documents).toml;
    let lines = toml
        .lines()
        .take_while(|line| *line != "[schemas]")
        .filter(|line| !OF_DOCS.iter().any(|word| line.starts_with(word)) && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Which REST operation is which RPC method.
fn paired(paths: Value, methods: Value) -> Vec<(String, String)> {
    let text = drafted([rest(paths), rpc(methods)]).toml;
    let blocks = text
        .split("\n\n")
        .filter(|block| block.contains("# paired: "));
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let pair = |block: &str| (value(block, "rest = "), value(block, "rpc = "));
    blocks.map(pair).collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(rest, rpc): &(&str, &str)| ((*rest).to_owned(), (*rpc).to_owned());
    wanted.iter().map(owned).collect()
}

/// The operations without a route, each with its reason.
fn left_out(documents: impl IntoIterator<Item = (DocumentKind, Value)>) -> Vec<String> {
    let left_out = drafted(documents).report.left_out.into_iter();
    left_out
        .map(|one| format!("{}: {}", one.what, one.why))
        .collect()
}

fn named(names: &[&str]) -> Value {
    let method = |name: &&str| json!({ "name": name, "params": [] });
    names.iter().map(method).collect()
}

#[test]
fn an_operation_id_equal_to_the_name_pairs_regardless_of_the_path() {
    let paths = json!({ "/x/y": { "post": { "operationId": "pets.list" } } });
    let found = paired(paths, named(&["pets.list", "y.create"]));
    assert_eq!(found, pairs(&[("POST /x/y", "pets.list")]));
}

#[test]
fn verbs_and_nouns_are_compared_regardless_of_spelling() {
    for (id, name) in [
        ("listPets", "pets/list"),
        ("listPets", "get_pets"),
        ("getPetById", "pets.get"),
        ("show-pet", "fetchPet"),
        ("addCategory", "categories.create"),
        ("removePetOwner", "owner_pet.delete"),
    ] {
        let paths = json!({ "/x": { "get": { "operationId": id } } });
        assert_eq!(
            paired(paths, named(&[name])),
            pairs(&[("GET /x", name)]),
            "{id} {name}"
        );
    }
}

#[test]
fn method_and_path_replace_a_missing_operation_id() {
    let paths = json!({
        "/api/v1/pets": { "get": {}, "post": {} },
        "/api/v1/pets/{id}": { "get": {}, "put": {}, "delete": {} },
        "/api/v1/tools/call": { "post": {} },
    });
    let names = [
        "pet.get",
        "pet.list",
        "pet.create",
        "pet.update",
        "pet.delete",
        "tools/call",
    ];
    assert_eq!(
        paired(paths, named(&names)),
        pairs(&[
            ("GET /api/v1/pets", "pet.list"),
            ("POST /api/v1/pets", "pet.create"),
            ("GET /api/v1/pets/{id}", "pet.get"),
            ("PUT /api/v1/pets/{id}", "pet.update"),
            ("DELETE /api/v1/pets/{id}", "pet.delete"),
            ("POST /api/v1/tools/call", "tools/call"),
        ])
    );
}

#[test]
fn ambiguous_candidates_are_reported_and_not_paired() {
    let paths = json!({ "/a/pets": { "get": {} }, "/b/pets": { "get": {} } });
    let found = drafted([rest(paths), rpc(named(&["pets.list"]))]);
    assert_eq!(
        (
            found.report.paired,
            found.report.rest_alone,
            found.report.rpc_alone
        ),
        (0, 2, 1)
    );
    let doubt = "look: it may match any of `GET /a/pets`, `GET /b/pets`; choose one";
    assert!(found.toml.contains(doubt), "{}", found.toml);
}

#[test]
fn parameter_names_decide_between_two_candidates() {
    let query = json!([{ "name": "owner", "in": "query", "schema": { "type": "string" } }]);
    let paths = json!({
        "/a/pets": { "get": {} },
        "/b/pets": { "get": { "parameters": query } },
    });
    let methods = json!([{ "name": "pets.list", "params": [{ "name": "owner" }] }]);
    let found = drafted([rest(paths), rpc(methods)]);
    assert_eq!((found.report.paired, found.report.rest_alone), (1, 1));
    assert!(
        found
            .toml
            .contains("rest = \"GET /b/pets?owner={owner:string?}\"")
    );
    assert!(found.toml.contains("; the names of the parameters decided"));
}

#[test]
fn the_order_of_documents_and_methods_does_not_matter() {
    let paths = || json!({ "/pets": { "get": {} }, "/pets/{id}": { "get": {} } });
    let one = drafted([rest(paths()), rpc(named(&["pets.list", "pets.get"]))]);
    let other = drafted([rpc(named(&["pets.get", "pets.list"])), rest(paths())]);
    assert_eq!(one, other);
}

#[test]
fn parameters_are_matched_by_name_and_keep_their_wire_names() {
    let parameters = json!([
        { "name": "petId", "in": "path", "required": true, "schema": { "type": "integer" } },
        { "name": "page-size", "in": "query", "schema": { "type": "integer", "default": 5 } },
        { "name": "filter[name]", "in": "query", "required": true },
        { "name": "X-Tenant", "in": "header", "schema": { "type": "string" } },
    ]);
    let paths = json!({ "/pets/{petId}/toys": { "get": { "operationId": "toys", "parameters": parameters } } });
    let params = json!([
        { "name": "id", "required": true, "schema": { "type": "integer" } },
        { "name": "pageSize", "schema": { "type": "integer" } },
        { "name": "filter-name", "schema": { "type": "string" } },
        { "name": "tenant" },
        { "name": "x_tenant" },
    ]);
    let found = routes([
        rest(paths),
        rpc(json!([{ "name": "toys", "params": params }])),
    ]);
    assert_eq!(
        found,
        "[[route]]\n\
         name = \"toys\"\n\
         rest = \"GET /pets/{id:integer}/toys?page-size={pageSize:integer=5}&filter%5Bname%5D={filter_name:string}\"\n\
         rpc = \"toys\"\n\
         headers = { x-tenant = \"{x_tenant:string?}\" }\n\
         params = { id = \"{id}\", pageSize = \"{pageSize}\", filter-name = \"{filter_name}\", x_tenant = \"{x_tenant}\" }"
    );
}

#[test]
fn a_body_that_is_one_param_is_bound_as_a_whole() {
    let body = json!({ "content": { "application/json": { "schema": { "type": "array" } } } });
    let paths = json!({ "/pets": { "post": { "operationId": "add", "requestBody": body } } });
    let params = json!([{ "name": "pets", "required": true, "schema": { "type": "array" } }]);
    let found = routes([
        rest(paths),
        rpc(json!([{ "name": "add", "params": params }])),
    ]);
    assert!(
        found.ends_with("body = \"{pets:array}\"\nparams = { pets = \"{pets}\" }"),
        "{found}"
    );
}

#[test]
fn a_parameter_without_a_positional_param_prevents_a_pair() {
    let id = json!([{ "name": "id", "in": "path" }]);
    let paths = json!({ "/pets/{id}": { "delete": { "operationId": "drop", "parameters": id } } });
    let methods = json!([{ "name": "drop", "paramStructure": "by-position", "params": [] }]);
    let found = drafted([rest(paths), rpc(methods)]);
    assert_eq!(
        (
            found.report.paired,
            found.report.rest_alone,
            found.report.rpc_alone
        ),
        (0, 1, 1)
    );
    let note = "look: it seems to match `drop`, but no positional param matches `id`";
    assert!(found.toml.contains(note), "{}", found.toml);
}

#[test]
fn an_array_of_params_has_one_optional_element_at_most() {
    let params = json!([
        { "name": "a" },
        { "name": "b", "schema": { "type": "integer", "default": 7 } },
        { "name": "c" },
    ]);
    let methods = json!([{ "name": "f", "paramStructure": "by-position", "params": params }]);
    let found = routes([rpc(methods)]);
    let wanted = "body = { a = \"{a}\", b = \"{b:integer=7}\", c = \"{c?}\" }\n\
                  params = [\"{a}\", \"{b}\", \"{c}\"]";
    assert!(found.ends_with(wanted), "{found}");
}

#[test]
fn null_is_read_in_the_syntax_of_both_versions() {
    let schemas = [
        json!({ "type": "string", "nullable": true }),
        json!({ "type": ["string", "null"] }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
    ];
    for schema in schemas {
        let properties = json!({ "x": schema, "y": { "type": "string" } });
        let schema = json!({ "type": "object", "properties": properties });
        let tools = json!({ "tools": [{ "name": "t", "inputSchema": schema }] });
        let found = routes([(DocumentKind::Tools, tools)]);
        assert!(
            found.contains("body = { x = \"{x?}\", y = \"{y:string?}\" }"),
            "{found}"
        );
    }
}

#[test]
fn a_schema_may_refer_to_itself() {
    let node = json!({
        "type": "object",
        "properties": { "child": { "$ref": "#/components/schemas/Node" } },
        "allOf": [{ "required": ["child"] }],
    });
    let content =
        json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Node" } } });
    let document = json!({
        "openapi": "3.1.0",
        "paths": { "/n/{child}": { "put": { "requestBody": { "content": content } } } },
        "components": { "schemas": { "Node": node } },
    });
    let found = routes([(DocumentKind::OpenApi, document)]);
    assert!(found.contains("body = { child = \"{child}\" }"), "{found}");
}

#[test]
fn whatever_is_no_route_is_told_with_its_reason() {
    let upload = json!({ "content": { "application/xml": {} } });
    let bytes = json!({ "200": { "content": { "application/octet-stream": {} } } });
    let object =
        json!([{ "name": "q", "in": "query", "required": true, "schema": { "type": "object" } }]);
    let paths = json!({
        "/a//": { "get": {} },
        "/b?c": { "get": {} },
        "/{x}{y}": { "get": {} },
        "/{x}-{y": { "get": {} },
        "/{x}/{x}": { "get": {} },
        "/:id": { "get": {} },
        "/50%": { "get": {} },
        "/upload": { "post": { "requestBody": upload } },
        "/bytes": { "get": { "responses": bytes } },
        "/object": { "get": { "parameters": object } },
        "/both": { "get": {}, "head": {}, "options": {} },
    });
    let found = drafted([rest(paths)]);
    assert_eq!((found.report.rest, found.report.rest_alone), (13, 1));
    let lines = found.report.left_out.iter();
    let lines: Vec<String> = lines
        .map(|one| format!("{}: {}", one.what, one.why))
        .collect();
    assert!(lines.iter().all(|line| found.toml.contains(line.as_str())));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_path_with_text_beside_its_parameters_is_drafted() {
    let integer =
        json!([{ "name": "n", "in": "path", "required": true, "schema": { "type": "integer" } }]);
    let paths = json!({
        "/block/{hash}.json": { "get": {} },
        "/block/{hash}.hex": { "get": {} },
        "/compare/{base}...{head}/files": { "get": {} },
        "/tx/{n}.json": { "get": { "parameters": integer } },
        "/{project}:{place}": { "get": {} },
    });
    let found = drafted([rest(paths)]);
    assert_eq!(
        (found.report.rest_alone, found.report.left_out.len()),
        (5, 0)
    );
    let lines: Vec<&str> = found.toml.lines().collect();
    for (name, rest) in [
        ("block.get", "GET /block/{hash}.hex"),
        ("block.hash.json.get", "GET /block/{hash}.json"),
        ("compare.files.list", "GET /compare/{base}...{head}/files"),
        ("tx.get", "GET /tx/{n:integer}.json"),
        ("root.get", "GET /{project}:{place}"),
    ] {
        let line = format!("rest = {rest:?}");
        let at = lines.iter().position(|own| *own == line);
        let at = at.unwrap_or_else(|| panic!("{line}\nin\n{}", found.toml));
        assert_eq!(lines[at - 1], format!("name = {name:?}"));
    }
    // The parameter of the first one takes the calls of the second, too.
    let paths =
        json!({ "/compare/{range}": { "get": {} }, "/compare/{base}...{head}": { "get": {} } });
    let found = drafted([rest(paths)]);
    assert!(
        found.toml.contains("\"GET /compare/{range}\""),
        "{}",
        found.toml
    );
    let left_out = &found.report.left_out[0];
    assert_eq!(
        left_out.why,
        "its calls are also calls of `GET /compare/{range}`"
    );
    // Neither is more specific.
    let paths = json!({ "/files/tx-{n}": { "get": {} }, "/files/{name}.json": { "get": {} } });
    let found = drafted([rest(paths)]);
    let counts = (found.report.rest_alone, found.report.left_out.len());
    assert_eq!(counts, (1, 1), "{}", found.toml);
}

#[test]
fn the_second_of_two_that_one_call_could_mean_is_a_comment() {
    let paths = || json!({ "/pets/{id}": { "get": {} } });
    let other = json!({ "/pets/{name}": { "get": { "operationId": "byName" } } });
    let found = drafted([rest(paths()), rest(other)]);
    assert_eq!(
        (found.report.rest_alone, found.report.left_out.len()),
        (1, 1)
    );
    assert!(found.toml.contains("# rest = \"GET /pets/{name}\""));
    let twice = drafted([rpc(named(&["f", "f"]))]);
    assert_eq!(
        (twice.report.rpc_alone, twice.report.left_out.len()),
        (1, 1)
    );
}

#[test]
fn an_invented_rest_side_avoids_those_that_are_there() {
    let paths = json!({ "/pets/groom": { "post": { "operationId": "other" } } });
    let found = routes([rest(paths), rpc(named(&["mcp", "calls.pets"]))]);
    assert!(found.contains("rest = \"POST /calls/mcp\""), "{found}");
    assert!(found.contains("rest = \"POST /calls/pets\""), "{found}");
}

#[test]
fn an_answer_that_the_built_in_table_does_not_write_gets_a_row() {
    let answered = |responses: Value| {
        let paths = json!({ "/a": { "post": { "responses": responses } } });
        let found = routes([rest(paths)]);
        let row = found.split_once("[[route.outcome]]\n");
        row.map(|(_, row)| row.to_owned()).unwrap_or_default()
    };
    let json = json!({ "content": { "application/problem+json": {} } });
    let text = json!({ "content": { "text/plain; charset=utf-8": {} } });
    assert_eq!(answered(json!({ "200": json })), "");
    assert_eq!(answered(json!({ "204": {} })), "");
    assert_eq!(answered(json!({ "404": json, "default": json })), "");
    assert_eq!(
        answered(json!({ "201": json })),
        "rest = { status = 201, body = \"{reply}\" }\nrpc = { result = \"{reply}\" }"
    );
    assert_eq!(
        answered(json!({ "201": json, "204": {} })),
        "rest = { status = 204 }\nrpc = { result = \"{_:null}\" }\n[[route.outcome]]\n\
         lossy = \"a body of null is sent as 204\"\nrest = { status = 201, body = \"{reply}\" }\nrpc = { result = \"{reply}\" }"
    );
    assert_eq!(
        answered(json!({ "202": {} })),
        "rest = { status = 202 }\nrpc = { result = \"{_:null}\" }"
    );
    assert_eq!(
        answered(json!({ "200": {} })),
        "rest = { status = 200 }\nrpc = { result = \"{_:null}\" }"
    );
    assert_eq!(answered(json!({ "200": {}, "204": {} })), "");
    assert_eq!(
        answered(json!({ "200": text })),
        "rest = { status = 200, text = \"{reply:string}\" }\nrpc = { result = \"{reply}\" }"
    );
}

#[test]
fn texts_of_a_document_stay_texts() {
    let nasty = "a\"b\\c\n# [[route]]\nname = \"x\" {hole}";
    let paths = json!({ "/a": { "get": { "operationId": nasty, "summary": nasty } } });
    let parsed: toml::Table = drafted([rest(paths)]).toml.parse().unwrap();
    let routes = parsed["route"].as_array().unwrap();
    assert_eq!(routes.len(), 1);
    assert_eq!(
        routes[0]["rpc"].as_str(),
        Some("a\"b\\c\n# [[route]]\nname = \"x\" {{hole}}")
    );
}
