//! Cancellations that pass to a server behind HTTP: they name the id that the call has there.

use serde_json::{Value, json};

use super::recalls::{ask, cancelled, post, tell};
use crate::scene::{ANSWERED_HERE, HERE};
use crate::support::{Proxy, Upstream, Wire, becomes, rpc_only};
use crate::websocket::ends::connect;

const OPEN: &str = "dualgauge_calls_in_flight";

/// The next request that the server gets on a connection of its own.
fn heard(upstream: &Upstream) -> (Wire, Value) {
    let mut wire = upstream.accept();
    let message = wire.read_request().json();
    (wire, message)
}

fn answer(wire: &mut Wire, call: &Value) {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":1}}"#, call["id"]);
    let length = body.len();
    wire.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
}

fn take(wire: &mut Wire) {
    wire.send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
}

/// Cancels in a POST of its own, which the server hears on a connection of its own as well.
fn passes(proxy: &Proxy, upstream: &Upstream, session: &str, id: &str) -> String {
    let mut client = post(proxy, Some(session), &cancelled(id));
    let mut server = upstream.accept();
    let told = server.read_request();
    // It is closed, so that the next one comes over another.
    server.send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(client.read_answer().status() < 300);
    told.text().to_owned()
}

#[test]
fn a_posted_cancellation_bears_the_id_that_a_call_of_a_batch_has_at_the_server() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{ANSWERED_HERE}", rpc_only(&upstream)));
    let both = format!("[{},{},{HERE}]", ask("1"), ask("\"x\""));
    let mut client = post(&proxy, Some("mine"), &both);
    let (mut first, one) = heard(&upstream);
    let (mut second, two) = heard(&upstream);
    assert_ne!(one["id"], two["id"]);
    // What another session calls so is nothing that is known here.
    let other = passes(&proxy, &upstream, "other", "\"x\"");
    assert_eq!(other, cancelled("\"x\""));
    let own = passes(&proxy, &upstream, "mine", "1");
    assert_eq!(own, cancelled(&one["id"].to_string()));
    first.expect_gone();
    answer(&mut second, &two);
    let answers = client.read_answer().json();
    assert_eq!(answers, json!([{"jsonrpc": "2.0", "id": "x", "result": 1}]));
    proxy.log_line(&["rpc_method=do", "outcome=cancelled", "blame=client"]);
    becomes(|| proxy.metrics().value(OPEN), &0.0);
}

#[test]
fn a_cancellation_of_an_id_that_does_not_travel_bears_the_one_that_does() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rpc_only(&upstream));
    for id in ["1.50", "12345678901234567890"] {
        let mut client = post(&proxy, Some("mine"), &ask(id));
        let (mut server, call) = heard(&upstream);
        let told = passes(&proxy, &upstream, "mine", id);
        assert_eq!(told, cancelled(&call["id"].to_string()));
        server.expect_gone();
        assert_eq!(client.read_answer().status(), 204);
        // No server has ever seen this one, and the call is over.
        assert_eq!(tell(&proxy, Some("mine"), &cancelled(id)).status(), 204);
    }
    // A call that passes as it came has the id that its client gave it, and so has its cancellation.
    let mut client = post(&proxy, Some("mine"), &ask("7"));
    let (mut server, call) = heard(&upstream);
    assert_eq!(call["id"], 7);
    assert_eq!(
        passes(&proxy, &upstream, "mine", "7"),
        cancelled("7"),
        "as it came"
    );
    answer(&mut server, &call);
    assert_eq!(client.read_answer().json()["id"], 7);
}

#[test]
fn a_client_on_a_websocket_cancels_its_call_at_a_server_behind_http() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}[rpc]\nwebsocket = true\n", rpc_only(&upstream)));
    let mut client = connect(&proxy);
    client.say(ask("70"));
    let (mut server, call) = heard(&upstream);
    assert_ne!(call["id"], 70);
    client.say(cancelled("70"));
    let (mut told, notice) = heard(&upstream);
    assert_eq!(notice["method"], "notifications/cancelled");
    assert_eq!(
        notice["params"],
        json!({"requestId": call["id"], "reason": "enough"})
    );
    take(&mut told);
    server.expect_gone();
    // One that is over, or never was, is not told: the id may be another client's there.
    for id in ["70", "71"] {
        client.say(cancelled(id));
    }
    client.say(ask("72"));
    let last = told.read_request().json();
    assert_eq!(last["method"], "do");
    answer(&mut told, &last);
    assert_eq!(client.hear()["id"], 72);
    becomes(|| proxy.metrics().value(OPEN), &0.0);
}
