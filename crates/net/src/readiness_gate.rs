//! A gate that polls a socket for reads only when it may have data.
//!
//! An HTTP library reads its socket whenever it is polled, and it is polled for many other reasons. Each read without
//! data makes the runtime register the waker again. Law: the socket is polled whenever it was woken since it last had
//! no data.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};

/// A gate around a socket and all layers below it, which are polled for reads only when data may be available.
#[derive(Debug)]
pub struct ReadinessGate<S> {
    socket: S,
    watch: Arc<ReadinessState>,
    /// Marks the socket as readable and wakes the reader.
    waker: Waker,
}

#[derive(Debug)]
struct ReadinessState {
    /// Data may have arrived since the socket last had none.
    is_readable: AtomicBool,
    /// The waker of the reader.
    reader: Waker,
}

impl Wake for ReadinessState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_readable.store(true, Ordering::Release);
        self.reader.wake_by_ref();
    }
}

impl ReadinessState {
    fn new(reader: Waker) -> Arc<ReadinessState> {
        Arc::new(ReadinessState {
            is_readable: AtomicBool::new(true),
            reader,
        })
    }
}

impl<S> ReadinessGate<S> {
    /// Wraps a socket.
    pub fn new(socket: S) -> ReadinessGate<S> {
        let watch = ReadinessState::new(Waker::noop().clone());
        ReadinessGate {
            socket,
            waker: Waker::from(watch.clone()),
            watch,
        }
    }

    /// Sets the task to wake: the last one that read. After an upgrade, that may be another task.
    fn set_waker(&mut self, reader: &Waker) {
        if !self.watch.reader.will_wake(reader) {
            // The new state starts as readable, so the socket is polled once and registers the new waker.
            self.watch = ReadinessState::new(reader.clone());
            self.waker = Waker::from(self.watch.clone());
        }
    }

    /// Returns the socket.
    pub fn get(&self) -> &S {
        &self.socket
    }

    /// Returns true when data may have arrived since the socket last had none. If false, the reader is woken when it
    /// does.
    pub fn is_readable(&mut self, cx: &Context<'_>) -> bool {
        self.set_waker(cx.waker());
        self.watch.is_readable.load(Ordering::Acquire)
    }

    /// Polls the socket with `ask`, if data may be available.
    pub fn poll_if_readable<T>(
        &mut self,
        cx: &Context<'_>,
        ask: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T>
    where
        S: Unpin,
    {
        if !self.is_readable(cx) {
            return Poll::Pending;
        }
        // Cleared before the poll, so that a wake-up during it is not lost.
        self.watch.is_readable.store(false, Ordering::Release);
        let mut own = Context::from_waker(&self.waker);
        let polled = ask(Pin::new(&mut self.socket), &mut own);
        if polled.is_ready() {
            self.watch.is_readable.store(true, Ordering::Release);
        }
        polled
    }
}

impl<S: Read + Unpin> Read for ReadinessGate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut()
            .poll_if_readable(cx, |socket, own| socket.poll_read(own, buf))
    }
}

impl<S: Write + Unpin> Write for ReadinessGate<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use hyper::rt::ReadBuf;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;
    use crate::counting_waker::CountingWaker;

    /// A socket that counts its reads.
    struct Asked<S>(S, usize);

    impl<S: Read + Unpin> Read for Asked<S> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            self.1 += 1;
            Pin::new(&mut self.0).poll_read(cx, buf)
        }
    }

    /// Reads once for a task. Returns the number of bytes, if the read was ready.
    fn read(
        gate: &mut ReadinessGate<Asked<impl Read + Unpin>>,
        task: &Arc<CountingWaker>,
    ) -> Option<usize> {
        let (waker, mut capacity) = (Waker::from(task.clone()), [0; 8]);
        let mut capacity = ReadBuf::new(&mut capacity);
        let polled =
            Pin::new(gate).poll_read(&mut Context::from_waker(&waker), capacity.unfilled());
        polled.is_ready().then(|| capacity.filled().len())
    }

    #[tokio::test]
    async fn an_empty_socket_is_read_again_when_it_becomes_readable() {
        let (near, mut far) = duplex(64);
        let (mut gate, task) = (
            ReadinessGate::new(Asked(TokioIo::new(near), 0)),
            Arc::<CountingWaker>::default(),
        );
        for _ in 0..5 {
            assert_eq!(read(&mut gate, &task), None);
        }
        assert_eq!(gate.socket.1, 1);
        far.write_all(b"abc").await.unwrap();
        assert_eq!(task.count(), 1);
        assert_eq!(read(&mut gate, &task), Some(3));
        assert_eq!(read(&mut gate, &task), None);
        assert_eq!(read(&mut gate, &task), None);
        assert_eq!(gate.socket.1, 3);
        drop(far);
        assert_eq!(read(&mut gate, &task), Some(0));
    }

    #[tokio::test]
    async fn the_last_waiter_is_woken() {
        let (near, mut far) = duplex(64);
        let (first, last) = (
            Arc::<CountingWaker>::default(),
            Arc::<CountingWaker>::default(),
        );
        let mut gate = ReadinessGate::new(Asked(TokioIo::new(near), 0));
        assert_eq!(read(&mut gate, &first), None);
        assert_eq!(read(&mut gate, &last), None);
        far.write_all(b"abc").await.unwrap();
        let woken = [first, last].map(|task| task.count());
        assert_eq!(woken, [0, 1]);
    }

    /// A socket that yields on each read, as a task does that reads much at once.
    struct Yielding(usize);

    impl Read for Yielding {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            _: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            self.0 += 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }

    #[test]
    fn a_socket_that_becomes_readable_during_a_read_is_read_again() {
        let (mut gate, task) = (
            ReadinessGate::new(Yielding(0)),
            Arc::<CountingWaker>::default(),
        );
        let (waker, mut capacity) = (Waker::from(task.clone()), [0; 8]);
        for turn in 1..4 {
            let mut capacity = ReadBuf::new(&mut capacity);
            let mut cx = Context::from_waker(&waker);
            let polled = Pin::new(&mut gate).poll_read(&mut cx, capacity.unfilled());
            assert!(polled.is_pending());
            assert_eq!((gate.socket.0, task.count()), (turn, turn));
        }
    }
}
