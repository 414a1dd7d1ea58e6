//! hyper behind the inspector, over a pipe that may be one byte wide.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::IncomingBody;
use dualgauge_transport::wire::{ADDED_TE, ResponseCaseReader};

mod agreement;
mod upgrades;
mod whole;

type Reply = Response<BoxBody<Bytes, Infallible>>;

/// Fails a test instead of hanging it.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("the connection hangs")
}

/// The widths of the pipe: bytes arrive one by one, in odd pieces, or at once.
const WIDTHS: [usize; 4] = [1, 7, 64, 1 << 20];

fn reply(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(text.into()).boxed());
    *reply.status_mut() = status;
    let service = "service".parse().unwrap();
    reply.headers_mut().insert("server", service);
    reply
}

/// Only header names in the response head change case; the body stays as it is.
#[tokio::test]
async fn header_case_changes_a_head_alone() {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nx-a: 1\r\n\r\n";
    const BODY: &[u8] = b"\r\nx-a: 1\r\n\r\n";
    let header_case = || {
        let mut reading = ResponseCaseReader::default();
        reading.begin();
        reading.feed(b"HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n");
        reading.take()
    };
    let (mut far, near) = duplex(1 << 10);
    let inspection = Inspection::default();
    let mut inspected = Inspected::new(near, HeadLimits::default(), inspection.clone());
    inspection.record_response_case(header_case());
    inspected.write_all(BODY).await.unwrap();
    inspected.write_all(HEAD).await.unwrap();
    inspection.record_response_case(header_case());
    inspected.write_all(HEAD).await.unwrap();
    inspected.write_all(BODY).await.unwrap();
    drop(inspected);
    let mut written = Vec::new();
    far.read_to_end(&mut written).await.unwrap();
    let spelled = b"HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n".as_slice();
    assert_eq!(written, [BODY, HEAD, spelled, BODY].concat());
}

/// Responds with a description of the request; a rejected request is answered with its violation.
async fn service(inspection: Inspection, request: Request<Incoming>) -> Reply {
    let AdmittedRequest {
        number,
        inline_body,
        ..
    } = inspection.begin();
    let request = IncomingBody::from_request(request, inline_body, None);
    let reply = match inspection.refusal(number) {
        Some(violation) => refused(number, violation),
        None => tell(&inspection, number, request).await,
    };
    inspection.record_status(number, reply.status());
    reply
}

fn refused(number: u64, violation: Violation) -> Reply {
    let is_large = matches!(
        violation,
        Violation::HeadTooLarge | Violation::TooManyFields | Violation::TrailersTooLarge
    );
    let status = match violation == Violation::TargetTooLong {
        true => StatusCode::URI_TOO_LONG,
        false if is_large => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    };
    reply(status, format!("{number} {violation:?}"))
}

async fn tell(inspection: &Inspection, number: u64, request: Request<IncomingBody>) -> Reply {
    let (head, body) = request.into_parts();
    let te = head
        .headers
        .get("te")
        .map(|te| String::from_utf8_lossy(te.as_bytes()).into_owned());
    let trailers = head.uri.path() == "/trailers";
    let body = match body.collect().await {
        Ok(body) => body,
        Err(_) => {
            return match inspection.refusal(number) {
                Some(violation) => refused(number, violation),
                None => reply(StatusCode::BAD_REQUEST, format!("{number} cut")),
            };
        }
    };
    let sent = body.trailers().map_or(0, HeaderMap::len);
    let start = format!(
        "{number} {} {} te={te:?} trailers={sent} ",
        head.method, head.uri
    );
    let text = [start.as_bytes(), &body.to_bytes()].concat();
    if !trailers {
        return reply(StatusCode::OK, text);
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    let body = Full::new(Bytes::from(text)).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut reply = Response::new(body.boxed());
    let head = reply.headers_mut();
    head.insert("trailer", "x-sum".parse().unwrap());
    head.insert("transfer-encoding", "chunked".parse().unwrap());
    reply
}

/// Serves one connection over `server`, an end of an in-memory pipe.
async fn serve(server: DuplexStream) {
    let inspection = Inspection::default();
    let inspected = Inspected::new(server, HeadLimits::default(), inspection.clone());
    let service = service_fn(move |request| {
        let inspection = inspection.clone();
        async move { Ok::<_, Infallible>(service(inspection, request).await) }
    });
    // A broken body ends the connection with an error, after the answer.
    let _ = http1::Builder::new()
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(DisconnectWatch::new(inspected), service)
        .await;
}

/// Sends bytes and reads until the server closes.
async fn exchange(width: usize, input: &[u8]) -> String {
    exchange_until(width, input, End::Open).await
}

/// The behaviour of a client after its last byte.
#[derive(PartialEq, Eq)]
enum End {
    Open,
    Closed,
}

async fn exchange_until(width: usize, input: &[u8], end: End) -> String {
    let (client, server) = duplex(width);
    let (mut from, mut to) = tokio::io::split(client);
    let mut output = Vec::new();
    let talk = async {
        let send = async {
            // The server may close before it has read all of a rejected input.
            let _ = to.write_all(input).await;
            if end == End::Closed {
                let _ = to.shutdown().await;
            }
        };
        let ((), read) = tokio::join!(send, from.read_to_end(&mut output));
        read.unwrap()
    };
    within(async { tokio::join!(serve(server), talk) }).await;
    String::from_utf8_lossy(&output).into_owned()
}

/// The bodies of the answers; each starts after an empty line, and none has one.
fn bodies(output: &str) -> Vec<&str> {
    output
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| answer.split_once("\r\n\r\n").unwrap().1)
        .collect()
}

const FIRST: &str = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n";
const FIRST_TOLD: &str = "1 GET /1 te=Some(\"TRAILERS\") trailers=0 ";
const POST: &str = "POST /2 HTTP/1.1\r\nHost: a\r\n";

/// Second messages, each with the status and the body of the answer.
#[rustfmt::skip]
fn refused_messages() -> [(String, &'static str, &'static str); 13] {
    const BAD: &str = "400 Bad Request";
    [
        ("GET /2 HTTP/1.1\n".to_owned(), BAD, "2 BareLf"),
        ("GET /2#x HTTP/1.1\r\n\r\n".to_owned(), BAD, "2 Fragment"),
        ("CONNECT a:1 HTTP/1.1\r\n\r\n".to_owned(), BAD, "2 Connect"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), BAD, "2 Http2Preface"),
        ("\x16\x03\x01\x02\x00\x01".to_owned(), BAD, "2 Method"),
        (format!("GET /{} HTTP/1.1\r\n", "a".repeat(9000)), "414 URI Too Long", "2 TargetTooLong"),
        ("GET /2 HTTP/1.1\r\n\r\n".to_owned(), BAD, "2 NoHost"),
        (format!("{POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), BAD, "2 TwoFramings"),
        (format!("{POST}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n"), BAD, "2 TwoFramings"),
        (format!("{POST}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"), BAD, "2 ContentLengthRepeated"),
        (POST.to_owned() + &"A: b\r\n".repeat(99), "431 Request Header Fields Too Large", "2 TooManyFields"),
        (format!("{POST}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"), BAD, "2 ChunkEnd"),
        (format!("{POST}Transfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n"), BAD, "2 TrailerForbidden"),
    ]
}

#[tokio::test]
async fn a_refused_message_is_answered_after_the_ones_before_it() {
    for (input, status, text) in refused_messages() {
        for width in WIDTHS {
            let input = format!("{FIRST}{input}GET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
            let output = exchange(width, input.as_bytes()).await;
            assert_eq!(bodies(&output), [FIRST_TOLD, text], "{width} {input:.200}");
            assert!(
                output.contains(&format!("HTTP/1.1 {status}\r\n")),
                "{output}"
            );
        }
    }
}

#[tokio::test]
async fn a_refusal_needs_no_message_before_it() {
    for width in WIDTHS {
        let output = exchange(width, b"\r\nGET\r\n").await;
        assert_eq!(bodies(&output), ["1 RequestLine"]);
        assert!(output.contains("connection: close\r\n"));
    }
}

#[tokio::test]
async fn every_request_of_a_pipeline_is_answered_with_its_own_body() {
    let closing = "POST /c HTTP/1.1\r\nHost: a\r\nTE: gzip\r\nConnection: close\r\nContent-Length: 3\r\n\r\n\r\n\n";
    let chunked = "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;a=b\r\ndefg\r\n0\r\nx: y\r\n\r\n";
    let sized = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{  }";
    let input = [FIRST, sized, chunked, "\r\n", sized, closing].concat();
    for width in WIDTHS {
        let output = exchange(width, input.as_bytes()).await;
        let expected = [
            FIRST_TOLD,
            "2 POST /a te=Some(\"TRAILERS\") trailers=0 {  }",
            "3 POST /b te=Some(\"TRAILERS\") trailers=1 abcdefg",
            "4 POST /a te=Some(\"TRAILERS\") trailers=0 {  }",
            "5 POST /c te=Some(\"gzip\") trailers=0 \r\n\n",
        ];
        assert_eq!(bodies(&output), expected, "{width}");
    }
}

#[tokio::test]
async fn as_many_fields_as_are_allowed_leave_room_for_the_added_one() {
    let most =
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n".to_owned() + &"A: b\r\n".repeat(97);
    let output = exchange(1 << 20, (most + "\r\n").as_bytes()).await;
    let told = "1 GET / te=Some(\"TRAILERS\") trailers=0 ";
    assert_eq!(bodies(&output), [told]);
}

#[tokio::test]
async fn a_long_pipeline_passes() {
    let input = FIRST.repeat(999) + "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let output = exchange(1 << 20, input.as_bytes()).await;
    let bodies = bodies(&output);
    assert_eq!(bodies.len(), 1000);
    assert_eq!(
        bodies[999],
        "1000 GET /last te=Some(\"TRAILERS\") trailers=0 "
    );
}

#[tokio::test]
async fn trailers_reach_a_client_that_did_not_ask_and_none_that_asked_for_something_else() {
    for (te, arrive) in [
        ("", true),
        ("TE: trailers\r\n", true),
        ("TE: gzip\r\n", false),
    ] {
        let input = format!("GET /trailers HTTP/1.1\r\nHost: a\r\n{te}Connection: close\r\n\r\n");
        let output = exchange(64, input.as_bytes()).await;
        assert_eq!(
            output.ends_with("0\r\nx-sum: 1\r\n\r\n"),
            arrive,
            "{output}"
        );
    }
}

#[tokio::test]
async fn a_body_waits_for_100_continue() {
    let (mut client, server) = duplex(64);
    let talk = async {
        let head = "POST /e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        let mut interim = [0; 25];
        client.read_exact(&mut interim).await.unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        client.write_all(b"ok").await.unwrap();
        let mut output = String::new();
        client.read_to_string(&mut output).await.unwrap();
        assert!(output.ends_with("trailers=0 ok"), "{output}");
    };
    within(async { tokio::join!(serve(server), talk) }).await;
}

#[tokio::test]
async fn what_is_read_does_not_depend_on_the_readers_buffer() {
    let body = "x".repeat(3000);
    let sized = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n{body}");
    let input = [FIRST, FIRST, &sized, FIRST].concat();
    let expected = input.replace("\r\n\r\n", "\r\nte: TRAILERS\r\n\r\n");
    for room in [1, 13, 255, 256, 300, 2000, 1 << 16] {
        for width in WIDTHS {
            let (mut client, server) = duplex(width);
            let inspection = Inspection::default();
            let mut inspected = Inspected::new(server, HeadLimits::default(), inspection);
            let mut read = Vec::new();
            let receive = async {
                let mut space = vec![0; room];
                loop {
                    let count = inspected.read(&mut space).await.unwrap();
                    read.extend_from_slice(&space[..count]);
                    if count == 0 {
                        break;
                    }
                }
            };
            let send = async {
                client.write_all(input.as_bytes()).await.unwrap();
                client.shutdown().await.unwrap();
            };
            within(async { tokio::join!(receive, send) }).await;
            assert_eq!(String::from_utf8(read).unwrap(), expected, "{room} {width}");
        }
    }
}

#[test]
fn the_added_line_says_what_is_exported() {
    assert_eq!(TE_LINE, format!("te: {ADDED_TE}\r\n").as_bytes());
}
