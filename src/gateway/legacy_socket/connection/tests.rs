//! A socket in memory, in paused time, and what is asked at the moment at which it ends.

use std::fs;

use futures_util::{FutureExt, SinkExt};
use tokio::io::duplex;
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::advance;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::config::compile::compile;
use crate::config::load::{Sources, load};
use crate::domain::plan::Transport;
use crate::gateway::Shared;
use crate::upstream::link::Links;

const LIMIT: Duration = Duration::from_millis(100);
/// How often what is ready at the same moment is chosen from anew.
const TIMES: usize = 64;

fn worker(keys: &str) -> Rc<Worker> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let text =
        format!("[upstream.s]\nside = 'rest'\nurl = 'ws://127.0.0.1:1/'\ntimeout = '10s'\n{keys}");
    fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let plan = compile(&load(&sources).unwrap(), &[]).unwrap();
    let common = Shared::for_tests(&plan);
    Worker::new((Arc::new(plan), Links::default()), common)
}

fn upstream(worker: &Rc<Worker>) -> LegacySocketUpstream {
    let installed = worker.installed();
    let plan = installed.plan.upstreams.all[0].clone();
    match &plan.transport {
        Transport::Frames(frames) => {
            LegacySocketUpstream::new(plan.clone(), frames, Arc::default())
        }
        Transport::Http | Transport::Stdio(_) | Transport::WebSocket(_) | Transport::Mcp(_) => {
            panic!("no frames")
        }
    }
}

/// A frame that nobody answers, and where its end is told.
fn frame(worker: &Rc<Worker>) -> (QueuedRequest, oneshot::Receiver<SequencedSocketReply>) {
    let (reply, door) = oneshot::channel();
    let text = Bytes::from_static(b"{\"command\":\"run\"}");
    let SocketMessage::Frame(frame) = SocketMessage::new(&text, 8) else {
        panic!("no frame");
    };
    let asked = QueuedRequest {
        installed: worker.installed(),
        question: SocketRequest::Passed { frame, text },
        deadline: clock::now() + Duration::from_secs(10),
        reply,
    };
    (asked, door)
}

async fn asked_at_the_end(keys: &str) {
    let worker = worker(keys);
    let upstream = Rc::new(upstream(&worker));
    for _ in 0..TIMES {
        let mut owner = ConnectionTask::new(
            &worker,
            &worker.installed(),
            &upstream,
            ClientSender::default(),
        );
        let (near, _far) = duplex(1 << 16);
        let mut frames = MessageStream::server(near, 1 << 16).await;
        let (asks, mut inbox) = mpsc::channel(QUEUE);
        let gone = Notify::new();
        let mut run = Box::pin(owner.run(&mut frames, (&mut inbox, &gone)));
        assert!((&mut run).now_or_never().is_none());
        advance(LIMIT).await;
        let (asked, mut door) = frame(&worker);
        asks.try_send(asked).unwrap();
        // Both are ready by now, and it is a matter of luck which of them is looked at first.
        let ended = (&mut run).now_or_never();
        assert!(matches!(
            door.try_recv(),
            Ok(SequencedSocketReply {
                said: Ok(SocketReply::Told),
                ..
            })
        ));
        // Nothing more is asked, and it ends in its time.
        let why = match ended {
            Some(why) => why,
            None => run.await,
        };
        assert_eq!(why, None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_at_the_end_of_an_idle_socket_is_served_before_it() {
    let local = LocalSet::new();
    local
        .run_until(asked_at_the_end("idle_timeout = '100ms'"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_at_the_end_of_an_old_socket_is_served_before_it() {
    let local = LocalSet::new();
    local.run_until(asked_at_the_end("max_age = '100ms'")).await;
}

#[tokio::test(start_paused = true)]
async fn a_socket_whose_server_is_planned_no_more_ends_though_that_says_more_and_more() {
    const MANY: usize = 10_000;
    let floods = async |far| {
        let mut far = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
        for _ in 0..MANY {
            let said = far.send(Message::text(r#"{"event":"log","payload":{}}"#));
            said.await.unwrap();
        }
    };
    let local = LocalSet::new();
    local
        .run_until(async {
            let worker = worker("");
            let upstream = Rc::new(upstream(&worker));
            let mut owner = ConnectionTask::new(
                &worker,
                &worker.installed(),
                &upstream,
                ClientSender::default(),
            );
            let (near, far) = duplex(1 << 16);
            let mut frames = MessageStream::server(near, 1 << 16).await;
            let (_asks, mut inbox) = mpsc::channel(QUEUE);
            let gone = Notify::new();
            // Timers count whole milliseconds.
            advance(Duration::from_micros(1_000_500)).await;
            upstream.end();
            tokio::select! {
                ended = owner.run(&mut frames, (&mut inbox, &gone)) => assert_eq!(ended, None),
                () = floods(far) => panic!("the socket goes on"),
            }
        })
        .await;
}
