//! A socket that is asked for bytes only where there may be some.
//!
//! An HTTP library looks at its socket whenever it is polled, and it is polled for much else: for each look that finds
//! nothing, a runtime notes once more whom to wake. Law: the socket is asked whenever it has stirred since it had nothing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};

/// The socket, as the library is given it: all that stands before it is asked only then, too.
#[derive(Debug)]
pub struct ReadinessGate<S> {
    socket: S,
    watch: Arc<ReadinessState>,
    /// Wakes whoever reads, by way of the watch.
    waker: Waker,
}

#[derive(Debug)]
struct ReadinessState {
    /// Something may have come since the socket had nothing.
    is_readable: AtomicBool,
    /// Who reads.
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
    /// Watches a socket.
    pub fn new(socket: S) -> ReadinessGate<S> {
        let watch = ReadinessState::new(Waker::noop().clone());
        ReadinessGate {
            socket,
            waker: Waker::from(watch.clone()),
            watch,
        }
    }

    /// Wakes whoever has asked last. After an upgrade, that may be another task.
    fn set_waker(&mut self, reader: &Waker) {
        if !self.watch.reader.will_wake(reader) {
            // The socket is asked for its sake, and notes it in place of the one before.
            self.watch = ReadinessState::new(reader.clone());
            self.waker = Waker::from(self.watch.clone());
        }
    }

    /// The socket itself.
    pub fn get(&self) -> &S {
        &self.socket
    }

    /// Whether something may have come since the socket had nothing. Where it has not, whoever asks is woken when it does.
    pub fn is_readable(&mut self, cx: &Context<'_>) -> bool {
        self.set_waker(cx.waker());
        self.watch.is_readable.load(Ordering::Acquire)
    }

    /// Asks the socket for what it has, where that may be something.
    pub fn poll_for_call<T>(
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
        // Before the socket is asked: what stirs from then on is not forgotten.
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
            .poll_for_call(cx, |socket, own| socket.poll_read(own, buf))
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
    use crate::upstream::counting_waker::CountingWaker;

    /// Counts how often a socket is asked.
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

    /// Reads once for a task: how many bytes came, if any did.
    fn read(
        watched: &mut ReadinessGate<Asked<impl Read + Unpin>>,
        task: &Arc<CountingWaker>,
    ) -> Option<usize> {
        let (waker, mut room) = (Waker::from(task.clone()), [0; 8]);
        let mut room = ReadBuf::new(&mut room);
        let polled = Pin::new(watched).poll_read(&mut Context::from_waker(&waker), room.unfilled());
        polled.is_ready().then(|| room.filled().len())
    }

    #[tokio::test]
    async fn a_socket_that_has_nothing_is_asked_again_when_it_stirs() {
        let (near, mut far) = duplex(64);
        let (mut watched, task) = (
            ReadinessGate::new(Asked(TokioIo::new(near), 0)),
            Arc::<CountingWaker>::default(),
        );
        for _ in 0..5 {
            assert_eq!(read(&mut watched, &task), None);
        }
        assert_eq!(watched.socket.1, 1);
        far.write_all(b"abc").await.unwrap();
        assert_eq!(task.count(), 1);
        assert_eq!(read(&mut watched, &task), Some(3));
        assert_eq!(read(&mut watched, &task), None);
        assert_eq!(read(&mut watched, &task), None);
        assert_eq!(watched.socket.1, 3);
        drop(far);
        assert_eq!(read(&mut watched, &task), Some(0));
    }

    #[tokio::test]
    async fn whoever_asked_last_is_woken() {
        let (near, mut far) = duplex(64);
        let (first, last) = (
            Arc::<CountingWaker>::default(),
            Arc::<CountingWaker>::default(),
        );
        let mut watched = ReadinessGate::new(Asked(TokioIo::new(near), 0));
        assert_eq!(read(&mut watched, &first), None);
        assert_eq!(read(&mut watched, &last), None);
        far.write_all(b"abc").await.unwrap();
        let woken = [first, last].map(|task| task.count());
        assert_eq!(woken, [0, 1]);
    }

    /// Asks for another turn each time, as whoever reads much at once does.
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
    fn a_socket_that_stirs_while_it_is_asked_is_asked_again() {
        let (mut watched, task) = (
            ReadinessGate::new(Yielding(0)),
            Arc::<CountingWaker>::default(),
        );
        let (waker, mut room) = (Waker::from(task.clone()), [0; 8]);
        for turn in 1..4 {
            let mut room = ReadBuf::new(&mut room);
            let mut cx = Context::from_waker(&waker);
            let polled = Pin::new(&mut watched).poll_read(&mut cx, room.unfilled());
            assert!(polled.is_pending());
            assert_eq!((watched.socket.0, task.count()), (turn, turn));
        }
    }
}
