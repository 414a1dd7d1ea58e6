//! Bodies of translated calls that come gzip or br coded: read as they were, within the limit of the body.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::rest_to_rpc::ROUTES;
use crate::scene::{Called, before_rpc, body_of, problem, saying};
use crate::support::Upstream;

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// `{"name":"list_tables","arguments":{}}` as `brotli -q 5` writes it.
pub(crate) const BROTLI: &[u8] = b"\x1b$\x00\x00\x04\xe2l\xa9_\x16\x92VL\x10l|\xf1\xcd\xe4)\xaa,T\xd65\xcb\xf3\x0e\x94\xca\xf9\x86\x0c\xc2\x0f\xdd;";

fn coded(coding: &str) -> [(&str, &str); 2] {
    [
        ("Content-Type", "application/json"),
        ("Content-Encoding", coding),
    ]
}

#[test]
fn a_coded_body_arrives_as_the_bytes_it_was_before() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    let text = r#"{ "a":1.10,"b":"\u0041" }"#;
    let tables = r#"{"name":"list_tables","arguments":{}}"#;
    let rows: [(&str, &[u8], &str); 4] = [
        ("gzip", &gzip(text.as_bytes()), text),
        ("GZIP", &gzip(text.as_bytes()), text),
        ("br", BROTLI, tables),
        ("identity", tables.as_bytes(), tables),
    ];
    for (coding, body, params) in rows {
        body_of(&proxy.rest("POST", "/do", &coded(coding), body), 200);
        let requests = upstream.requests();
        let sent = requests.last().unwrap();
        assert_eq!(Called::of(sent).params(), params, "{coding}");
        assert_eq!(sent.head.one("content-encoding"), None);
    }
}

#[test]
fn a_body_that_is_not_so_coded_is_refused() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let whole = gzip(b"{\"a\":1}");
    let rows: [(&str, &[u8]); 5] = [
        ("gzip", b"{}"),
        ("gzip", &whole[..whole.len() - 3]),
        ("gzip", &[&whole, b"{}".as_slice()].concat()),
        ("br", b"{\"a\":1}"),
        ("br", &whole),
    ];
    for (coding, body) in rows {
        let answer = proxy.rest("POST", "/do", &coded(coding), body);
        assert_eq!(answer.status(), 400, "{coding} {body:?}");
        assert_eq!(problem(&answer).0, "malformed_body", "{coding} {body:?}");
    }
    upstream.expect_no_connection();
}

#[test]
fn a_small_body_cannot_become_a_large_one() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, &format!("{ROUTES}[limits]\nbody = 1000\n"));
    let padded = |length: usize| gzip(format!("{{{}}}", " ".repeat(length - 2)).as_bytes());
    for length in [1001, 200_000] {
        let bomb = padded(length);
        assert!(bomb.len() < 1000);
        let answer = proxy.rest("POST", "/do", &coded("gzip"), bomb);
        assert_eq!(answer.status(), 413);
        let (reason, detail) = problem(&answer);
        assert_eq!(reason, "body_too_large");
        assert!(detail.contains("1000 bytes"), "{detail}");
    }
    assert_eq!(upstream.requests().len(), 0);
    body_of(
        &proxy.rest("POST", "/do", &coded("gzip"), padded(1000)),
        200,
    );
}

#[test]
fn several_codings_are_not_read_whichever_way_they_are_named() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let twice = gzip(&gzip(b"{}"));
    let lines = [("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")];
    let list = [("Content-Encoding", "gzip, gzip")];
    for headers in [&lines[..], &list] {
        let answer = proxy.rest("POST", "/do", headers, &twice);
        assert_eq!(answer.status(), 415, "{headers:?}: {answer:?}");
        assert_eq!(problem(&answer).0, "unsupported_media_type");
    }
    upstream.expect_no_connection();
}
