//! Both ends of a WebSocket in memory, on a clock that only waits when everything else does.

use tokio::io::{DuplexStream, duplex};
use tokio_tungstenite::WebSocketStream;

use super::*;
use crate::clock;

type Peer = WebSocketStream<DuplexStream>;

/// The server's end as it is here, and the client's, with room for so much between them.
async fn pair(limit: usize, room: usize) -> (MessageStream<DuplexStream>, Peer) {
    let (here, there) = duplex(room);
    let frames = MessageStream::server(here, limit).await;
    let peer = WebSocketStream::from_raw_socket(there, Role::Client, None).await;
    (frames, peer)
}

async fn next(frames: &mut MessageStream<DuplexStream>) -> MessageEvent {
    frames.next(ReadMode::Open).await
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_and_counts_as_a_sign_of_life() {
    let (mut frames, mut peer) = pair(100, 1024).await;
    frames.ping();
    let (event, ()) = tokio::join!(next(&mut frames), async {
        let ping = peer.next().await.unwrap().unwrap();
        assert_eq!(ping, Message::Ping(Bytes::new()));
        peer.flush().await.unwrap();
    });
    assert!(matches!(event, MessageEvent::SignOfLife), "{event:?}");
    assert!(!frames.is_writing());
}

#[tokio::test(start_paused = true)]
async fn a_message_is_reported_as_written_when_it_is() {
    let (mut frames, mut peer) = pair(100, 1024).await;
    frames.ping();
    frames.send(Bytes::from_static(b"{}"));
    assert!(frames.is_writing());
    assert!(matches!(next(&mut frames).await, MessageEvent::Written));
    assert!(!frames.is_writing());
    let ping = peer.next().await.unwrap().unwrap();
    assert_eq!(ping, Message::Ping(Bytes::new()));
    assert_eq!(peer.next().await.unwrap().unwrap(), Message::text("{}"));
}

#[tokio::test(start_paused = true)]
async fn a_message_beyond_the_limit_is_reported_and_ends_the_connection() {
    let (mut frames, mut peer) = pair(100, 4096).await;
    peer.send(Message::text("x".repeat(100))).await.unwrap();
    peer.send(Message::text("x".repeat(101))).await.unwrap();
    assert!(matches!(next(&mut frames).await, MessageEvent::Message(text) if text.len() == 100));
    assert!(matches!(next(&mut frames).await, MessageEvent::Overlong));
    assert!(matches!(next(&mut frames).await, MessageEvent::Lost(_)));
    let (closed, ()) = tokio::join!(peer.next(), frames.end());
    let Some(Ok(Message::Close(Some(frame)))) = closed else {
        panic!("{closed:?}");
    };
    assert_eq!(frame.code, CloseCode::Size);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_nothing_is_wanted() {
    let (mut frames, mut peer) = pair(100, 1024).await;
    peer.send(Message::text("{}")).await.unwrap();
    let shut = timeout(Duration::from_secs(60), frames.next(ReadMode::Shut)).await;
    assert!(shut.is_err(), "{shut:?}");
    assert!(matches!(next(&mut frames).await, MessageEvent::Message(text) if text == "{}"));
}

#[tokio::test(start_paused = true)]
async fn a_half_written_message_of_a_dropped_stream_is_not_received() {
    let (mut frames, mut peer) = pair(100, 64).await;
    frames.send(Bytes::from(vec![b'x'; 1000]));
    let written = timeout(Duration::from_secs(1), next(&mut frames)).await;
    assert!(written.is_err(), "{written:?}");
    assert!(frames.is_writing());
    drop(frames);
    let read = peer.next().await;
    assert!(matches!(read, Some(Err(_)) | None), "{read:?}");
}

#[tokio::test(start_paused = true)]
async fn half_a_message_is_never_delivered() {
    let (here, mut there) = duplex(1024);
    let mut frames = MessageStream::server(here, 100).await;
    // The first half of a masked text of four bytes.
    there.write_all(b"\x81\x84\0\0\0\0{\"").await.unwrap();
    let received = timeout(Duration::from_secs(1), next(&mut frames)).await;
    assert!(received.is_err(), "{received:?}");
    drop(there);
    assert!(matches!(next(&mut frames).await, MessageEvent::Lost(_)));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_the_other_wants_is_agreed_to() {
    let (mut frames, mut peer) = pair(100, 1024).await;
    let frame = CloseFrame {
        code: CloseCode::Normal,
        reason: "enough".into(),
    };
    peer.close(Some(frame)).await.unwrap();
    let event = next(&mut frames).await;
    assert!(
        matches!(&event, MessageEvent::Lost(why) if why.contains("enough")),
        "{event:?}"
    );
    let (answered, ()) = tokio::join!(peer.next(), frames.end());
    let Some(Ok(Message::Close(Some(frame)))) = answered else {
        panic!("{answered:?}");
    };
    assert_eq!(frame.code, CloseCode::Normal);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_the_other_does_not_agree_to_takes_its_time_and_no_more() {
    for room in [1, 1024] {
        let (frames, peer) = pair(100, room).await;
        let before = clock::now();
        frames.end().await;
        let took = clock::now() - before;
        let wanted = END..END + Duration::from_millis(10);
        assert!(wanted.contains(&took), "{took:?}");
        drop(peer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_floods_is_disconnected_with_a_reason() {
    // Pings, and fragments without content behind the beginning of a message.
    for (first, again) in [
        (&b""[..], b"\x89\x80\0\0\0\0"),
        (b"\x01\x81\0\0\0\0{", b"\0\x80\0\0\0\0"),
    ] {
        let (here, mut there) = duplex(64 * 1024);
        let mut frames = MessageStream::server(here, 100).await;
        there.write_all(first).await.unwrap();
        let (mut read, mut write) = tokio::io::split(there);
        let flood = async move {
            for _ in 0..10_000 {
                if write.write_all(again).await.is_err() {
                    return;
                }
            }
            panic!("the flood is taken");
        };
        let mut back = Vec::new();
        let ends = async {
            loop {
                if let MessageEvent::Lost(_) = next(&mut frames).await {
                    break;
                }
            }
            assert!(frames.is_flooded());
            frames.end().await;
        };
        let (_, (), _) = tokio::join!(flood, ends, read.read_to_end(&mut back));
        let close = b"\x88\x02\x03\xf0";
        assert!(back.ends_with(close), "{back:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_pings_beside_its_messages_is_served() {
    let (mut frames, mut peer) = pair(100, 64 * 1024).await;
    let says = async {
        for _ in 0..3_000 {
            peer.send(Message::Ping(Bytes::new())).await.unwrap();
            peer.send(Message::text("{}")).await.unwrap();
            while let Some(Some(_)) = futures_util::FutureExt::now_or_never(peer.next()) {}
        }
        peer
    };
    let hears = async {
        let mut received = 0;
        while received < 3_000 {
            let event = next(&mut frames).await;
            assert!(
                matches!(event, MessageEvent::Message(_) | MessageEvent::SignOfLife),
                "{event:?}"
            );
            received += usize::from(matches!(event, MessageEvent::Message(_)));
        }
    };
    tokio::join!(says, hears);
    assert!(!frames.is_flooded());
}
