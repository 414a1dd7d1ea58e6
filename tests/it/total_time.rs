//! The time of a call as a whole: whoever is waited for when it is over is to blame.

use std::collections::BTreeSet;

use crate::scene::{problem, rpc_failure};
use crate::support::{End, Open, Proxy, Track, Upstream, Wire, rest_only, rpc_only};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const LIMIT: &str = "[limits]\ntotal_timeout = \"500ms\"\n";

fn track() -> Track {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{LIMIT}", rest_only(&upstream)));
    Track { proxy, upstream }
}

#[test]
fn a_server_that_does_not_answer_in_time_is_a_gateway_timeout_on_both_sides() {
    let track = track();
    let mut open = track.open(GET);
    let answer = open.client.read_answer();
    let found = (answer.status(), problem(&answer).0);
    assert_eq!(found, (504, "upstream_timeout".to_owned()));
    open.server.expect_gone();
    track
        .proxy
        .log_line(&["status=504", "blame=upstream", "reason=upstream_timeout"]);
    let rpc = Upstream::start();
    let proxy = Proxy::start(&format!("{}{LIMIT}", rpc_only(&rpc)));
    let answer = proxy
        .rpc(r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#)
        .json();
    assert_eq!(answer["id"], "a");
    assert_eq!(rpc_failure(&answer), (-31022, "upstream_timeout"));
    // All calls of a batch have the time of their request, and one that has none left is not sent.
    let calls = r#"[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":2,"method":"m"}]"#;
    let answers = proxy.rpc(calls).json();
    for place in 0..2 {
        assert_eq!(rpc_failure(&answers[place]), (-31022, "upstream_timeout"));
    }
}

/// Its head and its body are there together, at about the time when it is over.
#[test]
fn a_whole_answer_that_is_there_is_given_whole_or_not_at_all() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let limit = "[limits]\ntotal_timeout = \"1ms\"\n";
    let proxy = Proxy::start(&format!("{}{limit}", rest_only(&upstream)));
    let mut statuses = BTreeSet::new();
    for _ in 0..300 {
        statuses.insert(proxy.rest("GET", "/x", &[], "").status());
    }
    assert!(
        statuses.iter().all(|status| [200, 504].contains(status)),
        "{statuses:?}"
    );
}

#[test]
fn a_client_that_does_not_send_its_request_in_time_is_told_so() {
    let track = track();
    // However little it pauses.
    let mut client = track.proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
    let _server = track.upstream.accept();
    while client.try_send("x").is_ok() && track.proxy.log().is_empty() {
        std::thread::yield_now();
    }
    let line = track
        .proxy
        .log_line(&["path=/x ", "reason=request_timeout"]);
    assert!(
        line.contains("blame=client") && line.contains("status=408"),
        "{line}"
    );
    let rpc = Upstream::start();
    let proxy = Proxy::start(&format!("{}{LIMIT}", rpc_only(&rpc)));
    let mut client = proxy.connect();
    client.send("POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{");
    let answer = client.read_answer();
    assert_eq!(
        (answer.status(), rpc_failure(&answer.json())),
        (408, (-31006, "request_timeout"))
    );
    proxy.log_line(&["side=rpc", "blame=client"]);
}

#[test]
fn the_time_begins_with_the_first_byte() {
    let track = track();
    let mut client = track.proxy.connect();
    client.send(GET);
    let mut server = track.upstream.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.read_answer().status(), 200);
    client.send("GET /late HTTP/1.1\r\n");
    // Another call, which waits for its whole time, is the clock.
    assert_eq!(track.proxy.rest("GET", "/slow", &[], "").status(), 504);
    client.send("Host: a\r\n\r\n");
    let answer = client.read_answer();
    let found = (answer.status(), problem(&answer).0);
    assert_eq!(found, (408, "request_timeout".to_owned()));
    track.proxy.log_line(&["path=/late ", "blame=client"]);
}

/// A call whose answer has begun.
fn begun(track: &Track, kind: &str) -> Open {
    let mut open = track.open(GET);
    open.server.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    open.client.read_head();
    open
}

#[test]
fn an_answer_that_is_not_over_in_time_is_cut() {
    let track = track();
    let mut open = begun(&track, "text/plain");
    // The client takes each piece at once: it is its server that does not come to an end.
    while open.server.try_send("1\r\nx\r\n").is_ok() && open.client.read_some() {}
    let line = track.proxy.log_line(&["path=/x ", "outcome=cut"]);
    assert!(line.contains("time limit of a call"), "{line}");
    let mut silent = begun(&track, "text/plain");
    assert_eq!(silent.client.read_rest(), (Vec::new(), End::Closed));
    silent.server.expect_gone();
    track
        .proxy
        .log_line(&["outcome=cut", "blame=upstream", "reason=upstream_timeout"]);
}

/// At the very end the client has a piece to take; but it is the server that had let nearly all the time pass.
#[test]
fn an_answer_that_comes_late_is_its_servers_to_blame_whoever_has_a_piece_of_it_then() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let proxy = held_up((&rest, ""), (&rpc, "timeout = \"1900ms\""));
    let mut client = proxy.connect();
    client.send(GET);
    let mut server = rest.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.read_head();
    assert_eq!(rpc_failure(&proxy.rpc(CALL).json()).0, -31022);
    let piece = [b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat();
    let sending = std::thread::spawn(move || while server.try_send(&piece).is_ok() {});
    // It takes its time with each.
    while client.read_some() {
        proxy.metrics();
    }
    sending.join().unwrap();
    let line = proxy.log_line(&["path=/x ", "outcome=cut"]);
    assert!(
        line.contains("blame=upstream") && line.contains("reason=upstream_timeout"),
        "{line}"
    );
}

#[test]
fn a_client_that_takes_its_answer_too_slowly_is_to_blame() {
    let track = track();
    // Made before, since making it takes of the time.
    let long = 50_000_000;
    let body = vec![b'x'; long];
    let mut open = track.open(GET);
    open.server
        .send(format!("HTTP/1.1 200 OK\r\nContent-Length: {long}\r\n\r\n"));
    open.client.read_head();
    let mut server = open.server;
    let sending = std::thread::spawn(move || server.try_send(body));
    // Another call, which waits for its whole time, is the clock.
    assert_eq!(track.proxy.rest("GET", "/slow", &[], "").status(), 504);
    assert!(open.client.read_rest().0.len() < long);
    assert!(sending.join().unwrap().is_err());
    let line = track.proxy.log_line(&["path=/x ", "outcome=cut"]);
    assert!(
        line.contains("blame=client") && line.contains("reason=request_timeout"),
        "{line}"
    );
}

/// The server is waited for at the end, but the client has left it too little of the time.
#[test]
fn a_client_that_holds_up_its_answer_is_to_blame_for_what_is_missing_then() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let proxy = held_up((&rest, ""), (&rpc, CLOCK));
    let long = 50_000_000;
    let most = long - 1;
    let body = vec![b'x'; most];
    let mut client = proxy.connect();
    client.send(GET);
    let mut server = rest.accept();
    server.read_request();
    server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {long}\r\n\r\n"));
    client.read_head();
    let sending = std::thread::spawn(move || {
        server.try_send(body).unwrap();
        server
    });
    assert_eq!(rpc_failure(&proxy.rpc(CALL).json()).0, -31022);
    assert_eq!(client.read_rest().0.len(), most);
    let line = proxy.log_line(&["path=/x ", "outcome=cut"]);
    assert!(
        line.contains("blame=client") && line.contains("reason=request_timeout"),
        "{line}"
    );
    sending.join().unwrap().expect_gone();
}

#[test]
fn a_stream_has_no_such_time() {
    let track = track();
    let mut open = begun(&track, "text/event-stream");
    assert_eq!(track.proxy.rest("GET", "/slow", &[], "").status(), 504);
    open.server.send("9\r\ndata: a\n\n\r\n0\r\n\r\n");
    assert_eq!(open.client.read_chunk().unwrap(), b"data: a\n\n");
    assert_eq!(open.client.read_chunk(), None);
}

/// A proxy before a server of each side, both of which the test holds; the breaker of the one in question opens soon, and
/// the other one has so little time that a call to it is a clock.
fn held_up(rest: (&Upstream, &str), rpc: (&Upstream, &str)) -> Proxy {
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n[limits]\ntotal_timeout = \"2s\"\n\
         [upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\n{}\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://{}/rpc\"\n{}\n",
        rest.0.address(),
        rest.1,
        rpc.0.address(),
        rpc.1,
    ))
}

const IN_QUESTION: &str = "breaker = { failures = 3, pause = \"1h\" }";
const CLOCK: &str = "timeout = \"400ms\"";
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#;

/// Half a request of each of three clients.
fn halves(proxy: &Proxy, path: &str) -> [Wire; 3] {
    [0, 1, 2].map(|_| {
        let mut client = proxy.connect();
        let length = CALL.len();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{}",
            &CALL[..4]
        ));
        client
    })
}

#[test]
fn slow_uploads_are_no_failures_of_a_server_that_had_too_little_time() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let proxy = held_up((&rest, IN_QUESTION), (&rpc, CLOCK));
    let mut clients = halves(&proxy, "/x");
    let mut servers = [0, 1, 2].map(|_| rest.accept());
    for server in &mut servers {
        server.read_head();
        server.expect(&CALL[..4]);
    }
    assert_eq!(rpc_failure(&proxy.rpc(CALL).json()).0, -31022);
    for client in &mut clients {
        client.send(&CALL[4..]);
    }
    for (client, server) in clients.iter_mut().zip(&mut servers) {
        server.expect(&CALL[4..]);
        let answer = client.read_answer();
        let found = (answer.status(), problem(&answer).0);
        assert_eq!(found, (408, "request_timeout".to_owned()));
        server.expect_gone();
    }
    proxy.log_line(&["path=/x ", "blame=client", "reason=request_timeout"]);
    let opened = "dualgauge_upstream_breaker_openings_total{upstream=\"old\"}";
    assert_eq!(proxy.metrics().value(opened), 0.0);
}

#[test]
fn slow_messages_are_no_failures_of_a_server_that_had_too_little_time() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let proxy = held_up((&rest, CLOCK), (&rpc, IN_QUESTION));
    let mut clients = halves(&proxy, "/rpc");
    assert_eq!(proxy.rest("GET", "/slow", &[], "").status(), 504);
    for client in &mut clients {
        client.send(&CALL[4..]);
    }
    for client in &mut clients {
        let answer = client.read_answer();
        let said = answer.json();
        let found = (answer.status(), rpc_failure(&said));
        assert_eq!(found, (408, (-31006, "request_timeout")));
        assert_eq!(said["id"], 7);
        rpc.accept().read_request();
    }
    proxy.log_line(&["side=rpc", "blame=client", "reason=request_timeout"]);
    let opened = "dualgauge_upstream_breaker_openings_total{upstream=\"new\"}";
    assert_eq!(proxy.metrics().value(opened), 0.0);
}
