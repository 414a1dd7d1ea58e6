//! One peer leaves places of the process to others.

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use crate::support::{Proxy, Track, Upstream, Wire, becomes, rest_only};

fn track(more: &str) -> Track {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{more}\n", rest_only(&upstream)));
    Track { proxy, upstream }
}

/// A connection from another address of this machine.
fn connect_from(address: &str, proxy: &Proxy) -> Wire {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let own: SocketAddr = format!("{address}:0").parse().unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&proxy.address().into()).unwrap();
    Wire::over(socket.into())
}

fn get(client: &str) -> String {
    format!("GET /x HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: {client}\r\n\r\n")
}

#[test]
fn one_peer_leaves_connections_to_others() {
    let track = track("[limits]\nconnections = 10");
    let proxy = &track.proxy;
    // Eight of ten, and one of the two that are left.
    let held: Vec<_> = (0..9).map(|_| proxy.connect()).collect();
    let open = || proxy.metrics().value("dualgauge_client_connections");
    becomes(open, &9.0);
    proxy.connect().expect_gone();
    proxy.connect().expect_gone();
    let refused = "dualgauge_refused_connections_total";
    becomes(|| proxy.metrics().value(refused), &2.0);
    let mut other = connect_from("127.0.0.2", proxy);
    other.send(get("-"));
    let mut server = track.upstream.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(other.read_answer().status(), 200);
    drop(held);
    let log = track.proxy.stop().log;
    let told = log.matches("peer=127.0.0.1 limit=limits.connections");
    assert_eq!(told.count(), 1, "{log}");
}

fn behind_a_balancer(limits: &str) -> Track {
    let keys = "workers = 1\ntrusted = [\"127.0.0.1\"]\nproxy_protocol = \"required\"";
    let upstream = Upstream::start();
    let config = rest_only(&upstream).replace("workers = 1", keys);
    let proxy = Proxy::start(&format!("{config}[limits]\n{limits}\n"));
    Track { proxy, upstream }
}

/// The beginning of a connection of this client, as a balancer sends it.
fn header(client: &str) -> String {
    format!("PROXY TCP4 {client} 10.0.0.1 56324 443\r\n")
}

#[test]
fn one_client_behind_a_proxy_header_leaves_connections_to_others() {
    let track = behind_a_balancer("connections = 10");
    let proxy = &track.proxy;
    let from = |client: &str| {
        let mut wire = proxy.connect();
        // A connection that is refused may be gone already.
        let _ = wire.try_send(header(client));
        wire
    };
    let open = || proxy.metrics().value("dualgauge_client_connections");
    let mut held = Vec::new();
    for number in 1..=9_u8 {
        held.push(from("192.0.2.1"));
        becomes(open, &f64::from(number));
    }
    from("192.0.2.1").expect_gone();
    let refused = "dualgauge_refused_connections_total";
    becomes(|| proxy.metrics().value(refused), &1.0);
    // The same balancer brings another client.
    let mut other = from("192.0.2.2");
    other.send(get("192.0.2.1"));
    let mut server = track.upstream.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(other.read_answer().status(), 200);
    drop(held);
    let log = track.proxy.stop().log;
    let told = log.matches("peer=192.0.2.1 limit=limits.connections");
    assert_eq!(told.count(), 1, "{log}");
}

#[test]
fn one_client_behind_a_proxy_header_leaves_calls_to_others() {
    let track = behind_a_balancer("in_flight = 10");
    // What such a client says of others does not count.
    let call = |client: &str, said: &str| format!("{}{}", header(client), get(said));
    let said = |number: usize| format!("198.51.100.{number}");
    let open: Vec<_> = (0..9)
        .map(|number| track.open(call("192.0.2.1", &said(number))))
        .collect();
    let mut refused = track.proxy.connect();
    refused.send(call("192.0.2.1", "198.51.100.200"));
    assert_eq!(refused.read_answer().status(), 503);
    let mut other = track.open(call("192.0.2.2", "192.0.2.1"));
    other
        .server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(other.client.read_answer().status(), 200);
    drop(open);
    let log = track.proxy.stop().log;
    assert_eq!(log.matches("peer=192.0.2.1 ").count(), 1, "{log}");
}

#[test]
fn one_client_behind_a_trusted_hop_leaves_calls_to_others() {
    let upstream = Upstream::start();
    let config =
        rest_only(&upstream).replace("workers = 1", "workers = 1\ntrusted = [\"127.0.0.1\"]");
    let proxy = Proxy::start(&format!("{config}[limits]\nin_flight = 10\n"));
    let track = Track { proxy, upstream };
    let open: Vec<_> = (0..9).map(|_| track.open(get("192.0.2.1"))).collect();
    let mut refused = track.proxy.connect();
    refused.send(get("192.0.2.1"));
    assert_eq!(refused.read_answer().status(), 503);
    let mut other = track.open(get("192.0.2.2"));
    other
        .server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(other.client.read_answer().status(), 200);
    drop(open);
    track.proxy.log_line(&["status=503", "reason=overloaded"]);
    let log = track.proxy.stop().log;
    assert_eq!(log.matches("peer=192.0.2.1 ").count(), 1, "{log}");
}
