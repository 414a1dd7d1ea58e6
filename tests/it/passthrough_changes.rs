//! The changes of passthrough that `docs/reference/behaviour.md` lists, each from the bytes that one end sent to those that the other got.

use crate::support::Track;

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 0\r\n\r\n";
/// Added to each request.
const HOP: &str = "Via: 1.1 dualgauge\r\nForwarded: for=127.0.0.1;host=\"a\";proto=http\r\n";

/// How a server ends a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Told,
    Closes,
}

/// The server gets `goes` where the client sends `came`.
fn expect_request(came: &str, goes: &str) {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(came);
    let mut server = track.upstream.accept();
    server.expect(goes);
    server.send(OK);
    client.expect(OK);
}

/// The client gets `goes` where the server sends `came` for this request.
fn expect_response(request: &str, (came, end): (&str, End), goes: &str) {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(request);
    let mut server = track.upstream.accept();
    server.read_head();
    server.send(came);
    if end == End::Closes {
        drop(server);
    }
    client.expect(goes);
}

#[test]
fn fields_of_one_name_stand_together() {
    expect_request(
        "GET /x HTTP/1.1\r\nA: 1\r\nHost: a\r\nB: 2\r\nA: 3\r\n\r\n",
        &format!("GET /x HTTP/1.1\r\nA: 1\r\nA: 3\r\nHost: a\r\nB: 2\r\n{HOP}\r\n"),
    );
    expect_response(
        GET,
        (
            &OK.replace("Date", "A: 1\r\nB: 2\r\nA: 3\r\nDate"),
            End::Told,
        ),
        &OK.replace("Date", "A: 1\r\nA: 3\r\nB: 2\r\nDate"),
    );
}

#[test]
fn the_last_field_takes_the_place_of_one_that_stays_behind() {
    expect_request(
        "GET /x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n",
        &format!("GET /x HTTP/1.1\r\nHost: a\r\nC: 3\r\nA: 1\r\nB: 2\r\n{HOP}\r\n"),
    );
}

#[test]
fn one_space_stands_before_a_value() {
    expect_request(
        "\r\nGET /x HTTP/1.1\r\nHost:a\r\nA:\t 1  \r\nB:\r\n\r\n",
        &format!("GET /x HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: \r\n{HOP}\r\n"),
    );
    expect_response(
        GET,
        (
            "HTTP/1.1 200 OK\nDate:x\nA:  1 \nContent-Length:0\n\n",
            End::Told,
        ),
        "HTTP/1.1 200 OK\r\nDate: x\r\nA: 1\r\nContent-Length: 0\r\n\r\n",
    );
}

#[test]
fn chunks_are_written_anew_and_trailers_need_to_be_announced() {
    let chunks = "3;a=b\r\nabc\r\n02\r\nde\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n";
    let written = "3\r\nabc\r\n2\r\nde\r\n0\r\nx-sum: 1\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nDate: x\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect_response(
        GET,
        (&format!("{head}{chunks}"), End::Told),
        &format!("{head}{written}"),
    );
    let head = head.replace("Trailer: X-Sum\r\n", "");
    expect_response(
        GET,
        (&format!("{head}{chunks}"), End::Told),
        &format!("{head}{}", written.replace("x-sum: 1\r\n", "")),
    );
    let post = "POST /x HTTP/1.1\r\nHost: a\r\nTrailer: X-Sum\r\n";
    let coding = "Transfer-Encoding: chunked\r\n\r\n";
    expect_request(
        &format!("{post}{coding}{chunks}"),
        &format!("{post}{HOP}{coding}{written}"),
    );
}

#[test]
fn a_body_that_ends_with_its_connection_is_chunked_for_a_client_of_http_1_1() {
    for version in ["1.0", "1.1"] {
        let came = format!("HTTP/{version} 200 OK\r\nDate: x\r\n\r\nabc");
        expect_response(
            GET,
            (&came, End::Closes),
            "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        );
    }
}

#[test]
fn a_client_of_http_1_0_gets_a_body_that_ends_with_its_connection() {
    let chunked =
        "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    expect_response(
        &GET.replace("1.1", "1.0"),
        (chunked, End::Told),
        "HTTP/1.0 200 OK\r\nDate: x\r\n\r\nabc",
    );
}

#[test]
fn a_status_line_has_its_space_and_no_reason_beyond_ascii() {
    for line in ["HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.0 200 \u{e9}"] {
        expect_response(
            GET,
            (&OK.replace("HTTP/1.1 200 OK", line), End::Told),
            &OK.replace("200 OK", "200 "),
        );
    }
    let other = OK.replace("200 OK", "299 Yeah, ok");
    expect_response(GET, (&other, End::Told), &other);
}

#[test]
fn a_204_has_no_framing_fields() {
    for field in ["Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"] {
        expect_response(
            GET,
            (
                &format!("HTTP/1.1 204 No Content\r\nDate: x\r\n{field}\r\n"),
                End::Told,
            ),
            "HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n",
        );
    }
}

#[test]
fn a_response_to_head_has_no_transfer_coding() {
    expect_response(
        &GET.replace("GET", "HEAD"),
        (
            "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            End::Told,
        ),
        "HTTP/1.1 200 OK\r\nDate: x\r\n\r\n",
    );
}
