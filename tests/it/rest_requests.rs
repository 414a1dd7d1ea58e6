//! REST passthrough: what the upstream gets is what the client sent.

use crate::support::{Proxy, Track, Upstream, carry, chunked, fields, rest_only};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The two fields that the proxy adds to a request for this host.
fn and_ours(sent: &[(&str, &str)]) -> Vec<(String, String)> {
    let ours = [
        ("Forwarded", "for=127.0.0.1;host=\"a.example\";proto=http"),
        ("Via", "1.1 dualgauge"),
    ];
    sorted(&[sent, &ours].concat())
}

/// Fields in the order of their names without case, with our own names in one case.
fn sorted(sent: &[(&str, &str)]) -> Vec<(String, String)> {
    in_order(fields(sent))
}

fn in_order(fields: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| match name.to_ascii_lowercase().as_str() {
            added @ ("via" | "forwarded") => (added.to_owned(), value),
            _ => (name, value),
        })
        .collect();
    fields.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    fields
}

#[test]
fn every_method_goes_on_as_it_came() {
    for method in [
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
        "OPTIONS",
        "TRACE",
        "PURGE",
        "m-search",
        "get",
        "!#$%&'*+-.^_`|~09",
    ] {
        let request = format!("{method} /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let carried = carry(request, OK);
        assert_eq!(carried.request.head.start, format!("{method} /x HTTP/1.1"));
        assert_eq!(carried.answer.status(), 200);
    }
}

#[test]
fn the_target_goes_on_byte_for_byte() {
    let track = Track::rest();
    for target in [
        "/",
        "/?",
        "//",
        "/a//b/",
        "/a/./b/../c",
        "/%7Euser",
        "/~user",
        "/a%2fb%2Fc",
        "/a;p=1;q/b,c;",
        "/x?a=1&a=2&&x",
        "/x?",
        "/x?=&&=",
        "/x?q=a+b%20c&r=%00%ff",
        "/x?a?b/c:@!$'()*,;=",
        "/x?{json}|^`",
        "/:verb/@at/$dollar!'()*",
        "/%E4%BD%A0",
        "/x%",
        "/x%zz?%",
    ] {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let carried = track.carry(request, answer);
        assert_eq!(carried.request.head.start, format!("GET {target} HTTP/1.1"));
    }
}

#[test]
fn bytes_beyond_ascii_in_a_target_go_on_as_they_came() {
    let carried = carry(
        b"GET /caf\xc3\xa9?q=\xc3\xa9 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        OK,
    );
    assert_eq!(
        carried.request.head.start,
        "GET /caf\u{c3}\u{a9}?q=\u{c3}\u{a9} HTTP/1.1"
    );
}

#[test]
fn a_target_as_long_as_the_limit_goes_on() {
    let target = format!("/{}", "x".repeat(8 * 1024 - 1));
    let carried = carry(
        format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        OK,
    );
    assert_eq!(carried.request.head.start, format!("GET {target} HTTP/1.1"));
}

#[test]
fn an_absolute_target_becomes_a_path_and_its_host() {
    let request = "GET http://a.example/x?y= HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let carried = carry(request, OK);
    assert_eq!(carried.request.head.start, "GET /x?y= HTTP/1.1");
    assert_eq!(carried.request.head.all("host"), ["a.example"]);
}

#[test]
fn an_absolute_target_without_a_path_is_the_root() {
    let request = "GET http://a.example?y HTTP/1.1\r\nHost: a.example\r\n\r\n";
    assert_eq!(carry(request, OK).request.head.start, "GET /?y HTTP/1.1");
}

#[test]
fn options_of_the_whole_server_goes_on() {
    let carried = carry("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", OK);
    assert_eq!(carried.request.head.start, "OPTIONS * HTTP/1.1");
}

#[test]
fn only_via_and_forwarded_are_added_and_names_keep_their_case() {
    let sent = [
        ("Host", "a.example"),
        ("ACCEPT", "text/html"),
        ("x-lower", "1"),
        ("X-MiXeD-cAsE", "2"),
        ("X-Forwardedness", "10.0.0.1"),
        ("Authorization", "Bearer secret"),
        ("Cookie", "a=1; b=2"),
        ("If-None-Match", "\"v1\""),
        ("Range", "bytes=0-1"),
        ("Accept-Encoding", "gzip, br"),
        ("Origin", "http://b.example"),
        ("X-Empty", ""),
    ];
    let mut request = "GET /x HTTP/1.1\r\n".to_owned();
    for (name, value) in sent {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let carried = carry(format!("{request}\r\n"), OK);
    assert_eq!(in_order(carried.request.head.fields), and_ours(&sent));
}

#[test]
fn repeated_fields_stay_apart_and_in_order() {
    let carried = carry(
        "GET /x HTTP/1.1\r\nHost: a.example\r\nAccept: text/html;q=0.1\r\nX-A: 3\r\naccept: a/b, c/d\r\n\
         X-A: 1\r\nACCEPT: */*\r\nX-A: 2\r\n\r\n",
        OK,
    );
    let sent = [
        ("Host", "a.example"),
        ("Accept", "text/html;q=0.1"),
        ("accept", "a/b, c/d"),
        ("ACCEPT", "*/*"),
        ("X-A", "3"),
        ("X-A", "1"),
        ("X-A", "2"),
    ];
    assert_eq!(in_order(carried.request.head.fields), and_ours(&sent));
}

#[test]
fn values_with_bytes_beyond_ascii_go_on_as_they_came() {
    let carried = carry(
        b"GET /x HTTP/1.1\r\nHost: a.example\r\nX-Name: J\xf6rg \xc3\xa9\xff\x80\tx\r\n\r\n",
        OK,
    );
    assert_eq!(
        carried.request.head.one("x-name"),
        Some("J\u{f6}rg \u{c3}\u{a9}\u{ff}\u{80}\tx")
    );
}

#[test]
fn large_and_many_fields_go_on() {
    let large = "v".repeat(40_000);
    let mut request = format!("GET /x HTTP/1.1\r\nHost: a.example\r\nX-Large: {large}\r\n");
    for number in 0..97 {
        request.push_str(&format!("X-{number}: {number}\r\n"));
    }
    let carried = carry(format!("{request}\r\n"), OK);
    assert_eq!(carried.request.head.one("x-large"), Some(large.as_str()));
    assert_eq!(carried.request.head.one("x-96"), Some("96"));
    assert_eq!(carried.request.head.fields.len(), 99 + 2);
}

#[test]
fn hops_that_are_there_already_stay_before_ours() {
    let upstream = Upstream::start();
    let config =
        rest_only(&upstream).replace("[listen]\n", "[listen]\ntrusted = [\"127.0.0.1\"]\n");
    let proxy = Proxy::start(&config);
    let carried = Track { proxy, upstream }.carry(
        "GET /x HTTP/1.1\r\nHost: a.example\r\nVia: 1.0 one, 1.1 two\r\nVia: 1.1 three\r\n\
         Forwarded: for=10.0.0.9\r\n\r\n",
        OK,
    );
    assert_eq!(
        carried.request.head.all("via"),
        ["1.0 one, 1.1 two", "1.1 three", "1.1 dualgauge"]
    );
    assert_eq!(
        carried.request.head.all("forwarded"),
        [
            "for=10.0.0.9",
            "for=127.0.0.1;host=\"a.example\";proto=http"
        ]
    );
}

#[test]
fn the_fields_of_one_connection_stay_behind() {
    let carried = carry(
        "POST /x HTTP/1.1\r\nHost: a.example\r\nConnection: X-One, keep-alive\r\nX-One: 1\r\nX-Two: 2\r\n\
         connection:x-two ,, X-THREE\r\nX-Three: 3\r\nX-Four: 4\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nTE: gzip\r\n\
         Content-Length: 2\r\n\r\nhi",
        OK,
    );
    let kept = [
        ("Host", "a.example"),
        ("X-Four", "4"),
        ("Content-Length", "2"),
    ];
    assert_eq!(in_order(carried.request.head.fields), and_ours(&kept));
    assert_eq!(carried.request.body, b"hi");
}

#[test]
fn connection_cannot_take_away_what_a_message_needs() {
    let carried = carry(
        "POST /x HTTP/1.1\r\nHost: a.example\r\nConnection: host, content-length, via\r\n\
         Content-Length: 2\r\n\r\nhi",
        OK,
    );
    let kept = [("Host", "a.example"), ("Content-Length", "2")];
    assert_eq!(in_order(carried.request.head.fields), and_ours(&kept));
    assert_eq!(carried.request.body, b"hi");
}

#[test]
fn a_sized_body_goes_on_with_its_length() {
    let body: Vec<u8> = (0..=255).cycle().take(1024 * 1024).collect();
    let head = "PUT /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1048576\r\n\r\n";
    let carried = carry([head.as_bytes(), &body].concat(), OK);
    let sent = [("Host", "a.example"), ("Content-Length", "1048576")];
    assert_eq!(in_order(carried.request.head.fields), and_ours(&sent));
    assert!(carried.request.body == body);
}

#[test]
fn a_chunked_body_goes_on_chunked() {
    let body: Vec<u8> = (0..=255).cycle().take(1024 * 1024).collect();
    let pieces: Vec<&[u8]> = body.chunks(100_000).collect();
    let head = "PUT /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    let carried = carry([head.as_bytes(), &chunked(&pieces)].concat(), OK);
    assert_eq!(
        carried.request.head.one("transfer-encoding"),
        Some("chunked")
    );
    assert_eq!(carried.request.head.one("content-length"), None);
    assert!(carried.request.body == body);
}

#[test]
fn a_body_of_no_bytes_keeps_its_framing() {
    let sized = carry(
        "POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
        OK,
    );
    let sent = [("Host", "a.example"), ("Content-Length", "0")];
    assert_eq!(in_order(sized.request.head.fields), and_ours(&sent));

    let none = carry("POST /x HTTP/1.1\r\nHost: a.example\r\n\r\n", OK);
    assert_eq!(
        in_order(none.request.head.fields),
        and_ours(&[("Host", "a.example")])
    );

    let chunked = carry(
        "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK,
    );
    assert_eq!(
        chunked.request.head.one("transfer-encoding"),
        Some("chunked")
    );
    assert_eq!(chunked.request.body, b"");
}

#[test]
fn methods_that_seldom_have_a_body_may_have_one() {
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let sized =
            format!("{method} /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(carry(sized, OK).request.body, b"hi", "{method}");
        let chunked = format!(
            "{method} /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
        );
        assert_eq!(carry(chunked, OK).request.body, b"hi", "{method}");
    }
}

#[test]
fn announced_trailers_of_a_request_go_on() {
    let carried = carry(
        "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, x-more\r\n\r\n\
         2;ext=1\r\nhi\r\n0\r\nX-Sum: abc\r\nX-More: 1\r\nX-More: 2\r\n\r\n",
        OK,
    );
    assert_eq!(carried.request.head.one("trailer"), Some("X-Sum, x-more"));
    assert_eq!(carried.request.body, b"hi");
    let mut trailers = carried.request.trailers;
    for (name, _) in &mut trailers {
        name.make_ascii_lowercase();
    }
    assert_eq!(
        trailers,
        fields(&[("x-sum", "abc"), ("x-more", "1"), ("x-more", "2")])
    );
}

#[test]
fn a_client_that_takes_trailers_says_so_to_the_upstream() {
    let carried = carry(
        "GET /x HTTP/1.1\r\nHost: a.example\r\nTE: gzip;q=0.5, trailers\r\nConnection: TE\r\n\r\n",
        OK,
    );
    assert_eq!(carried.request.head.one("te"), Some("trailers"));
    let connection = carried.request.head.one("connection").unwrap();
    assert!(connection.eq_ignore_ascii_case("te"));
}
