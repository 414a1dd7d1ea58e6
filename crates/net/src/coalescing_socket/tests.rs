use std::future::poll_fn;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::TcpListener as Listener;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use proptest::prelude::*;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;

use super::*;
use crate::counting_waker::CountingWaker;
use crate::write_coalescer::{FULL, MANY};

/// Two ends of a connection, the first of which defers.
async fn pair(outbox: &WriteCoalescer) -> (CoalescingSocket, TcpStream) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let far = listener.accept().unwrap().0;
    far.set_nonblocking(true).unwrap();
    // The runtime has yet to learn that it can be written to.
    near.writable().await.unwrap();
    let far = TcpStream::from_std(far).unwrap();
    (CoalescingSocket::new(near, outbox.clone()), far)
}

/// The end of a turn.
fn turn(outbox: &WriteCoalescer) {
    assert!(outbox.clone().flush().now_or_never().is_none());
}

/// Whether nothing has come. The system is asked: a runtime knows only what it has been told.
fn has_nothing(far: &TcpStream) -> bool {
    let peeked = SockRef::from(far).peek(&mut [MaybeUninit::uninit()]);
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

async fn reads(far: &mut TcpStream, expected: &[u8]) {
    let mut found = vec![0; expected.len()];
    far.read_exact(&mut found).await.unwrap();
    assert_eq!(found, expected);
}

/// Writes until the system takes no more: how much it took.
async fn fill(near: &mut CoalescingSocket) -> usize {
    let mut count = 0;
    let piece = [b'-'; 64 * 1024];
    while let Some(taken) = near.write(&piece).now_or_never() {
        count += taken.unwrap();
    }
    count
}

#[tokio::test]
async fn deferred_writes_are_sent_at_the_end_of_the_turn() {
    let outbox = WriteCoalescer::default();
    let (mut near, mut far) = pair(&outbox).await;
    near.write_all(b"one").await.unwrap();
    near.flush().await.unwrap();
    near.write_all(b", two").await.unwrap();
    near.flush().await.unwrap();
    assert!(has_nothing(&far));
    turn(&outbox);
    reads(&mut far, b"one, two").await;
    assert!(has_nothing(&far));
}

#[tokio::test]
async fn the_carrier_is_woken_by_the_first_end_of_a_turn() {
    let (outbox, task) = (WriteCoalescer::default(), Arc::<CountingWaker>::default());
    let (mut first, _far) = pair(&outbox).await;
    let (mut second, _far) = pair(&outbox).await;
    let waker = Waker::from(task.clone());
    for turns in 1..4 {
        assert!(
            outbox
                .poll_flush_all(&Context::from_waker(&waker))
                .is_pending()
        );
        for near in [&mut first, &mut second] {
            near.write_all(b"a").await.unwrap();
        }
        assert_eq!(task.count(), turns);
    }
}

#[tokio::test]
async fn many_sockets_are_not_deferred() {
    let outbox = WriteCoalescer::default();
    let mut ends = Vec::new();
    for _ in 0..FULL {
        ends.push(pair(&outbox).await);
    }
    let (last, others) = ends.split_last_mut().unwrap();
    for (near, far) in others {
        near.write_all(b"a").await.unwrap();
        assert!(has_nothing(far));
    }
    last.0.write_all(b"a").await.unwrap();
    for (_, far) in &mut ends {
        reads(far, b"a").await;
    }
}

#[tokio::test]
async fn many_bytes_are_not_deferred() {
    let outbox = WriteCoalescer::default();
    let (mut first, mut far) = pair(&outbox).await;
    let (mut second, mut other) = pair(&outbox).await;
    let half = Bytes::from(vec![b'a'; MANY / 2]);
    for _ in 0..2 {
        first.write_control().offer_shared(&half);
        first.write_all(&half).await.unwrap();
        second.write_all(b"more: ").await.unwrap();
        assert!(has_nothing(&far) && has_nothing(&other));
        second.write_control().offer_shared(&half);
        second.write_all(&half).await.unwrap();
        reads(&mut far, &half).await;
        reads(&mut other, &[b"more: ", &*half].concat()).await;
    }
}

#[tokio::test]
async fn a_reused_buffer_is_empty() {
    let outbox = WriteCoalescer::default();
    for own in [b"the first", b"his heirs"] {
        let (mut near, mut far) = pair(&outbox).await;
        near.write_all(own).await.unwrap();
        turn(&outbox);
        reads(&mut far, own).await;
        assert!(has_nothing(&far));
        assert!(outbox.take_buffer().capacity() >= own.len());
        near.write_all(b"later").await.unwrap();
        turn(&outbox);
        reads(&mut far, b"later").await;
    }
}

#[tokio::test]
async fn a_closed_coalescer_defers_nothing() {
    let outbox = WriteCoalescer::default();
    let (mut near, mut far) = pair(&outbox).await;
    near.write_all(b"before").await.unwrap();
    outbox.close();
    assert!(outbox.clone().flush().now_or_never().is_some());
    reads(&mut far, b"before").await;
    near.write_all(b"behind").await.unwrap();
    reads(&mut far, b"behind").await;
}

#[tokio::test]
async fn writes_are_not_deferred_while_coalescing_is_disabled() {
    let outbox = WriteCoalescer::default();
    let (mut near, mut far) = pair(&outbox).await;
    near.write_all(b"slow").await.unwrap();
    near.write_control().disable_coalescing();
    near.flush().await.unwrap();
    reads(&mut far, b"slow").await;
    near.write_all(b"fast").await.unwrap();
    reads(&mut far, b"fast").await;
    turn(&outbox);
    assert!(has_nothing(&far));
}

#[tokio::test]
async fn a_copy_without_coalescing_needs_no_further_flush() {
    let outbox = WriteCoalescer::default();
    let (mut near, mut far) = pair(&outbox).await;
    near.write_control().disable_coalescing();
    let before = fill(&mut near).await;
    let (mut from, mut to) = tokio::io::duplex(64);
    to.write_all(b"done").await.unwrap();
    let mut found = vec![0; before + 4];
    // The copy goes on: its source has not ended.
    tokio::select! {
        copied = tokio::io::copy(&mut from, &mut near) => panic!("{copied:?}"),
        read = far.read_exact(&mut found) => drop(read.unwrap()),
    }
    assert_eq!(&found[before..], b"done");
}

#[tokio::test]
async fn few_bytes_wait_and_more_do_not() {
    let outbox = WriteCoalescer::default();
    for (count, waits) in [(1, true), (FEW, true), (FEW + 1, false)] {
        let (mut near, far) = pair(&outbox).await;
        near.write_all(&vec![b'a'; count]).await.unwrap();
        assert_eq!(has_nothing(&far), waits, "{count}");
    }
}

#[tokio::test]
async fn a_shared_piece_is_deferred_unless_it_is_long() {
    let outbox = WriteCoalescer::default();
    for (count, waits) in [(FEW + 1, true), (LONGEST, true), (LONGEST + 1, false)] {
        let (mut near, mut far) = pair(&outbox).await;
        let piece = Bytes::from(vec![b'a'; count]);
        near.write_control().offer_shared(&piece);
        let parts = [b"head", &*piece, b"end"].map(IoSlice::new);
        let write = poll_fn(|cx| Pin::new(&mut near).poll_write_vectored(cx, &parts));
        let written = write.await.unwrap();
        assert_eq!(has_nothing(&far), waits, "{count}");
        if waits {
            assert_eq!(written, count + 7);
            assert!(!piece.is_unique(), "{count}");
            near.write_all(b", more").await.unwrap();
            assert!(has_nothing(&far));
            turn(&outbox);
            let expected = [b"head", &*piece, b"end, more"].concat();
            reads(&mut far, &expected).await;
        }
        assert!(piece.is_unique(), "{count}");
    }
}

#[tokio::test]
async fn a_socket_that_is_let_go_sends_what_it_had_and_ends() {
    let outbox = WriteCoalescer::default();
    let (mut near, mut far) = pair(&outbox).await;
    near.write_all(b"last").await.unwrap();
    drop(near);
    turn(&outbox);
    let mut found = String::new();
    far.read_to_string(&mut found).await.unwrap();
    assert_eq!(found, "last");
}

#[tokio::test]
async fn bytes_that_the_system_refuses_are_flushed_by_their_writer() {
    let outbox = WriteCoalescer::default();
    let (mut near, mut far) = pair(&outbox).await;
    let before = fill(&mut near).await;
    let task = Arc::<CountingWaker>::default();
    let waker = Waker::from(task.clone());
    let mut cx = Context::from_waker(&waker);
    let written = Pin::new(&mut near).poll_write(&mut cx, b"late");
    assert!(matches!(written, Poll::Ready(Ok(4))));
    assert!(Pin::new(&mut near).poll_flush(&mut cx).is_ready());
    let woken = task.count();
    turn(&outbox);
    assert_eq!(task.count(), woken + 1);
    assert!(Pin::new(&mut near).poll_flush(&mut cx).is_pending());
    assert!(
        Pin::new(&mut near)
            .poll_write(&mut cx, b"more")
            .is_pending()
    );
    let mut found = Vec::new();
    let write = async {
        near.write_all(b", more").await.unwrap();
        near.shutdown().await.unwrap();
    };
    tokio::join!(write, far.read_to_end(&mut found)).1.unwrap();
    assert_eq!(&found[before..], b"late, more");
}

#[tokio::test]
async fn a_failed_write_is_reported_to_its_writer() {
    let outbox = WriteCoalescer::default();
    let (mut near, far) = pair(&outbox).await;
    far.set_zero_linger().unwrap();
    drop(far);
    let reset = near.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    let task = Arc::<CountingWaker>::default();
    let waker = Waker::from(task.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(Pin::new(&mut near).poll_write(&mut cx, b"a").is_ready());
    assert!(Pin::new(&mut near).poll_flush(&mut cx).is_ready());
    turn(&outbox);
    assert_eq!(task.count(), 1);
    let told = near.flush().await.unwrap_err();
    assert_eq!(told.kind(), ErrorKind::BrokenPipe);
    assert!(near.flush().await.is_ok());
}

/// What may happen to a socket.
#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    /// A large piece between small ones, of which the socket is told.
    Give(usize),
    Flush,
    Turn,
    Hasten,
    /// The other end reads something.
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => (1..FEW).prop_map(Step::Write),
        8 => (FEW..300 * FEW).prop_map(Step::Write),
        8 => (FEW..2 * LONGEST).prop_map(Step::Give),
        8 => Just(Step::Flush),
        8 => Just(Step::Turn),
        4 => (1..900 * FEW).prop_map(Step::Read),
        1 => Just(Step::Hasten),
    ]
}

async fn run(steps: Vec<Step>) {
    let outbox = WriteCoalescer::default();
    let (mut near, mut far) = pair(&outbox).await;
    let (mut given, mut found) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Write(count) | Step::Give(count) => {
                let start = given.len();
                let piece = (start..start + count).map(|at| (at % 251) as u8);
                let piece: Bytes = piece.collect();
                let told = matches!(step, Step::Give(_));
                let cuts = if told {
                    [7, count - 7]
                } else {
                    [count / 3, count]
                };
                let large = piece.slice(cuts[0]..cuts[1]);
                if told {
                    near.write_control().offer_shared(&large);
                }
                let parts = [&piece[..cuts[0]], &large, &piece[cuts[1]..]].map(IoSlice::new);
                let write = poll_fn(|cx| Pin::new(&mut near).poll_write_vectored(cx, &parts));
                let written = write.now_or_never().unwrap_or(Ok(0)).unwrap();
                given.extend_from_slice(&piece[..written]);
            }
            Step::Flush => drop(near.flush().now_or_never()),
            Step::Turn => turn(&outbox),
            Step::Hasten => near.write_control().disable_coalescing(),
            Step::Read(most) => {
                let mut room = vec![0; most];
                if let Ok(count) = far.try_read(&mut room) {
                    found.extend_from_slice(&room[..count]);
                }
                // The runtime learns what it can do by now.
                tokio::time::sleep(Duration::ZERO).await;
            }
        }
    }
    let end = near.shutdown();
    let (ended, read) = tokio::join!(end, far.read_to_end(&mut found));
    ended.unwrap();
    read.unwrap();
    assert!(found == given, "{} of {} bytes", found.len(), given.len());
}

proptest! {
    #[test]
    fn bytes_go_out_once_each_and_in_order(
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(steps));
    }
}
