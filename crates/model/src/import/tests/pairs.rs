//! Pairs of a REST operation and a tool: the outcomes that both documents say, and notes on the rest.

use serde_json::{Value, json};

use super::{DocumentKind, drafted, prop_assert, proptest, rest};
use crate::import::arbitrary::any_json;

fn tools(tools: Value) -> (DocumentKind, Value) {
    (DocumentKind::Tools, json!({ "tools": tools }))
}

fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn content(schema: Value) -> Value {
    json!({ "content": { "application/json": { "schema": schema } } })
}

/// Drafts `GET /things/{id}` with these responses, and the tool `get_thing` with this output.
fn pair(responses: Value, output: Option<Value>) -> String {
    let id =
        json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    let get = json!({ "operationId": "getThing", "parameters": [id], "responses": responses });
    let mut tool = json!({ "name": "get_thing", "inputSchema": object(json!({ "id": { "type": "string" } })) });
    if let Some(output) = output {
        tool["outputSchema"] = output;
    }
    let paths = json!({ "/things/{id}": { "get": get } });
    drafted([rest(paths), tools(json!([tool]))]).toml
}

/// Asserts that a draft has these lines, and is TOML.
fn assert_lines(toml: &str, lines: &[&str]) {
    assert!(toml.parse::<toml::Table>().is_ok(), "{toml}");
    for line in lines {
        assert!(toml.lines().any(|own| own == *line), "{line}\nin\n{toml}");
    }
}

fn rows(toml: &str) -> usize {
    toml.matches("[[route.outcome]]").count()
}

#[test]
fn the_same_body_needs_no_row() {
    let thing = object(json!({ "id": { "type": "string" }, "size": { "type": "integer" } }));
    let toml = pair(json!({ "200": content(thing.clone()) }), Some(thing));
    assert_lines(&toml, &["result = \"tool\""]);
    assert_eq!(rows(&toml), 0, "{toml}");
}

#[test]
fn a_null_that_rest_does_not_allow_is_a_note() {
    let nullable = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    let thing = |tag: Value| json!({ "type": "object", "properties": { "tag": tag } });
    let note = "# look: `tag` of the response may be `null` for RPC, which the REST document does not allow; REST clients get the `null`";
    let plain = json!({ "200": content(thing(json!({ "type": "string" }))) });
    let toml = pair(plain, Some(thing(nullable.clone())));
    assert_lines(&toml, &[note]);
    for allowed in [
        nullable.clone(),
        json!({ "type": "string", "nullable": true }),
        json!({}),
    ] {
        let toml = pair(
            json!({ "200": content(thing(allowed)) }),
            Some(thing(nullable.clone())),
        );
        assert!(!toml.contains("may be `null`"), "{toml}");
    }
}

#[test]
fn a_wrapped_body_is_unwrapped() {
    let string = json!({ "type": "string" });
    let list = json!({ "type": "array", "items": string });
    let toml = pair(
        json!({ "200": content(list.clone()) }),
        Some(object(json!({ "result": list }))),
    );
    assert_lines(
        &toml,
        &[
            "rest = { status = 200, body = \"{result}\" }",
            "rpc = { result = { structuredContent = { result = \"{result}\" } } }",
            r#"schema.result = '{"properties":{"result":{"items":{"type":"string"},"type":"array"}},"required":["result"],"type":"object"}'"#,
        ],
    );
}

#[test]
fn members_are_renamed_and_known_values_are_added() {
    let string = json!({ "type": "string" });
    let old = object(
        json!({ "id": string, "kind": { "const": "thing" }, "thingName": string, "owner": string }),
    );
    let new = object(json!({ "thing_name": string, "success": { "const": true } }));
    let toml = pair(json!({ "200": content(old) }), Some(new));
    assert_lines(
        &toml,
        &[
            "# look: the body of the response has the member `owner` for REST; the tool does not send it",
            "rest = { status = 200, body = { id = \"{>id}\", kind = \"{_=thing}\", thingName = \"{thingName}\" } }",
            "rpc = { result = { structuredContent = { thing_name = \"{thingName}\", success = \"{_=true}\" } } }",
        ],
    );
}

#[test]
fn statuses_are_kept() {
    let thing = || content(object(json!({ "a": { "type": "string" } })));
    let output = || Some(object(json!({ "a": { "type": "string" } })));
    let toml = pair(json!({ "201": thing() }), output());
    assert_lines(
        &toml,
        &[
            "rest = { status = 201, body = \"{reply}\" }",
            "rpc = { result = { structuredContent = \"{reply}\" } }",
        ],
    );
    let toml = pair(json!({ "202": {} }), None);
    assert_lines(&toml, &["rest = { status = 202 }"]);
    let toml = pair(json!({ "200": thing(), "204": {} }), output());
    assert_eq!(rows(&toml), 0, "{toml}");
    let text = json!({ "200": { "content": { "text/plain": {} } } });
    assert_lines(
        &pair(text, None),
        &["rest = { status = 200, text = \"{text}\" }"],
    );
}

#[test]
fn what_the_documents_do_not_say_is_a_note() {
    let toml = pair(json!({ "200": content(json!({})) }), None);
    let no_schema = "# look: the tool has no outputSchema; the body of the 200 is its `structuredContent`, or its text as JSON";
    let no_failure = "# look: the REST document has no status for a failure of the operation; a failed tool is a 422";
    assert_lines(&toml, &[no_schema, no_failure]);
    let toml = pair(json!({}), Some(json!({ "type": "object" })));
    assert!(
        toml.contains("look: the REST document names no success"),
        "{toml}"
    );
    let number = object(json!({ "a": { "type": "number" } }));
    let toml = pair(
        json!({ "200": content(object(json!({ "a": { "type": "string" } }))) }),
        Some(number),
    );
    assert_lines(
        &toml,
        &["# look: `a` of the response is string for REST and number for RPC"],
    );
}

#[test]
fn the_failure_of_a_tool_has_the_declared_status_and_body() {
    let error = || {
        content(object(
            json!({ "code": { "type": "integer" }, "message": { "type": "string" } }),
        ))
    };
    let ok = content(json!({}));
    let toml = pair(
        json!({ "200": ok, "400": error(), "401": error(), "404": error(), "429": error() }),
        None,
    );
    let failed = "rpc = { result = { isError = true, content = [{ type = \"text\", text = \"{message}\" }, \"{_...}\"] } }";
    assert_lines(
        &toml,
        &[
            "rest = { status = 404, body = { code = \"{_=404}\", message = \"{message}\" } }",
            failed,
            "rest = { status = 400, body = { code = \"{_=400}\", message = \"{message}\" } }",
            "rpc = { error = { code = -32602, message = \"{message}\" } }",
        ],
    );
    let plain = || content(object(json!({ "error": { "type": "string" } })));
    let toml = pair(json!({ "200": ok, "404": plain(), "409": plain() }), None);
    assert_lines(
        &toml,
        &["rest = { status = [404, 409], body = { error = \"{message}\" } }"],
    );
    assert!(toml.contains("its failures are 404, 409"), "{toml}");
    let toml = pair(json!({ "200": ok, "default": plain() }), None);
    assert_lines(
        &toml,
        &["rest = { status = 422, body = { error = \"{message}\" } }"],
    );
}

#[test]
fn a_declared_problem_is_a_problem() {
    let string = json!({ "type": "string" });
    let problem = object(
        json!({ "type": string, "title": string, "status": { "type": "integer" }, "detail": string }),
    );
    let problem = json!({ "content": { "application/problem+json": { "schema": problem } } });
    let toml = pair(json!({ "200": content(json!({})), "404": problem }), None);
    let found: toml::Table = toml.parse().unwrap();
    let rest = &found["route"][0]["outcome"][0]["rest"];
    assert_eq!(
        rest["headers"]["content-type"].as_str(),
        Some("application/problem+json")
    );
    let body = &rest["body"];
    let texts = ["type", "title", "status", "detail"].map(|name| body[name].as_str().unwrap());
    assert_eq!(
        texts,
        ["{_=about:blank}", "{_=Not Found}", "{_=404}", "{message}"]
    );
}

#[test]
fn a_failure_without_a_place_for_its_words_is_left_to_the_usual_one() {
    let faults = object(json!({ "detail": { "type": "array", "items": { "type": "object" } } }));
    let toml = pair(
        json!({ "200": content(json!({})), "422": content(faults) }),
        None,
    );
    assert_eq!(rows(&toml), 0, "{toml}");
}

#[test]
fn operations_without_a_twin_pass() {
    let paths = json!({ "/health": { "get": { "operationId": "health" } } });
    let toml = drafted([rest(paths.clone()), tools(json!([{ "name": "other" }]))]).toml;
    assert_lines(&toml, &["stage = \"passthrough\"", "from = \"rest\""]);
    let alone = drafted([rest(paths)]).toml;
    assert!(!alone.contains("stage"), "{alone}");
}

proptest! {
    #[test]
    fn any_schemas_make_a_table(old in any_json(), new in any_json(), failed in any_json()) {
        let toml = pair(json!({ "200": content(old), "404": content(failed) }), Some(new));
        prop_assert!(toml.parse::<toml::Table>().is_ok(), "{}", toml);
    }
}

/// Drafts `POST /teams/{team}/things` with a declared `Location`, and the tool `create_thing` with this output.
fn created(get: &str, body: Value, output: Value) -> String {
    let parameter = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let headers =
        json!({ "Location": { "schema": { "type": "string" } }, "X-Cost": {}, "Content-Type": {} });
    let mut response = content(body);
    response["headers"] = headers;
    let item = get.rsplit_once("/{").unwrap().1.trim_end_matches('}');
    let paths = json!({
        "/teams/{team}/things": { "post": {
            "operationId": "createThing", "parameters": [parameter("team")], "responses": { "201": response },
        } },
        get: { "get": {
            "operationId": "readThing", "parameters": [parameter("squad"), parameter(item)], "responses": {},
        } },
    });
    let tool = json!({
        "name": "create_thing", "inputSchema": object(json!({ "team": { "type": "string" } })), "outputSchema": output,
    });
    drafted([rest(paths), tools(json!([tool]))]).toml
}

#[test]
fn the_address_of_a_created_resource_is_made_of_both_documents() {
    let get = "/teams/{squad}/things/{thingId}";
    let thing = |id: &str| {
        let mut thing = object(json!({ id: { "type": "string" }, "a": { "type": "string" } }));
        thing["required"] = json!([id]);
        thing
    };
    let located = "headers = { location = \"/teams/{>team}/things/{>id}\" }";
    let note = "# look: `location` of the 201 is the path of `GET /teams/{squad}/things/{thingId}`, with `id` of the result";
    let other = "# look: the 201 declares the header `x-cost`, but the documents do not say which part of the tool's result it is; REST clients do not get it unless you add `headers` to the outcome";
    for output in [
        thing("id"),
        object(json!({ "thing": thing("id"), "done": { "type": "boolean" } })),
        thing("thing_id"),
    ] {
        let toml = created(get, thing("id"), output);
        assert!(toml.contains(located), "{toml}");
        // The last row reads responses of the REST server with another address.
        let last = toml.rsplit_once("[[route.outcome]]").unwrap().1;
        assert!(!last.contains("headers"), "{toml}");
        assert_lines(&toml, &[note, other]);
        assert!(!toml.contains("declares the header `location`"), "{toml}");
    }
    // Nothing is invented: the tool may lack the id, and no operation may get the resource.
    let lost = "# look: the 201 declares the header `location` and the header `x-cost`, but the documents do not say which part of the tool's result it is; REST clients do not get it unless you add `headers` to the outcome";
    let mut optional = thing("id");
    optional["required"] = json!([]);
    for (get, body, output) in [
        (
            get,
            thing("id"),
            object(json!({ "a": { "type": "string" } })),
        ),
        (get, thing("id"), optional),
        ("/teams/{squad}/items/{thingId}", thing("id"), thing("id")),
        ("/teams/{squad}/things/{slug}", thing("id"), thing("id")),
    ] {
        let toml = created(get, body, output);
        assert_lines(&toml, &[lost]);
        assert!(!toml.contains("headers = {"), "{toml}");
        assert!(!toml.contains("has the header Location"), "{toml}");
    }
}
