//! Subscriptions of REST clients: notifications on a shared WebSocket as events, before a server that answers as an
//! Ethereum node does.

use std::thread;

use serde_json::{Value, json};

use super::ends::{End, accept, connect_at};
use super::{before, metric, strays};
use crate::scene::problem;
use crate::support::{Proxy, Upstream, Wire, becomes, program, run_to_end};

const ROUTES: &str = r#"
[[route]]
name = "heads"
rest = "GET /subscriptions/{kind}"
rpc = "eth_subscribe"
params = ["{kind}"]

[route.subscription]
notification = { method = "eth_subscription", params = { subscription = "{id}", result = "{event}" } }
unsubscribe = { method = "eth_unsubscribe" }

[[route.outcome]]
rest = { status = 200, body = { number = "{number}" } }
rpc = { result = { height = "{number}" } }

[[route.outcome]]
rest = { status = 422, body = { message = "{message}" } }
rpc = { error = { code = -32602, message = "{message}" } }
"#;

const OPEN: &str = r#"dualgauge_link_subscriptions_open{upstream="socket"}"#;

fn ended(proxy: &Proxy, result: &str) -> f64 {
    let series =
        format!(r#"dualgauge_link_subscriptions_total{{upstream="socket",result="{result}"}}"#);
    metric(proxy, &series)
}

fn serving() -> (Upstream, Proxy, End) {
    let upstream = Upstream::start();
    let proxy = before(&upstream, &format!("{ROUTES}\n[limits]\ndrain = \"2s\"\n"));
    let server = accept(&upstream);
    (upstream, proxy, server)
}

/// Opens a subscription, and does not wait for the response.
fn ask(proxy: &Proxy, kind: &str) -> Wire {
    let mut client = proxy.connect();
    client.send(format!(
        "GET /subscriptions/{kind} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"
    ));
    client
}

fn begins(client: &mut Wire) {
    let head = client.read_head();
    assert_eq!(head.status(), 200, "{head}");
    assert_eq!(head.one("content-type"), Some("text/event-stream"));
    assert_eq!(head.one("cache-control"), Some("no-cache"));
}

/// Returns the next event. A stream that is silent for long has comments.
fn event(client: &mut Wire) -> String {
    let mut came = String::new();
    while !came.ends_with("\n\n") || came == ":\n\n" {
        if came == ":\n\n" {
            came.clear();
        }
        came += &String::from_utf8(client.read_chunk().unwrap()).unwrap();
    }
    came
}

/// Answers a call.
fn answer(server: &mut End, call: &Value, result: &Value) {
    let response = json!({ "jsonrpc": "2.0", "id": call["id"], "result": result });
    server.say(response.to_string());
}

fn notification(id: &Value, height: u64) -> String {
    let params = json!({ "subscription": id, "result": { "height": height } });
    json!({ "jsonrpc": "2.0", "method": "eth_subscription", "params": params }).to_string()
}

/// Opens a subscription, which the server calls `id`.
fn subscribed(proxy: &Proxy, server: &mut End, id: &Value) -> Wire {
    let mut client = ask(proxy, "newHeads");
    let call = server.hear();
    assert_eq!(call["method"], "eth_subscribe");
    answer(server, &call, id);
    begins(&mut client);
    client
}

/// Hears the end of the subscription `id`.
/// Subscribes a client on a WebSocket of its own, which is returned.
fn subscribed_socket(proxy: &Proxy, server: &mut End) -> End {
    thread::scope(|scope| {
        let client = scope.spawn(|| connect_at(proxy, "/subscriptions/newHeads", &[]).0);
        let asked = server.hear();
        answer(server, &asked, &json!("0x9c"));
        client.join().unwrap()
    })
}

fn hear_unsubscribe(server: &mut End, id: &Value) {
    let call = server.hear();
    assert_eq!(call["method"], "eth_unsubscribe");
    assert_eq!(call["params"], json!([id]));
    answer(server, &call, &json!(true));
}

#[test]
fn each_client_gets_the_events_of_its_own_subscription() {
    let (_upstream, proxy, mut server) = serving();
    let (one, other) = (json!("0x1"), json!(1));
    let mut first = subscribed(&proxy, &mut server, &one);
    let mut second = subscribed(&proxy, &mut server, &other);
    assert_eq!(metric(&proxy, OPEN), 2.0);
    server.say(notification(&other, 7));
    server.say(notification(&one, 8));
    server.say(notification(&json!("0x2"), 9));
    server.say(notification(&one, 10));
    assert_eq!(event(&mut first), "data: {\"number\":8}\n\n");
    assert_eq!(event(&mut first), "data: {\"number\":10}\n\n");
    assert_eq!(event(&mut second), "data: {\"number\":7}\n\n");
    drop(first);
    hear_unsubscribe(&mut server, &one);
    server.say(notification(&other, 11));
    assert_eq!(event(&mut second), "data: {\"number\":11}\n\n");
    drop(second);
    hear_unsubscribe(&mut server, &other);
    becomes(|| metric(&proxy, OPEN), &0.0);
    assert_eq!(
        [ended(&proxy, "opened"), ended(&proxy, "closed")],
        [2.0, 2.0]
    );
    assert_eq!(strays(&proxy, "foreign"), 0.0);
    proxy.log_line(&["route=heads", "events=2", "outcome=cancelled"]);
    becomes(|| metric(&proxy, "dualgauge_calls_in_flight"), &0.0);
}

#[test]
fn notifications_before_the_response_are_not_lost() {
    let (_upstream, proxy, mut server) = serving();
    let mut client = ask(&proxy, "newHeads");
    let call = server.hear();
    for height in 0..3 {
        server.say(notification(&json!("0x1"), height));
        server.say(notification(&json!("0x2"), 99));
    }
    answer(&mut server, &call, &json!("0x1"));
    begins(&mut client);
    for height in 0..3 {
        assert_eq!(
            event(&mut client),
            format!("data: {{\"number\":{height}}}\n\n")
        );
    }
}

#[test]
fn a_client_that_leaves_before_the_response_leaves_no_subscription() {
    let (_upstream, proxy, mut server) = serving();
    let client = ask(&proxy, "newHeads");
    let call = server.hear();
    drop(client);
    becomes(|| metric(&proxy, super::IN_FLIGHT), &0.0);
    answer(&mut server, &call, &json!("0x1"));
    hear_unsubscribe(&mut server, &json!("0x1"));
    assert_eq!(strays(&proxy, "late"), 1.0);
}

#[test]
fn a_call_that_the_server_refuses_is_no_stream() {
    let (_upstream, proxy, mut server) = serving();
    let mut client = ask(&proxy, "other");
    let call = server.hear();
    let error = json!({ "jsonrpc": "2.0", "id": call["id"], "error": { "code": -32602, "message": "no kind" } });
    server.say(error.to_string());
    let response = client.read_answer();
    assert_eq!(response.status(), 422);
    assert_eq!(response.json(), json!({ "message": "no kind" }));
    // A result that is no id, and an id that is in use.
    let _first = subscribed(&proxy, &mut server, &json!("0x1"));
    for result in [json!({}), json!("0x1")] {
        let mut client = ask(&proxy, "newHeads");
        let call = server.hear();
        answer(&mut server, &call, &result);
        let response = client.read_answer();
        assert_eq!(problem(&response).0, "upstream_not_protocol");
    }
    assert_eq!(ended(&proxy, "unusable"), 2.0);
    // A client that reads no stream opens no subscription.
    let headers = [("Accept", "application/json")];
    let refused = proxy.rest("GET", "/subscriptions/newHeads", &headers, "");
    assert_eq!(problem(&refused).0, "upstream_stream");
}

#[test]
fn a_lost_link_ends_the_stream_with_an_error() {
    let (upstream, proxy, mut server) = serving();
    let mut client = subscribed(&proxy, &mut server, &json!("0x1"));
    server.say(notification(&json!("0x1"), 1));
    assert_eq!(event(&mut client), "data: {\"number\":1}\n\n");
    drop(server);
    let last = event(&mut client);
    let data = last.strip_prefix("event: error\ndata: ").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["reason"], "upstream_cut");
    assert_eq!(client.read_chunk(), None);
    proxy.log_line(&["route=heads", "reason=upstream_cut"]);
    assert_eq!([ended(&proxy, "lost"), metric(&proxy, OPEN)], [1.0, 0.0]);
    // The next subscription uses the next link, on which ids begin anew.
    let mut server = accept(&upstream);
    let mut client = subscribed(&proxy, &mut server, &json!("0x1"));
    server.say(notification(&json!("0x1"), 2));
    assert_eq!(event(&mut client), "data: {\"number\":2}\n\n");
}

#[test]
fn a_client_that_is_too_slow_loses_its_subscription_and_delays_nobody() {
    let (_upstream, proxy, mut server) = serving();
    let (slow_id, fast_id) = (json!("slow"), json!("fast"));
    let slow = subscribed(&proxy, &mut server, &slow_id);
    let mut fast = subscribed(&proxy, &mut server, &fast_id);
    let filler = "x".repeat(256 * 1024);
    let params = json!({ "subscription": slow_id, "result": { "height": filler } });
    let large = json!({ "jsonrpc": "2.0", "method": "eth_subscription", "params": params });
    let large = large.to_string();
    // More than the sockets and the queue of the client hold.
    for _ in 0..100 {
        server.say(large.clone());
    }
    server.say(notification(&fast_id, 1));
    assert_eq!(event(&mut fast), "data: {\"number\":1}\n\n");
    hear_unsubscribe(&mut server, &slow_id);
    assert_eq!([ended(&proxy, "slow"), metric(&proxy, OPEN)], [1.0, 1.0]);
    let mut slow = slow;
    let mut last = event(&mut slow);
    while !last.starts_with("event: error\n") {
        last = event(&mut slow);
    }
    assert!(last.contains("request_timeout"), "{last}");
    assert_eq!(slow.read_chunk(), None);
}

#[test]
fn the_drain_ends_streams_and_tells_the_server() {
    let (_upstream, proxy, mut server) = serving();
    let mut client = subscribed(&proxy, &mut server, &json!("0x1"));
    proxy.signal("TERM");
    hear_unsubscribe(&mut server, &json!("0x1"));
    assert_eq!(client.read_chunk(), None);
    assert_eq!(server.end(), Some(1001));
    assert!(proxy.wait().status.success());
}

#[test]
fn explain_names_the_notification_and_the_call_that_ends_it() {
    let (_upstream, proxy, _server) = serving();
    let explained = |accept: &str| {
        let mut command = program(&["explain", "--config"]);
        command.arg(proxy.folder().join("dualgauge.toml"));
        command.args(["/subscriptions/newHeads", "-H", accept]);
        run_to_end(command).output
    };
    let events = explained("accept: text/event-stream");
    let line = "the call opens a subscription: each notification `eth_subscription` with its id is an event; `eth_unsubscribe` ends it";
    assert!(events.contains(line), "{events}");
    let refused = explained("accept: application/json");
    assert!(refused.contains("the subscription is refused"), "{refused}");
}

#[test]
fn a_client_that_asks_for_a_websocket_gets_each_event_as_a_message() {
    let (_upstream, proxy, mut server) = serving();
    let (mut client, asked) = thread::scope(|scope| {
        let client = scope.spawn(|| connect_at(&proxy, "/subscriptions/newHeads", &[]).0);
        let asked = server.hear();
        server.say(json!({"jsonrpc": "2.0", "id": asked["id"], "result": "0x9c"}).to_string());
        (client.join().unwrap(), asked)
    });
    assert_eq!(asked["method"], "eth_subscribe");
    becomes(|| metric(&proxy, OPEN), &1.0);
    for height in 1..=3 {
        let params = json!({"subscription": "0x9c", "result": {"height": height}});
        let event = json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params});
        server.say(event.to_string());
    }
    // What the client says is ignored.
    client.say("hello");
    for number in 1..=3 {
        assert_eq!(client.hear_text(), format!(r#"{{"number":{number}}}"#));
    }
    let sockets = |result: &str| {
        metric(
            &proxy,
            &format!(r#"dualgauge_event_sockets_total{{result="{result}"}}"#),
        )
    };
    assert_eq!((sockets("opened"), sockets("closed")), (1.0, 0.0));
    // Its close ends the subscription.
    drop(client);
    let ending = server.hear();
    assert_eq!(
        (&ending["method"], &ending["params"]),
        (&json!("eth_unsubscribe"), &json!(["0x9c"]))
    );
    becomes(|| metric(&proxy, OPEN), &0.0);
    becomes(|| sockets("closed"), &1.0);
    proxy.log_line(&["route=heads", "side=rest", "status=101", "events=3"]);
}

#[test]
fn a_websocket_whose_client_sends_but_reads_nothing_is_closed() {
    let upstream = Upstream::start();
    let proxy = before(
        &upstream,
        &format!("{ROUTES}\n[limits]\nwrite_timeout = \"1s\"\n"),
    );
    let mut server = accept(&upstream);
    let mut client = subscribed_socket(&proxy, &mut server);
    let filler = "x".repeat(256 * 1024);
    let params = json!({ "subscription": "0x9c", "result": { "height": filler } });
    let large = json!({ "jsonrpc": "2.0", "method": "eth_subscription", "params": params });
    let large = large.to_string();
    // More than the sockets and the queue of the client hold.
    for _ in 0..100 {
        server.say(large.clone());
        client.say("hello");
    }
    let closed = r#"dualgauge_event_sockets_total{result="closed"}"#;
    becomes(|| metric(&proxy, closed), &1.0);
    assert_eq!(metric(&proxy, OPEN), 0.0);
}

#[test]
fn an_event_that_is_too_long_for_a_websocket_is_dropped_and_counted() {
    let upstream = Upstream::start();
    // Each event grows by more than it has.
    let routes = ROUTES.replace(
        "rest = { status = 200, body = { number = \"{number}\" } }",
        "lossy = \"the text is fixed\"\nrest = { status = 200, body = { number = \"{number}\", text = \"TEXT\" } }",
    );
    let routes = routes.replace("TEXT", &"x".repeat(600));
    let proxy = before(
        &upstream,
        &format!("{routes}\n[limits]\nanswer = \"1KiB\"\n"),
    );
    let mut server = accept(&upstream);
    let mut client = subscribed_socket(&proxy, &mut server);
    for height in [json!("y".repeat(600)), json!("z".repeat(600)), json!(3)] {
        let params = json!({ "subscription": "0x9c", "result": { "height": height } });
        let event = json!({ "jsonrpc": "2.0", "method": "eth_subscription", "params": params });
        server.say(event.to_string());
    }
    assert_eq!(client.hear()["number"], 3);
    let oversize = r#"dualgauge_events_total{route="heads",side="rest",kind="oversize"}"#;
    assert_eq!(metric(&proxy, oversize), 2.0);
    proxy.log_line(&["route=heads", "longer than `limits.answer`"]);
}

#[test]
fn a_websocket_whose_subscription_is_lost_gets_the_failure_and_is_closed() {
    let (_upstream, proxy, mut server) = serving();
    let mut client = subscribed_socket(&proxy, &mut server);
    drop(server);
    let failure = client.hear();
    assert_eq!(failure["reason"], "upstream_cut", "{failure}");
    assert_eq!(client.farewell().map(|(code, _)| code), Some(1011));
    proxy.log_line(&["route=heads", "outcome=cut", "reason=upstream_cut"]);
}

#[test]
fn a_subscription_that_the_server_refuses_opens_no_websocket() {
    let (_upstream, proxy, mut server) = serving();
    let mut client = proxy.connect();
    client.send("GET /subscriptions/newHeads HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
    let asked = server.hear();
    let error = json!({"code": -32602, "message": "no such kind"});
    server.say(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string());
    assert_eq!(client.read_head().status(), 422);
    // Neither does an invalid handshake, or one of another origin.
    for (header, status) in [
        ("Sec-WebSocket-Version: 8", 400),
        (
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: http://evil.example",
            403,
        ),
    ] {
        let mut client = proxy.connect();
        client.send(format!("GET /subscriptions/newHeads HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{header}\r\n\r\n"));
        assert_eq!(client.read_head().status(), status, "{header}");
    }
}
