//! The tables: what passes, and what is refused, where and for which reason.

use proptest::prelude::*;

use super::law::{Trace, follow};
use super::*;

mod laws;

fn whole(input: &[u8]) -> Trace {
    follow(HeadLimits::default(), input, &[usize::MAX])
}

/// Each row says why.
#[rustfmt::skip]
const SHOULD_PASS: &[(&str, &str)] = &[
    ("the smallest request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("HTTP/1.0 needs no Host", "GET / HTTP/1.0\r\n\r\n"),
    ("two empty lines before it", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("empty values", "GET / HTTP/1.1\r\nHost:\r\nA:\r\nB: \r\n\r\n"),
    ("white space around a value", "GET / HTTP/1.1\r\nhost: \t a:80\t \r\n\r\n"),
    ("an IPv6 host", "GET / HTTP/1.1\r\nHost: [::ffff:10.0.0.1]:8080\r\n\r\n"),
    ("UTF-8 in a target, which real clients leave unencoded", "GET /caf\u{e9}?\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("obs-text in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: caf\u{e9}\r\n\r\n"),
    ("any token is a method", "M-SEARCH! / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a query has more bytes than a path", "GET /a{|}?b=`{|}^?/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("server-wide OPTIONS", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("absolute form", "GET http://a.example/x?y HTTP/1.1\r\nHost: A.example\r\n\r\n"),
    ("the default port, once", "GET HTTP://a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("the default port, there", "GET https://a?b HTTP/1.1\r\nHost: a:443\r\n\r\n"),
    ("a sized body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"),
    ("leading zeros", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 002\r\n\r\nab"),
    ("an empty sized body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
    ("a body in HTTP/1.0", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab"),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    ("16 digits", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000001\r\na\r\n0\r\n\r\n"),
    ("extensions", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a;b=c ; d = \"e;\\\"\"\r\na\r\n0;z\r\n\r\n"),
    ("trailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\nY:\r\n\r\n"),
    ("bytes of a body are not read", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n\n\0\r \r\n\n"),
    ("a pipeline", "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("HTTP after a declined upgrade", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"),
];

#[test]
fn should_pass() {
    for (why, text) in SHOULD_PASS {
        let trace = whole(text.as_bytes());
        assert_eq!(trace.refused, None, "{why}: {text:?}");
        assert_eq!(trace.passed, text.len(), "{why}: {text:?}");
    }
}

#[test]
fn a_target_that_is_no_text_is_refused() {
    let trace = whole(b"GET /caf\xe9 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        trace.refused,
        Some((MessagePosition::BeforeMessage, Violation::Target))
    );
    assert_eq!(trace.passed, 0);
}

type Rows = &'static [(Violation, &'static [&'static str])];

/// In each input, what stands before `¦` is passed on, and nothing after it.
#[rustfmt::skip]
const REQUEST_LINES: Rows = &[
    (Violation::BareLf, &["¦\n", "¦GET / HTTP/1.1\n", "\r\n¦\n"]),
    (Violation::BareCr, &["¦\rGET / HTTP/1.1\r\n", "¦GET /\r HTTP/1.1\r\n", "¦GET\r / HTTP/1.1\r\n", "¦GET / HTTP/1.1\r\r\n"]),
    (Violation::EmptyLines, &["\r\n\r\n¦\r\n"]),
    (Violation::Http2Preface, &["¦PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]),
    (Violation::RequestLine, &["¦GET\r\n", "¦GET /\r\n", "¦GET / \r\n", "¦GET  / HTTP/1.1\r\n", "¦GET /  HTTP/1.1\r\n", "¦GET /a b HTTP/1.1\r\n", "¦GET / http/1.1\r\n", "¦GET  HTTP/1.1\r\n", "¦GET / HTTP/1.1 \r\n"]),
    (Violation::Method, &["¦\x16\x03\x01", "¦ GET / HTTP/1.1\r\n", "¦G(T / HTTP/1.1\r\n", "¦GET\t/ HTTP/1.1\r\n", "¦G\0T / HTTP/1.1\r\n", "¦:"]),
    (Violation::Connect, &["¦CONNECT a:443 HTTP/1.1\r\n", "¦CONNECT / HTTP/1.1\r\n"]),
    (Violation::Version, &["¦GET / HTTP/1.2\r\n", "¦GET / HTTP/2.0\r\n", "¦GET / HTTP/0.9\r\n", "¦GET / HTTP/11\r\n"]),
    (Violation::Target, &["¦GET * HTTP/1.1\r\n", "¦GET a HTTP/1.1\r\n", "¦GET /\0 HTTP/1.1\r\n", "¦GET /\t HTTP/1.1\r\n", "¦GET a:80 HTTP/1.1\r\n", "¦GET ftp://a/ HTTP/1.1\r\n", "¦GET http:/a HTTP/1.1\r\n", "¦GET http:///a HTTP/1.1\r\n", "¦GET http://u@a/ HTTP/1.1\r\n", "¦GET http://%61/ HTTP/1.1\r\n", "¦GET http://a:b/ HTTP/1.1\r\n"]),
    (Violation::Fragment, &["¦GET /a#b HTTP/1.1\r\n", "¦GET /?a#b HTTP/1.1\r\n", "¦GET http://a#b HTTP/1.1\r\n", "¦GET # HTTP/1.1\r\n"]),
];

/// Each after a request line.
#[rustfmt::skip]
const HEADER_LINES: Rows = &[
    (Violation::BareLf, &["¦A: b\n", "Host: a\r\n¦\n"]),
    (Violation::BareCr, &["¦A: b\rc\r\n", "¦A\r: b\r\n", "¦\r\r\n", "Host: a\r\n¦A: b\r\r\n"]),
    (Violation::NoColon, &["¦A\r\n", "¦A b\r\n"]),
    (Violation::FieldName, &["¦: a\r\n", "¦A b: c\r\n", "¦A(: c\r\n", "¦\u{e9}: c\r\n", "¦A\0: c\r\n"]),
    (Violation::SpaceBeforeColon, &["¦A : b\r\n", "¦Host\t: b\r\n"]),
    (Violation::ObsFold, &["¦ A: b\r\n", "A: b\r\n¦\tc\r\n", "Host: a\r\n¦ \r\n"]),
    (Violation::FieldValue, &["¦A: b\0\r\n", "¦A: \x7f\r\n", "¦A:\x0bb\r\n"]),
    (Violation::NoHost, &["¦\r\n", "A: b\r\n¦\r\n"]),
    (Violation::HostRepeated, &["Host: a\r\n¦host: a\r\n"]),
    (Violation::Host, &["¦Host: a/b\r\n", "¦Host: a b\r\n", "¦Host: u@a\r\n", "¦Host: a:b\r\n", "¦Host: :80\r\n", "¦Host: [::1\r\n", "¦Host: [::1]a\r\n", "¦Host: []\r\n", "¦Host: [1:2:3:4:5:6:7:8:9]\r\n", "¦Host: [::1%251]\r\n", "¦Host: a:1:2\r\n", "¦Host: \u{e9}\r\n", "¦Host: %61\r\n", "¦Host: a:123456\r\n"]),
    (Violation::ContentLength, &["¦Content-Length: +5\r\n", "¦Content-Length: -5\r\n", "¦Content-Length: 0x5\r\n", "¦Content-Length:\r\n", "¦Content-Length: 5 5\r\n", "¦Content-Length: 9223372036854775808\r\n", "¦Content-Length: 99999999999999999999\r\n", "¦content-length: 5;\r\n"]),
    (Violation::ContentLengthRepeated, &["Content-Length: 5\r\n¦Content-Length: 5\r\n", "Content-Length: 0\r\n¦Content-Length: 5\r\n", "¦Content-Length: 5, 5\r\n"]),
    (Violation::TwoFramings, &["Content-Length: 5\r\n¦Transfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\n¦Content-Length: 5\r\n", "Content-Length: 0\r\n¦Transfer-Encoding: chunked\r\n"]),
    (Violation::TransferEncoding, &["¦Transfer-Encoding: gzip, chunked\r\n", "¦Transfer-Encoding: chunked, chunked\r\n", "¦Transfer-Encoding: xchunked\r\n", "¦Transfer-Encoding: identity\r\n", "¦Transfer-Encoding:\r\n", "¦Transfer-Encoding: \"chunked\"\r\n", "¦Transfer-Encoding: chunked;a=b\r\n"]),
    (Violation::TransferEncodingRepeated, &["Transfer-Encoding: chunked\r\n¦Transfer-Encoding: chunked\r\n"]),
];

/// Each after the head of a chunked request.
#[rustfmt::skip]
const CHUNKS: Rows = &[
    (Violation::BareLf, &["¦1\n", "1\r\na\r\n0\r\n¦\n", "0\r\n¦X: y\n", "¦1;a=\"\n\"\r\n"]),
    (Violation::BareCr, &["¦1\ra\r\n", "¦1;a\rb\r\n", "0\r\n¦X: \ry\r\n"]),
    (Violation::ChunkSize, &["¦\r\n", "¦+1\r\n", "¦-1\r\n", "¦0x1\r\n", "¦g\r\n", "¦ 1\r\n", "¦1 \r\n", "¦1 1\r\n", "¦00000000000000001\r\n", "¦fffffffffffffffff\r\n", "¦;a\r\n"]),
    (Violation::ChunkExtension, &["¦1;\r\n", "¦1;a=\r\n", "¦1;a=\"b\r\n", "¦1;a b\r\n", "¦1;a;\r\n", "¦1;a=\"\0\"\r\n"]),
    (Violation::ChunkEnd, &["1\r\na¦b", "1\r\na¦\n", "1\r\na¦\rb", "3\r\nabc¦0\r\n\r\n"]),
    (Violation::TrailerForbidden, &["0\r\n¦Content-Length: 1\r\n", "0\r\nA: b\r\n¦transfer-encoding: chunked\r\n", "0\r\n¦HOST: a\r\n"]),
    (Violation::NoColon, &["0\r\n¦x\r\n"]),
    (Violation::FieldName, &["0\r\n¦: x\r\n"]),
    (Violation::ObsFold, &["0\r\nA: b\r\n¦ x: y\r\n"]),
    (Violation::FieldValue, &["0\r\n¦A: \0\r\n"]),
];

fn should_refuse(place: MessagePosition, before: &str, rows: Rows) {
    for (violation, inputs) in rows {
        for input in *inputs {
            let (passed, refused) = input.split_once('¦').unwrap();
            let text = format!("{before}{passed}{refused}");
            let trace = whole(text.as_bytes());
            let expected = (before.len() + passed.len(), Some((place, *violation)));
            assert_eq!((trace.passed, trace.refused), expected, "{text:?}");
            check_any_cut(text.as_bytes());
        }
    }
}

#[test]
fn should_refuse_request_lines() {
    should_refuse(MessagePosition::BeforeMessage, "", REQUEST_LINES);
    let earlier = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    should_refuse(MessagePosition::BeforeMessage, earlier, REQUEST_LINES);
}

#[test]
fn should_refuse_header_lines() {
    should_refuse(MessagePosition::InHead, "GET / HTTP/1.1\r\n", HEADER_LINES);
}

#[test]
fn should_refuse_chunks() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    should_refuse(MessagePosition::InBody, head, CHUNKS);
}

#[test]
#[rustfmt::skip]
fn should_refuse_what_needs_another_request_line() {
    should_refuse(MessagePosition::InHead, "POST / HTTP/1.0\r\n", &[
        (Violation::TransferEncodingInHttp10, &["¦Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n¦Transfer-Encoding: chunked\r\n"]),
    ]);
}

#[test]
fn should_refuse_what_is_too_large() {
    let long = |count: usize| "a".repeat(count);
    let head = "GET / HTTP/1.1\r\nHost: a\r\n".to_owned();
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let rows = [
        (
            format!("GET /{} HTTP/1.1\r\n", long(8192)),
            BEFORE,
            Violation::TargetTooLong,
        ),
        (
            format!("GET /{}", long(9000)),
            BEFORE,
            Violation::TargetTooLong,
        ),
        (
            format!("{head}A: {}", long(65_536)),
            HEAD,
            Violation::HeadTooLarge,
        ),
        (
            head.clone() + &format!("A: {}\r\n", long(700)).repeat(95),
            HEAD,
            Violation::HeadTooLarge,
        ),
        (
            head.clone() + &"A: b\r\n".repeat(99),
            HEAD,
            Violation::TooManyFields,
        ),
        (
            format!("{chunked}1;{}", long(512)),
            BODY,
            Violation::ChunkExtensionTooLong,
        ),
        (
            chunked.clone() + &format!("1;{}\r\na\r\n", long(400)).repeat(21),
            BODY,
            Violation::ChunkExtensionTooLong,
        ),
        (
            format!("{chunked}0\r\nA: {}", long(8192)),
            BODY,
            Violation::TrailersTooLarge,
        ),
        (
            format!("{chunked}0\r\n") + &"A: b\r\n".repeat(100),
            BODY,
            Violation::TrailersTooLarge,
        ),
    ];
    for (text, place, violation) in rows {
        let trace = whole(text.as_bytes());
        assert_eq!(trace.refused, Some((place, violation)), "{:.80}", text);
        check_any_cut(text.as_bytes());
    }
    let most = head + &"A: b\r\n".repeat(98) + "\r\n";
    assert_eq!(whole(most.as_bytes()).refused, None);
    let longest = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(8191));
    assert_eq!(whole(longest.as_bytes()).refused, None);
}

const BEFORE: MessagePosition = MessagePosition::BeforeMessage;
const HEAD: MessagePosition = MessagePosition::InHead;
const BODY: MessagePosition = MessagePosition::InBody;

#[test]
fn every_violation_says_what_is_allowed() {
    for (number, violation) in Violation::ALL.into_iter().enumerate() {
        assert_eq!(
            violation as usize, number,
            "{violation:?} stands out of order"
        );
        let text = violation.as_str();
        assert!(!text.ends_with('.') && text.len() > 30, "{text}");
    }
}

#[test]
fn messages_are_numbered_from_one_and_a_refused_request_line_counts() {
    let one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(whole(one.as_bytes()).message, 1);
    assert_eq!(whole(format!("{one}GET\r\n").as_bytes()).message, 2);
    assert_eq!(
        whole(format!("{one}GET / HTTP/1.1\r\nA\r\n").as_bytes()).message,
        2
    );
    assert_eq!(
        whole(format!("\r\n{one}\r\n{one}\r\n").as_bytes()).message,
        2
    );
}

#[test]
fn the_end_of_a_head_is_reported_before_its_empty_line_with_the_presence_of_te() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n";
    let mut follower = RequestInspector::new(HeadLimits::default());
    let step = follower.feed(head);
    assert_eq!(step.passed, head.len() - 2);
    assert_eq!(step.found, Finding::HeadEnd { te: Te::Sent });
    assert_eq!(
        follower.feed(b"\r\n"),
        InspectorStep {
            passed: 2,
            found: Finding::More
        }
    );
}

#[test]
fn bytes_after_a_request_for_an_upgrade_wait_for_its_answer() {
    let request = b"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\na";
    let mut follower = RequestInspector::new(HeadLimits::default());
    let step = follower.feed(request);
    let rest = follower.feed(&request[step.passed..]);
    assert_eq!(
        rest,
        InspectorStep {
            passed: 3,
            found: Finding::More
        }
    );
    assert_eq!(
        follower.feed(b"\x81\x00"),
        InspectorStep {
            passed: 0,
            found: Finding::Upgrade
        }
    );
    follower.resume();
    let violation = Violation::Method;
    let place = MessagePosition::BeforeMessage;
    assert_eq!(
        follower.feed(b"\x81\x00").found,
        Finding::Refused { place, violation }
    );
}

#[test]
fn a_message_owes_its_body_while_some_of_it_is_missing() {
    let sized =
        |length: usize| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for (head, part, owes) in [
        (sized(0), 0, 0),
        (sized(1), 0, 1),
        (sized(1), 1, 0),
        (sized(8192), 0, 1),
        (sized(8192), 8191, 1),
        (sized(8192), 8192, 0),
        (chunked, 0, 1),
    ] {
        let mut follower = RequestInspector::new(HeadLimits::default());
        let input = [head.as_bytes(), &vec![b'x'; part]].concat();
        let mut passed = 0;
        while passed < input.len() {
            passed += follower.feed(&input[passed..]).passed;
        }
        assert_eq!(follower.owes(), owes, "{head:?} and {part}");
    }
}
