//! More of everything than usual: connections that nobody uses, a server that dies again and again, and limits that
//! are reached.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::campaign::Leaver;
use crate::scene::json;
use crate::soak::Held;
use crate::support::{Proxy, Track, Upstream, Wire, becomes, rest_only};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const IDLE: usize = 2000;
/// What a connection without a call may keep: its task, its socket and the first buffer of its protocol. What the allocator
/// needs beside is in it.
const KIB_EACH: usize = 32;

#[test]
fn thousands_of_idle_connections_hold_nobody_up_and_leave_nothing() {
    let upstream = Upstream::answering(json("1"));
    let proxy = Proxy::start(&format!(
        "{}[limits]\nheader_timeout = \"5m\"\n",
        rest_only(&upstream)
    ));
    assert_eq!(proxy.rest("GET", "/x", &[], "").status(), 200);
    let open = || proxy.metrics().value("dualgauge_client_connections");
    becomes(open, &0.0);
    let before = Held::by(&proxy);
    let mut idle: Vec<Wire> = (0..IDLE).map(|_| proxy.connect()).collect();
    // Some of them have called once, some have begun to.
    for wire in idle.iter_mut().step_by(10) {
        wire.send(GET);
        assert_eq!(wire.read_answer().status(), 200);
    }
    for wire in idle.iter_mut().skip(1).step_by(10) {
        wire.send("GET /x HT");
    }
    becomes(open, &(IDLE as f64));
    expect_small(&before, &Held::by(&proxy));
    for _ in 0..100 {
        assert_eq!(proxy.rest("GET", "/x", &[], "").status(), 200);
    }
    idle[0].send(GET);
    assert_eq!(idle[0].read_answer().status(), 200);
    drop(idle);
    becomes(open, &0.0);
    becomes(|| Held::by(&proxy).beyond(&before).0, &0);
    // What so many have needed is the allocator's to keep, and enough for as many that come later.
    for _ in 0..3 {
        let crowd: Vec<Wire> = (0..IDLE).map(|_| proxy.connect()).collect();
        becomes(open, &(IDLE as f64));
        expect_small(&before, &Held::by(&proxy));
        drop(crowd);
        becomes(open, &0.0);
        becomes(|| Held::by(&proxy).beyond(&before).0, &0);
        eprintln!("before {before:?}, then {:?}", Held::by(&proxy));
    }
}

/// Whether what a crowd holds is within its bound for each.
fn expect_small(before: &Held, now: &Held) {
    let more = now.resident_kib.saturating_sub(before.resident_kib);
    let tenths = more * 10 / IDLE;
    eprintln!("{}.{} KiB for each connection", tenths / 10, tenths % 10);
    assert!(more <= KIB_EACH * IDLE, "{before:?}, then {now:?}");
}

/// A server that answers until it is told to die, with all its connections.
fn lives(address: SocketAddr) -> (Leaver, SocketAddr) {
    let listener = crate::campaign::listen(address);
    let address = listener.local_addr().unwrap();
    (Leaver::serving(listener, json("1")), address)
}

#[test]
fn a_server_that_dies_and_comes_back_again_and_again_hangs_no_call() {
    let (mut server, address) = lives("127.0.0.1:0".parse().unwrap());
    let proxy = Proxy::start(&format!(
        "[listen]\nworkers = 2\n[upstream.old]\nside = \"rest\"\nurl = \"http://{address}\"\ntimeout = \"5s\"\n"
    ));
    let over = Arc::new(AtomicBool::new(false));
    let (calls, served) = thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let (over, proxy) = (over.clone(), &proxy);
                scope.spawn(move || {
                    let (mut calls, mut served) = (0, 0);
                    let mut wire = proxy.connect();
                    while !over.load(Ordering::Relaxed) {
                        wire.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
                        let status = wire.read_answer().status();
                        assert!(matches!(status, 200 | 502), "{status}");
                        calls += 1;
                        served += usize::from(status == 200);
                    }
                    (calls, served)
                })
            })
            .collect();
        for _ in 0..30 {
            server.heard_more(20);
            server.dies();
            server = lives(address).0;
        }
        server.heard_more(20);
        over.store(true, Ordering::Relaxed);
        let ended = clients.into_iter().map(|client| client.join().unwrap());
        ended.fold((0, 0), |sum, (calls, served)| {
            (sum.0 + calls, sum.1 + served)
        })
    });
    eprintln!("{calls} calls, {served} served");
    let told = || {
        let labels = ["route", "client", "side", "stage", "outcome", "blame"];
        let calls = proxy.metrics().table("dualgauge_calls_total", &labels);
        calls.values().sum::<f64>()
    };
    becomes(told, &f64::from(calls));
    assert!(served >= 20 * 30, "{served}");
    let in_flight = || proxy.metrics().value("dualgauge_calls_in_flight");
    becomes(in_flight, &0.0);
    assert_eq!(proxy.rest("GET", "/x", &[], "").status(), 200);
}

/// What a balancer and an operator see while calls are refused.
fn is_green(proxy: &Proxy) {
    for path in ["/healthz", "/readyz"] {
        assert_eq!(proxy.ask("GET", path, "").status(), 200, "{path}");
    }
}

fn track(limits: &str) -> Track {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}[limits]\n{limits}\n", rest_only(&upstream)));
    Track { proxy, upstream }
}

#[test]
fn more_calls_than_may_be_in_flight_are_told_to_come_back_and_health_stays_green() {
    let track = track("in_flight = 1");
    let mut open = track.open(GET);
    let answer = track.proxy.rest("GET", "/y", &[], "");
    assert_eq!(answer.status(), 503);
    let seconds: u32 = answer.head.one("retry-after").unwrap().parse().unwrap();
    assert!(seconds > 0);
    is_green(&track.proxy);
    open.server.send(json("1"));
    assert_eq!(open.client.read_answer().status(), 200);
    track.upstream.expect_no_connection();
}

#[test]
fn more_connections_than_may_be_open_are_closed_and_health_stays_green() {
    let track = track("connections = 2");
    let held = [track.proxy.connect(), track.proxy.connect()];
    let open = || track.proxy.metrics().value("dualgauge_client_connections");
    becomes(open, &2.0);
    track.proxy.connect().expect_gone();
    let refused = track.proxy.metrics();
    assert_eq!(refused.value("dualgauge_refused_connections_total"), 1.0);
    is_green(&track.proxy);
    drop(held);
    becomes(open, &0.0);
    track.open(GET);
}

#[test]
fn a_kept_connection_may_be_without_a_call_for_longer_than_a_head_may_take() {
    let track = track("header_timeout = \"200ms\"\nidle_timeout = \"20s\"");
    let mut open = track.open(GET);
    open.server.send(json("1"));
    assert_eq!(open.client.read_answer().status(), 200);
    // A silent connection, which is closed in the time of a head, is the clock.
    track.proxy.connect().expect_gone();
    open.client.send(GET);
    open.server.read_request();
    open.server.send(json("2"));
    assert_eq!(open.client.read_answer().text(), "2");
    // Half a head is no silence.
    open.client.send("GET /x HTTP/1.1\r\nHost: a.exa");
    assert_eq!(open.client.read_answer().status(), 408);
    open.client.expect_gone();
}

#[test]
fn a_kept_connection_without_a_call_is_closed_in_its_time() {
    let track = track("idle_timeout = \"200ms\"");
    let mut open = track.open(GET);
    open.server.send(json("1"));
    assert_eq!(open.client.read_answer().status(), 200);
    open.client.expect_closed();
}

#[test]
fn a_head_that_comes_byte_by_byte_has_no_more_time_than_another() {
    let track = track("header_timeout = \"300ms\"");
    let mut stream = TcpStream::connect(track.proxy.address()).unwrap();
    // It ends when the proxy closes: each byte alone would be in time.
    let head = std::iter::repeat_n(b'x', usize::MAX);
    let mut bytes = b"GET /x HTTP/1.1\r\nX-Long: ".iter().copied().chain(head);
    stream.set_nodelay(true).unwrap();
    let mut sent = 0;
    while sent < 40_000 && std::io::Write::write_all(&mut stream, &[bytes.next().unwrap()]).is_ok()
    {
        sent += 1;
        // The pace of another process.
        if sent % 100 == 0 {
            track.proxy.metrics();
        }
    }
    Wire::over(stream).read_rest();
    track.upstream.expect_no_connection();
}
