//! A socket for tests that accepts few bytes at a time.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, DuplexStream, duplex};

/// Writes a head and a body through a socket with `room` bytes of buffer, and returns the bytes that arrive.
pub(super) async fn write_through(
    room: usize,
    head: &str,
    body: &str,
    mut write: impl FnMut(
        &mut DuplexStream,
        &mut Context<'_>,
        &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>,
) -> String {
    let (mut near, mut far) = duplex(room);
    let written = async {
        let (mut head, mut body) = (head.as_bytes(), body.as_bytes());
        while !(head.is_empty() && body.is_empty()) {
            let parts = [head, body].map(IoSlice::new);
            let parts = if head.is_empty() { &parts[1..] } else { &parts };
            let count = poll_fn(|cx| write(&mut near, cx, parts)).await.unwrap();
            let of_head = count.min(head.len());
            head = &head[of_head..];
            body = &body[count - of_head..];
        }
        drop(near);
    };
    let mut found = String::new();
    let read = far.read_to_string(&mut found);
    tokio::join!(written, async { read.await.unwrap() });
    found
}
