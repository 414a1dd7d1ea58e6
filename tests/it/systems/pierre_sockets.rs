//! What Pierre has on its REST side alone, and passes on: the socket of its dashboard and the stream of a task. Its MCP
//! side has neither, so that there is one direction.

use super::fake_pierre::TOKEN;
use crate::support::{Proxy, Upstream, Wire, becomes, both, rest_only};
use crate::websocket::ends::{accept_asked, connect_at};

const TABLE: &str = include_str!("../../../config/pierre.toml");

fn proxy(upstreams: &str) -> Proxy {
    let config = format!("include = [\"pierre.toml\"]\n{upstreams}");
    Proxy::start_with(&config, &[("pierre.toml", TABLE)])
}

#[test]
fn the_socket_of_the_dashboard_is_the_rest_servers_own() {
    let (rest, rpc) = (Upstream::start(), Upstream::nowhere());
    for upstreams in [rest_only(&rest), both(&rest, &rpc)] {
        let proxy = proxy(&upstreams);
        let mut server = None;
        let mut client = std::thread::scope(|scope| {
            scope.spawn(|| server = Some(accept_asked(&rest)));
            connect_at(&proxy, "/ws", &[("cookie", "auth_token=t")]).0
        });
        let (mut server, asked) = server.unwrap();
        assert_eq!(asked.uri().path(), "/ws");
        assert_eq!(asked.headers()["cookie"], "auth_token=t");
        for (said, answered) in [
            (
                r#"{"type":"auth","token":"bad"}"#,
                r#"{"type":"error","message":"Authentication failed: expired"}"#,
            ),
            (
                r#"{"type":"auth", "token":"eyJ.good.token"}"#,
                r#"{"type":"success","message":"Authentication successful"}"#,
            ),
        ] {
            client.say(said);
            assert_eq!(server.hear_text(), said);
            server.say(answered);
            assert_eq!(client.hear_text(), answered);
        }
        let topics = r#"{"type":"subscribe","topics":["usage"]}"#;
        client.say(topics);
        assert_eq!(server.hear_text(), topics);
        // Nobody has asked for these, and they come as they are said.
        for pushed in [
            r#"{"type":"usage_update","api_key_id":"k","requests_today":1.50}"#,
            r#"{"type":"system_stats","total_requests_today":7}"#,
        ] {
            server.say(pushed);
            assert_eq!(client.hear_text(), pushed);
        }
        drop(client);
        assert_eq!(server.end(), None);
        proxy.log_line(&["path=/ws", "outcome=success", "status=101"]);
        assert!(!proxy.log().contains("eyJ"), "{}", proxy.log());
    }
}

#[test]
fn without_a_rest_server_there_is_no_socket_of_the_dashboard() {
    let rpc = Upstream::nowhere();
    let address = rpc.address();
    let proxy = proxy(&format!(
        "unrouted = \"reject\"\n[upstream.new]\nside = \"rpc\"\nurl = \"http://{address}/mcp\"\n"
    ));
    for target in ["/ws", "/a2a/tasks/t1/stream"] {
        assert_eq!(proxy.rest("GET", target, &[], "").status(), 404, "{target}");
    }
}

const STATUS: &str = "event: task_status\ndata: {\"task_id\":\"t1\",\"status\":\"pending\",\"created_at\":\"2026-02-15T10:00:00+00:00\",\"updated_at\":\"2026-02-15T10:00:00+00:00\"}\n\n";
const UPDATE: &str = "event: task_update\ndata: {\"task_id\":\"t1\",\"status\":\"completed\",\"result\":{\"n\":1.50}}\n\n";

/// A client of the stream of a task, and the server's end.
fn open(proxy: &Proxy, rest: &Upstream) -> (Wire, Wire) {
    let mut client = proxy.connect();
    client.send(format!(
        "GET /a2a/tasks/t1/stream HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAuthorization: {TOKEN}\r\n\r\n"
    ));
    let mut server = rest.accept();
    let asked = server.read_request();
    assert_eq!(asked.head.start, "GET /a2a/tasks/t1/stream HTTP/1.1");
    assert_eq!(asked.head.one("authorization"), Some(TOKEN));
    server.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    (client, server)
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

#[test]
fn the_stream_of_a_task_is_told_event_by_event() {
    let (rest, rpc) = (Upstream::start(), Upstream::nowhere());
    for upstreams in [rest_only(&rest), both(&rest, &rpc)] {
        let proxy = proxy(&upstreams);
        let (mut client, mut server) = open(&proxy, &rest);
        server.send(chunk(STATUS));
        let head = client.read_head();
        assert_eq!(head.one("content-type"), Some("text/event-stream"));
        // The first is here before there is a second.
        client.read_until(STATUS);
        server.send(chunk(UPDATE));
        client.read_until(UPDATE);
        server.send("0\r\n\r\n");
        client.read_until("0\r\n\r\n");
        proxy.log_line(&["path=/a2a/tasks/t1/stream", "outcome=success"]);
        // One who leaves ends it.
        let (mut client, mut server) = open(&proxy, &rest);
        server.send(chunk(STATUS));
        client.read_until(STATUS);
        drop(client);
        server.expect_gone();
        becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
    }
}
