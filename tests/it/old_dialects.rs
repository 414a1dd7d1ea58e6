//! Old RPC dialects: their clients before a JSON-RPC 2.0 server, JSON-RPC clients before their servers, and both on one
//! path without a change.

mod compared;
mod parameters;
mod sockets;

use serde_json::json as value;

use crate::coded::gzip;
use crate::scene::{Called, answer, body_of, call, json, json_with, problem, rpc_failure};
use crate::support::{Message, Proxy, Upstream, becomes, both, rpc_only};

/// JSON-RPC 1.0, as Bitcoin Core has it, beside 2.0 on `/rpc`.
const BITCOIN: &str = r#"
[[route]]
name   = "call"
old    = { body = { jsonrpc = "{<version:enum(1.0)}", id = "{id?}", method = "{method}", params = "{params:array=[]}" } }
rpc    = "{method}"
params = ["{params...}"]
lossy  = "the version does not reach the new server"

[[route.outcome]]
old = { body = { result = "{result}", error = "{_:null}", id = "{>id}" } }
rpc = { result = "{result}" }

[[route.outcome]]
lossy = "other statuses"
old = { status = [500, "4xx"], body = { result = "{_:null}", error = { code = "{code:integer}", message = "{message:string}" }, id = "{>id}" } }
rpc = { error = { code = "{code}", message = "{message}" } }
"#;

const TRANSLATE: &str = "[rollout]\ndefault = { rest = \"translate\", rpc = \"translate\" }\n";

const OLD_CALL: &str =
    r#"{"jsonrpc":"1.0","id":"curl","method":"getblockhash","params":[7, 1.50]}"#;

fn new_server() -> Upstream {
    Upstream::serving(|request| {
        let called = Called::of(request);
        let (id, params) = (
            called.id(),
            called.params.map_or("null", |params| params.get()),
        );
        match called.method() {
            "missing" => json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-5,"message":"none"}}}}"#
            )),
            _ => json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{params}}}"#
            )),
        }
    })
}

fn old_server() -> Upstream {
    Upstream::serving(|request| {
        let message = request.json();
        let id = &message["id"];
        match message["method"].as_str() {
            Some("missing") => json_with(
                "500 Internal Server Error",
                format!(r#"{{"result":null,"error":{{"code":-5,"message":"none"}},"id":{id}}}"#),
            ),
            Some("other") => json(r#"{"result":1,"error":null,"id":"other"}"#),
            Some("strange") => json(r#"{"answer":1}"#),
            Some(_) | None => json(format!(
                r#"{{"result":{{"old":{}}},"error":null,"id":{id}}}"#,
                message["params"]
            )),
        }
    })
}

fn post(proxy: &Proxy, body: &str) -> Message {
    // The documentation of Bitcoin Core posts `text/plain`.
    proxy.rest("POST", "/rpc", &[("Content-Type", "text/plain;")], body)
}

#[test]
fn an_old_call_reaches_the_new_server_and_gets_an_old_answer() {
    let new = new_server();
    let proxy = Proxy::start(&format!("{}{BITCOIN}", rpc_only(&new)));
    let came = post(&proxy, OLD_CALL);
    assert_eq!(
        body_of(&came, 200),
        r#"{"result":[7, 1.50],"error":null,"id":"curl"}"#
    );
    let sent = new.request();
    let sent = Called::of(&sent);
    assert_eq!(
        (sent.method(), sent.params()),
        ("getblockhash", "[7, 1.50]")
    );
    // Without version, id and params.
    let came = post(&proxy, r#"{"method":"getblockcount"}"#);
    assert_eq!(body_of(&came, 200), r#"{"result":[],"error":null}"#);
    // An error of the server has the old form.
    let came = post(&proxy, r#"{"id":9,"method":"missing","params":[]}"#);
    assert_eq!(
        body_of(&came, 500),
        r#"{"result":null,"error":{"code":-5,"message":"none"},"id":9}"#
    );
    proxy.log_line(&[
        "side=rest",
        "route=call",
        "outcome=error",
        "status=500",
        "code=-5",
    ]);
}

#[test]
fn a_new_call_on_the_same_path_stays_a_new_call() {
    let (old, new) = (old_server(), new_server());
    let proxy = Proxy::start(&format!("{}{BITCOIN}", both(&old, &new)));
    let came = proxy.rpc(call("getblockhash", "[7]"));
    assert_eq!(
        body_of(&came, 200),
        r#"{"jsonrpc":"2.0","id":1,"result":[7]}"#
    );
    assert_eq!(new.request().text(), call("getblockhash", "[7]"));
    // The old one passes, byte for byte, to the old server.
    let came = post(&proxy, OLD_CALL);
    assert_eq!(
        body_of(&came, 200),
        r#"{"result":{"old":[7,1.5]},"error":null,"id":"curl"}"#
    );
    let passed = old.request();
    assert_eq!(passed.text(), OLD_CALL);
    assert_eq!(passed.head.one("content-type"), Some("text/plain;"));
    proxy.log_line(&["side=rest", "route=call", "stage=passthrough"]);
}

#[test]
fn a_new_call_reaches_the_old_server_and_gets_a_new_answer() {
    let (old, new) = (old_server(), new_server());
    let proxy = Proxy::start(&format!("{}{BITCOIN}{TRANSLATE}", both(&old, &new)));
    let came = proxy.rpc(call("getblockhash", "[7, 1.50]"));
    assert_eq!(
        body_of(&came, 200),
        r#"{"jsonrpc":"2.0","id":1,"result":{"old":[7,1.5]}}"#
    );
    let sent = old.request();
    assert_eq!(sent.head.start, "POST / HTTP/1.1");
    assert_eq!(
        sent.text(),
        r#"{"id":1,"method":"getblockhash","params":[7, 1.50]}"#
    );
    let came = proxy.rpc(call("missing", "[]"));
    assert_eq!(
        came.json(),
        value!({"jsonrpc": "2.0", "id": 1, "error": {"code": -5, "message": "none"}})
    );
    // A response of another call, and one that no outcome describes.
    for method in ["other", "strange"] {
        let came = proxy.rpc(call(method, "[]"));
        assert_eq!(rpc_failure(&came.json()).1, "upstream_not_protocol");
    }
}

#[test]
fn a_failure_of_the_proxy_has_the_form_of_the_old_dialect() {
    let new = Upstream::nowhere();
    let proxy = Proxy::start(&format!("{}{BITCOIN}", rpc_only(&new)));
    let came = post(&proxy, OLD_CALL);
    assert_eq!(came.status(), 500);
    let document = came.json();
    assert_eq!(document["id"], "curl");
    assert_eq!(document["error"]["code"], -31021);
    assert_eq!(document["result"], value!(null));
    proxy.log_line(&["reason=upstream_unreachable", "status=500"]);
}

#[test]
fn old_messages_without_a_route_pass_to_the_old_server() {
    const ONE: &str = r#"
[[route]]
name   = "count"
old    = { body = { id = "{id?}", method = "getblockcount" } }
rpc    = "getblockcount"
[[route.outcome]]
old = { body = { result = "{result}", error = "{_:null}", id = "{>id}" } }
rpc = { result = "{result}" }
"#;
    let (old, new) = (old_server(), new_server());
    let proxy = Proxy::start(&format!("{}{ONE}{TRANSLATE}", both(&old, &new)));
    let other = r#"{"id":1,"method":"stop"}"#;
    assert_eq!(post(&proxy, other).json()["result"]["old"], value!(null));
    assert_eq!(old.request().text(), other);
    proxy.log_line(&["side=rest", "decision=unrouted"]);
    // Without an old server, they are handled as on a path without old routes.
    let proxy = Proxy::start(&format!("{}{ONE}", rpc_only(&new)));
    post(&proxy, other);
    assert_eq!(new.request().text(), other);
}

#[test]
fn a_batch_of_old_calls_passes_as_a_whole_or_is_split() {
    let (old, new) = (old_server(), new_server());
    let batch = format!("[{OLD_CALL}, {OLD_CALL}]");
    let proxy = Proxy::start(&format!("{}{BITCOIN}", both(&old, &new)));
    post(&proxy, &batch);
    assert_eq!(old.request().text(), batch);
    proxy.log_line(&["side=rest", "old=batch"]);
    let metric = r#"dualgauge_old_messages_total{route="unrouted",transport="batch"}"#;
    becomes(|| proxy.metrics().value(metric), &2.0);
    let proxy = Proxy::start(&format!("{}{BITCOIN}{TRANSLATE}", both(&old, &new)));
    // An error, and a message whose params fit no route.
    let batch = format!(
        r#"[{OLD_CALL}, {{"id":2,"method":"missing","params":[]}}, {{"id":3,"method":"a","params":1}}]"#
    );
    let came = post(&proxy, &batch);
    assert_eq!(came.status(), 200, "{came:?}");
    let replies = came.json();
    assert_eq!(
        replies[0],
        value!({"result": [7, 1.5], "error": null, "id": "curl"})
    );
    assert_eq!(
        replies[1],
        value!({"result": null, "error": {"code": -5, "message": "none"}, "id": 2})
    );
    assert_eq!(
        (&replies[2]["id"], &replies[2]["error"]["code"]),
        (&value!(3), &value!(-32602))
    );
    assert_eq!(new.requests().len(), 2);
    proxy.log_line(&["route=call", "old=batch", "outcome=error", "code=-5"]);
    let metric = r#"dualgauge_old_messages_total{route="call",transport="batch"}"#;
    becomes(|| proxy.metrics().value(metric), &3.0);
    // A batch with a new call is JSON-RPC.
    let mixed = format!("[{OLD_CALL},{}]", call("getblockhash", "[7]"));
    let came = proxy.rpc(&mixed);
    assert_eq!(came.json().as_array().map(Vec::len), Some(2), "{came:?}");
}

#[test]
fn a_split_batch_takes_no_place_besides_its_messages() {
    let (old, new) = (old_server(), new_server());
    let limits = "[limits]\nin_flight = 1\n[rpc]\nbatch_concurrency = 1\n";
    let proxy = Proxy::start(&format!("{limits}{}{BITCOIN}{TRANSLATE}", both(&old, &new)));
    let came = post(&proxy, &format!("[{OLD_CALL}, {OLD_CALL}]")).json();
    for reply in came.as_array().unwrap() {
        assert_eq!(reply["result"], value!([7, 1.5]), "{came}");
    }
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}

#[test]
fn a_split_batch_has_the_response_that_is_no_json() {
    let challenge = || {
        answer(
            "409 Conflict",
            &[("X-Transmission-Session-Id", "abc")],
            "<h1>409</h1>",
        )
    };
    let new = Upstream::answering(challenge());
    let proxy = Proxy::start(&format!("{}{TRANSMISSION}", rpc_only(&new)));
    let one = r#"{"method":"session-get","arguments":{},"tag":7}"#;
    let came = post(&proxy, &format!("[{one},{one}]"));
    assert_eq!(body_of(&came, 409), "<h1>409</h1>");
    assert_eq!(came.head.one("x-transmission-session-id"), Some("abc"));
}

#[test]
fn a_batch_on_an_own_path_has_one_to_the_allowed_number_of_messages() {
    let (old, new) = (old_server(), new_server());
    let own = BITCOIN.replace("old    = { body", "old    = { path = \"/legacy\", body");
    // An empty array does not have this literal, so it is refused as well.
    let own = own.replace("{<version:enum(1.0)}", "1.0");
    let limits = "unrouted = \"reject\"\n[limits]\nbatch = 2\n";
    let proxy = Proxy::start(&format!("{limits}{}{own}", both(&old, &new)));
    let batch = |count: usize| format!("[{}]", vec![OLD_CALL; count].join(","));
    let sent = |count| proxy.rest("POST", "/legacy", &[], batch(count));
    assert_eq!(sent(2).status(), 200);
    let came = sent(3);
    assert_eq!(came.status(), 400, "{came:?}");
    assert!(problem(&came).1.contains("`limits.batch`"), "{came:?}");
    let came = sent(0);
    assert!((400..500).contains(&came.status()), "{came:?}");
    assert_eq!(old.requests().len(), 1);
    let proxy = Proxy::start(&format!("{limits}{}{own}{TRANSLATE}", both(&old, &new)));
    let came = proxy.rest("POST", "/legacy", &[], batch(2));
    assert_eq!(came.json().as_array().map(Vec::len), Some(2), "{came:?}");
}

/// Transmission's own messages, beside JSON-RPC 2.0 on one path since 4.1.
const TRANSMISSION: &str = r#"
[[route]]
name   = "session.get"
effect = "safe"
old    = { body = { method = "session-get", arguments = { fields = "{fields:array?}" }, tag = "{id:integer?}" }, pass = { status = [409], headers = ["x-transmission-session-id"] } }
rpc    = "session_get"
params = { fields = "{fields}" }
[[route.outcome]]
old = { body = { result = "success", arguments = "{result:object}", tag = "{>id}" } }
rpc = { result = "{result}" }
[[route.outcome]]
lossy = "an old error has no code"
old = { body = { result = "{message}", tag = "{>id}" } }
rpc = { error = { code = -32603, message = "{message}" } }
"#;

#[test]
fn a_challenge_by_status_and_its_header_pass_in_both_directions() {
    let challenge = || {
        let headers = [
            ("X-Transmission-Session-Id", "abc"),
            ("Content-Type", "text/html"),
        ];
        answer("409 Conflict", &headers, "<h1>409</h1>")
    };
    let session = |request: &Message| request.head.one("x-transmission-session-id") == Some("abc");
    let new = Upstream::serving(move |request| match session(request) {
        false => challenge(),
        true => {
            let id = Called::of(request).id().to_owned();
            json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"version":"4"}}}}"#
            ))
        }
    });
    let old = Upstream::serving(move |request| match session(request) {
        false => challenge(),
        true => json(r#"{"arguments":{"version":"3"},"result":"success","tag":1}"#),
    });
    let config = format!("{}{TRANSMISSION}{TRANSLATE}", both(&old, &new));
    let proxy = Proxy::start(&config);
    let calls = [
        (
            r#"{"method":"session-get","arguments":{},"tag":7}"#.to_owned(),
            r#"{"result":"success","arguments":{"version":"4"},"tag":7}"#,
        ),
        (
            call("session_get", "{}"),
            r#"{"jsonrpc":"2.0","id":1,"result":{"version":"3"}}"#,
        ),
    ];
    for (body, expected) in calls {
        let came = proxy.rest(
            "POST",
            "/rpc",
            &[("Content-Type", "application/json")],
            &body,
        );
        assert_eq!(body_of(&came, 409), "<h1>409</h1>");
        assert_eq!(came.head.one("x-transmission-session-id"), Some("abc"));
        assert_eq!(came.head.one("content-type"), Some("text/html"));
        let headers = [
            ("Content-Type", "application/json"),
            ("X-Transmission-Session-Id", "abc"),
        ];
        let came = proxy.rest("POST", "/rpc", &headers, &body);
        assert_eq!(body_of(&came, 200), expected);
    }
}

/// Zabbix: the member `auth` became a header in 7.2; the rest of the message stays.
const ZABBIX: &str = r#"
[[route]]
name        = "zabbix"
old         = { body = { jsonrpc = "2.0", method = "{method}", params = "{params:object}", auth = "{auth:string}", id = "{id}" } }
rpc         = "{method}"
params      = { "..." = "{params}" }
rpc_headers = { authorization = "Bearer {auth}" }

[[route.outcome]]
old = { body = { jsonrpc = "2.0", result = "{result?}", id = "{>id}" } }
rpc = { result = "{result}" }

[[route.outcome]]
old = { body = { jsonrpc = "2.0", error = { code = "{code:integer}", message = "{message:string}", data = "{data?}" }, id = "{>id}" } }
rpc = { error = { code = "{code}", message = "{message}", data = "{data}" } }
"#;

#[test]
fn a_member_of_the_envelope_becomes_a_header_of_the_rpc_server_and_back() {
    let new = Upstream::serving(|request| {
        let bearer = request.head.one("authorization").unwrap_or("none");
        let id = Called::of(request).id().to_owned();
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":"{bearer}"}}"#
        ))
    });
    let old = Upstream::serving(|request| {
        let message = request.json();
        let (auth, id) = (&message["auth"], &message["id"]);
        json(format!(r#"{{"jsonrpc":"2.0","result":{auth},"id":{id}}}"#))
    });
    let proxy = Proxy::start(&format!("{}{ZABBIX}{TRANSLATE}", both(&old, &new)));
    let message =
        r#"{"jsonrpc":"2.0","method":"host.get","params":{"limit":1.50},"auth":"s3","id":"a"}"#;
    let came = proxy.rpc(message);
    assert_eq!(
        body_of(&came, 200),
        r#"{"jsonrpc":"2.0","result":"Bearer s3","id":"a"}"#
    );
    let sent = new.request();
    let called = Called::of(&sent);
    assert_eq!(
        (called.method(), called.params()),
        ("host.get", r#"{"limit":1.50}"#)
    );
    assert!(!sent.text().contains("s3"), "{sent:?}");
    proxy.log_line(&["side=rest", "route=zabbix", "stage=translate"]);
    // A call without the member is new: its header becomes the member.
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer s4"),
    ];
    let came = proxy.rest("POST", "/rpc", &headers, call("host.get", "{}"));
    assert_eq!(
        body_of(&came, 200),
        r#"{"jsonrpc":"2.0","id":1,"result":"s4"}"#
    );
    assert_eq!(
        old.request().text(),
        r#"{"jsonrpc":"2.0","method":"host.get","params":{},"auth":"s4","id":1}"#
    );
    let came = proxy.rpc(call("host.get", "{}"));
    assert_eq!(rpc_failure(&came.json()).1, "invalid_params");
}

/// aria2 takes JSON-RPC over GET, with the params in base64.
const ARIA2: &str = r#"
[[route]]
name   = "aria2"
from   = "old"
effect = "safe"
old    = { method = "GET", path = "/jsonrpc", query = { method = "{method}", params = "{params:base64=[]}", id = "{id?}" } }
rpc    = "{method}"
params = ["{params...}"]

[[route.outcome]]
old = { body = { id = "{>id}", jsonrpc = "2.0", result = "{result}" } }
rpc = { result = "{result}" }
"#;

#[test]
fn json_rpc_over_get_with_params_in_base64_reaches_a_server_that_takes_posts() {
    let new = new_server();
    let proxy = Proxy::start(&format!("{}{ARIA2}", rpc_only(&new)));
    // `["2089b05ecca3d829",["gid"]]`
    let target = "/jsonrpc?method=aria2.tellStatus&id=foo&params=WyIyMDg5YjA1ZWNjYTNkODI5IixbImdpZCJdXQ%3D%3D";
    let came = proxy.rest("GET", target, &[], "");
    assert_eq!(
        body_of(&came, 200),
        r#"{"id":"foo","jsonrpc":"2.0","result":["2089b05ecca3d829",["gid"]]}"#
    );
    let sent = new.request();
    let called = Called::of(&sent);
    assert_eq!(called.method(), "aria2.tellStatus");
    let came = proxy.rest("GET", "/jsonrpc?method=aria2.getVersion", &[], "");
    assert_eq!(body_of(&came, 200), r#"{"jsonrpc":"2.0","result":[]}"#);
    let came = proxy.rest("GET", "/jsonrpc?method=a&params=%21", &[], "");
    assert_eq!(came.status(), 400);
}

/// Returns a route of the method `run` with these keys, beside a header that tells who calls.
fn told(keys: &str) -> String {
    format!(
        r#"
[listen.set_headers]
x-user = "edge"
[[route]]
name = "run"
rpc  = "run"
{keys}
[[route.outcome]]
old = {{ body = {{ result = "{{result}}", id = "{{>id}}" }} }}
rpc = {{ result = "{{result}}" }}
"#
    )
}

#[test]
fn no_header_of_a_route_replaces_one_that_tells_who_calls() {
    let answer = r#"{"id":1,"result":1}"#;
    let to_new = told(
        r#"
from        = "old"
old         = { body = { command = "run", user = "{user}", id = "{id}" } }
rpc_headers = { x-user = "{user}" }"#,
    );
    let to_old = told(
        r#"
from   = "rpc"
old    = { headers = { x-user = "{user}" }, body = { command = "run", id = "{id}" } }
params = { user = "{user}" }"#,
    );
    let passed = told(
        r#"
old    = { body = { command = "run", user = "{user}", id = "{id}" }, pass = { status = 409, headers = ["x-user"] } }
params = { user = "{user}" }"#,
    );
    let message = r#"{"command":"run","id":1,"user":"root"}"#.to_owned();
    let rpc = call("run", r#"{"user":"root"}"#);
    let cases = [
        (&to_new, &message),
        (&to_old, &rpc),
        (&passed, &message),
        (&passed, &rpc),
    ];
    for (routes, body) in cases {
        let (old, new) = (Upstream::answering(json(answer)), new_server());
        let server = if *body == message { &new } else { &old };
        let proxy = Proxy::start(&format!("{}{routes}{TRANSLATE}", both(&old, &new)));
        let headers = [("Content-Type", "application/json"), ("X-User", "root")];
        let came = proxy.rest("POST", "/rpc", &headers, body.clone());
        assert_eq!(came.status(), 200, "{routes}: {came:?}");
        let sent = server.request();
        assert_eq!(sent.head.one("x-user"), Some("edge"), "{routes}: {sent:?}");
    }
}

/// Two routes whose messages belong to two servers.
const TWO: &str = r#"
[[route]]
name     = "one"
old      = { body = { id = "{id?}", method = "one" } }
rpc      = "one"
[[route.outcome]]
old = { body = { result = "{result}", error = "{_:null}", id = "{>id}" } }
rpc = { result = "{result}" }

[[route]]
name     = "two"
old      = { body = { id = "{id?}", method = "two" } }
rpc      = "two"
upstream = { rest = "other" }
[[route.outcome]]
old = { body = { result = "{result}", error = "{_:null}", id = "{>id}" } }
rpc = { result = "{result}" }
"#;

/// Starts a proxy with [`TWO`], whose messages pass to `old` and `other`.
fn before_two(old: &Upstream, other: &Upstream, new: &Upstream) -> Proxy {
    let upstream = format!(
        "[upstream.other]\nside = \"rest\"\nurl = \"http://{}\"\n",
        other.address()
    );
    let ends = both(old, new).replace("side = \"rest\"\n", "side = \"rest\"\ndefault = true\n");
    Proxy::start(&format!("{ends}{upstream}{TWO}"))
}

#[test]
fn the_interim_responses_to_messages_of_a_split_batch_are_dropped() {
    let (old, new) = (old_server(), new_server());
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    let reply = json(r#"{"result":1,"error":null,"id":2}"#);
    let other = Upstream::answering([hints.as_bytes(), &reply].concat());
    let proxy = before_two(&old, &other, &new);
    let (one, two) = (r#"{"id":1,"method":"one"}"#, r#"{"id":2,"method":"two"}"#);
    let came = post(&proxy, &format!("[{one},{two}]"));
    assert_eq!(came.status(), 200, "{came:?}");
    assert_eq!(came.json()[1]["id"], value!(2), "{came:?}");
}

#[test]
fn the_messages_of_a_batch_go_to_their_servers() {
    let (old, other, new) = (old_server(), old_server(), new_server());
    let proxy = before_two(&old, &other, &new);
    let (one, two) = (r#"{"id":1,"method":"one"}"#, r#"{"id":2,"method":"two"}"#);
    let unrouted = r#"{"id":3,"method":"three"}"#;
    for (batch, ids) in [
        (format!("[{one},{two}]"), [1, 2]),
        (format!("[{two},{one}]"), [2, 1]),
        (format!("[{unrouted},{two}]"), [3, 2]),
    ] {
        let came = post(&proxy, &batch).json();
        assert_eq!(
            (&came[0]["id"], &came[1]["id"]),
            (&value!(ids[0]), &value!(ids[1])),
            "{came}"
        );
    }
    let texts = |server: &Upstream| -> Vec<String> {
        server
            .requests()
            .iter()
            .map(Message::text)
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(texts(&old), [one, one, unrouted]);
    assert_eq!(texts(&other), [two, two, two]);
    let batch = format!("[{one},{unrouted},{one}]");
    post(&proxy, &batch);
    assert_eq!(texts(&old).last(), Some(&batch));
    let batch = format!("[{two},{two}]");
    post(&proxy, &batch);
    assert_eq!(texts(&other).last(), Some(&batch));
}

/// Ids outside of the body: in the query, in a header and in the path.
const OUTSIDE: &str = r#"
[[route]]
name    = "get"
old     = { method = "GET", path = "/jsonrpc", query = { method = "get", params = "{params:base64=[]}", id = "{id}" } }
rpc     = "get"
params  = ["{params...}"]
outcomes = ["old"]

[[route]]
name = "put"
old  = { path = "/put", headers = { x-id = "{id}" }, body = { value = "{value:integer}" } }
rpc  = "put"
params = { value = "{value}" }
outcomes = ["old"]

[[route]]
name = "at"
old  = { path = "/at/{id}", body = { value = "{value:integer}" } }
rpc  = "at"
params = { value = "{value}" }
outcomes = ["old"]

[[outcomes.old]]
old = { body = { result = "{result}", id = "{>id}" } }
rpc = { result = "{result}" }
[[outcomes.old]]
old = { status = 400, body = { failed = { code = "{code:integer}", message = "{message:string}" }, id = "{>id}" } }
rpc = { error = { code = "{code}", message = "{message}" } }
"#;

#[test]
fn a_failure_repeats_the_id_that_can_be_read() {
    let new = Upstream::nowhere();
    // A path of its own: the body is read later than on an RPC path.
    let own_path = BITCOIN.replace("old    = { body", "old    = { path = \"/legacy\", body");
    let proxy = Proxy::start(&format!("{}{own_path}", rpc_only(&new)));
    let came = proxy.rest("POST", "/legacy", &[], OLD_CALL);
    assert_eq!(came.json()["id"], "curl", "{came:?}");
    // Members that do not fit.
    let came = proxy.rest(
        "POST",
        "/legacy",
        &[],
        r#"{"id":7,"method":"a","params":1}"#,
    );
    assert_eq!(came.json()["id"], 7, "{came:?}");
    // A coded body.
    let proxy = Proxy::start(&format!("{}{BITCOIN}", rpc_only(&new)));
    let coded = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
    ];
    let came = proxy.rest("POST", "/rpc", &coded, gzip(OLD_CALL.as_bytes()));
    assert_eq!(came.json()["id"], "curl", "{came:?}");
    let proxy = Proxy::start(&format!("{}{OUTSIDE}", rpc_only(&new)));
    let calls = [
        ("GET", "/jsonrpc?method=get&params=%21&id=foo", ""),
        ("GET", "/jsonrpc?method=get&other=1&id=foo", ""),
        ("POST", "/put", "{"),
        ("POST", "/put", r#"{"value":"a"}"#),
        ("POST", "/put?other=1", r#"{"value":1}"#),
        ("POST", "/at/foo", "{"),
        ("POST", "/at/foo?other=1", r#"{"value":1}"#),
    ];
    for (method, target, body) in calls {
        let came = proxy.rest(method, target, &[("X-Id", "foo")], body);
        assert_eq!(came.status(), 400, "{target} {body}: {came:?}");
        assert_eq!(came.json()["id"], "foo", "{target} {body}: {came:?}");
    }
}

#[test]
fn a_long_message_is_read_like_a_short_one() {
    let (old, new) = (old_server(), new_server());
    let proxy = Proxy::start(&format!("{}{BITCOIN}{TRANSLATE}", both(&old, &new)));
    let params = format!("[\"{}\"]", "a".repeat(300_000));
    let came = post(
        &proxy,
        &format!(r#"{{"id":"long","method":"a","params":{params}}}"#),
    );
    assert_eq!(came.json()["id"], "long", "{came:?}");
    assert_eq!(new.request().json()["params"].to_string(), params);
    // So is one that fits no route: its failure has its id.
    let came = post(
        &proxy,
        &format!(r#"{{"id":"long","method":"a","params":{{"p":{params}}}}}"#),
    );
    assert_eq!(came.json()["id"], "long", "{came:?}");
}
