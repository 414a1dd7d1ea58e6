//! A socket that takes few bytes at a time, for tests of what writes heads.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, DuplexStream, duplex};

/// What goes out of a head and a body through a socket that has so much room.
pub(super) async fn through(
    room: usize,
    (head, body): (&str, &str),
    mut write: impl FnMut(
        (&mut DuplexStream, &mut Context<'_>),
        &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>,
) -> String {
    let (mut near, mut far) = duplex(room);
    let written = async {
        let (mut head, mut body) = (head.as_bytes(), body.as_bytes());
        while !(head.is_empty() && body.is_empty()) {
            let parts = [head, body].map(IoSlice::new);
            let parts = if head.is_empty() { &parts[1..] } else { &parts };
            let count = poll_fn(|cx| write((&mut near, cx), parts)).await.unwrap();
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
