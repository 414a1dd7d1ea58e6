//! Responses whose end or fields are told in a way that a proxy must settle (RFC 9112 §5, §6.3, RFC 9110 §8.6).

use http::Method;

use crate::http2::{Client, begin, request, run, text};
use crate::scene::{before_rest, call};
use crate::support::{Track, Upstream, rest_only};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const HEAD: &str = "HEAD /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const BODY: &str = r#"{"a":1,"b":2}"#;
const CHUNKS: &str = "5\r\n{\"a\":\r\n8\r\n1,\"b\":2}\r\n0\r\n\r\n";

/// Heads with a length and a transfer coding, in both orders.
fn with_both() -> [String; 4] {
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 500\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 1\r\nContent-Length: +2\r\n",
        "Content-Length: 42\r\nTransfer-Encoding : chunked\r\n",
    ]
    .map(|fields| format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{fields}\r\n"))
}

#[test]
fn a_transfer_coding_overrides_a_length_and_the_connection_is_closed() {
    for head in with_both() {
        let track = Track::rest();
        let mut open = track.open(GET);
        open.server.send(format!("{head}{CHUNKS}"));
        let answer = open.client.read_answer();
        assert_eq!((answer.status(), answer.text()), (200, BODY), "{head}");
        assert_eq!(answer.head.one("content-length"), None);
        open.server.expect_closed();
        track.proxy.log_line(&["outcome=success"]);
    }
}

#[test]
fn a_transfer_coding_overrides_a_length_for_a_client_of_http_2() {
    for head in with_both() {
        let rest = Upstream::start();
        let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
        let answers = std::thread::spawn(move || {
            let mut server = rest.accept();
            server.read_request();
            server.send(format!("{head}{CHUNKS}"));
            server.expect_closed();
        });
        run(async {
            let mut client = Client::connect(&proxy, &ours, None).await;
            let answer = client.ask(request(Method::GET, "/x", &[]), "").await;
            assert_eq!(answer.headers().get("content-length"), None);
            assert_eq!(text(answer).await, BODY);
        });
        answers.join().unwrap();
    }
}

#[test]
fn a_translated_call_reads_a_response_by_its_transfer_coding() {
    let rest = Upstream::serving(|_| format!("{}{CHUNKS}", with_both()[0]).into_bytes());
    let proxy = before_rest(
        &rest,
        "[[route]]\nname = \"m\"\nrest = \"POST /m\"\nrpc = \"m\"\n",
    );
    for _ in 0..2 {
        assert_eq!(proxy.rpc(call("m", "{}")).json()["result"]["b"], 2);
    }
}

#[test]
fn a_response_to_head_follows_the_same_rules() {
    for head in with_both() {
        let track = Track::rest();
        let mut open = track.open(HEAD);
        open.server.send(&head);
        let answer = open.client.read_answer_to("HEAD");
        assert_eq!(answer.status(), 200, "{head}");
        assert_eq!(answer.head.one("content-length"), None);
        open.server.expect_closed();
    }
    let track = Track::rest();
    let mut open = track.open(HEAD);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Length: 13\r\n\r\n");
    let answer = open.client.read_answer_to("HEAD");
    assert_eq!(answer.head.one("content-length"), Some("13"));
    // Both connections go on.
    open.client.send(HEAD);
    open.server.read_request();
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: +13\r\n\r\n");
    let answer = open.client.read_answer_to("HEAD");
    assert_eq!(answer.status(), 502);
    let pieces = ["status=502", "reason=upstream_malformed_http"];
    track.proxy.log_line(&pieces);
}

#[test]
fn a_length_that_is_given_twice_is_sent_once() {
    for lengths in [
        "Content-Length: 13\r\nContent-Length: 13\r\n",
        "Content-Length: 13, 13\r\n",
        "Content-Length: 13\r\nContent-Length : 13\r\n",
    ] {
        let track = Track::rest();
        let head = format!("HTTP/1.1 200 OK\r\n{lengths}\r\n");
        let carried = track.carry(GET, format!("{head}{BODY}"));
        assert_eq!(carried.answer.head.one("content-length"), Some("13"));
        assert_eq!(carried.answer.text(), BODY);
        let carried = track.carry(GET, head.replace("200 OK", "304 Not Modified"));
        assert_eq!(carried.answer.status(), 304);
        assert_eq!(carried.answer.head.one("content-length"), Some("13"));
    }
}

#[test]
fn a_length_that_is_no_number_is_a_bad_gateway() {
    for lengths in [
        "Content-Length: +13\r\n",
        "Content-Length: 13, 14\r\n",
        "Content-Length: 13\r\nContent-Length: 14\r\n",
        "Content-Length: 13,\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 99999999999999999999999\r\n",
    ] {
        for (request, status) in [(GET, "200 OK"), (HEAD, "200 OK"), (GET, "304 Not Modified")] {
            let track = Track::rest();
            let mut open = track.open(request);
            open.server
                .send(format!("HTTP/1.1 {status}\r\n{lengths}\r\n"));
            let method = request.split(' ').next().unwrap();
            let answer = open.client.read_answer_to(method);
            assert_eq!(answer.status(), 502, "{status} {lengths}");
            track.proxy.log_line(&["reason=upstream_malformed_http"]);
            open.server.expect_gone();
        }
    }
}

#[test]
fn white_space_before_the_colon_of_a_field_is_removed() {
    for (name, length) in [
        ("X-Odd : 1", "Content-Length: 13"),
        ("x-ODD\t : 1", "Content-Length : 13"),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{name}\r\n{length}\r\n\r\n");
        let carried = Track::rest().carry(GET, format!("{head}{BODY}"));
        assert_eq!(carried.answer.text(), BODY);
        assert_eq!(carried.answer.head.one("content-length"), Some("13"));
        let spelled = name.split([' ', '\t']).next().unwrap();
        let field = (spelled.to_owned(), "1".to_owned());
        let fields = &carried.answer.head.fields;
        assert!(fields.contains(&field), "{fields:?}");
    }
}

#[test]
fn a_folded_field_of_a_response_is_unfolded() {
    let head = "HTTP/1.1 200 OK\r\nX-Folded: one,\r\n two,\n\t three\r\nContent-Length:\r\n 13\r\n";
    let whole = format!("{head}\r\n{BODY}");
    for method in ["GET", "HEAD"] {
        let track = Track::rest();
        let request = GET.replace("GET", method);
        // However the head comes.
        for cut in [0, 30, 38, 39, 40, 46, head.len() + 1, whole.len()] {
            let mut open = track.open(&request);
            let end = match method {
                "HEAD" => head.len() + 2,
                _ => whole.len(),
            };
            let cut = cut.min(end);
            open.server.send(&whole[..cut]);
            std::thread::yield_now();
            open.server.send(&whole[cut..end]);
            let answer = open.client.read_answer_to(method);
            assert_eq!(answer.status(), 200, "{cut}");
            let folded = answer.head.one("x-folded").unwrap();
            let words: Vec<&str> = folded.split_whitespace().collect();
            assert_eq!(words, ["one,", "two,", "three"]);
            assert_eq!(answer.head.one("content-length"), Some("13"));
        }
    }
}

#[test]
fn a_folded_field_in_front_of_the_first_one_is_refused() {
    let head = "HTTP/1.1 200 OK\r\n X-Odd: 1\r\nContent-Length: 13\r\n\r\n";
    let carried = Track::rest().carry(GET, format!("{head}{BODY}"));
    assert_eq!(carried.answer.status(), 502);
}

#[test]
fn a_transfer_coding_of_http_1_0_is_a_failure_except_behind_head() {
    for (method, request, status) in [("GET", GET, 502), ("HEAD", HEAD, 200)] {
        for length in ["", "Content-Length: 5\r\n"] {
            let track = Track::rest();
            let mut open = track.open(request);
            open.server.send(format!(
                "HTTP/1.0 200 OK\r\n{length}Transfer-Encoding: chunked\r\n\r\n"
            ));
            let answer = open.client.read_answer_to(method);
            assert_eq!(answer.status(), status, "{method} {length}");
            assert!(method == "GET" || answer.head.one("content-length").is_none());
        }
    }
}

#[test]
fn a_body_in_a_coding_that_is_not_read_is_a_bad_gateway() {
    for codings in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\nContent-Length: 13\r\n",
    ] {
        let track = Track::rest();
        let mut open = track.open(GET);
        open.server
            .send(format!("HTTP/1.1 200 OK\r\n{codings}\r\n{CHUNKS}"));
        assert_eq!(open.client.read_answer().status(), 502, "{codings}");
        track.proxy.log_line(&["reason=upstream_malformed_http"]);
        open.server.expect_gone();
    }
}

#[test]
fn a_204_has_no_length_whoever_asks() {
    const ANSWER: &str = "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n";
    for method in ["GET", "HEAD"] {
        let track = Track::rest();
        let mut open = track.open(GET.replace("GET", method));
        open.server.send(ANSWER);
        let answer = open.client.read_answer_to(method);
        assert_eq!(answer.status(), 204);
        assert_eq!(answer.head.one("content-length"), None, "{method}");
    }
    let rest = Upstream::serving(|_| ANSWER.as_bytes().to_vec());
    let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        for method in [Method::GET, Method::HEAD] {
            let answer = client.ask(request(method, "/x", &[]), "").await;
            assert_eq!(answer.status(), 204);
            assert_eq!(answer.headers().get("content-length"), None);
        }
    });
}
