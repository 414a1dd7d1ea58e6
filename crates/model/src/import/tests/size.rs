//! Large documents, and texts of documents that a terminal could interpret as commands.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};

use crate::import::model::{CallModel, Operations, RpcOperation};
use crate::import::openapi;
use crate::import::pair::Pairs;
use crate::import::table::SkipReasons;
use crate::import::tool_rows::ItemPaths;

use super::{DocumentKind, draft, fault, given, json, left_out, rest, routes, rpc};

/// A body of so many properties, and a method of as many params with other spellings.
fn large(count: usize) -> [(DocumentKind, Value); 2] {
    let names = || (0..count).map(|number| format!("member_{number}Id"));
    let properties: Map<String, Value> = names().map(|name| (name, json!({}))).collect();
    let required: Vec<String> = names().collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let body = json!({ "content": { "application/json": { "schema": schema } } });
    let paths = json!({ "/a": { "post": { "operationId": "a", "requestBody": body } } });
    let params: Vec<Value> = (0..count)
        .map(|number| json!({ "name": format!("Member-{number}-id") }))
        .collect();
    [rest(paths), rpc(json!([{ "name": "a", "params": params }]))]
}

#[test]
fn large_bodies_are_paired_with_many_params() {
    let given = large(20_000).map(|(kind, document)| given(kind, document));
    let found = draft(&given).unwrap();
    assert_eq!(found.report.paired, 1);
    assert_eq!(found.toml.matches("look: ").count(), 0, "all have twins");
}

#[test]
fn repeated_values_of_an_enumeration_are_named_once() {
    let words: Vec<String> = (0..60_000)
        .map(|number| format!("w{}", number % 30_000))
        .collect();
    let parameters =
        json!([{ "name": "q", "in": "query", "schema": { "type": "string", "enum": words } }]);
    let found = routes([rest(
        json!({ "/a": { "get": { "parameters": parameters } } }),
    )]);
    assert_eq!(found.matches("w29999").count(), 1);
    assert_eq!(found.matches('|').count(), 29_999);
}

#[test]
fn no_control_character_of_a_document_is_printed() {
    let nasty = "\u{1b}[2J\u{0}\u{9b}x";
    let bad = json!({ "$ref": format!("#/{nasty}") });
    let lines = left_out([rest(
        json!({ format!("/{nasty}"): { "get": { "parameters": [bad] } } }),
    )]);
    assert_eq!(lines.len(), 1);
    assert!(!lines[0].contains(char::is_control), "{lines:?}");
    let mut deep = json!({});
    for _ in 0..250 {
        deep = json!({ "a": deep });
    }
    let document = json!({ "openapi": "3.0.0", "paths": { "/a": {} }, nasty: deep });
    let message = fault(DocumentKind::OpenApi, document);
    assert!(
        message.contains("nested more than 200 deep") && !message.contains(char::is_control),
        "{message:?}"
    );
}

/// The time that this thread has computed.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Expects that the time of some work grows with what it is done on: that of eight times as much is compared.
fn expect_growth<T>(small: usize, prepare: impl Fn(usize) -> T, work: impl Fn(&T)) {
    let time_of = |count: usize| {
        let prepared = prepare(count);
        let times = (0..2).map(|_| {
            let begin = computed();
            work(&prepared);
            computed() - begin
        });
        times.min().unwrap()
    };
    let (small, large) = (time_of(small), time_of(8 * small));
    // A quadratic step would take up to 64 times as long.
    assert!(large < small * 20, "{small:?} and {large:?}");
}

/// Expects that the time of a draft grows with its documents.
fn grows_with(small: usize, documents: impl Fn(usize) -> Vec<(DocumentKind, Value)>) {
    let prepare = |count: usize| -> Vec<_> {
        let documents = documents(count).into_iter();
        documents
            .map(|(kind, document)| given(kind, document))
            .collect()
    };
    expect_growth(small, prepare, |given| drop(draft(given).unwrap()));
}

fn parameter(name: &str, location: &str) -> Value {
    json!({ "name": name, "in": location, "required": true })
}

/// `POST` to a path with these parameters and a body of these members.
fn operation(path: &str, parameters: Vec<Value>, members: Vec<String>) -> (DocumentKind, Value) {
    let members: Map<String, Value> = members.into_iter().map(|name| (name, json!({}))).collect();
    let schema = json!({ "type": "object", "properties": members });
    let body = json!({ "content": { "application/json": { "schema": schema } } });
    let post = json!({ "operationId": "a", "parameters": parameters, "requestBody": body });
    rest(json!({ path: { "post": post } }))
}

#[test]
fn the_time_of_a_path_grows_with_its_parameters() {
    grows_with(1_000, |count| {
        let names = || (0..count).map(|number| format!("p{number}"));
        let path: String = names().map(|name| format!("/{{{name}}}")).collect();
        let declared = names().map(|name| parameter(&name, "path"));
        vec![operation(&path, declared.collect(), Vec::new())]
    });
}

#[test]
fn the_time_of_refused_pairs_grows_with_their_number() {
    let prepare = |count: usize| {
        let rpc = (0..count).map(|number| RpcOperation {
            name: format!("m{number}"),
            call: CallModel::ByName,
            accepts_both_forms: false,
            params: Vec::new(),
            has_others: false,
            result: None,
            document: 0,
            index: 0,
            effect: None,
            notes: Vec::new(),
        });
        let found = Operations {
            rpc: rpc.collect(),
            ..Operations::default()
        };
        let refusals = (0..count).map(|at| (at, at, "why".to_owned()));
        (found, refusals.collect::<Vec<_>>())
    };
    expect_growth(2_000, prepare, |(found, refusals)| {
        let pairs = Pairs::default();
        let doubts = SkipReasons::new(found, &pairs, refusals);
        let lines = (0..refusals.len()).filter_map(|at| doubts.for_rest(at));
        assert_eq!(lines.count(), refusals.len());
    });
}

#[test]
fn the_time_of_items_of_collections_grows_with_their_number() {
    let prepare = |count: usize| {
        let paths = (0..count).map(|number| {
            let create = (format!("/c{number}"), json!({ "post": {} }));
            [create, (format!("/c{number}/{{id}}"), json!({ "get": {} }))]
        });
        let paths: Map<String, Value> = paths.flatten().collect();
        let document = json!({ "openapi": "3.1.0", "paths": paths });
        openapi::read_normal(&document).unwrap().rest
    };
    expect_growth(500, prepare, |all| {
        let items = ItemPaths::new(all);
        let found = all.iter().filter_map(|one| items.of(one));
        assert_eq!(found.count(), all.len() / 2);
    });
}

#[test]
fn the_time_of_objects_in_a_query_grows_with_their_number() {
    let object = |number: usize| {
        let schema = json!({ "type": "object", "properties": { "x": {} } });
        json!({ "name": format!("o{number}"), "in": "query", "style": "deepObject", "schema": schema })
    };
    grows_with(2_000, |count| {
        vec![operation(
            "/a",
            (0..count).map(object).collect(),
            Vec::new(),
        )]
    });
}

#[test]
fn the_time_of_an_object_whose_name_is_used_grows_with_its_members() {
    grows_with(500, |count| {
        let names = || (2..count).map(|number| format!("o_{number}"));
        let members: Map<String, Value> = names().map(|name| (name, json!({}))).collect();
        let schema = json!({ "type": "object", "properties": members });
        let object = json!({ "name": "o", "in": "query", "style": "deepObject", "schema": schema });
        let others = names().chain(["o".to_owned()]);
        let others = others.map(|name| parameter(&name, "header"));
        let parameters = [object].into_iter().chain(others).collect();
        vec![operation("/a", parameters, Vec::new())]
    });
}

#[test]
fn the_time_of_params_and_comments_grows_with_their_number() {
    grows_with(2_000, |count| {
        // A cookie and a param that is there twice are a comment each.
        let cookies = (0..count).map(|number| parameter(&format!("c{number}"), "cookie"));
        let params: Vec<Value> = (0..2 * count)
            .map(|number| json!({ "name": format!("p{}", number / 2) }))
            .collect();
        let method = json!({ "name": "a", "params": params });
        let members = (0..count).map(|number| format!("p{number}"));
        let documents = operation("/a", cookies.collect(), members.collect());
        vec![documents, rpc(json!([method]))]
    });
}

#[test]
fn the_time_of_a_param_that_may_be_the_body_grows_with_path_and_params() {
    grows_with(500, |count| {
        let path: String = (0..count).map(|number| format!("/w{number}")).collect();
        let params: Vec<Value> = (0..count)
            .map(|number| json!({ "name": format!("p{number}") }))
            .collect();
        let method = json!({ "name": "a", "params": params });
        vec![
            operation(&path, Vec::new(), vec!["other".to_owned()]),
            rpc(json!([method])),
        ]
    });
}

#[test]
fn the_time_of_rivals_grows_with_their_params() {
    grows_with(500, |count| {
        let paths: Map<String, Value> = (0..count / 10)
            .map(|number| (format!("/v{number}/pets"), json!({ "get": {} })))
            .collect();
        let params: Vec<Value> = (0..count)
            .map(|number| json!({ "name": format!("firstWord{number}Id") }))
            .collect();
        let method = json!({ "name": "listPets", "params": params });
        vec![rest(Value::Object(paths)), rpc(json!([method]))]
    });
}

/// A document with this schema, which so many operations refer to.
fn shared(schema: Value, count: usize) -> (DocumentKind, Value) {
    let reference = json!({ "$ref": "#/components/schemas/Shared" });
    let body = json!({ "content": { "application/json": { "schema": reference } } });
    let parameters = json!([{ "name": "q", "in": "query", "schema": reference }]);
    let operation = json!({ "post": { "requestBody": body, "parameters": parameters } });
    let paths: Map<String, Value> = (0..count)
        .map(|number| (format!("/a{number}"), operation.clone()))
        .collect();
    let components = json!({ "schemas": { "Shared": schema } });
    let document = json!({ "openapi": "3.0.0", "paths": paths, "components": components });
    (DocumentKind::OpenApi, document)
}

#[test]
fn an_enumeration_that_is_referred_to_too_often_is_any_value() {
    let words: Vec<String> = (0..2_000).map(|number| format!("w{number}")).collect();
    let found = routes([shared(json!({ "type": "string", "enum": words }), 2_000)]);
    assert!(
        found.contains("q={q:enum(w0|w1|"),
        "the first ones are read"
    );
    assert!(found.matches("w1999").count() <= 1_000);
    assert!(found.contains("q={q:string?}"), "the last ones are not");
}

#[test]
fn references_that_multiply_are_refused() {
    let names: Vec<String> = (0..2_000).map(|number| format!("w{number}")).collect();
    let required = json!({ "type": "object", "required": names });
    let long = json!({ "type": "object", "properties": { "x".repeat(100_000): {} } });
    for schema in [required, long] {
        let (kind, document) = shared(schema, 1_000);
        let message = fault(kind, document);
        assert!(
            message.contains("lead to more than 1000000 values"),
            "{message}"
        );
    }
}
