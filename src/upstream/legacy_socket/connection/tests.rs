//! An in-memory socket in paused time, with requests queued at the moment at which it closes.

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
use dualgauge_model::frame::SocketMessage;
use dualgauge_model::plan::Transport;

const LIMIT: Duration = Duration::from_millis(100);
/// Number of runs, because `select!` picks randomly among ready branches.
const TIMES: usize = 64;

fn plan(keys: &str) -> Arc<Plan> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let text =
        format!("[upstream.s]\nside = 'rest'\nurl = 'ws://127.0.0.1:1/'\ntimeout = '10s'\n{keys}");
    fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    Arc::new(compile(&load(&sources).unwrap(), &[]).unwrap())
}

fn upstream(plan: &Plan) -> Rc<LegacySocketUpstream> {
    let plan = plan.upstreams.all[0].clone();
    match &plan.transport {
        Transport::Frames(frames) => Rc::new(LegacySocketUpstream::new(
            plan.clone(),
            frames,
            Arc::default(),
        )),
        Transport::Http | Transport::Stdio(_) | Transport::WebSocket(_) | Transport::Mcp(_) => {
            panic!("no frames")
        }
    }
}

fn task(plan: &Arc<Plan>, upstream: &Rc<LegacySocketUpstream>) -> ConnectionTask {
    let context = SocketContext {
        plan: plan.clone(),
        tasks: Tasks::default(),
        count_undelivered: Rc::new(|_| {}),
    };
    ConnectionTask::new(context, upstream, ClientSender::default())
}

/// A request without an answer, and the receiver of its reply.
fn frame(plan: &Arc<Plan>) -> (QueuedRequest, oneshot::Receiver<SequencedSocketReply>) {
    let (reply, reply_receiver) = oneshot::channel();
    let text = Bytes::from_static(b"{\"command\":\"run\"}");
    let SocketMessage::Frame(frame) = SocketMessage::new(&text, 8) else {
        panic!("no frame");
    };
    let queued = QueuedRequest {
        plan: plan.clone(),
        request: SocketRequest::Passed { frame, text },
        deadline: clock::now() + Duration::from_secs(10),
        reply,
    };
    (queued, reply_receiver)
}

async fn request_at_the_end(keys: &str) {
    let plan = plan(keys);
    let upstream = upstream(&plan);
    for _ in 0..TIMES {
        let mut task = task(&plan, &upstream);
        let (near, _far) = duplex(1 << 16);
        let mut frames = MessageStream::server(near, 1 << 16).await;
        let (requests, mut inbox) = mpsc::channel(QUEUE);
        let caller_gone = Notify::new();
        let mut run = Box::pin(task.run(&mut frames, &mut inbox, &caller_gone));
        assert!((&mut run).now_or_never().is_none());
        advance(LIMIT).await;
        let (queued, mut reply_receiver) = frame(&plan);
        requests.try_send(queued).unwrap();
        // Both branches are ready, and `select!` picks one at random.
        let end = (&mut run).now_or_never();
        assert!(matches!(
            reply_receiver.try_recv(),
            Ok(SequencedSocketReply {
                result: Ok(SocketReply::Sent),
                ..
            })
        ));
        // No further request is queued, so the socket closes.
        let why = match end {
            Some(why) => why,
            None => run.await,
        };
        assert_eq!(why, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_queued_as_an_idle_socket_closes_is_served() {
    let local = LocalSet::new();
    local
        .run_until(request_at_the_end("idle_timeout = '100ms'"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_queued_as_an_old_socket_closes_is_served() {
    let local = LocalSet::new();
    local
        .run_until(request_at_the_end("max_age = '100ms'"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_server_cannot_keep_its_socket_open_by_sending() {
    const MANY: usize = 10_000;
    let flood = async |far| {
        let mut far = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
        for _ in 0..MANY {
            let result = far.send(Message::text(r#"{"event":"log","payload":{}}"#));
            result.await.unwrap();
        }
    };
    let local = LocalSet::new();
    local
        .run_until(async {
            let plan = plan("");
            let upstream = upstream(&plan);
            let mut task = task(&plan, &upstream);
            let (near, far) = duplex(1 << 16);
            let mut frames = MessageStream::server(near, 1 << 16).await;
            let (_requests, mut inbox) = mpsc::channel(QUEUE);
            let caller_gone = Notify::new();
            // Timers count whole milliseconds.
            advance(Duration::from_micros(1_000_500)).await;
            upstream.end();
            tokio::select! {
                end = task.run(&mut frames, &mut inbox, &caller_gone) => assert_eq!(end, None),
                () = flood(far) => panic!("the socket stays open"),
            }
        })
        .await;
}
