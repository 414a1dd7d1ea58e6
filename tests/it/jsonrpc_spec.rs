//! The examples of section 7 of the JSON-RPC 2.0 specification, all of them: passed to an RPC upstream, and
//! translated for a REST upstream.

use serde_json::{Value, json};

use crate::rpc_refused::closed;
use crate::scene::{Called, before_rest, before_rpc, json};
use crate::support::{Message, Proxy, Upstream};

/// The server that the examples speak to.
fn example_server() -> Upstream {
    Upstream::serving(|request| {
        if request.text() == ALL_NOTIFICATIONS {
            return crate::scene::answer("204 No Content", &[], "");
        }
        let called = Called::of(request);
        let params: Value = called.params.map_or(Value::Null, |params| {
            serde_json::from_str(params.get()).unwrap()
        });
        let Some(id) = called.id else {
            return crate::scene::answer("204 No Content", &[], "");
        };
        let reply = match called.method() {
            "subtract" => format!(r#""result":{}"#, subtract(&params)),
            "sum" => {
                let terms = params.as_array().unwrap().iter();
                let sum: i64 = terms.map(|term| term.as_i64().unwrap()).sum();
                format!(r#""result":{sum}"#)
            }
            "get_data" => r#""result":["hello",5]"#.to_owned(),
            _ => r#""error":{"code":-32601,"message":"Method not found"}"#.to_owned(),
        };
        json(format!(r#"{{"jsonrpc":"2.0",{reply},"id":{id}}}"#))
    })
}

fn subtract(params: &Value) -> i64 {
    let [minuend, subtrahend] = if params.is_array() {
        [&params[0], &params[1]]
    } else {
        [&params["minuend"], &params["subtrahend"]]
    };
    minuend.as_i64().unwrap() - subtrahend.as_i64().unwrap()
}

/// The same operations as a REST server has them.
fn rest_server() -> Upstream {
    Upstream::serving(|request| {
        let start = request.head.start.strip_suffix(" HTTP/1.1").unwrap();
        match start {
            "POST /subtract" => json(subtract(&request.json()).to_string()),
            "GET /data" => json(r#"["hello",5]"#),
            "POST /update" | "POST /hello" | "POST /sum" => {
                crate::scene::answer("204 No Content", &[], "")
            }
            _ => panic!("{start}"),
        }
    })
}

const ROUTES: &str = r#"
[[route]]
name = "subtract"
rest = "POST /subtract"
rpc = "subtract"
[[route]]
name = "sum"
rest = "POST /sum"
rpc = "sum"
[[route]]
name = "update"
rest = "POST /update"
rpc = "update"
[[route]]
name = "hello"
rest = "POST /hello"
rpc = "notify_hello"
[[route]]
name = "data"
rest = "GET /data"
rpc = "get_data"
"#;

/// A request and the answer that the specification prints; `-32700` and the like stand for the error of that
/// code with a null id, whose message is the server's to choose.
fn expect(proxy: &Proxy, request: &str, expected: &Value) {
    let answer = proxy.rpc(request);
    assert_eq!(answer.status(), 200, "{request}: {answer:?}");
    assert_eq!(
        answer.head.one("content-type"),
        Some("application/json"),
        "{answer:?}"
    );
    assert_eq!(told(&answer.json()), *expected, "{request}: {answer:?}");
}

/// An answer without what the specification leaves open: the text and the data of errors.
fn told(answer: &Value) -> Value {
    let mut answer = answer.clone();
    let errors = match answer.as_array_mut() {
        Some(answers) => answers.iter_mut().collect(),
        None => vec![&mut answer],
    };
    for single in errors {
        if let Some(error) = single.get_mut("error") {
            assert!(error["message"].is_string(), "{error}");
            *error = json!({"code": error["code"]});
        }
    }
    answer
}

fn result(result: impl Into<Value>, id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "result": result.into(), "id": id.into()})
}

fn error(code: i64, id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "error": {"code": code}, "id": id.into()})
}

fn expect_nothing(answer: &Message) {
    assert_eq!((answer.status(), answer.text()), (204, ""), "{answer:?}");
    assert_eq!(answer.head.one("content-type"), None);
}

/// The examples that no upstream ever sees, so that they are the same whatever stands behind.
fn expect_what_is_no_message(proxy: &Proxy) {
    let invalid_json = r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#;
    expect(proxy, invalid_json, &error(-32700, Value::Null));
    let invalid_request = r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#;
    expect(proxy, invalid_request, &error(-32600, Value::Null));
    let batch_of_invalid_json = r#"[
  {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
  {"jsonrpc": "2.0", "method"
]"#;
    expect(proxy, batch_of_invalid_json, &error(-32700, Value::Null));
    expect(proxy, "[]", &error(-32600, Value::Null));
    expect(proxy, "[1]", &json!([error(-32600, Value::Null)]));
    let three = vec![error(-32600, Value::Null); 3];
    expect(proxy, "[1,2,3]", &Value::from(three));
}

#[test]
fn positional_params_pass() {
    let server = example_server();
    let proxy = before_rpc(&server, "");
    let first = r#"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#;
    expect(&proxy, first, &result(19, 1));
    let second = r#"{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}"#;
    expect(&proxy, second, &result(-19, 2));
    let bodies: Vec<_> = server
        .requests()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    assert_eq!(bodies, [first.as_bytes(), second.as_bytes()]);
}

#[test]
fn named_params_pass() {
    let proxy = before_rpc(&example_server(), "");
    let params = [
        r#"{"subtrahend": 23, "minuend": 42}"#,
        r#"{"minuend": 42, "subtrahend": 23}"#,
    ];
    for (id, params) in (3..).zip(params) {
        let request = format!(
            r#"{{"jsonrpc": "2.0", "method": "subtract", "params": {params}, "id": {id}}}"#
        );
        expect(&proxy, &request, &result(19, id));
    }
}

const NOTIFICATIONS: [&str; 2] = [
    r#"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#,
    r#"{"jsonrpc": "2.0", "method": "foobar"}"#,
];

#[test]
fn a_notification_passes_and_is_not_answered() {
    let server = example_server();
    let proxy = before_rpc(&server, "");
    for notification in NOTIFICATIONS {
        expect_nothing(&proxy.rpc(notification));
    }
    let bodies: Vec<_> = server
        .requests()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    assert_eq!(bodies, NOTIFICATIONS.map(str::as_bytes));
}

#[test]
fn a_method_that_nobody_has_is_answered_by_the_server_or_for_it() {
    let request = r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#;
    let server = example_server();
    expect(&before_rpc(&server, ""), request, &error(-32601, "1"));
    assert_eq!(server.request().text(), request);
    let rest = Upstream::start();
    expect(&before_rest(&rest, ROUTES), request, &error(-32601, "1"));
    rest.expect_no_connection();
}

#[test]
fn what_is_no_message_reaches_no_server() {
    let rpc = Upstream::start();
    expect_what_is_no_message(&closed(&rpc));
    rpc.expect_no_connection();
    let rest = Upstream::start();
    expect_what_is_no_message(&before_rest(&rest, ROUTES));
    rest.expect_no_connection();
}

const MIXED: &str = r#"[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
    ]"#;

#[test]
fn a_mixed_batch_passes_call_by_call() {
    let server = example_server();
    let proxy = closed(&server);
    let expected = json!([
        result(7, "1"),
        result(19, "2"),
        error(-32600, Value::Null),
        error(-32601, "5"),
        result(json!(["hello", 5]), "9"),
    ]);
    expect(&proxy, MIXED, &expected);
    assert_eq!(server.requests().len(), 5);
}

const ALL_NOTIFICATIONS: &str = r#"[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
    ]"#;

#[test]
fn a_batch_of_notifications_passes_and_is_not_answered() {
    let server = example_server();
    let proxy = before_rpc(&server, "");
    expect_nothing(&proxy.rpc(ALL_NOTIFICATIONS));
    assert_eq!(server.request().text(), ALL_NOTIFICATIONS);
}

#[test]
fn named_params_are_translated() {
    let server = rest_server();
    let proxy = before_rest(&server, ROUTES);
    let params = [
        r#"{"subtrahend": 23, "minuend": 42}"#,
        r#"{"minuend": 42, "subtrahend": 23}"#,
    ];
    for (id, params) in (3..).zip(params) {
        let request = format!(
            r#"{{"jsonrpc": "2.0", "method": "subtract", "params": {params}, "id": {id}}}"#
        );
        expect(&proxy, &request, &result(19, id));
    }
    let bodies: Vec<_> = server
        .requests()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    assert_eq!(bodies, params.map(str::as_bytes));
}

#[test]
fn positional_params_cannot_be_translated_by_name() {
    let rest = Upstream::start();
    let proxy = before_rest(&rest, ROUTES);
    let request = r#"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#;
    expect(&proxy, request, &error(-32602, 1));
    let answer = proxy.rpc(request).json();
    assert_eq!(
        answer["error"]["message"],
        "params: it must be an object, not an array"
    );
    rest.expect_no_connection();
}

#[test]
fn a_notification_that_cannot_be_translated_is_not_answered_either() {
    let rest = Upstream::start();
    let proxy = before_rest(&rest, ROUTES);
    for notification in NOTIFICATIONS {
        expect_nothing(&proxy.rpc(notification));
    }
    expect_nothing(&proxy.rpc(ALL_NOTIFICATIONS));
    rest.expect_no_connection();
    proxy.log_line(&["rpc_method=update", "reason=invalid_params"]);
    proxy.log_line(&["rpc_method=foobar", "reason=route_not_found"]);
}

#[test]
fn a_mixed_batch_is_translated_call_by_call() {
    let server = rest_server();
    let proxy = before_rest(&server, ROUTES);
    let named = MIXED
        .replace("[1,2,4]", r#"{"a": 1}"#)
        .replace("[7]", r#"{"a": 7}"#)
        .replace("[42,23]", r#"{"minuend": 42, "subtrahend": 23}"#);
    let expected = json!([
        result(Value::Null, "1"),
        result(19, "2"),
        error(-32600, Value::Null),
        error(-32601, "5"),
        result(json!(["hello", 5]), "9"),
    ]);
    expect(&proxy, &named, &expected);
    let mut targets: Vec<_> = server
        .requests()
        .into_iter()
        .map(|seen| seen.head.start)
        .collect();
    targets.sort();
    assert_eq!(
        targets,
        [
            "GET /data HTTP/1.1",
            "POST /hello HTTP/1.1",
            "POST /subtract HTTP/1.1",
            "POST /sum HTTP/1.1",
        ]
    );
}
