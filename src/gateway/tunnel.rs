//! Tunnels over upgraded connections. Bytes flow both ways until one end closes, both are idle too long, or the tunnel
//! reaches its maximum age.
//!
//! Used by `response`.

use std::cell::Cell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::time::{Instant, sleep_until};

use super::access_record::AccessRecord;
use crate::telemetry::clock;

/// Copies bytes until the tunnel ends; the record is reported then.
pub(super) async fn run(
    mut record: Box<AccessRecord>,
    client: OnUpgrade,
    upstream: OnUpgrade,
    idle_timeout: Duration,
    max_age: Option<Duration>,
) {
    let (client, upstream) = match tokio::try_join!(client, upstream) {
        Ok(ends) => ends,
        Err(error) => return record.cut(error),
    };
    let end = max_age.map(|age| clock::now() + age);
    let last = Rc::new(Cell::new(clock::now()));
    let tracked = |io: Upgraded| ActivityTracker {
        io: TokioIo::new(io),
        last: last.clone(),
    };
    let (mut client, mut upstream) = (tracked(client), tracked(upstream));
    let mut copying = pin!(copy_bidirectional(&mut client, &mut upstream));
    loop {
        let idle_deadline = last.get() + idle_timeout;
        // Every branch is cancel-safe: the copy is pinned outside the loop, and the timers are recreated.
        tokio::select! {
            copied = &mut copying => return record_end(record, copied),
            // The proxy does not know the tunnelled protocol, so it just closes the connection. This is not an error.
            () = sleep_until(end.unwrap_or(idle_deadline)), if end.is_some() => return,
            () = sleep_until(idle_deadline) => {
                if last.get() + idle_timeout <= clock::now() {
                    return record.cut(format!("silent for {idle_timeout:?}"));
                }
            }
        }
    }
}

/// Reports an end that failed; an end that closed is a success.
fn record_end(mut record: Box<AccessRecord>, copied: io::Result<(u64, u64)>) {
    if let Err(error) = copied {
        record.cut(error);
    }
}

/// One end of the tunnel, which records the time of its last read.
struct ActivityTracker {
    io: TokioIo<Upgraded>,
    last: Rc<Cell<Instant>>,
}

impl AsyncRead for ActivityTracker {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if polled.is_ready() {
            self.last.set(clock::now());
        }
        polled
    }
}

impl AsyncWrite for ActivityTracker {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
