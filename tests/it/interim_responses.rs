//! Interim responses of a server (RFC 9110 §15.2) in passthrough.

use crate::scene::{before_rest, call};
use crate::support::{Proxy, Track, Upstream, Wire, rpc_only};
use crate::websocket::ends::connect;

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-oDD: 1\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The client gets the head of an interim response, as it came.
fn expect_head(client: &mut Wire, head: &str) {
    let came = client.read_until("\r\n\r\n");
    assert_eq!(String::from_utf8_lossy(&came), head);
}

#[test]
fn an_interim_response_reaches_the_client_before_the_response_is_there() {
    let track = Track::rest();
    let mut open = track.open(GET);
    for _ in 0..3 {
        open.server.send(HINTS);
        expect_head(&mut open.client, HINTS);
        open.server.send("HTTP/1.1 102 Processing\r\n\r\n");
        expect_head(&mut open.client, "HTTP/1.1 102 Processing\r\n\r\n");
        open.server.send(OK);
        let answer = open.client.read_answer();
        assert_eq!((answer.status(), answer.text()), (200, "ok"));
        open.client.send(GET);
        open.server.read_request();
    }
}

#[test]
fn interim_responses_that_come_with_the_response_go_before_it() {
    for request in [GET, &GET.replace("GET", "HEAD")] {
        let track = Track::rest();
        let mut open = track.open(request);
        let method = request.split(' ').next().unwrap();
        let response = match method {
            "HEAD" => OK.strip_suffix("ok").unwrap(),
            _ => OK,
        };
        open.server.send(format!("{HINTS}{HINTS}{response}"));
        expect_head(&mut open.client, HINTS);
        expect_head(&mut open.client, HINTS);
        assert_eq!(open.client.read_answer_to(method).status(), 200);
        // The next one on both connections has none.
        open.client.send(GET);
        open.server.read_request();
        open.server.send(OK);
        assert_eq!(open.client.read_answer().text(), "ok");
    }
}

#[test]
fn an_interim_response_comes_while_the_client_still_sends() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nab");
    let mut server = track.upstream.accept();
    server.read_until("ab");
    server.send(HINTS);
    expect_head(&mut client, HINTS);
    client.send("cd");
    server.read_until("cd");
    server.send(OK);
    assert_eq!(client.read_answer().text(), "ok");
}

#[test]
fn fields_of_the_connection_stay_behind() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send(
        "HTTP/1.1 103 Early Hints\r\nConnection: close, x-own\r\nX-Own: 1\r\nLink:\r\n </a>\r\n\r\n",
    );
    let came = open.client.read_until("\r\n\r\n");
    let came = String::from_utf8(came).unwrap();
    assert!(!came.to_ascii_lowercase().contains("x-own"), "{came}");
    let lines: Vec<&str> = came.lines().collect();
    assert_eq!(lines.len(), 3, "{came}");
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        ["Link:", "</a>"]
    );
    open.server.send(OK);
    assert_eq!(open.client.read_answer().text(), "ok");
}

#[test]
fn interim_responses_come_in_any_pieces() {
    let whole = format!("HTTP/1.1 100 Continue\r\n\r\n{HINTS}{OK}");
    let track = Track::rest();
    for size in [1, 5, 26, 40] {
        let mut open = track.open(GET);
        for piece in whole.as_bytes().chunks(size) {
            open.server.send(piece);
            std::thread::yield_now();
        }
        expect_head(&mut open.client, HINTS);
        assert_eq!(open.client.read_answer().text(), "ok");
    }
}

#[test]
fn a_client_of_http_1_0_and_a_translated_call_get_none() {
    let track = Track::rest();
    let mut open = track.open(GET.replace("1.1", "1.0"));
    open.server.send(format!("{HINTS}{OK}"));
    assert_eq!(open.client.read_answer().status(), 200);
    let rest = Upstream::serving(|_| format!("{HINTS}{}", OK.replace("ok", "17")).into_bytes());
    let proxy = before_rest(
        &rest,
        "[[route]]\nname = \"m\"\nrest = \"POST /m\"\nrpc = \"m\"\n",
    );
    assert_eq!(proxy.rpc(call("m", "{}")).json()["result"], 17);
}

#[test]
fn a_failure_behind_an_interim_response_is_one_response() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send(HINTS);
    expect_head(&mut open.client, HINTS);
    drop(open.server);
    assert_eq!(open.client.read_answer().status(), 502);
    let mut open = track.open(GET);
    open.server.send(format!(
        "{HINTS}HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"
    ));
    let mut head = open.client.read_until("\r\n\r\n");
    if head.starts_with(b"HTTP/1.1 103") {
        head = open.client.read_until("\r\n\r\n");
    }
    assert!(head.starts_with(b"HTTP/1.1 502"));
}

/// An RPC server whose every response has an interim one before it.
fn hinting() -> Upstream {
    Upstream::serving(|request| {
        let id = &request.json()["id"];
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":7}}"#);
        let length = body.len();
        let head =
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        format!("{HINTS}HTTP/1.1 200 OK\r\n{head}").into_bytes()
    })
}

/// The batch is split: `local` is answered by the proxy.
#[test]
fn a_split_batch_is_answered_whole_and_without_interim_responses() {
    let server = hinting();
    let proxy = Proxy::start(&format!(
        "{}[[local]]\nrpc = \"local\"\nanswer = {{ result = 1 }}\n",
        rpc_only(&server)
    ));
    let notification = r#"{"jsonrpc":"2.0","method":"n"}"#;
    let batch = [
        &call("local", "{}"),
        notification,
        notification,
        &call("a", "{}"),
        notification,
        &call("b", "{}"),
    ];
    for _ in 0..5 {
        let answer = proxy.rpc(format!("[{}]", batch.join(",")));
        assert_eq!(answer.status(), 200, "{answer:?}");
        let results = answer.json();
        let results: Vec<u64> = results
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["result"].as_u64().unwrap())
            .collect();
        assert_eq!(results, [1, 7, 7]);
    }
}

#[test]
fn interim_responses_are_no_bytes_of_a_clients_websocket() {
    let server = hinting();
    let proxy = Proxy::start(&format!("{}[rpc]\nwebsocket = true\n", rpc_only(&server)));
    let mut client = connect(&proxy);
    for _ in 0..5 {
        client.say(r#"{"jsonrpc":"2.0","method":"n"}"#);
        client.say(call("a", "{}"));
        assert_eq!(client.hear()["result"], 7);
    }
}
