//! RPC passthrough: a message is read to find its route, and goes on as the bytes that it was.

use crate::support::{Carried, Proxy, Track, Upstream, both, fields, rest_only, rpc_only};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A POST of a message.
fn post(target: &str, message: impl AsRef<[u8]>) -> Vec<u8> {
    let message = message.as_ref();
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        message.len()
    );
    [head.as_bytes(), message].concat()
}

/// An answer of this text, with a date so that the proxy adds none.
fn json(text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{text}",
        text.len()
    )
}

fn carry(message: impl AsRef<[u8]>, answer: &str) -> Carried {
    Track::rpc().carry(post("/rpc", message), json(answer))
}

/// A message with an id that is put in as it is.
fn call(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}")
}

#[test]
fn a_message_goes_and_its_answer_comes_back_as_the_same_bytes() {
    let message = "  {\t\"params\" : {\"b\":1.10, \"a\":123456789012345678901234567890, \"b\":\"\\u0041\\/\"},\r\n\
                   \"id\":\"caf\u{e9}\\u0000\",\"x-more\":[ ],\"method\":\"any\\u002fthing\",\"jsonrpc\":\"2.0\"}\n ";
    let answer = " {\"result\":{\"z\":1.0,\"a\":1e400,\"a\":2},\"id\" : \"caf\u{e9}\\u0000\",\"jsonrpc\":\"2.0\", \"extra\":null}\n";
    let carried = carry(message, answer);
    assert_eq!(carried.request.text(), message);
    assert_eq!(carried.answer.text(), answer);
    assert_eq!(carried.answer.head.start, "HTTP/1.1 200 OK");
}

#[test]
fn every_id_that_servers_give_back_travels_as_it_is() {
    for id in [
        "\"a\"",
        "\"\"",
        "0",
        "-1",
        "7",
        "9007199254740991",
        "-9007199254740991",
    ] {
        let message = call(id);
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":1}}");
        let carried = carry(&message, &answer);
        assert_eq!(carried.request.text(), message);
        assert_eq!(carried.answer.text(), answer);
    }
}

#[test]
fn an_id_that_servers_lose_goes_as_a_small_one_and_comes_back_as_it_was() {
    for id in [
        "null",
        "1.0",
        "1.10",
        "1e3",
        "9007199254740993",
        "-123456789012345678901234567890",
    ] {
        let track = Track::rpc();
        let mut open = track.open(post("/rpc", call(id)));
        let sent = open.request.json()["id"].clone();
        assert!(sent.is_u64(), "{sent}");
        assert_eq!(open.request.text(), call(&sent.to_string()));
        open.server.send(json(&format!(
            "{{\"id\":{sent},\"jsonrpc\":\"2.0\",\"result\":{{\"n\":1.10}}}}"
        )));
        let answer = open.client.read_answer();
        assert_eq!(
            answer.text(),
            format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"result\":{{\"n\":1.10}}}}")
        );
    }
}

#[test]
fn a_message_goes_to_the_path_of_the_upstream_with_the_query_of_the_client() {
    for (target, sent) in [
        ("/", "/rpc"),
        ("/rpc", "/rpc"),
        ("/jsonrpc", "/rpc"),
        ("/mcp?", "/rpc?"),
        ("/?a=%7E&a=2&&x", "/rpc?a=%7E&a=2&&x"),
    ] {
        let carried = Track::rpc().carry(post(target, call("1")), OK);
        assert_eq!(carried.request.head.start, format!("POST {sent} HTTP/1.1"));
    }
}

#[test]
fn fields_go_on_with_only_via_and_forwarded_added() {
    let message = call("1");
    let carried = Track::rpc().carry(
        format!(
            "POST /rpc HTTP/1.1\r\nHost: a.example\r\nACCEPT: application/json, text/event-stream\r\n\
             content-type: application/json; charset=utf-8\r\nMcp-Session-Id: s1\r\nX-A: 2\r\nx-a: 1\r\n\
             Origin: http://b.example\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nContent-Length: {}\r\n\r\n{message}",
            message.len()
        ),
        OK,
    );
    let mut found = carried.request.head.fields;
    for (name, _) in &mut found {
        if matches!(name.to_ascii_lowercase().as_str(), "via" | "forwarded") {
            name.make_ascii_lowercase();
        }
    }
    found.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    let length = message.len().to_string();
    let expected = fields(&[
        ("ACCEPT", "application/json, text/event-stream"),
        ("Content-Length", &length),
        ("content-type", "application/json; charset=utf-8"),
        ("forwarded", "for=127.0.0.1;host=\"a.example\";proto=http"),
        ("Host", "a.example"),
        ("Mcp-Session-Id", "s1"),
        ("Origin", "http://b.example"),
        ("via", "1.1 dualgauge"),
        ("X-A", "2"),
        ("x-a", "1"),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn the_fields_of_an_answer_come_back_with_nothing_added() {
    let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}";
    let carried = Track::rpc().carry(
        post("/rpc", call("1")),
        format!(
            "HTTP/1.1 404 Not Found\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nMcp-Session-Id: s1\r\n\
             Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        ),
    );
    assert_eq!(carried.answer.head.start, "HTTP/1.1 404 Not Found");
    assert_eq!(carried.answer.text(), text);
    assert_eq!(carried.answer.head.fields.len(), 5, "{:?}", carried.answer);
    assert_eq!(carried.answer.head.all("set-cookie"), ["a=1", "b=2"]);
}

#[test]
fn a_chunked_message_goes_on_with_a_length() {
    let message = call("1");
    let (first, second) = message.split_at(10);
    let carried = Track::rpc().carry(
        format!(
            "POST /rpc HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        ),
        OK,
    );
    assert_eq!(carried.request.text(), message);
    let length = message.len().to_string();
    assert_eq!(
        carried.request.head.one("content-length"),
        Some(length.as_str())
    );
    assert_eq!(carried.request.head.one("transfer-encoding"), None);
}

#[test]
fn a_message_of_a_mebibyte_goes_and_comes_back() {
    let text = "x".repeat(1 << 20);
    let message =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":[\"{text}\"]}}");
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":\"{text}\"}}");
    let carried = carry(&message, &answer);
    assert!(carried.request.text() == message);
    assert!(carried.answer.text() == answer);
}

#[test]
fn events_that_answer_a_message_come_one_by_one() {
    let track = Track::rpc();
    let mut open = track.open(post("/mcp", call("\"a\"")));
    open.server.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let head = open.client.read_head();
    assert_eq!(head.one("content-type"), Some("text/event-stream"));
    let event = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"progress\"}\n\n";
    for _ in 0..3 {
        open.server
            .send(format!("{:x}\r\n{event}\r\n", event.len()));
        assert_eq!(open.client.read_chunk().unwrap(), event.as_bytes());
    }
    open.server.send("0\r\n\r\n");
    assert_eq!(open.client.read_chunk(), None);
    open.client.expect("\r\n");
    track
        .proxy
        .log_line(&["side=rpc", "rpc_method=m", "outcome=success"]);
}

#[test]
fn an_answer_to_a_message_that_is_cut_cuts_the_client() {
    let track = Track::rpc();
    let mut open = track.open(post("/rpc", call("1")));
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\":");
    open.client.read_head();
    open.client.expect("{\"jsonrpc\":");
    drop(open.server);
    open.client.expect_gone();
    track
        .proxy
        .log_line(&["side=rpc", "outcome=cut", "blame=upstream"]);
}

#[test]
fn a_client_that_leaves_cancels_its_message() {
    let track = Track::rpc();
    let mut open = track.open(post("/rpc", call("1")));
    drop(open.client);
    open.server.expect_gone();
    track.proxy.log_line(&["side=rpc", "outcome=cancelled"]);
}

#[test]
fn get_on_an_rpc_path_is_the_stream_of_the_rpc_upstream() {
    let track = Track::rpc();
    let mut open =
        track.open("GET /mcp?x=1 HTTP/1.1\r\nHost: a.example\r\nLast-Event-ID: 7\r\n\r\n");
    assert_eq!(open.request.head.start, "GET /rpc?x=1 HTTP/1.1");
    assert_eq!(open.request.head.one("last-event-id"), Some("7"));
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 8\n\n");
    open.client.read_head();
    assert_eq!(open.client.read_chunk().unwrap(), b"id: 8\n\n");
    open.server.send("id: 9\n\n");
    assert_eq!(open.client.read_chunk().unwrap(), b"id: 9\n\n");
    drop(open.server);
    assert_eq!(open.client.read_chunk(), None);
}

#[test]
fn delete_on_an_rpc_path_ends_the_session_of_the_rpc_upstream() {
    let carried = Track::rpc().carry(
        "DELETE /mcp HTTP/1.1\r\nHost: a.example\r\nMcp-Session-Id: s1\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    );
    assert_eq!(carried.request.head.start, "DELETE /rpc HTTP/1.1");
    assert_eq!(carried.request.head.one("mcp-session-id"), Some("s1"));
    assert_eq!(carried.answer.status(), 204);
}

#[test]
fn an_upgrade_on_an_rpc_path_is_a_tunnel_to_the_rpc_upstream() {
    let track = Track::rpc();
    let mut open = track.open(
        "GET /rpc HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nearly",
    );
    assert_eq!(open.request.head.one("upgrade"), Some("websocket"));
    open.server.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(open.client.read_head().status(), 101);
    open.server.expect("early");
    open.server.send("reply");
    open.client.expect("reply");
}

#[test]
fn a_notification_goes_on_and_is_not_answered_with_a_message() {
    let message = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1.10}}"#;
    // Its status is the one of the face, whatever the upstream says to it.
    for answer in [
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<h1>".to_owned(),
        json(r#"{"jsonrpc":"2.0","id":null,"result":1}"#),
    ] {
        let carried = Track::rpc().carry(post("/rpc", message), answer);
        assert_eq!(carried.request.text(), message);
        assert_eq!(carried.answer.status(), 204);
        assert_eq!(carried.answer.text(), "");
    }
}

#[test]
fn a_response_of_the_client_goes_to_the_server_that_asked() {
    let message = r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#;
    let carried = Track::rpc().carry(
        post("/mcp", message),
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(carried.request.text(), message);
    assert_eq!(carried.answer.status(), 202);
}

#[test]
fn an_rpc_upstream_that_is_not_there_is_an_error_with_the_id_of_the_client() {
    let nowhere = Upstream::nowhere();
    let proxy = Proxy::start(&rpc_only(&nowhere));
    let answer = proxy.rpc(call("\"a\""));
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json()["id"], "a");
    assert_eq!(answer.json()["error"]["code"], -31021);
    assert_eq!(
        answer.json()["error"]["data"]["reason"],
        "upstream_unreachable"
    );
    assert!(
        !answer
            .text()
            .contains(&nowhere.address().port().to_string())
    );
}

#[test]
fn without_an_rpc_upstream_a_method_without_a_route_is_not_found() {
    let rest = Upstream::start();
    let proxy = Proxy::start(&rest_only(&rest));
    let answer = proxy.rpc(call("\"a\""));
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json()["id"], "a");
    assert_eq!(answer.json()["error"]["code"], -32601);
    rest.expect_no_connection();
}

#[test]
fn messages_and_calls_of_one_client_go_each_their_way() {
    let rest = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nrest");
    let rpc = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nrpc");
    let proxy = Proxy::start(&both(&rest, &rpc));
    let mut client = proxy.connect();
    for _ in 0..3 {
        client.send("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(client.read_answer().text(), "rest");
        client.send(post("/rpc", call("1")));
        assert_eq!(client.read_answer().text(), "rpc");
        client.send("OPTIONS /rpc HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(client.read_answer().text(), "rpc");
    }
}
