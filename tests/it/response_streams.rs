//! Responses that stream between real ends: translated event by event, in each direction.

mod a2a;
mod compared;
mod cuts;
mod ends;
mod lines;
mod old;
mod told;

use std::collections::BTreeMap;

use crate::scene::{Called, before_rest, before_rpc, call, problem};
use crate::support::{Message, Proxy, Upstream, Wire};

const ROUTES: &str = r#"
[[route]]
name = "send"
rest = "POST /message:stream"
rpc = "SendStreamingMessage"
stream = "sse"

[[route]]
name = "watch"
rest = "GET /tasks/{id}"
rpc = "WatchTask"
effect = "safe"
outcomes = "tasks"

[[route]]
name = "whole"
rest = "GET /whole"
rpc = "whole"
stream = false

[[outcomes.tasks]]
rest = { status = 404, body = { error = { code = 404, message = "{m}" } } }
rpc = { error = { code = -32001, message = "{m}" } }

[[event]]
rpc = { method = "notifications/progress", params = { n = "{n}" } }
sse = { event = "progress", data = { n = "{n}" } }
"#;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nETag: x\r\nSet-Cookie: a=b\r\n\
    Transfer-Encoding: chunked\r\n\r\n";

fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// Reads what comes until it is this.
fn expect(client: &mut Wire, wanted: &str) {
    let mut came = Vec::new();
    while came.len() < wanted.len() {
        match client.read_chunk() {
            Some(chunk) => came.extend(chunk),
            None => panic!("ended after {:?}", String::from_utf8_lossy(&came)),
        }
    }
    assert_eq!(String::from_utf8_lossy(&came), wanted);
}

/// The events so far: route, side and kind, and how many.
fn events(proxy: &Proxy) -> BTreeMap<String, f64> {
    let labels = ["route", "side", "kind"];
    proxy.metrics().table("dualgauge_events_total", &labels)
}

/// A call whose response streams.
struct Streamed {
    client: Wire,
    server: Wire,
    request: Message,
}

impl Streamed {
    fn open(proxy: &Proxy, upstream: &Upstream, request: &str) -> Streamed {
        let mut client = proxy.connect();
        client.send(request);
        let mut server = upstream.accept();
        let request = server.read_request();
        Streamed {
            client,
            server,
            request,
        }
    }

    /// Sends an event as the upstream.
    fn tell(&mut self, event: &str) {
        self.server.send(chunk(event));
    }

    /// The id of the call at the RPC upstream.
    fn id(&self) -> String {
        Called::of(&self.request).id().to_owned()
    }

    fn tell_result(&mut self, result: &str) {
        let id = self.id();
        self.tell(&format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n"
        ));
    }
}

fn post(path: &str, more: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
        body.len()
    )
}

/// An RPC call of a client that reads event streams.
fn rpc_call(method: &str, params: &str, id: &str) -> String {
    let body = call(method, params).replace("\"id\":1", &format!("\"id\":{id}"));
    post(
        "/rpc",
        "Accept: application/json, text/event-stream\r\n",
        &body,
    )
}

fn get(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{more}\r\n")
}

#[test]
fn a_posted_rest_call_gets_each_result_as_it_comes() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let ask = post(
        "/message:stream",
        "Accept: text/event-stream\r\nLast-Event-ID: 4\r\n",
        "{\"m\":1.10}",
    );
    let mut call = Streamed::open(&proxy, &upstream, &ask);
    let head = &call.request.head;
    assert_eq!(
        head.one("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(head.one("last-event-id"), Some("4"));
    assert_eq!(Called::of(&call.request).params(), "{\"m\":1.10}");
    // The client gets the head before there is an event.
    call.server.send(HEAD);
    let head = call.client.read_head();
    assert_eq!(head.status(), 200);
    assert_eq!(head.one("content-type"), Some("text/event-stream"));
    assert_eq!(head.one("cache-control"), Some("no-store"));
    assert_eq!(head.one("x-accel-buffering"), Some("no"));
    assert_eq!(head.one("set-cookie"), Some("a=b"));
    assert_eq!(head.one("etag"), None);
    call.tell_result("{\"task\": 1.0}");
    expect(&mut call.client, "data: {\"task\": 1.0}\n\n");
    call.tell(": ping\n\n");
    expect(&mut call.client, ": ping\n\n");
    let id = call.id();
    call.tell(&format!(
        "id: 5\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"resu"
    ));
    call.tell("lt\":2}\n\n");
    expect(&mut call.client, "id: 5\ndata: 2\n\n");
    let open = "dualgauge_response_streams_open";
    assert_eq!(proxy.metrics().value(open), 1.0);
    call.server.send("0\r\n\r\n");
    assert_eq!(call.client.read_chunk(), None);
    proxy.log_line(&[
        "route=send",
        "side=rest",
        "outcome=success",
        "status=200",
        "events=2",
    ]);
    assert_eq!(proxy.metrics().value(open), 0.0);
    assert_eq!(
        events(&proxy),
        [("send rest response".to_owned(), 2.0)].into()
    );
    // The connection of the upstream serves the next call.
    call.client.send(&ask);
    let request = call.server.read_request();
    assert_ne!(Called::of(&request).id(), id);
}

#[test]
fn a_get_of_a_rest_client_streams_notifications_and_ends_with_the_error() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let mut call = Streamed::open(&proxy, &upstream, &get("/tasks/7", ""));
    // Nothing says that this route streams, so the upstream is asked for JSON, as ever.
    assert_eq!(call.request.head.one("accept"), Some("application/json"));
    call.server.send(HEAD);
    assert_eq!(call.client.read_head().status(), 200);
    call.tell("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"n\":1}}\n\n");
    expect(&mut call.client, "event: progress\ndata: {\"n\":1}\n\n");
    call.tell("data: {\"jsonrpc\":\"2.0\",\"method\":\"unknown\"}\n\n");
    let id = call.id();
    call.tell(&format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32001,\"message\":\"gone\"}}}}\n\n"
    ));
    expect(
        &mut call.client,
        "event: error\ndata: {\"error\":{\"code\":404,\"message\":\"gone\"}}\n\n",
    );
    assert_eq!(call.client.read_chunk(), None);
    call.server.expect_gone();
    proxy.log_line(&[
        "route=watch",
        "outcome=error",
        "blame=client",
        "code=-32001",
        "events=3",
    ]);
}

#[test]
fn an_rpc_call_gets_each_body_under_its_id() {
    for (method, id) in [("SendStreamingMessage", "\"a-1\""), ("WatchTask", "1.50")] {
        let upstream = Upstream::start();
        let proxy = before_rest(&upstream, ROUTES);
        let params = if method == "WatchTask" {
            "{\"id\":\"7\"}"
        } else {
            "{\"m\":1.10}"
        };
        let mut call = Streamed::open(&proxy, &upstream, &rpc_call(method, params, id));
        call.server.send(HEAD);
        let head = call.client.read_head();
        assert_eq!(head.status(), 200);
        assert_eq!(head.one("content-type"), Some("text/event-stream"));
        call.tell("id: 5\r\ndata: {\"task\": 1.0}\r\n\r\n");
        let first = format!(
            "id: 5\r\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"task\": 1.0}}}}\r\n\r\n"
        );
        expect(&mut call.client, &first);
        call.tell("event: progress\ndata: {\"n\":1}\n\n");
        let note =
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"n\":1}}";
        expect(&mut call.client, &format!("data: {note}\n\n"));
        call.tell("event: error\ndata: {\"error\":{\"code\":404,\"message\":\"gone\"}}\n\n");
        let last = call.client.read_chunk().unwrap();
        let last = String::from_utf8(last).unwrap();
        assert!(
            last.starts_with("event: error\ndata: {\"jsonrpc\":\"2.0\",\"id\":"),
            "{last}"
        );
        assert!(last.contains(id) && last.contains("\"message\":"), "{last}");
        assert_eq!(call.client.read_chunk(), None);
        proxy.log_line(&["side=rpc", "outcome=error", "events=3"]);
    }
}

#[test]
fn an_rpc_client_resumes_a_stream_of_a_rest_server() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, ROUTES);
    for (method, params, start) in [
        (
            "SendStreamingMessage",
            "{\"m\":1}",
            "POST /message:stream HTTP/1.1",
        ),
        ("WatchTask", "{\"id\":\"7\"}", "GET /tasks/7 HTTP/1.1"),
    ] {
        let resume = "Accept: application/json, text/event-stream\r\nLast-Event-ID: a-4\r\n";
        let ask = post("/rpc", resume, &call(method, params));
        let mut call = Streamed::open(&proxy, &upstream, &ask);
        let head = &call.request.head;
        assert_eq!(head.start, start);
        assert_eq!(head.one("last-event-id"), Some("a-4"));
        call.server.send(HEAD);
        assert_eq!(call.client.read_head().status(), 200);
        // The client gets the next id to resume from.
        call.tell("id: a-5\ndata: 2\n\n");
        let next = "id: a-5\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2}\n\n";
        expect(&mut call.client, next);
        call.server.send("0\r\n\r\n");
        assert_eq!(call.client.read_chunk(), None);
    }
    // A call that does not resume names no event.
    let ask = rpc_call("WatchTask", "{\"id\":\"7\"}", "1");
    let call = Streamed::open(&proxy, &upstream, &ask);
    assert_eq!(call.request.head.one("last-event-id"), None);
}

#[test]
fn a_client_that_does_not_read_streams_gets_a_failure() {
    let upstream = Upstream::answering(format!("{HEAD}{}", chunk("data: 1\n\n")));
    let proxy = before_rest(&upstream, ROUTES);
    let failed = |answer: &Message| answer.text().contains("upstream_stream");
    let alone = call("SendStreamingMessage", "{}");
    assert!(failed(&proxy.rpc(&alone)));
    // In a batch and over a route that says so, whatever the client accepts.
    let reads = "Accept: application/json, text/event-stream\r\n";
    for body in [format!("[{alone},{alone}]"), call("whole", "{}")] {
        let mut client = proxy.connect();
        client.send(post("/rpc", reads, &body));
        assert!(failed(&client.read_answer()), "{body}");
    }
    let proxy = before_rpc(&upstream, ROUTES);
    for (path, accept) in [
        ("/tasks/7", "application/json"),
        ("/whole", "text/event-stream"),
    ] {
        let answer = proxy.rest("GET", path, &[("accept", accept)], "");
        assert_eq!(answer.status(), 502);
        assert_eq!(problem(&answer).0, "upstream_stream");
    }
}

#[test]
fn an_error_status_with_a_stream_is_no_stream() {
    let refused = HEAD.replace("200 OK", "404 Not Found");
    let upstream = Upstream::answering(refused);
    let proxy = before_rest(&upstream, ROUTES);
    let mut client = proxy.connect();
    client.send(rpc_call("WatchTask", "{\"id\":\"7\"}", "1"));
    assert!(client.read_answer().text().contains("upstream_stream"));
}
