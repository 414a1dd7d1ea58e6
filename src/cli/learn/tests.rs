//! Drafts of observed calls: golden files, and laws.

use std::fs;

use http::{HeaderMap, Method, Uri};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::drafted;
use super::observed::{Content, Observed};
use super::read::{Which, read};
use super::shape::Shape;
use crate::cli::draft_files;
use crate::config::compile::compile;
use crate::config::load::load;
use dualgauge_model::plan::Plan;
use dualgauge_model::routing::{RequestHead, RouteMatch, match_route};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::schema::Schema;
use dualgauge_patterns::side::Side;
use dualgauge_recording::access_log::LoggedCall;
use dualgauge_recording::recording::{
    RecordedBody, RecordedCall, RecordedRequest, RecordedResponse, RecordedTime, Responder,
};

/// Compiles a draft, and asserts that `check` passes it.
fn plan(routes: &str) -> Plan {
    assert_eq!(draft_files::problems(routes), "", "{routes}");
    let (_folder, sources) = draft_files::written(routes);
    compile(&load(&sources).unwrap(), &[]).unwrap()
}

/// Returns the name of the route of a REST call.
fn route_of<'p>(plan: &'p Plan, method: &str, target: &str) -> Option<&'p str> {
    let (method, uri): (Method, Uri) = (method.parse().unwrap(), target.parse().unwrap());
    let head = RequestHead {
        method: &method,
        uri: &uri,
        headers: &HeaderMap::new(),
    };
    match match_route(plan, head) {
        Ok(RouteMatch::Route(index)) => Some(&plan.routes.route(index).name),
        Ok(RouteMatch::ByBody(_)) => Some("by body"),
        Ok(RouteMatch::Unrouted | RouteMatch::Near(_)) | Err(_) => None,
    }
}

fn recorded(side: Side, called: (&str, &str), bodies: (Value, Value)) -> RecordedCall {
    let body = |value: &Value| {
        let content = (!value.is_null()).then(|| value.to_string());
        content.map_or(RecordedBody::Empty, |text| RecordedBody::new(&text.into()))
    };
    RecordedCall {
        time: RecordedTime::default(),
        side,
        route: None,
        client: None,
        stage: None,
        reason: "unrouted".to_owned(),
        request: RecordedRequest {
            method: called.0.to_owned(),
            target: called.1.to_owned(),
            headers: Vec::new(),
            body: body(&bodies.0),
        },
        response: Some(RecordedResponse {
            status: 200,
            from: Responder::Old,
            failure: None,
            headers: Vec::new(),
            body: body(&bodies.1),
            latency_us: 1,
        }),
        redacted: Vec::new(),
        complete: true,
    }
}

#[test]
fn messages_of_old_dialects_become_no_rest_routes() {
    let mut observed = Observed::default();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "item.get", "params": { "id": 7 } });
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "name": "x" } });
    for (side, target, body) in [
        (Side::Rpc, "/rpc", message),
        (
            Side::Rest,
            "/rpc",
            json!({ "command": "get_item", "request_id": 1 }),
        ),
        (
            Side::Rest,
            "/old",
            json!({ "method": "get_item", "arguments": {}, "tag": 3 }),
        ),
        (
            Side::Rest,
            "/old",
            json!([{ "method": "get_item", "params": [7], "id": 3 }]),
        ),
        (
            Side::Rest,
            "/payments",
            json!({ "method": "card", "amount": 5 }),
        ),
    ] {
        let bodies = (body, answer.clone());
        observed.add_recorded(&recorded(side, ("POST", target), bodies));
    }
    let draft = drafted(&mut observed, "calls.jsonl").unwrap().toml;
    let plan = plan(&draft);
    assert!(route_of(&plan, "POST", "/payments").is_some(), "{draft}");
    for target in ["/rpc", "/old"] {
        assert_eq!(route_of(&plan, "POST", target), None, "{draft}");
    }
    let left_out: u64 = observed.left_out.values().sum();
    assert_eq!(left_out, 3, "{:?}", observed.left_out);
}

#[test]
fn a_failure_of_the_proxy_is_no_response_of_the_server() {
    let mut observed = Observed::default();
    for from in [Responder::Proxy, Responder::Old] {
        let failure = json!({ "title": "Not Found", "status": 404 });
        let mut call = recorded(Side::Rest, ("GET", "/items"), (Value::Null, failure));
        let response = call.response.as_mut().unwrap();
        (response.status, response.from) = (404, from);
        observed.add_recorded(&call);
    }
    let calls: Vec<_> = observed.rest.iter().collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(
        (calls[0].status, &calls[0].response),
        (None, &Content::Unknown)
    );
}

#[test]
fn calls_of_both_sides_become_pairs_with_their_guesses() {
    let mut observed = Observed::default();
    for id in [7, 8, 9] {
        let item = json!({ "id": id, "name": "x", "price": 1.5 });
        let target = format!("/api/v1/items/{id}");
        observed.add_recorded(&recorded(
            Side::Rest,
            ("GET", &target),
            (Value::Null, item.clone()),
        ));
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "items.get", "params": { "id": id } });
        let reply = json!({ "jsonrpc": "2.0", "id": 1, "result": item });
        observed.add_recorded(&recorded(Side::Rpc, ("POST", "/rpc"), (call, reply)));
    }
    for query in ["?limit=5&sort=name", "?limit=7", "?limit=7&tag=a&tag=b"] {
        let target = format!("/api/v1/items{query}");
        let items = json!([{ "id": 7, "name": null }, { "id": 8, "name": "x" }]);
        observed.add_recorded(&recorded(
            Side::Rest,
            ("GET", &target),
            (Value::Null, items),
        ));
    }
    let new = json!({ "name": "x", "price": 2, "note": null });
    observed.add_recorded(&recorded(
        Side::Rest,
        ("POST", "/api/v1/items"),
        (new, json!({ "id": 9 })),
    ));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "sum", "params": [1, 2] });
    observed.add_recorded(&recorded(Side::Rpc, ("POST", "/rpc"), (ping, Value::Null)));
    let draft = drafted(&mut observed, "calls.jsonl").unwrap();
    let plan = plan(&draft.toml);
    for target in [
        "/api/v1/items/7",
        "/api/v1/items?limit=9",
        "/api/v1/items?limit=7&tag=a&tag=b",
    ] {
        assert!(
            route_of(&plan, "GET", target).is_some(),
            "{target}: {}",
            draft.toml
        );
    }
    insta::assert_snapshot!(draft.toml);
}

#[test]
fn a_pair_has_a_place_for_every_value_on_both_sides() {
    let mut observed = Observed::default();
    let mut add = |target: &str, method: &str, params: Value| {
        let none = (Value::Null, Value::Null);
        observed.add_recorded(&recorded(Side::Rest, ("GET", target), none));
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        observed.add_recorded(&recorded(Side::Rpc, ("POST", "/rpc"), (call, Value::Null)));
    };
    add("/users/7", "users.get", json!({ "id": "7" }));
    add("/users/8", "users.get", json!({ "id": "8" }));
    add("/items/search?q=a", "items.search", json!({ "query": "a" }));
    add("/orders", "orders.list", json!({ "limit": 20 }));
    add("/orders?limit=5", "orders.list", json!({ "limit": 5 }));
    let draft = drafted(&mut observed, "calls").unwrap().toml;
    for said in [
        // A text of a URL can be the string that the other side takes.
        "rest = \"GET /users/{id:string}\"\nrpc = \"users.get\"",
        "# guess: `q` is `query`",
        "rest = \"GET /items/search?q={query:string}\"\nrpc = \"items.search\"",
        // The server's default is unknown.
        "# look: it seems to match `orders.list`, but `limit` is optional for REST and required for RPC",
    ] {
        assert!(draft.contains(said), "{said}\n{draft}");
    }
    let plan = plan(&draft);
    let orders = plan.routes.routes().iter();
    let mut orders = orders.filter(|route| route.rest.starts_with("GET /orders"));
    assert!(orders.all(|route| route.always_passes), "{draft}");
}

#[test]
fn names_that_are_data_are_not_in_a_draft() {
    let mut observed = Observed::default();
    let target = "/reset?eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2ln&page=2";
    let body = json!({ "users": { "alice@example.com": { "age": 1 } } });
    let response = json!({ "tok_9f8a7b6c5d4e": true });
    let bodies = (body.clone(), response.clone());
    observed.add_recorded(&recorded(Side::Rest, ("POST", target), bodies));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "users.set", "params": body });
    let reply = json!({ "jsonrpc": "2.0", "id": 1, "result": response });
    observed.add_recorded(&recorded(Side::Rpc, ("POST", "/rpc"), (call, reply)));
    let draft = drafted(&mut observed, "calls").unwrap();
    for data in ["eyJ", "alice", "tok_"] {
        assert!(!draft.toml.contains(data), "{data}: {}", draft.toml);
    }
    let plan = plan(&draft.toml);
    assert!(route_of(&plan, "POST", target).is_some(), "{}", draft.toml);
}

#[test]
fn an_access_log_becomes_routes_with_their_guesses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let mut log = String::new();
    let line = |call: &str, status: u16| {
        format!("10.0.0.1 - - [t] \"{call} HTTP/1.1\" {status} 5 \"-\" \"x\"\n")
    };
    for number in 0..14 {
        let name = char::from(b'a' + number);
        log += &line(&format!("GET /users/user-{name}/orders/{number}"), 200);
        log += &line(
            &format!("GET /files/0193f1c0-aaaa-bbbb-cccc-{number:012}"),
            200,
        );
    }
    for call in [
        "GET /users",
        "GET /users/",
        "POST /users",
        "GET /health",
        "GET /search?q=a%20b&page=2",
        "GET /search?q=c",
    ] {
        log += &line(call, 200);
    }
    log += &line("GET /wp-login.php", 404);
    log += &line("OPTIONS /users", 204);
    log += "nonsense\n";
    fs::write(&file, log).unwrap();
    let mut observed = Observed::default();
    read(&file, Which::Unrouted, &mut observed).unwrap();
    let draft = drafted(&mut observed, "access.log").unwrap();
    let plan = plan(&draft.toml);
    for target in [
        "/users/user-zoe/orders/99",
        "/files/0193f1c0-aaaa-bbbb-cccc-999999999999",
    ] {
        assert!(
            route_of(&plan, "GET", target).is_some(),
            "{target}: {}",
            draft.toml
        );
    }
    assert_eq!(route_of(&plan, "GET", "/wp-login.php"), None);
    let left_out = super::left_out(&observed);
    insta::assert_snapshot!(format!("{}\n==== standard error\n{left_out}", draft.toml));
}

#[test]
fn files_without_calls_say_what_they_are_not() {
    let folder = tempfile::tempdir().unwrap();
    for (content, said) in [
        ("", "it is read as an access log: the file is empty"),
        (
            "what\nis this",
            "it is read as an access log: the line has no request",
        ),
        (
            "{\"log\":{\n",
            "it is read as a HAR file: the file ends in line",
        ),
        (
            "{\"format\":\"dualgauge-recording\",\"version\":99}\n",
            "it is read as a recording: line 1: the recording has version 99",
        ),
    ] {
        let file = folder.path().join("file");
        fs::write(&file, content).unwrap();
        let fault = read(&file, Which::All, &mut Observed::default()).unwrap_err();
        assert!(fault.to_string().contains(said), "{fault}");
    }
}

fn any_segment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(items|users|orders|v1|search)",
        2 => "[0-9]{1,4}",
        1 => "[a-z]{1,3}[0-9]{3}[a-z]?",
        1 => "[0-9a-f]{8}-[0-9a-f]{4}",
    ]
}

fn any_target() -> impl Strategy<Value = String> {
    let path = prop::collection::vec(any_segment(), 1..4);
    let pair = ("(limit|page|q|tag)", "([0-9]{1,3}|true|[a-z]{1,3})");
    let query = prop::collection::vec(pair, 0..3);
    (path, query).prop_map(|(path, query)| {
        let query: Vec<String> = query
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("/{}{mark}{}", path.join("/"), query.join("&"))
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-9.5_f64..9.5).prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn drafted_routes_match_every_call_that_they_were_drafted_from(
        calls in prop::collection::vec(("(GET|POST|PUT|DELETE)", any_target()), 1..30)
    ) {
        let mut observed = Observed::default();
        for (method, target) in &calls {
            observed.add_logged(&LoggedCall { method: method.clone(), target: target.clone(), status: Some(200) });
        }
        let draft = drafted(&mut observed, "log").unwrap();
        prop_assert!(draft.report.left_out.is_empty(), "{:?}", draft.report.left_out);
        let plan = plan(&draft.toml);
        for (method, target) in &calls {
            prop_assert!(route_of(&plan, method, target).is_some(), "{} {}: {}", method, target, draft.toml);
        }
    }

    #[test]
    fn drafts_of_any_bodies_pass_check(
        bodies in prop::collection::vec((0_usize..3, any_json(), any_json()), 1..12)
    ) {
        let mut observed = Observed::default();
        for (at, body, response) in bodies {
            let target = ["/items", "/items/7", "/users/7/orders"][at];
            let bodies = (body.clone(), response.clone());
            observed.add_recorded(&recorded(Side::Rest, ("POST", target), bodies));
            let method = ["items/create", "items/set", "orders/create"][at];
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": body });
            let reply = json!({ "jsonrpc": "2.0", "id": 1, "result": response });
            observed.add_recorded(&recorded(Side::Rpc, ("POST", "/rpc"), (call, reply)));
        }
        plan(&drafted(&mut observed, "calls").unwrap().toml);
    }

    #[test]
    fn an_inferred_schema_allows_every_observed_value(values in prop::collection::vec(any_json(), 1..8)) {
        let mut shape = Shape::default();
        values.iter().for_each(|value| shape.add(value));
        let schema = Schema::compile(&shape.schema()).unwrap();
        for value in &values {
            let json = Json::parse(value.to_string().into(), 64).unwrap();
            prop_assert!(schema.check(&json).is_ok(), "{} {}", value, shape.schema());
        }
    }
}
