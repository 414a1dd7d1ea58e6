//! Clients that speak JSON-RPC over a WebSocket to the proxy.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::ends::{End, accept, connect, connect_with};
use super::{before, metric};
use crate::scene::{answer, before_rest, rpc_failure, saying};
use crate::support::{Proxy, Track, Upstream, becomes, both, eventually, rpc_only};

const CALLS: &str = "dualgauge_calls_in_flight";

/// Before an upstream that has HTTP.
fn before_http(upstream: &Upstream, keys: &str) -> Proxy {
    Proxy::start(&format!(
        "{}[rpc]\nwebsocket = true\n{keys}",
        rpc_only(upstream)
    ))
}

fn ask(client: &mut End, id: &str, params: &str) {
    client.say(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"do","params":{params}}}"#
    ));
}

#[test]
fn a_client_on_a_socket_is_served_as_one_that_posts() {
    let upstream = saying(r#""result":7"#);
    let proxy = before_http(&upstream, "");
    let mut client = connect(&proxy);
    ask(&mut client, "\"x\"", "[]");
    assert_eq!(
        client.hear_text(),
        r#"{"jsonrpc":"2.0","id":"x","result":7}"#
    );
    // No answer to a notification, and one to what is no call.
    client.say(r#"{"jsonrpc":"2.0","method":"told"}"#);
    client.say("{");
    assert_eq!(client.hear()["error"]["code"], -32700);
    client.say("[]");
    assert_eq!(client.hear()["error"]["code"], -32600);
    client
        .say(r#"[{"jsonrpc":"2.0","id":1,"method":"do"},{"jsonrpc":"2.0","id":2,"method":"do"}]"#);
    let batch = client.hear();
    assert_eq!((&batch[0]["id"], &batch[1]["id"]), (&json!(1), &json!(2)));
    client.send(Message::Ping("are you there".into()));
    assert_eq!(client.next(), Message::Pong("are you there".into()));
    proxy.log_line(&["rpc_method=do", "outcome=success"]);
    let asked = upstream.requests();
    assert_eq!(asked[0].head.start, "POST /rpc HTTP/1.1");
    let head = &asked[0].head;
    assert_eq!(head.one("content-type"), Some("application/json"));
    let own = head.fields.iter();
    let own = own.filter(|(name, _)| name.to_lowercase().starts_with("sec-websocket"));
    assert_eq!(own.count(), 0, "{head}");
    becomes(|| metric(&proxy, CALLS), &0.0);
}

#[test]
fn a_client_on_a_socket_reads_the_refusal_of_a_rest_server_in_the_data() {
    for (status, number) in [
        ("401 Unauthorized", 401),
        ("403 Forbidden", 403),
        ("429 Too Many Requests", 429),
        ("503 Service Unavailable", 503),
    ] {
        let headers = [
            ("Content-Type", "application/json"),
            ("Retry-After", "7"),
            ("WWW-Authenticate", "Bearer"),
        ];
        let rest = Upstream::answering(answer(status, &headers, "{}"));
        let proxy = before_rest(
            &rest,
            "[rpc]\nwebsocket = true\n[[route]]\nname = \"one\"\nrest = \"GET /one\"\nrpc = \"one\"\n",
        );
        let mut client = connect(&proxy);
        client.say(r#"{"jsonrpc":"2.0","id":3,"method":"one"}"#);
        let said = client.hear();
        let data = &said["error"]["data"];
        assert_eq!((&said["id"], &data["status"]), (&json!(3), &json!(number)));
        assert_eq!(data["retry_after"], 7, "{said}");
        assert_eq!(data["www_authenticate"], json!(["Bearer"]), "{said}");
        // The socket goes on.
        client.say(r#"[{"jsonrpc":"2.0","id":4,"method":"one"}]"#);
        assert_eq!(client.hear()[0]["error"]["data"]["retry_after"], 7);
    }
}

#[test]
fn a_client_on_a_socket_is_translated_for_a_rest_server() {
    let rest = Upstream::answering(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"got\":1}",
    );
    let rpc = Upstream::start();
    let proxy = Proxy::start_with_flags(
        &format!(
            "{}[rpc]\nwebsocket = true\n[[route]]\nname = \"one\"\nrest = \"GET /one/{{n}}\"\nrpc = \"one\"\n",
            both(&rest, &rpc)
        ),
        "[[flag]]\nname = \"f\"\nroute = \"one\"\nside = \"rpc\"\nstage = \"translate\"\n",
    );
    let mut client = connect(&proxy);
    client.say(r#"{"jsonrpc":"2.0","id":3,"method":"one","params":{"n":"5"}}"#);
    assert_eq!(
        client.hear_text(),
        r#"{"jsonrpc":"2.0","id":3,"result":{"got":1}}"#
    );
    assert_eq!(rest.request().head.start, "GET /one/5 HTTP/1.1");
}

#[test]
fn many_clients_with_the_same_ids_each_get_their_own_answers() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let mut clients: Vec<End> = (0..8).map(|_| connect(&proxy)).collect();
    for (place, client) in clients.iter_mut().enumerate() {
        for id in 0..20 {
            ask(client, &id.to_string(), &format!("[{place},{id}]"));
        }
    }
    let mut heard: Vec<_> = (0..8 * 20).map(|_| server.hear()).collect();
    // The first is answered last, and holds nobody else up.
    heard.reverse();
    for call in &heard {
        server.echo(call);
    }
    for (place, client) in clients.iter_mut().enumerate() {
        let mut ids: Vec<u64> = Vec::new();
        for _ in 0..20 {
            let answer = client.hear();
            assert_eq!(answer["result"]["got"], json!([place, answer["id"]]));
            ids.extend(answer["id"].as_u64());
        }
        ids.sort_unstable();
        assert_eq!(ids, Vec::from_iter(0..20));
    }
    becomes(|| metric(&proxy, CALLS), &0.0);
    assert_eq!(metric(&proxy, super::IN_FLIGHT), 0.0);
}

#[test]
fn no_more_messages_are_taken_at_a_time_than_the_limit() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "[rpc]\nsocket_concurrency = 2\n");
    let mut server = accept(&upstream);
    let mut client = connect(&proxy);
    for id in 0..3 {
        ask(&mut client, &id.to_string(), "[]");
    }
    let (first, second) = (server.hear(), server.hear());
    becomes(|| metric(&proxy, CALLS), &2.0);
    server.echo(&second);
    let third = server.hear();
    server.echo(&first);
    server.echo(&third);
    for _ in 0..3 {
        assert!(client.hear()["result"].is_object());
    }
}

#[test]
fn a_client_that_closes_cancels_its_calls() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let mut client = connect(&proxy);
    ask(&mut client, "1", "[]");
    server.hear();
    becomes(|| metric(&proxy, CALLS), &1.0);
    client.send(Message::Close(None));
    client.end();
    becomes(|| metric(&proxy, CALLS), &0.0);
    becomes(|| metric(&proxy, super::IN_FLIGHT), &0.0);
    proxy.log_line(&["rpc_method=do", "outcome=cancelled"]);
    becomes(|| metric(&proxy, "dualgauge_client_connections"), &0.0);
}

/// A client whose calls are as many as it may have, and as many that wait: the server has heard the first.
fn full(upstream: &Upstream, keys: &str) -> (Proxy, End, End, serde_json::Value) {
    let proxy = before(upstream, &format!("{keys}[rpc]\nsocket_concurrency = 1\n"));
    let mut server = accept(upstream);
    if keys.contains("handshake") {
        server.greet();
    }
    let mut client = connect(&proxy);
    ask(&mut client, "1", "[]");
    let heard = server.hear();
    (proxy, client, server, heard)
}

#[test]
fn a_client_that_goes_away_is_seen_while_all_its_calls_are_open() {
    let upstream = Upstream::start();
    let (proxy, mut client, _server, _) = full(&upstream, "");
    client.send(Message::Ping("here".into()));
    assert_eq!(client.next(), Message::Pong("here".into()));
    becomes(|| metric(&proxy, CALLS), &1.0);
    drop(client);
    becomes(|| metric(&proxy, CALLS), &0.0);
    becomes(|| metric(&proxy, super::IN_FLIGHT), &0.0);
    becomes(|| metric(&proxy, "dualgauge_client_connections"), &0.0);
}

#[test]
fn a_client_cancels_its_call_while_all_that_it_may_have_are_open() {
    let upstream = Upstream::start();
    let (proxy, mut client, mut server, heard) = full(&upstream, "handshake = \"mcp\"\n");
    // Of another client, and of no call at all.
    let cancel = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    let mut other = connect(&proxy);
    other.say(cancel("1"));
    client.say(cancel("\"1\""));
    assert_eq!(metric(&proxy, super::IN_FLIGHT), 1.0);
    client.say(cancel("1"));
    let told = server.hear();
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], heard["id"]);
    becomes(|| metric(&proxy, super::IN_FLIGHT), &0.0);
    // It is not answered, and its place is free.
    server.echo(&heard);
    ask(&mut client, "2", "[2]");
    let second = server.hear();
    server.echo(&second);
    assert_eq!(client.hear()["id"], 2);
}

#[test]
fn frames_that_are_too_long_or_malformed_end_the_connection() {
    let upstream = saying(r#""result":7"#);
    let proxy = before_http(&upstream, "[limits]\nbody = 100\n");
    let mut client = connect(&proxy);
    ask(&mut client, "1", &format!("[\"{}\"]", "x".repeat(200)));
    assert_eq!(client.end(), Some(1009));
    let mut client = connect(&proxy);
    // A client masks its frames (RFC 6455 §5.1).
    client.say_raw(b"\x81\x02{}");
    assert_eq!(client.end(), Some(1002));
}

#[test]
fn a_client_that_says_nothing_for_too_long_is_let_go() {
    let upstream = saying(r#""result":7"#);
    let proxy = before_http(&upstream, "socket_idle_timeout = \"200ms\"\n");
    assert_eq!(connect(&proxy).end(), Some(1001));
}

#[test]
fn the_end_of_the_program_waits_for_the_last_answer_and_closes() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let (mut client, idle) = (connect(&proxy), connect(&proxy));
    ask(&mut client, "1", "[]");
    let heard = server.hear();
    proxy.signal("TERM");
    assert_eq!(idle.end(), Some(1001));
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(client.end(), Some(1001));
    assert_eq!(server.end(), Some(1001));
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
}

const UPGRADE: &str =
    "GET /rpc HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";

#[test]
fn a_request_for_a_websocket_must_be_one_of_ours() {
    let upstream = saying(r#""result":7"#);
    let proxy = before_http(&upstream, "");
    let refuse = |more: &str| {
        let mut wire = proxy.connect();
        wire.send(format!("{UPGRADE}{more}\r\n"));
        let answer = wire.read_answer();
        (answer.status(), rpc_failure(&answer.json()).1.to_owned())
    };
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let malformed = (400, "malformed_http".to_owned());
    assert_eq!(refuse(key), malformed);
    assert_eq!(refuse("Sec-WebSocket-Version: 13\r\n"), malformed);
    assert_eq!(
        refuse(&format!(
            "Sec-WebSocket-Version: 13\r\nOrigin: http://evil.example\r\n{key}"
        )),
        (403, "origin_refused".to_owned())
    );
    let (_, answer) = connect_with(&proxy, &[("sec-websocket-protocol", "x, mcp")]);
    assert_eq!(answer.headers()["sec-websocket-protocol"], "mcp");
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn before_an_http_server_a_websocket_passes_unless_told_otherwise() {
    let track = Track::rpc();
    let request = format!(
        "{UPGRADE}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    let open = track.open(request);
    let head = &open.request.head;
    assert_eq!(head.one("upgrade"), Some("websocket"));
    assert_eq!(
        head.one("sec-websocket-key"),
        Some("dGhlIHNhbXBsZSBub25jZQ==")
    );
}

#[test]
fn where_a_server_keeps_state_each_connection_has_a_socket_for_itself() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "sharing = \"client\"\nconnections = 2\n");
    let mut servers = Vec::new();
    // A client that listens opens its socket at once, so the second connects when that of the first is accepted.
    let mut clients = [0, 1].map(|place| {
        let mut client = connect(&proxy);
        ask(&mut client, "1", &format!("[{place}]"));
        let mut server = accept(&upstream);
        let heard = server.hear();
        server.echo(&heard);
        assert_eq!(client.hear()["result"]["got"][0], place);
        servers.push(server);
        client
    });
    // What a server tells goes to the one client.
    for (place, server) in servers.iter_mut().enumerate() {
        server.say(format!(
            r#"{{"jsonrpc":"2.0","method":"event/x","params":[{place}]}}"#
        ));
    }
    for (place, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.hear()["params"], json!([place]));
        ask(client, "2", "[]");
        let heard = servers[place].hear();
        servers[place].echo(&heard);
        assert_eq!(client.hear()["id"], 2);
    }
    // There is no third, until one of them ends.
    let mut third = connect(&proxy);
    ask(&mut third, "1", "[]");
    assert_eq!(rpc_failure(&third.hear()), (-31041, "upstream_busy"));
    let [first, _second] = clients;
    drop(first);
    assert_eq!(servers.remove(0).end(), Some(1001));
    let up = r#"dualgauge_link_up{upstream="socket"}"#;
    becomes(|| metric(&proxy, up), &1.0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = accept(&upstream);
            let heard = server.hear();
            server.echo(&heard);
        });
        let answer = eventually("a place for the third", || {
            ask(&mut third, "3", "[3]");
            let answer = third.hear();
            answer["result"].is_object().then_some(answer)
        });
        assert_eq!(answer["result"]["got"][0], 3);
    });
}

#[test]
fn a_socket_that_its_client_does_not_use_is_closed() {
    let upstream = Upstream::start();
    let proxy = before(
        &upstream,
        "sharing = \"client\"\nidle_timeout = \"200ms\"\n",
    );
    let mut client = connect(&proxy);
    for _ in 0..2 {
        ask(&mut client, "1", "[]");
        let mut server = accept(&upstream);
        let heard = server.hear();
        server.echo(&heard);
        assert_eq!(client.hear()["id"], 1);
        assert_eq!(server.end(), Some(1001));
    }
    drop(client);
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn a_client_that_floods_its_socket_is_cut_and_others_are_served() {
    let upstream = saying(r#""result":7"#);
    let proxy = before_http(&upstream, "");
    let (ping, empty) = (b"\x89\x80\0\0\0\0", b"\0\x80\0\0\0\0");
    for (cut, idle) in [(1.0, ping), (2.0, empty)] {
        let mut rude = connect(&proxy);
        if idle == empty {
            rude.say_raw(b"\x01\x81\0\0\0\0{");
        }
        let flood = idle.repeat(100);
        // Far more than any limit and any buffer: whoever can send so much is not cut.
        assert!(
            (0..20_000).any(|_| !rude.says_raw(&flood)),
            "2,000,000 frames were taken"
        );
        becomes(
            || {
                metric(
                    &proxy,
                    r#"dualgauge_cut_connections_total{reason="chatter"}"#,
                )
            },
            &cut,
        );
    }
    let mut other = connect(&proxy);
    ask(&mut other, "1", "[]");
    assert_eq!(other.hear()["result"], 7);
    drop(other);
    becomes(|| metric(&proxy, "dualgauge_client_connections"), &0.0);
}
