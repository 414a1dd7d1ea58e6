//! Requests that ask for an upgrade and have content: servers must never see both.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::support::{Head, Proxy, Track, Upstream, chunked};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const ASKS: &str = "Host: a.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n";
const SECOND: &str = "GET /stolen HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// A request that asks for an upgrade, with the content of a length.
fn sized(content: &str) -> String {
    let length = content.len();
    format!("POST /attack HTTP/1.1\r\n{ASKS}Content-Length: {length}\r\n\r\n{content}")
}

/// The same with chunked content.
fn in_chunks(pieces: &[&[u8]]) -> String {
    let content = String::from_utf8(chunked(pieces)).unwrap();
    format!("POST /attack HTTP/1.1\r\n{ASKS}Transfer-Encoding: chunked\r\n\r\n{content}")
}

fn expect_no_upgrade(head: &Head) {
    assert_eq!(head.one("upgrade"), None, "{head}");
    assert_eq!(head.one("connection"), None, "{head}");
}

/// A server that does not read content behind `Upgrade` and answers each request with its target. It answers what it
/// takes for a request of its own only when more comes, so that a proxy cannot see the answer too early.
fn careless_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(|| serve_carelessly(stream.unwrap()));
        }
    });
    format!("[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{address}\"\n")
}

fn serve_carelessly(stream: TcpStream) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(head) = next_head(&mut reader) {
        if !head.to_ascii_lowercase().contains("\r\nupgrade:") {
            read_content(&mut reader, &head);
        }
        let target = head.split(' ').nth(1).unwrap_or("nothing");
        if !target.starts_with("/attack") && !target.starts_with("/own") {
            let _ = reader.fill_buf();
        }
        let length = target.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{target}");
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn next_head(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

fn read_content(reader: &mut BufReader<TcpStream>, head: &str) {
    let head = Head::parse(head.as_bytes());
    if let Some(length) = head.one("content-length") {
        reader
            .read_exact(&mut vec![0; length.parse().unwrap()])
            .unwrap();
    }
    if head.one("transfer-encoding").is_some() {
        let mut line = String::new();
        while line != "0\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
            reader.read_exact(&mut vec![0; size + 2]).unwrap();
        }
    }
}

#[test]
fn no_client_gets_an_answer_to_content_behind_an_upgrade() {
    let attacks = [
        sized(SECOND),
        in_chunks(&[SECOND.as_bytes()]),
        in_chunks(&[]),
    ];
    let proxy = Proxy::start(&careless_server());
    for round in 0..3 {
        for attack in &attacks {
            let mut attacker = proxy.connect();
            attacker.send(attack);
            assert_eq!(attacker.read_answer().text(), "/attack");
            for client in 0..3 {
                let own = format!("/own/{round}/{client}");
                assert_eq!(proxy.rest("GET", &own, &[], "").text(), own);
            }
        }
    }
}

#[test]
fn a_client_behind_a_refused_upgrade_gets_its_own_answer() {
    let proxy = Proxy::start(&careless_server());
    for round in 0..3 {
        let mut first = proxy.connect();
        first.send(format!("GET /attack HTTP/1.1\r\n{ASKS}\r\n"));
        let answer = first.read_answer();
        assert_eq!((answer.status(), answer.text()), (200, "/attack"));
        // What a client sends behind its request for an upgrade is for nobody else.
        first.send(SECOND);
        for client in 0..3 {
            let own = format!("/own/{round}/{client}");
            assert_eq!(proxy.rest("GET", &own, &[], "").text(), own);
        }
    }
}

#[test]
fn a_request_with_content_goes_on_without_its_upgrade() {
    for (request, content) in [
        (sized("hello"), "hello"),
        (in_chunks(&[b"hel", b"lo"]), "hello"),
        (in_chunks(&[]), ""),
    ] {
        let track = Track::rest();
        let carried = track.carry(&request, OK);
        expect_no_upgrade(&carried.request.head);
        assert_eq!(carried.request.text(), content);
        assert_eq!(carried.answer.text(), "hi");
    }
}

#[test]
fn an_rpc_message_goes_on_without_its_upgrade() {
    let track = Track::rpc();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    let length = call.len();
    let request = format!(
        "POST /rpc HTTP/1.1\r\n{ASKS}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{call}"
    );
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":7}"#;
    let length = answer.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{answer}");
    let carried = track.carry(request, answer);
    expect_no_upgrade(&carried.request.head);
    assert_eq!(carried.request.text(), call);
}

#[test]
fn a_request_without_content_still_asks_for_its_upgrade() {
    let track = Track::rest();
    let open = track.open(sized(""));
    assert_eq!(open.request.head.one("upgrade"), Some("websocket"));
}

#[test]
fn a_list_that_names_h2c_is_no_upgrade() {
    let track = Track::rest();
    for list in ["h2c", "H2C", "websocket, h2c", "h2c,foo/2"] {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: {list}\r\n\r\n"
        );
        let open = track.open(request);
        expect_no_upgrade(&open.request.head);
    }
}

#[test]
fn a_handshake_with_content_opens_no_websocket_of_the_proxy() {
    let upstream = Upstream::start();
    let address = upstream.address();
    let proxy = Proxy::start(&format!(
        "[upstream.socket]\nside = \"rpc\"\nurl = \"ws://{address}/live\"\n"
    ));
    let ask = |framing: &str| {
        let mut client = proxy.connect();
        client.send(format!(
            "GET /rpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{framing}"
        ));
        client.read_head().status()
    };
    assert_eq!(ask("Content-Length: 5\r\n\r\nhello"), 405);
    assert_eq!(ask("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 405);
    assert_eq!(ask("Content-Length: 0\r\n\r\n"), 101);
}
