//! Batches whose calls all pass through to one upstream: one message, unchanged.

use serde_json::{Value, json};

use crate::scene::{answer, before_rpc, call, json as said, rpc_failure};
use crate::support::{Message, Proxy, Upstream, becomes, both, rpc_only};

/// A batch in a form that no program would write again.
const BATCH: &str = "\r\n[ {\"id\":null,\"method\":\"a\",\"jsonrpc\":\"2.0\"} ,{\"jsonrpc\":\"2.0\", \"id\":1.0,\"method\":\"b\",\
    \"params\":{\"n\":1.10}},{\"jsonrpc\":\"2.0\",\"method\":\"told\"}\t]\n";

const ANSWER: &str = " [{\"id\":1,\"result\":1.10,\"jsonrpc\":\"2.0\"},{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":\"a\"} ]";

fn send(proxy: &Proxy, body: &str) -> Message {
    let headers = [("Content-Type", "application/json"), ("X-Own", "1")];
    proxy.rest("POST", "/mcp?a=1", &headers, body)
}

#[test]
fn a_batch_that_passes_through_goes_and_is_answered_as_the_same_bytes() {
    let headers = [("Content-Type", "application/json"), ("X-Server", "s")];
    let upstream = Upstream::answering(answer("207 Multi", &headers, ANSWER));
    let proxy = Proxy::start(&rpc_only(&upstream));
    let answered = send(&proxy, BATCH);
    assert_eq!(answered.text(), ANSWER);
    assert_eq!(answered.head.start, "HTTP/1.1 207 Multi");
    assert_eq!(answered.head.one("x-server"), Some("s"));
    let sent = upstream.request();
    assert_eq!(sent.text(), BATCH);
    assert_eq!(sent.head.start, "POST /rpc?a=1 HTTP/1.1");
    assert_eq!(sent.head.one("x-own"), Some("1"));
    assert_eq!(upstream.requests().len(), 1);
    // Each of its calls has its own record.
    for method in ["rpc_method=a", "rpc_method=b", "rpc_method=told"] {
        proxy.log_line(&[method, "decision=unrouted", "status=207", "outcome=success"]);
    }
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}

#[test]
fn a_batch_takes_the_place_of_one_call_in_progress() {
    let upstream = Upstream::answering(said("[]"));
    let proxy = before_rpc(&upstream, "[limits]\nin_flight = 1\n");
    for _ in 0..2 {
        assert_eq!(send(&proxy, BATCH).text(), "[]");
    }
}

#[test]
fn an_invalid_item_passes_with_its_batch() {
    let upstream = Upstream::answering(said(ANSWER));
    let proxy = Proxy::start(&rpc_only(&upstream));
    let batch = r#"[{"jsonrpc":"1.0","id":1,"method":"a"},7,{"id":2},{"jsonrpc":"2.0","id":3,"method":"b"}]"#;
    for kind in ["application/json", "text/plain"] {
        let headers = [("Content-Type", kind)];
        assert_eq!(proxy.rest("POST", "/rpc", &headers, batch).text(), ANSWER);
        let sent = upstream.requests().pop().unwrap();
        assert_eq!(
            (sent.text(), sent.head.one("content-type")),
            (batch, Some(kind))
        );
    }
    assert_eq!(upstream.requests().len(), 2);
    proxy.log_line(&["rpc_method=a", "message=invalid_request"]);
}

const ROUTES: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
[[route]]
name = "items.list"
rest = "GET /items"
rpc = "items/list"
"#;

fn flags(get: &str) -> String {
    format!("[[flag]]\nname = \"f\"\nroute = \"items.get\"\nside = \"rpc\"\nstage = \"{get}\"\n")
}

fn get_and_list() -> String {
    let (get, list) = (call("items/get", r#"{"id":"7"}"#), call("items/list", "{}"));
    let list = list.replace("\"id\":1", "\"id\":2");
    format!("[{get},{list}]")
}

/// A server that answers a batch of the two calls, and each of them alone.
fn server() -> Upstream {
    Upstream::serving(|request| {
        let asked = request.json();
        let one = |call: &Value| {
            let result = json!({"of": call["method"]});
            json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
        };
        said(match asked.as_array() {
            // In an order of its own.
            Some(calls) => Value::from(calls.iter().rev().map(one).collect::<Vec<_>>()).to_string(),
            None => one(&asked).to_string(),
        })
    })
}

#[test]
fn a_batch_whose_calls_are_decided_differently_is_split() {
    let (rest, rpc) = (Upstream::answering(said(r#""rest""#)), server());
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, &flags("translate"));
    let answered = proxy.rpc(get_and_list()).json();
    assert_eq!(answered[0]["result"], "rest");
    assert_eq!(answered[1]["result"]["of"], "items/list");
    assert_eq!(rpc.request().json()["method"], "items/list");
}

#[test]
fn calls_of_two_upstreams_are_split() {
    let (one, other) = (server(), server());
    let second = format!(
        "[upstream.second]\nside = \"rpc\"\nurl = \"http://{}/rpc\"\ndefault = false\n",
        other.address()
    );
    let routes = ROUTES.replacen(
        "rpc = \"items/get\"",
        "rpc = \"items/get\"\nupstream = \"second\"",
        1,
    );
    let first = rpc_only(&one);
    let first = first.replace("side = \"rpc\"", "side = \"rpc\"\ndefault = true");
    let proxy = Proxy::start(&format!("{first}{second}{routes}"));
    let answered = proxy.rpc(get_and_list()).json();
    assert_eq!(answered[0]["id"], 1);
    assert_eq!(answered[1]["id"], 2);
    assert_eq!(one.request().json()["method"], "items/list");
    assert_eq!(other.request().json()["method"], "items/get");
}

#[test]
fn a_batch_in_shadow_passes_whole_and_a_call_of_it_is_compared() {
    let rest = Upstream::answering(said(r#"{"of":"items/get"}"#));
    let rpc = server();
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, &flags("shadow"));
    let answered = proxy.rpc(get_and_list()).json();
    assert_eq!(
        (&answered[0]["id"], &answered[1]["id"]),
        (&json!(2), &json!(1))
    );
    let matches = || {
        let metrics = proxy.metrics();
        let mut lines = metrics.text().lines();
        let name = "dualgauge_verdicts_total";
        lines.any(|line| {
            line.starts_with(name) && line.contains("\"match\"") && line.ends_with(" 1")
        })
    };
    becomes(matches, &true);
    assert_eq!(rest.request().head.start, "GET /items/7 HTTP/1.1");
    // A control that is run once more is a single call.
    assert_eq!(rpc.requests()[0].text(), get_and_list());
}

#[test]
fn a_batch_of_notifications_is_one_message_and_not_answered() {
    let upstream = Upstream::answering(said(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#));
    let proxy = Proxy::start(&rpc_only(&upstream));
    let batch = r#"[{"jsonrpc":"2.0","method":"a"}, {"jsonrpc":"2.0","method":"b"}]"#;
    let answered = proxy.rpc(batch);
    assert_eq!((answered.status(), answered.text()), (204, ""));
    assert_eq!(upstream.request().text(), batch);
    for method in ["rpc_method=a", "rpc_method=b"] {
        proxy.log_line(&[method, "status=204"]);
    }
}

#[test]
fn each_call_of_a_batch_that_cannot_be_sent_gets_its_error() {
    let proxy = Proxy::start(&rpc_only(&Upstream::nowhere()));
    let answered = proxy.rpc(get_and_list()).json();
    for (place, id) in [(0, 1), (1, 2)] {
        assert_eq!(rpc_failure(&answered[place]).1, "upstream_unreachable");
        assert_eq!(answered[place]["id"], id);
    }
    proxy.log_line(&["rpc_method=items/get", "reason=upstream_unreachable"]);
    proxy.log_line(&["rpc_method=items/list", "reason=upstream_unreachable"]);
}

#[test]
fn a_batch_whose_client_leaves_or_whose_answer_is_cut_is_so_for_each_call() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rpc_only(&upstream));
    let batch = get_and_list();
    let request = format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{batch}",
        batch.len()
    );
    let mut client = proxy.connect();
    client.send(&request);
    let mut server = upstream.accept();
    server.read_request();
    drop(client);
    server.expect_gone();
    for method in ["rpc_method=items/get", "rpc_method=items/list"] {
        proxy.log_line(&[method, "outcome=cancelled"]);
    }
    let mut client = proxy.connect();
    client.send(&request);
    let mut server = upstream.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{");
    client.read_head();
    client.expect("[{");
    drop(server);
    client.expect_gone();
    for method in ["rpc_method=items/get", "rpc_method=items/list"] {
        proxy.log_line(&[method, "outcome=cut", "blame=upstream"]);
    }
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}
