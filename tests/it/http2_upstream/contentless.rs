//! Answers without content, whose streams end behind their heads.

use super::frames::{DATA, Frames, HEADERS};
use crate::support::{Proxy, Upstream};

const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

/// By the static table of HPACK (RFC 7541 Appendix A).
const NO_CONTENT: u8 = 0x89;
const NOT_MODIFIED: u8 = 0x8b;
const OK: u8 = 0x88;

#[test]
fn an_answer_without_content_is_a_success_however_late_its_stream_ends() {
    let server = Upstream::start();
    let proxy = Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\nhttp2 = true\n",
        server.address()
    ));
    let mut client = proxy.connect();
    let mut frames = None;
    for (stream, method, status, code) in [
        (1, "GET", NOT_MODIFIED, 304),
        (3, "GET", NO_CONTENT, 204),
        (5, "HEAD", OK, 200),
        (7, "GET", NOT_MODIFIED, 304),
    ] {
        client.send(format!("{method} /{stream} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let frames = frames.get_or_insert_with(|| Frames::begin(server.accept()));
        assert_eq!(frames.next(HEADERS).1, stream);
        // The last one tells the length of what it leaves out: `content-length: 5`, a field that is not indexed.
        let length: &[u8] = if stream == 7 { b"\x0f\x0d\x015" } else { b"" };
        let head = [&[status], length].concat();
        frames.flagged((HEADERS, END_HEADERS), stream, &head);
        let answer = client.read_head();
        assert!(answer.start.contains(&code.to_string()), "{answer:?}");
        let line = proxy.log_line(&[&format!("path=/{stream} ")]);
        assert!(line.contains("outcome=success"), "{line}");
        frames.flagged((DATA, END_STREAM), stream, b"");
    }
}
