//! A request that arrives in one read reaches the service like one that arrives in parts.

use super::*;

const HEAD: &str = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0013\r\n";
const BODY: &str = "\r\n\r\n{ \"a\": 1}";

/// Sends `input`; returns the bytes that hyper reads, and the admitted request that the service gets besides.
async fn read(input: &str) -> (String, AdmittedRequest) {
    let (mut client, server) = duplex(1 << 20);
    let inspection = Inspection::default();
    let mut inspected = Inspected::new(server, HeadLimits::default(), inspection.clone());
    client.write_all(input.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    // The capacity of hyper's read buffer.
    let mut read = Vec::with_capacity(1 << 16);
    while within(inspected.read_buf(&mut read)).await.unwrap() > 0 {}
    (String::from_utf8(read).unwrap(), inspection.begin())
}

#[tokio::test]
async fn a_body_that_arrives_with_its_head_is_extracted() {
    for te in ["", "TE: gzip\r\n"] {
        let (read, begun) = read(&format!("{HEAD}{te}\r\n{BODY}")).await;
        let added = if te.is_empty() {
            "te: TRAILERS\r\n"
        } else {
            te
        };
        let blank = HEAD.replace("0013", "0000");
        assert_eq!(read, format!("{blank}{added}\r\n"));
        let mut headers = HeaderMap::new();
        headers.insert("content-length", "0000".parse().unwrap());
        let body = begun.inline_body.unwrap().restore(&mut headers);
        assert_eq!(
            (body.as_ref(), headers["content-length"].as_bytes()),
            (BODY.as_bytes(), &b"0013"[..])
        );
    }
}

#[tokio::test]
async fn a_body_followed_by_another_request_is_not_extracted() {
    let spread = HEAD.replace("Host: a\r\n", "Host: a\r\nTE: gzip\r\n");
    for input in [
        format!("{spread}\r\n{BODY}{FIRST}"),
        format!("{FIRST}{spread}\r\n{BODY}"),
        format!("{spread}\r\n{BODY}\r\n"),
        format!(
            "{}\r\n{}",
            spread.replace("0013", "20000"),
            "x".repeat(20000)
        ),
    ] {
        let (read, begun) = read(&input).await;
        let expected = input.replace(FIRST, "GET /1 HTTP/1.1\r\nHost: a\r\nte: TRAILERS\r\n\r\n");
        assert_eq!(read, expected);
        assert!(begun.inline_body.is_none());
    }
}

#[tokio::test]
async fn the_service_has_the_same_request_however_it_comes() {
    for fields in [
        "",
        "TE: gzip\r\n",
        "Expect: 100-continue\r\n",
        "Connection: close\r\n",
    ] {
        let mut told = Vec::new();
        for width in WIDTHS {
            let input = format!("{HEAD}{fields}Connection: close\r\n\r\n{BODY}");
            let output = exchange(width, input.as_bytes()).await;
            told.extend(output.rsplit("HTTP/1.1 200").next().map(str::to_owned));
        }
        assert!(told[0].ends_with("{ \"a\": 1}"), "{told:?}");
        assert!(told.iter().all(|own| *own == told[0]), "{told:?}");
    }
}
