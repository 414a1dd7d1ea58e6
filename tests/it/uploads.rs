//! Clients that send the bodies of their requests slowly. The limits are real and short: nothing here sleeps.

use crate::support::{Proxy, Upstream, Wire, rest_only, rpc_only};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const HALF: &str = "POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 8\r\n\r\nhalf";
const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const QUICK: &str = "[limits]\nbody_rate = \"1KiB\"\nbody_grace = \"200ms\"\n";

/// A client that has sent half of its body, and its connection to the server.
fn half(proxy: &Proxy, upstream: &Upstream) -> (Wire, Wire) {
    let mut client = proxy.connect();
    client.send(HALF);
    let mut server = upstream.accept();
    server.read_head();
    server.expect("half");
    (client, server)
}

#[test]
fn slow_uploads_leave_their_connections_to_calls_that_wait() {
    let upstream = Upstream::start();
    // Without a minimum rate, only the calls that wait end an upload.
    let proxy = Proxy::start(&format!(
        "{}[limits]\nbody_rate = 0\n",
        rest_only(&upstream)
    ));
    let mut slow: Vec<_> = (0..256).map(|_| half(&proxy, &upstream)).collect();
    let mut client = proxy.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.read_request();
    server.send(DONE);
    assert_eq!(client.read_answer().status(), 200);
    // The one that has been waited for longest has ended, and no other one.
    let (mut first, mut other) = (slow.remove(0), slow.remove(0));
    let answer = first.0.read_answer();
    assert_eq!(answer.status(), 408);
    first.0.expect_gone();
    first.1.expect_gone();
    let text = answer.text();
    assert!(text.contains("while other calls waited"), "{text}");
    other.0.send("rest");
    other.1.expect("rest");
    other.1.send(DONE);
    assert_eq!(other.0.read_answer().status(), 200);
}

#[test]
fn an_upload_below_the_minimum_rate_is_a_request_timeout() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{QUICK}", rest_only(&upstream)));
    let (mut client, mut server) = half(&proxy, &upstream);
    let answer = client.read_answer();
    assert_eq!(answer.status(), 408);
    assert!(answer.text().contains("1024 bytes a second"), "{answer:?}");
    client.expect_gone();
    server.expect_gone();
    proxy.log_line(&["status=408", "blame=client", "reason=request_timeout"]);
}

#[test]
fn a_message_below_the_minimum_rate_is_a_request_timeout() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{QUICK}", rpc_only(&upstream)));
    let mut client = proxy.connect();
    client.send("POST /rpc HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\n{");
    let answer = client.read_answer();
    assert_eq!(answer.status(), 408);
    assert_eq!(answer.json()["error"]["code"], -31006);
    client.expect_gone();
    upstream.expect_no_connection();
}

#[test]
fn behind_the_beginning_of_its_answer_an_upload_may_take_its_time() {
    let upstream = Upstream::start();
    let more = "timeout = \"600ms\"\n";
    let proxy = Proxy::start(&format!("{}{more}{QUICK}", rest_only(&upstream)));
    let (mut client, mut server) = half(&proxy, &upstream);
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    client.read_head();
    // Another call, which waits for its whole timeout, is the clock.
    assert_eq!(proxy.rest("GET", "/slow", &[], "").status(), 504);
    client.send("rest");
    server.expect("rest");
    server.send("hi");
    client.expect("hi");
}
