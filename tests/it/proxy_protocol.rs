//! A balancer before the proxy tells who calls, by the PROXY protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::scene::json;
use crate::support::certificates::{authority, certified, client_config};
use crate::support::{Proxy, Upstream, WITHIN, becomes};

const CLIENTS: &str = "[[client]]\nname = \"inside\"\nmatch = { address = \"192.0.2.0/24\" }\n\
    [[client]]\nname = \"behind\"\nmatch = { address = \"198.51.100.9\" }\n";
const CALL: &str = "GET /a HTTP/1.1\r\nHost: proxy.example\r\n";

fn config(rest: &Upstream, trusted: &str) -> String {
    format!(
        "[listen]\nworkers = 1\nproxy_protocol = \"required\"\ntrusted = [{trusted}]\n[limits]\nheader_timeout = \"2s\"\n\
         [upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\n{CLIENTS}",
        rest.address()
    )
}

/// A header of version 2 of a client over IPv4.
fn binary(command: u8, client: [u8; 4]) -> Vec<u8> {
    let addresses = [&client[..], &[10, 0, 0, 1, 1, 1, 2, 2]].concat();
    [
        &b"\r\n\r\n\0\r\nQUIT\n"[..],
        &[command, 0x11, 0, 12],
        &addresses,
    ]
    .concat()
}

/// The status of a call behind these bytes.
fn status(proxy: &Proxy, header: &[u8], fields: &str) -> u16 {
    let mut wire = proxy.connect();
    wire.send([header, format!("{CALL}{fields}\r\n").as_bytes()].concat());
    wire.read_answer_to("GET").status()
}

#[test]
fn the_client_is_whom_the_balancer_names() {
    let rest = Upstream::answering(json("1"));
    let proxy = Proxy::start(&config(&rest, "\"127.0.0.1\", \"192.0.2.200\""));
    let line = b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n";
    assert_eq!(status(&proxy, line, "X-N: 1\r\n"), 200);
    let logged = proxy.log_line(&["path=/a "]);
    assert!(logged.contains("client=inside"), "{logged}");
    let forwarded = rest.request().head.one("forwarded").unwrap().to_owned();
    assert_eq!(forwarded, "for=192.0.2.7;host=\"proxy.example\";proto=http");
    // A client that is no hop itself says nothing of others; one that is a hop does.
    let listed = "X-Forwarded-For: 198.51.100.9\r\n";
    assert_eq!(status(&proxy, &binary(0x21, [192, 0, 2, 8]), listed), 200);
    assert_eq!(status(&proxy, &binary(0x21, [192, 0, 2, 200]), listed), 200);
    proxy.log_line(&["client=behind"]);
    assert_eq!(proxy.log().matches("client=inside").count(), 2);
    // The balancer itself asks whether anybody is there.
    assert_eq!(status(&proxy, &binary(0x20, [0; 4]), ""), 200);
    assert_eq!(status(&proxy, b"PROXY UNKNOWN\r\n", ""), 200);
    proxy.log_line(&["client=other"]);
}

#[test]
fn a_header_may_come_byte_by_byte() {
    let rest = Upstream::answering(json("1"));
    let proxy = Proxy::start(&config(&rest, "\"127.0.0.1\""));
    for header in [
        &b"PROXY TCP6 2001:db8::7 ::1 1 2\r\n"[..],
        &binary(0x21, [192, 0, 2, 7]),
    ] {
        let mut wire = proxy.connect();
        for byte in header {
            wire.send([*byte]);
        }
        wire.send(format!("{CALL}\r\n"));
        assert_eq!(wire.read_answer_to("GET").status(), 200);
    }
}

#[test]
fn connections_without_a_header_or_of_others_are_closed() {
    let rest = Upstream::answering(json("1"));
    let failed = |proxy: &Proxy| proxy.metrics().value("dualgauge_failed_handshakes_total");
    let proxy = Proxy::start(&config(&rest, "\"127.0.0.1\""));
    for said in [
        CALL,
        "PROXY TCP4 x y 1 2\r\n",
        "\r\n\r\n\0\r\nQUIT\n\x11\x11\0\0",
        "",
    ] {
        let mut wire = proxy.connect();
        wire.send(said);
        wire.read_rest();
    }
    becomes(|| failed(&proxy), &4.0);
    let proxy = Proxy::start(&config(&rest, "\"10.0.0.0/8\""));
    let mut wire = proxy.connect();
    let _ = wire.try_send("PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n");
    becomes(|| failed(&proxy), &1.0);
    assert_eq!(rest.requests().len(), 0);
}

#[test]
fn tls_begins_behind_the_header() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let own = certified(&ours, "proxy", "proxy.example");
    let tls = "[listen.tls]\ncertificate = \"own.pem\"\nkey = \"own.key\"\n";
    let files = [("own.pem", own.pem.as_str()), ("own.key", &own.key_pem())];
    let config = format!("{}{tls}", config(&rest, "\"127.0.0.1\""));
    let proxy = Proxy::start_with(&config, &files);
    let mut socket = TcpStream::connect(proxy.address()).unwrap();
    socket.set_read_timeout(Some(WITHIN)).unwrap();
    socket.write_all(&binary(0x21, [192, 0, 2, 7])).unwrap();
    let name = ServerName::try_from("proxy.example").unwrap();
    let config = Arc::clone(&client_config(&ours, None, &[]));
    let connection = ClientConnection::new(config, name).unwrap();
    let mut stream = StreamOwned::new(connection, socket);
    stream
        .write_all(format!("{CALL}Connection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    let line = proxy.log_line(&["path=/a "]);
    assert!(line.contains("client=inside"), "{line}");
}
