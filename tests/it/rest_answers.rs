//! REST passthrough: what the client gets is what the upstream answered.

use crate::support::{Track, carry, chunked, fields};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const HEAD: &str = "HEAD /x HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// A date, so that the proxy adds none (RFC 9110 §6.6.1).
const DATE: (&str, &str) = ("Date", "Tue, 15 Nov 1994 08:12:31 GMT");

/// An answer with these fields behind its date.
fn answer(start: &str, sent: &[(&str, &str)]) -> String {
    let mut text = format!("{start}\r\n");
    for (name, value) in [&[DATE], sent].concat() {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text + "\r\n"
}

/// The fields behind the date, in the order of their names without case.
fn in_order(sent: &[(&str, &str)]) -> Vec<(String, String)> {
    by_name(fields(&[&[DATE], sent].concat()))
}

fn by_name(mut fields: Vec<(String, String)>) -> Vec<(String, String)> {
    fields.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    fields
}

#[test]
fn every_status_comes_back_with_its_reason() {
    for start in [
        "HTTP/1.1 200 OK",
        "HTTP/1.1 201 Created",
        "HTTP/1.1 299 Quite Well",
        "HTTP/1.1 301 Moved Permanently",
        "HTTP/1.1 404 Nothing Here",
        "HTTP/1.1 418 I'm a teapot",
        "HTTP/1.1 451 Unavailable For Legal Reasons",
        "HTTP/1.1 500 Internal Server Error",
        "HTTP/1.1 503 Service Unavailable",
        "HTTP/1.1 599 ",
        "HTTP/1.1 799 Odd",
    ] {
        let carried = carry(GET, format!("{start}\r\nContent-Length: 2\r\n\r\nhi"));
        assert_eq!(carried.answer.head.start, start);
        assert_eq!(carried.answer.text(), "hi");
    }
}

#[test]
fn a_status_says_whose_fault_it_was_in_the_log() {
    for (status, outcome) in [
        (299, "outcome=success"),
        (304, "outcome=success"),
        (418, "outcome=error blame=client"),
        (599, "outcome=error blame=upstream"),
    ] {
        let track = Track::rest();
        track.carry(
            GET,
            format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"),
        );
        track
            .proxy
            .log_line(&[outcome, &format!("status={status}")]);
    }
}

#[test]
fn fields_come_back_unchanged_with_nothing_added() {
    let sent = [
        ("SERVER", "old/1.0"),
        ("content-TYPE", "text/html; charset=iso-8859-1"),
        ("ETag", "W/\"v1\""),
        ("Location", "http://10.0.0.1/private?x"),
        ("Via", "1.1 inner"),
        ("X-Empty", ""),
        ("Content-Encoding", "br"),
        ("Content-Length", "2"),
        ("Access-Control-Allow-Origin", "*"),
    ];
    let carried = carry(GET, answer("HTTP/1.1 200 OK", &sent) + "hi");
    assert_eq!(by_name(carried.answer.head.fields), in_order(&sent));
    assert_eq!(carried.answer.body, b"hi");
}

#[test]
fn repeated_fields_of_an_answer_stay_apart_and_in_order() {
    let sent = [
        ("Set-Cookie", "b=2; Path=/, x"),
        ("X-A", "2"),
        ("set-cookie", "a=1"),
        ("X-A", "1"),
        ("SET-COOKIE", "c=3; Expires=Wed, 21 Oct 2015 07:28:00 GMT"),
        ("Content-Length", "0"),
    ];
    let carried = carry(GET, answer("HTTP/1.1 200 OK", &sent));
    assert_eq!(by_name(carried.answer.head.fields), in_order(&sent));
}

#[test]
fn values_of_an_answer_with_bytes_beyond_ascii_come_back() {
    let carried = carry(
        GET,
        b"HTTP/1.1 200 OK\r\nX-Name: J\xf6rg \xff\tx\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(
        carried.answer.head.one("x-name"),
        Some("J\u{f6}rg \u{ff}\tx")
    );
}

#[test]
fn a_reason_with_bytes_beyond_ascii_is_left_out_for_its_text_means_nothing() {
    let carried = carry(
        GET,
        b"HTTP/1.1 200 Tr\xe8s bien\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(carried.answer.head.start.trim_end(), "HTTP/1.1 200");
}

#[test]
fn large_and_many_fields_of_an_answer_come_back() {
    let large = "v".repeat(100_000);
    let mut head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Large: {large}\r\n");
    for number in 0..90 {
        head.push_str(&format!("Set-Cookie: {number}\r\n"));
    }
    let carried = carry(GET, head + "\r\n");
    assert_eq!(carried.answer.head.one("x-large"), Some(large.as_str()));
    assert_eq!(carried.answer.head.all("set-cookie").len(), 90);
}

#[test]
fn an_answer_of_more_than_a_hundred_fields_is_a_clear_failure() {
    let cookies = "Set-Cookie: a=1\r\n".repeat(150);
    let carried = carry(
        GET,
        format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{cookies}\r\n"),
    );
    assert_eq!(carried.answer.head.status(), 502);
    assert_eq!(carried.answer.json()["reason"], "upstream_malformed_http");
}

#[test]
fn the_fields_of_the_upstream_connection_stay_behind() {
    let carried = carry(
        GET,
        "HTTP/1.1 200 OK\r\nConnection: X-One, keep-alive\r\nX-One: 1\r\nKeep-Alive: timeout=5\r\n\
         connection: x-two\r\nX-Two: 2\r\nX-Three: 3\r\nProxy-Authenticate: Basic\r\nProxy-Connection: close\r\n\
         Upgrade: h2c\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Length: 0\r\n\r\n",
    );
    let kept = [("X-Three", "3"), ("Content-Length", "0")];
    assert_eq!(by_name(carried.answer.head.fields), in_order(&kept));
}

#[test]
fn an_answer_without_a_date_gets_one() {
    let carried = carry(GET, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert!(carried.answer.head.one("date").is_some());
    assert_eq!(carried.answer.head.fields.len(), 2);
}

#[test]
fn a_sized_answer_comes_back_with_its_length() {
    let body: Vec<u8> = (0..=255).cycle().take(1024 * 1024).collect();
    let head = answer("HTTP/1.1 200 OK", &[("Content-Length", "1048576")]);
    let carried = carry(GET, [head.as_bytes(), &body].concat());
    let sent = [("Content-Length", "1048576")];
    assert_eq!(by_name(carried.answer.head.fields), in_order(&sent));
    assert!(carried.answer.body == body);
}

#[test]
fn a_chunked_answer_comes_back_chunked() {
    let body: Vec<u8> = (0..=255).cycle().take(1024 * 1024).collect();
    let pieces: Vec<&[u8]> = body.chunks(100_000).collect();
    let head = answer("HTTP/1.1 200 OK", &[("Transfer-Encoding", "chunked")]);
    let carried = carry(GET, [head.as_bytes(), &chunked(&pieces)].concat());
    assert_eq!(
        carried.answer.head.one("transfer-encoding"),
        Some("chunked")
    );
    assert_eq!(carried.answer.head.one("content-length"), None);
    assert!(carried.answer.body == body);
}

#[test]
fn an_answer_of_no_bytes_comes_back() {
    let sized = carry(GET, answer("HTTP/1.1 200 OK", &[("Content-Length", "0")]));
    let sent = [("Content-Length", "0")];
    assert_eq!(by_name(sized.answer.head.fields), in_order(&sent));

    let chunked = carry(
        GET,
        answer("HTTP/1.1 200 OK", &[("Transfer-Encoding", "chunked")]) + "0\r\n\r\n",
    );
    assert_eq!(chunked.answer.body, b"");
    assert_eq!(chunked.answer.status(), 200);
}

#[test]
fn an_answer_that_ends_with_its_connection_comes_back_whole_and_framed() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send("HTTP/1.1 200 OK\r\n\r\nto the end");
    drop(open.server);
    let answer = open.client.read_answer();
    assert_eq!(answer.head.one("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.text(), "to the end");
}

#[test]
fn an_upstream_of_http_1_0_is_answered_in_the_version_of_the_proxy() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send("HTTP/1.0 200 OK\r\n\r\nto the end");
    drop(open.server);
    let answer = open.client.read_answer();
    assert_eq!(answer.head.start, "HTTP/1.1 200 OK");
    assert_eq!(answer.head.one("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.text(), "to the end");

    open.client.send(GET);
    let mut server = track.upstream.accept();
    server.read_request();
    server.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    let answer = open.client.read_answer();
    assert_eq!(answer.head.start, "HTTP/1.1 200 OK");
    assert_eq!(answer.text(), "hi");
}

#[test]
fn head_keeps_the_length_that_it_tells() {
    let track = Track::rest();
    let sent = [("Content-Length", "12345"), ("ETag", "\"v1\"")];
    let mut open = track.open(HEAD);
    open.server.send(answer("HTTP/1.1 200 OK", &sent));
    let head = open.client.read_answer_to("HEAD");
    assert_eq!(by_name(head.head.fields), in_order(&sent));

    // Nothing followed the head: the connection goes on with the next call.
    open.client.send(GET);
    open.server.read_request();
    open.server
        .send(answer("HTTP/1.1 200 OK", &[("Content-Length", "2")]) + "hi");
    assert_eq!(open.client.read_answer().text(), "hi");
}

#[test]
fn head_of_a_chunked_or_unframed_answer_has_no_body() {
    for framing in ["Transfer-Encoding: chunked\r\n", ""] {
        let track = Track::rest();
        let mut open = track.open(HEAD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
        open.server
            .send(format!("HTTP/1.1 200 OK\r\n{framing}X-A: 1\r\n\r\n"));
        let head = open.client.read_answer_to("HEAD");
        assert_eq!(head.head.one("x-a"), Some("1"));
        assert_eq!(head.head.one("content-length"), None);
        open.client.expect_closed();
    }
}

#[test]
fn no_content_has_neither_body_nor_framing() {
    let carried = carry(GET, answer("HTTP/1.1 204 No Content", &[("X-A", "1")]));
    assert_eq!(carried.answer.head.start, "HTTP/1.1 204 No Content");
    assert_eq!(
        by_name(carried.answer.head.fields),
        in_order(&[("X-A", "1")])
    );
}

#[test]
fn not_modified_keeps_its_validators_and_length() {
    let sent = [
        ("ETag", "\"v1\""),
        ("Last-Modified", "Tue, 15 Nov 1994 08:12:31 GMT"),
        ("Cache-Control", "max-age=60"),
        ("Content-Length", "12345"),
    ];
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send(answer("HTTP/1.1 304 Not Modified", &sent));
    let unchanged = open.client.read_answer();
    assert_eq!(unchanged.head.start, "HTTP/1.1 304 Not Modified");
    assert_eq!(by_name(unchanged.head.fields), in_order(&sent));

    open.client.send(GET);
    open.server.read_request();
    open.server
        .send(answer("HTTP/1.1 200 OK", &[("Content-Length", "2")]) + "hi");
    assert_eq!(open.client.read_answer().text(), "hi");
}

#[test]
fn a_partial_answer_comes_back_as_it_is() {
    let sent = [("Content-Range", "bytes 0-1/10"), ("Content-Length", "2")];
    let carried = carry(GET, answer("HTTP/1.1 206 Partial Content", &sent) + "hi");
    assert_eq!(by_name(carried.answer.head.fields), in_order(&sent));
}

#[test]
fn announced_trailers_of_an_answer_come_back_to_who_takes_them_and_who_did_not_say() {
    for te in ["", "TE: trailers\r\nConnection: TE\r\n"] {
        let carried = carry(
            format!("GET /x HTTP/1.1\r\nHost: a.example\r\n{te}\r\n"),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: abc\r\n\r\n",
        );
        assert_eq!(carried.answer.head.one("trailer"), Some("X-Sum"));
        assert_eq!(carried.answer.body, b"hi");
        let [(name, value)] = carried.answer.trailers.as_slice() else {
            panic!("{te:?}: {:?}", carried.answer);
        };
        assert!(name.eq_ignore_ascii_case("x-sum"));
        assert_eq!(value, "abc");
    }
}

#[test]
fn interim_answers_do_not_stand_for_the_final_one() {
    let interim =
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n";
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send(format!(
        "{interim}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    ));
    open.client.expect(interim);
    let answer = open.client.read_answer();
    assert_eq!((answer.status(), answer.text()), (200, "hi"));
}

#[test]
fn a_sized_answer_that_is_cut_cuts_the_client() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    let head = open.client.read_head();
    assert_eq!(head.one("content-length"), Some("10"));
    open.client.expect("half");
    drop(open.server);
    let (rest, _) = open.client.read_rest();
    assert_eq!(rest, b"");
    track
        .proxy
        .log_line(&["outcome=cut", "blame=upstream", "reason=upstream_cut"]);
}

#[test]
fn a_chunked_answer_that_is_cut_is_never_ended() {
    for cut in [
        "2\r\nhi\r\n",
        "2\r\nhi\r\n5\r\nha",
        "2\r\nhi\r\n0\r\n",
        "2\r\nhi\r\nxyz\r\n",
    ] {
        let track = Track::rest();
        let mut open = track.open(GET);
        open.server
            .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        open.client.read_head();
        open.server.send(cut);
        drop(open.server);
        let (rest, _) = open.client.read_rest();
        let rest = String::from_utf8(rest).unwrap();
        assert!(!rest.contains("0\r\n"), "{cut:?} became {rest:?}");
        track.proxy.log_line(&["outcome=cut", "blame=upstream"]);
    }
}

#[test]
fn a_reset_in_an_answer_cuts_the_client() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send("HTTP/1.1 200 OK\r\n\r\nhalf");
    open.client.read_head();
    assert_eq!(open.client.read_chunk().unwrap(), b"half");
    open.server.reset();
    let (rest, _) = open.client.read_rest();
    assert_eq!(rest, b"");
    track.proxy.log_line(&["outcome=cut"]);
}

#[test]
fn an_answer_that_never_begins_is_a_bad_gateway() {
    for nothing in ["", "HTTP/1.1 200 OK\r\nContent-Len"] {
        let track = Track::rest();
        let mut open =
            track.open("POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n");
        open.server.send(nothing);
        drop(open.server);
        let answer = open.client.read_answer();
        assert_eq!(answer.status(), 502);
        assert_eq!(
            answer.head.one("content-type"),
            Some("application/problem+json")
        );
        assert!(
            !answer
                .text()
                .contains(&track.upstream.address().to_string())
        );
        track
            .proxy
            .log_line(&["outcome=failed", "blame=upstream", "reason=upstream_cut"]);
    }
}

#[test]
fn garbage_is_no_answer() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
    ] {
        let track = Track::rest();
        let carried = track.carry(GET, garbage);
        assert_eq!(carried.answer.status(), 502, "{garbage:?}");
        track
            .proxy
            .log_line(&["outcome=failed", "reason=upstream_malformed_http"]);
    }
}

#[test]
fn what_follows_an_answer_is_no_answer_to_the_next_call() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    );
    assert_eq!(open.client.read_answer().text(), "hi");
    open.client.send(GET);
    let mut server = track.upstream.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
    assert_eq!(open.client.read_answer().text(), "good");
    open.server.expect_gone();
}
