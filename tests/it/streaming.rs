//! Passthrough streams: what one end sends reaches the other before the rest is there, and an end that leaves
//! takes the other along.

use crate::support::{Track, chunked};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const SIZED: &str = "POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\n";
const CHUNKED: &str = "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn a_sized_answer_comes_piece_by_piece() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    assert_eq!(open.client.read_head().status(), 200);
    open.server.send("first");
    open.client.expect("first");
    open.server.send("other");
    open.client.expect("other");
    track.proxy.log_line(&["outcome=success"]);
}

#[test]
fn a_chunked_answer_comes_chunk_by_chunk() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    open.client.read_head();
    open.server.send("5\r\nfirst\r\n");
    assert_eq!(open.client.read_chunk().unwrap(), b"first");
    // Half a chunk is no reason to wait for the other half.
    open.server.send("a\r\nsecon");
    assert_eq!(open.client.read_chunk().unwrap(), b"secon");
    open.server.send("d pie\r\n0\r\n\r\n");
    assert_eq!(open.client.read_chunk().unwrap(), b"d pie");
    assert_eq!(open.client.read_chunk(), None);
}

#[test]
fn server_sent_events_come_one_by_one() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\n");
    let head = open.client.read_head();
    assert_eq!(head.one("content-type"), Some("text/event-stream"));
    assert_eq!(open.client.read_chunk().unwrap(), b": hi\n\n");
    for number in 0..3 {
        let event = format!("id: {number}\ndata: x\n\n");
        open.server.send(&event);
        assert_eq!(open.client.read_chunk().unwrap(), event.as_bytes());
    }
    drop(open.server);
    assert_eq!(open.client.read_chunk(), None);
}

#[test]
fn a_sized_upload_goes_piece_by_piece() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(SIZED);
    let mut server = track.upstream.accept();
    assert_eq!(server.read_head().one("content-length"), Some("10"));
    client.send("first");
    server.expect("first");
    client.send("other");
    server.expect("other");
    server.send(OK);
    assert_eq!(client.read_answer().status(), 200);
}

#[test]
fn a_chunked_upload_goes_chunk_by_chunk() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(CHUNKED);
    let mut server = track.upstream.accept();
    server.read_head();
    client.send("5\r\nfirst\r\n");
    assert_eq!(server.read_chunk().unwrap(), b"first");
    client.send("5\r\nother\r\n");
    assert_eq!(server.read_chunk().unwrap(), b"other");
    client.send("0\r\n\r\n");
    assert_eq!(server.read_chunk(), None);
    server.expect("\r\n");
    server.send(OK);
    assert_eq!(client.read_answer().status(), 200);
}

#[test]
fn an_upload_and_its_answer_stream_at_the_same_time() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(CHUNKED);
    let mut server = track.upstream.accept();
    server.read_head();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.read_head();
    for word in ["one", "two", "six"] {
        client.send(format!("3\r\n{word}\r\n"));
        assert_eq!(server.read_chunk().unwrap(), word.as_bytes());
        server.send(format!("3\r\n{word}\r\n"));
        assert_eq!(client.read_chunk().unwrap(), word.as_bytes());
    }
    client.send("0\r\n\r\n");
    assert_eq!(server.read_chunk(), None);
    server.send("0\r\n\r\n");
    assert_eq!(client.read_chunk(), None);
}

#[test]
fn an_answer_before_the_end_of_the_upload_reaches_the_client() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(SIZED);
    client.send("first");
    let mut server = track.upstream.accept();
    server.read_head();
    server.expect("first");
    server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    let answer = client.read_answer();
    assert_eq!((answer.status(), answer.text()), (413, "no"));
    // The rest of the request is still owed on that connection: no other call may get it.
    let mut other = track.proxy.connect();
    other.send(GET);
    let mut fresh = track.upstream.accept();
    assert_eq!(fresh.read_request().head.start, "GET /x HTTP/1.1");
    fresh.send(OK);
    assert_eq!(other.read_answer().status(), 200);
}

#[test]
fn a_large_upload_is_not_kept_by_the_proxy() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000000000\r\n\r\n");
    let mut server = track.upstream.accept();
    server.read_head();
    // More than the limit of bodies that are read whole, and more than any buffer on the way.
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..16 {
        client.send(&piece);
        assert_eq!(server.read_exactly(piece.len()).len(), piece.len());
    }
}

#[test]
fn a_client_that_leaves_before_the_answer_closes_the_upstream_connection() {
    for reset in [false, true] {
        let track = Track::rest();
        let mut open = track.open(GET);
        if reset {
            open.client.reset();
        } else {
            drop(open.client);
        }
        open.server.expect_gone();
        track.proxy.log_line(&["outcome=cancelled", "blame=client"]);
    }
}

#[test]
fn a_client_that_leaves_within_an_answer_closes_the_upstream_connection() {
    for framing in [
        "Content-Length: 1000",
        "Transfer-Encoding: chunked",
        "X-None: 1",
    ] {
        for reset in [false, true] {
            let track = Track::rest();
            let mut open = track.open(GET);
            open.server
                .send(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n"));
            open.client.read_head();
            if reset {
                open.client.reset();
            } else {
                drop(open.client);
            }
            open.server.expect_gone();
            track.proxy.log_line(&["outcome=cancelled", "blame=client"]);
        }
    }
}

#[test]
fn a_client_that_leaves_within_its_upload_cuts_the_upstream() {
    for (head, piece) in [(SIZED, "half"), (CHUNKED, "5\r\nfirst\r\n")] {
        let track = Track::rest();
        let mut client = track.proxy.connect();
        client.send(head);
        client.send(piece);
        let mut server = track.upstream.accept();
        server.read_head();
        server.expect(piece);
        drop(client);
        // Never `0\r\n\r\n`: half an upload must not look whole.
        server.expect_gone();
        track.proxy.log_line(&["blame=client"]);
    }
}

#[test]
fn a_malformed_chunk_in_an_upload_is_refused_and_never_ended() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(CHUNKED);
    client.send("5\r\nfirst\r\n");
    let mut server = track.upstream.accept();
    server.read_head();
    assert_eq!(server.read_chunk().unwrap(), b"first");
    client.send("xyz\r\n");
    server.expect_gone();
    let answer = client.read_answer();
    assert_eq!(answer.status(), 400);
    client.expect_gone();
    track
        .proxy
        .log_line(&["status=400", "reason=malformed_http"]);
}

#[test]
fn an_upstream_that_leaves_within_an_upload_is_a_bad_gateway() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(SIZED);
    let mut server = track.upstream.accept();
    server.read_head();
    drop(server);
    assert_eq!(client.read_answer().status(), 502);
    track.proxy.log_line(&["status=502", "reason=upstream_cut"]);
}

#[test]
fn a_slow_reader_holds_the_upstream_back_and_gets_everything() {
    let track = Track::rest();
    let mut open = track.open(GET);
    let body: Vec<u8> = (0..=255).cycle().take(8 << 20).collect();
    let pieces: Vec<&[u8]> = body.chunks(1 << 16).collect();
    let answer = chunked(&pieces);
    let mut server = open.server;
    let sender = std::thread::spawn(move || {
        server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        server.send(answer);
        server
    });
    let answer = open.client.read_answer();
    assert!(answer.body == body);
    sender.join().unwrap();
}
