//! A message head written with the original case of its names, in place of the one written by the HTTP library.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use dualgauge_transport::wire::HeaderCase;

/// The number of parts that one vectored write passes on, the head included.
const TOGETHER: usize = 8;

/// The bytes that replace the next ones written to a connection, if any.
#[derive(Debug, Default)]
pub struct HeaderCaseOverlay {
    head: Vec<u8>,
    /// The number of bytes written already.
    written: usize,
}

impl HeaderCaseOverlay {
    /// Copies the head in `given` and restores the case of its names.
    pub fn lay(&mut self, header_case: &HeaderCase, given: &[IoSlice<'_>]) {
        if let [head, ..] = given {
            self.head = head.to_vec();
            self.written = 0;
            header_case.apply(&mut self.head);
        }
    }

    /// Returns true when part of a head is still to be written.
    #[must_use]
    pub fn is_laid(&self) -> bool {
        !self.head.is_empty()
    }

    /// Writes `given`, with the head in it replaced.
    pub fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
        given: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.is_laid() {
            return write(socket, cx, given);
        }
        let head = &self.head[self.written..];
        let count = ready!(write_instead(head, socket, cx, given))?;
        self.written += count;
        if self.written >= self.head.len() {
            *self = HeaderCaseOverlay::default();
        }
        Poll::Ready(Ok(count))
    }
}

fn write<S: AsyncWrite + Unpin>(
    socket: &mut S,
    cx: &mut Context<'_>,
    given: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    match given {
        [one] => Pin::new(socket).poll_write(cx, one),
        parts => Pin::new(socket).poll_write_vectored(cx, parts),
    }
}

/// Writes `head` in place of as many bytes of `given`, followed by the rest of `given`.
fn write_instead<S: AsyncWrite + Unpin>(
    head: &[u8],
    socket: &mut S,
    cx: &mut Context<'_>,
    given: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let (first, others) = given.split_at(1.min(given.len()));
    let rest = first.iter().filter_map(|first| first.get(head.len()..));
    let rest = rest.filter(|rest| !rest.is_empty());
    let others = others.iter().map(|part| &**part);
    let mut parts = [IoSlice::new(head); TOGETHER];
    let mut count = 1;
    for (slot, part) in parts[1..].iter_mut().zip(rest.chain(others)) {
        *slot = IoSlice::new(part);
        count += 1;
    }
    write(socket, cx, &parts[..count])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::short_writes::write_through;
    use dualgauge_transport::wire::ResponseCaseReader;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: 12\r\n\r\n";
    const BODY: &str = "x-a: x-a\r\n\r\n";

    fn header_case() -> HeaderCase {
        let mut reading = ResponseCaseReader::default();
        reading.begin();
        reading.feed(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 12\r\n\r\n");
        reading.take().unwrap()
    }

    /// Returns the bytes written through a socket that accepts `room` bytes at a time.
    async fn written(body: &str, capacity: usize) -> String {
        let mut overlay = HeaderCaseOverlay::default();
        overlay.lay(&header_case(), &[IoSlice::new(HEAD.as_bytes())]);
        let found = write_through(capacity, HEAD, body, |socket, cx, parts| {
            overlay.poll_write(socket, cx, parts)
        });
        let found = found.await;
        assert!(!overlay.is_laid());
        found
    }

    #[tokio::test]
    async fn a_head_gets_its_header_case_for_any_write_sizes() {
        let spelled = HEAD
            .replace("x-a", "X-A")
            .replace("content-length", "Content-Length");
        for body in [BODY, &BODY.repeat(1024)] {
            for capacity in [1, 7, 40, 1000] {
                let expected = format!("{spelled}{body}");
                assert_eq!(written(body, capacity).await, expected, "{capacity}");
            }
        }
    }
}
