//! Streams of events between real ends: passed on or rewritten by the flags, one event at a time, in each direction.

mod drained;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Open, Proxy, Upstream, Wire, both, chunked, eventually};

const EVENTS: &str = r#"
[[stream]]
name = "events"
rest = "GET /mcp/v1/sse"
rpc  = "GET /sse"

[[event]]
rpc = { method = "notifications/connected", params = { message = "{message}" } }
sse = { data = { type = "notification", message = "{message}" } }

[[event]]
rpc = { method = "notifications/oauth", params = "{note:object}" }
sse = { event = "notification", text = "data: {note:json}\n\n" }

[[event]]
sse = { event = "connection", text = "connected" }

[[event]]
sse = { data = { type = "connection", message = "{_}" } }

[[event]]
rpc = { method = "notifications/said", params = { text = "{text}" } }
sse = { event = "said", text = "{text}" }

[[client]]
name = "mover"
match = { header = { x-client = "mover" } }
"#;

const FLAGS: &str =
    "[[flag]]\nname = 'f'\nclient = 'mover'\nroute = 'events'\nstage = 'translate'\n";

/// A proxy that has the same streams on both sides, from one server.
pub(crate) fn before(upstream: &Upstream) -> Proxy {
    let config = format!("{}{EVENTS}", both(upstream, upstream));
    Proxy::start_with_flags(&config, FLAGS)
}

/// Both upstreams, and the proxy before them.
struct Scene {
    proxy: Proxy,
    rest: Upstream,
    rpc: Upstream,
}

fn scene(more: &str) -> Scene {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let config = format!("{}{more}\n{EVENTS}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, FLAGS);
    Scene { proxy, rest, rpc }
}

fn ask(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nX-Client: mover\r\n{more}\r\n")
}

fn open(scene: &Scene, upstream: &Upstream, request: &str) -> Open {
    let mut client = scene.proxy.connect();
    client.send(request);
    let mut server = upstream.accept();
    let request = server.read_request();
    Open {
        client,
        server,
        request,
    }
}

/// Of a client that no flag moves.
const PASSED: &str = "GET /sse HTTP/1.1\r\nHost: a.example\r\n\r\n";

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
    Cache-Control: no-store\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// Reads what comes until it is this.
fn expect(client: &mut Wire, wanted: &str) {
    let mut came = Vec::new();
    while came.len() < wanted.len() {
        came.extend(client.read_chunk().unwrap());
    }
    assert_eq!(String::from_utf8_lossy(&came), wanted);
}

fn note(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}")
}

const CONNECTED: &str = "event: message\r\ndata: {\"type\": \"notification\", \"message\": \"Connected to MCP server\"}\r\n\r\n";

fn connected() -> String {
    let note = note(
        "notifications/connected",
        "{\"message\":\"Connected to MCP server\"}",
    );
    format!("event: message\r\ndata: {note}\r\n\r\n")
}

#[test]
fn a_one_shot_stream_of_the_new_server_reaches_a_legacy_client_as_it_knows_it() {
    let scene = scene("");
    let mut open = open(
        &scene,
        &scene.rpc,
        &ask("/mcp/v1/sse?a=1", "Authorization: Bearer t\r\n"),
    );
    let request = &open.request.head;
    assert_eq!(request.start, "GET /sse?a=1 HTTP/1.1");
    assert_eq!(request.one("accept"), Some("text/event-stream"));
    assert_eq!(request.one("authorization"), Some("Bearer t"));
    open.server.send(HEAD);
    open.server.send(chunked(&[connected().as_bytes()]));
    let answer = open.client.read_answer();
    assert_eq!(answer.status(), 200);
    let head = &answer.head;
    assert_eq!(
        head.one("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(head.one("cache-control"), Some("no-store"));
    assert_eq!(head.one("x-accel-buffering"), Some("no"));
    assert_eq!(head.one("content-length"), None);
    let compact = CONNECTED.replace("\": \"", "\":\"").replace(", ", ",");
    assert_eq!(answer.text(), compact);
    scene.proxy.log_line(&[
        "route=events",
        "client=mover",
        "stage=translate",
        "outcome=success",
    ]);
}

#[test]
fn a_stream_of_the_old_server_reaches_a_new_client_as_notifications() {
    let scene = scene("");
    let mut open = open(&scene, &scene.rest, &ask("/sse", ""));
    assert_eq!(open.request.head.start, "GET /mcp/v1/sse HTTP/1.1");
    open.server.send(HEAD);
    open.server.send(chunked(&[CONNECTED.as_bytes()]));
    assert_eq!(open.client.read_answer().text(), connected());
}

#[test]
fn an_event_leaves_when_its_blank_line_has_come_and_a_comment_at_once() {
    let scene = scene("");
    let mut open = open(&scene, &scene.rpc, &ask("/mcp/v1/sse", ""));
    open.server.send(HEAD);
    open.client.read_head();
    for byte in ["id: 7\n", "da", "ta: {\"x\": 1", "}\n"] {
        open.server.send(chunk(byte));
    }
    open.server.send(chunk("\n"));
    // No pair takes it: it leaves as the bytes it was.
    expect(&mut open.client, "id: 7\ndata: {\"x\": 1}\n\n");
    open.server.send(chunk(": keepalive\r"));
    expect(&mut open.client, ": keepalive\r");
    open.server
        .send(chunk("\n\r\nid: 8\r\nretry: 10\r\n: c\r\n"));
    expect(&mut open.client, "\n\r\n");
    let data = note("notifications/said", "{\"text\":\"one\\ntwo\"}");
    open.server.send(chunk(&format!("data: {data}\r\n\r\n")));
    let said = "id: 8\r\nretry: 10\r\n: c\r\nevent: said\r\ndata: one\r\ndata: two\r\n\r\n";
    expect(&mut open.client, said);
    open.server.send("0\r\n\r\n");
    assert_eq!(open.client.read_chunk(), None);
}

#[test]
fn a_stream_is_the_same_wherever_it_is_cut_and_whatever_ends_its_lines() {
    let scene = scene("");
    for end in ["\n", "\r\n", "\r"] {
        let opening = "id: 1|data: connected|event: connection||";
        let framed =
            "id: 2|data: data: {\"id\":\"n1\"}|data: |data: |event: notification||: keepalive||";
        let stream = format!("{opening}{framed}").replace('|', end);
        let left = format!(
            "id: 1||id: 2|data: {}||: keepalive||",
            note("notifications/oauth", "{\"id\":\"n1\"}")
        );
        let left = left.replace('|', end);
        for size in [1, 2, 3, 7, 50, 1000] {
            let mut open = open(&scene, &scene.rest, &ask("/sse", "Connection: close\r\n"));
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            open.server
                .send(HEAD.replace("Transfer", "Connection: close\r\nTransfer"));
            open.server.send(chunked(&pieces));
            assert_eq!(
                open.client.read_answer().text(),
                left,
                "{end:?} in pieces of {size}"
            );
        }
    }
}

#[test]
fn where_a_client_stopped_to_listen_is_told_in_both_directions() {
    let scene = scene("");
    for (upstream, path) in [(&scene.rpc, "/mcp/v1/sse"), (&scene.rest, "/sse")] {
        let open = open(&scene, upstream, &ask(path, "Last-Event-ID: 41\r\n"));
        assert_eq!(open.request.head.one("last-event-id"), Some("41"));
    }
}

#[test]
fn who_is_not_moved_gets_the_bytes_of_its_own_server() {
    let scene = scene("");
    let stream = format!("{CONNECTED}data: connected\nevent: connection\n\ndata: half");
    for (upstream, path) in [(&scene.rest, "/mcp/v1/sse"), (&scene.rpc, "/sse")] {
        let request =
            format!("GET {path}?q HTTP/1.1\r\nHost: a.example\r\nLast-Event-ID: 3\r\n\r\n");
        let mut open = open(&scene, upstream, &request);
        assert_eq!(open.request.head.start, format!("GET {path}?q HTTP/1.1"));
        assert_eq!(open.request.head.one("last-event-id"), Some("3"));
        open.server.send(HEAD);
        open.server.send(chunked(&[stream.as_bytes()]));
        assert_eq!(open.client.read_answer().text(), stream);
        scene
            .proxy
            .log_line(&["route=events", "client=other", "stage=passthrough"]);
    }
}

#[test]
fn an_event_that_cannot_be_written_is_left_out_counted_and_said_once() {
    let scene = scene("");
    let mut open = open(&scene, &scene.rpc, &ask("/mcp/v1/sse", ""));
    let said = |text: &str| {
        let data = note("notifications/said", &format!("{{\"text\":\"{text}\"}}"));
        format!("data: {data}\n\n")
    };
    let stream = format!(
        "{}{}id: 4\n{}{}",
        said("7"),
        said("8"),
        said("\\r"),
        said("hi")
    );
    open.server.send(HEAD);
    open.server.send(chunked(&[stream.as_bytes()]));
    assert_eq!(
        open.client.read_answer().text(),
        "id: 4\n\nevent: said\ndata: hi\n\n"
    );
    scene.proxy.log_line(&[
        "WARN",
        "stream=events",
        "event[4]",
        "it would be read as JSON",
    ]);
    let counted = "dualgauge_events_total";
    let labels = ["kind", "side", "route"];
    eventually("the events are counted", || {
        let found = scene.proxy.metrics().table(counted, &labels);
        let wanted = [("failed rest events", 3.0), ("rewritten rest events", 1.0)];
        let wanted = wanted.map(|(labels, count)| (labels.to_owned(), count));
        (found == wanted.into()).then_some(())
    });
    assert_eq!(scene.proxy.log().matches("event dropped").count(), 1);
}

#[test]
fn what_is_no_success_comes_back_as_it_is_and_what_is_no_stream_is_a_bad_gateway() {
    let scene = scene("");
    let mut refused = open(&scene, &scene.rpc, &ask("/mcp/v1/sse", ""));
    refused.server.send(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 2\r\n\r\nno",
    );
    let answer = refused.client.read_answer();
    assert_eq!((answer.status(), answer.text()), (401, "no"));
    // Its names are as they came, too.
    let bearer = ("WWW-Authenticate".to_owned(), "Bearer".to_owned());
    assert!(answer.head.fields.contains(&bearer), "{:?}", answer.head);
    drop(refused);
    for (upstream, path) in [(&scene.rpc, "/mcp/v1/sse"), (&scene.rest, "/sse")] {
        let mut wrong = open(&scene, upstream, &ask(path, ""));
        wrong.server.send(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        );
        let answer = wrong.client.read_answer();
        assert_eq!(answer.status(), 502);
        assert_eq!(answer.json()["reason"], "upstream_not_protocol");
    }
}

#[test]
fn a_client_that_leaves_closes_the_stream_behind_at_once() {
    for reset in [false, true] {
        let scene = scene("");
        let mut open = open(&scene, &scene.rpc, &ask("/mcp/v1/sse", ""));
        open.server.send(HEAD);
        open.client.read_head();
        open.server.send(chunk("data: half an event"));
        if reset {
            open.client.reset();
        } else {
            drop(open.client);
        }
        open.server.expect_gone();
        scene
            .proxy
            .log_line(&["route=events", "outcome=cancelled", "blame=client"]);
    }
}

#[test]
fn a_stream_that_is_silent_for_too_long_is_cut_and_one_that_breaks_off_as_well() {
    // The last table of `both` is that of the RPC upstream.
    let scene = scene("idle_timeout = \"100ms\"");
    let mut silent = open(&scene, &scene.rpc, &ask("/mcp/v1/sse", ""));
    silent.server.send(HEAD);
    silent.server.send(chunk("data: x\n\n"));
    silent.client.read_head();
    expect(&mut silent.client, "data: x\n\n");
    silent.client.expect_gone();
    silent.server.expect_gone();
    scene.proxy.log_line(&[
        "outcome=cut",
        "reason=upstream_cut",
        "the upstream sent nothing",
    ]);
    let mut broken = open(&scene, &scene.rpc, &ask("/mcp/v1/sse", ""));
    broken.server.send(HEAD);
    broken.server.send(chunk("data: x\n\ndata: y\n"));
    broken.client.read_head();
    expect(&mut broken.client, "data: x\n\n");
    drop(broken.server);
    broken.client.expect_gone();
}

#[test]
fn a_stream_ends_by_itself_at_its_age() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let aged = EVENTS.replace(
        "rpc  = \"GET /sse\"",
        "rpc  = \"GET /sse\"\nmax_age = \"100ms\"",
    );
    let config = format!("{}{aged}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, FLAGS);
    let scene = Scene { proxy, rest, rpc };
    let mut open = open(&scene, &scene.rpc, &ask("/mcp/v1/sse", ""));
    open.server.send(HEAD);
    open.server.send(chunk("data: x\n\ndata: y\n"));
    open.client.read_head();
    expect(&mut open.client, "data: x\n\n");
    assert_eq!(open.client.read_chunk(), None);
    open.server.expect_gone();
    scene.proxy.log_line(&["route=events", "outcome=success"]);
}

#[test]
fn a_slow_reader_holds_back_its_own_stream_only() {
    let scene = scene("");
    let mut slow = open(&scene, &scene.rest, &ask("/sse", ""));
    let event = format!("data: {}\n\n", "x".repeat(1000));
    let piece = event.repeat(1 << 10);
    let mut server = slow.server;
    let sent = Arc::<AtomicUsize>::default();
    let counted = sent.clone();
    let sender = std::thread::spawn(move || {
        server.send(HEAD);
        for _ in 0..PIECES {
            server.send(chunk(&piece));
            counted.fetch_add(1, Ordering::SeqCst);
        }
        server.send("0\r\n\r\n");
    });
    // While nobody reads there, another stream goes on.
    let mut other = open(&scene, &scene.rest, &ask("/sse", ""));
    other.server.send(HEAD);
    other.client.read_head();
    for number in 0..10 {
        let event = format!("id: {number}\ndata: x\n\n");
        other.server.send(chunk(&event));
        expect(&mut other.client, &event);
    }
    // Its sender could write what the system keeps for two connections, and no more.
    let held = held_back(&scene.proxy, &sent);
    assert!(held < PIECES, "nobody holds it back");
    let answer = slow.client.read_answer();
    assert!(answer.text() == event.repeat(PIECES << 10));
    sender.join().unwrap();
}

/// What a slow reader is sent, in MiB: far more than a system keeps of what nobody reads.
const PIECES: usize = 40;

/// How much a sender has sent when it stands still.
fn held_back(proxy: &Proxy, sent: &AtomicUsize) -> usize {
    let mut last = 0;
    let mut still = 0;
    eventually("the sender stands still", || {
        // Each look is as long as a request takes.
        proxy.metrics();
        let now = sent.load(Ordering::SeqCst);
        still = if now == last { still + 1 } else { 0 };
        last = now;
        (still > 10 && now > 0).then_some(now)
    })
}

#[test]
fn a_retired_stream_names_the_other_one() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let flags = "[[flag]]\nname = 'f'\nroute = 'events'\nside = 'rest'\nstage = 'retired'\n";
    let config = format!("{}{EVENTS}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, flags);
    let answer = proxy.rest("GET", "/mcp/v1/sse", &[], "");
    assert_eq!(answer.status(), 410);
    assert_eq!(
        answer.head.one("link"),
        Some("</sse>; rel=\"successor-version\"")
    );
    let irregular = proxy.rest("GET", "/mcp//v1/sse", &[], "");
    assert_eq!(irregular.status(), 400);
}

#[test]
fn a_hole_of_the_path_goes_to_the_other_side() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let held = EVENTS
        .replace("/mcp/v1/sse", "/mcp/sse/{session}")
        .replace("GET /sse", "GET /events/{session}");
    let config = format!("{}{held}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, FLAGS);
    let scene = Scene { proxy, rest, rpc };
    for (upstream, asked, wanted) in [
        (&scene.rpc, "/mcp/sse/a%2Fb", "GET /events/a%2Fb HTTP/1.1"),
        (&scene.rest, "/events/7?x", "GET /mcp/sse/7?x HTTP/1.1"),
    ] {
        let open = open(&scene, upstream, &ask(asked, ""));
        assert_eq!(open.request.head.start, wanted);
    }
}
