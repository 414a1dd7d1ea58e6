//! A server behind the proxy that speaks HTTP/2 without TLS, as a test scripts it.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response, request};
use tokio::sync::Barrier;
use tokio::task::{JoinSet, LocalSet};

/// What the server does with a call, whose body it has read.
#[derive(Debug)]
pub(crate) enum Act {
    /// It answers.
    Answer(Response<Vec<u8>>),
    /// The same, with trailers.
    Trailed(Response<Vec<u8>>, HeaderMap),
    /// It answers when so many calls are there.
    Together(Arc<Barrier>),
    /// It resets the stream.
    Reset(Reason),
    /// It never answers; that its client has gone away is counted.
    Hold,
}

type Script = Arc<dyn Fn(&request::Parts, &[u8]) -> Act + Send + Sync>;

/// A listener on a port of its own.
#[derive(Debug)]
pub(crate) struct Multiplex {
    address: SocketAddr,
    seen: Arc<Seen>,
}

/// What has come in.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    ended: AtomicUsize,
    resets: AtomicUsize,
    calls: Mutex<Vec<(request::Parts, Vec<u8>)>>,
}

impl Multiplex {
    /// A server that takes as many calls at a time as it likes.
    pub(crate) fn serving(
        script: impl Fn(&request::Parts, &[u8]) -> Act + Send + Sync + 'static,
    ) -> Multiplex {
        Multiplex::with(Builder::new(), script)
    }

    /// A server with settings.
    pub(crate) fn with(
        builder: Builder,
        script: impl Fn(&request::Parts, &[u8]) -> Act + Send + Sync + 'static,
    ) -> Multiplex {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Seen>::default();
        let (script, noted): (Script, _) = (Arc::new(script), seen.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(LocalSet::new().run_until(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let mut open = JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    noted.connections.fetch_add(1, Ordering::SeqCst);
                    let (builder, script, seen) = (builder.clone(), script.clone(), noted.clone());
                    open.spawn_local(async move {
                        let mut calls = JoinSet::new();
                        if let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await {
                            while let Some(Ok((request, answer))) = connection.accept().await {
                                let (script, seen) = (script.clone(), seen.clone());
                                calls.spawn_local(serve(request, answer, (script, seen)));
                            }
                        }
                        seen.ended.fetch_add(1, Ordering::SeqCst);
                    });
                }
            }));
        });
        Multiplex { address, seen }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections have come in.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many of them have ended.
    pub(crate) fn ended(&self) -> usize {
        self.seen.ended.load(Ordering::SeqCst)
    }

    /// How many calls were reset by the client.
    pub(crate) fn resets(&self) -> usize {
        self.seen.resets.load(Ordering::SeqCst)
    }

    /// The calls so far, with their bodies.
    pub(crate) fn calls(&self) -> Vec<(request::Parts, Vec<u8>)> {
        self.seen.calls.lock().unwrap().clone()
    }
}

async fn serve(
    request: Request<RecvStream>,
    mut answer: SendResponse<Bytes>,
    (script, seen): (Script, Arc<Seen>),
) {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let Ok(piece) = piece else {
            seen.resets.fetch_add(1, Ordering::SeqCst);
            return;
        };
        let _ = incoming.flow_control().release_capacity(piece.len());
        body.extend_from_slice(&piece);
    }
    let act = script(&head, &body);
    seen.calls.lock().unwrap().push((head, body));
    match act {
        Act::Answer(response) => send(&mut answer, response, None).await,
        Act::Trailed(response, trailers) => send(&mut answer, response, Some(trailers)).await,
        Act::Together(barrier) => {
            barrier.wait().await;
            send(&mut answer, Response::new(b"together".to_vec()), None).await;
        }
        Act::Reset(reason) => answer.send_reset(reason),
        Act::Hold => {
            let reason = std::future::poll_fn(|cx| answer.poll_reset(cx)).await;
            if reason.is_ok() {
                seen.resets.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// Sends as much as the client takes.
async fn send(
    answer: &mut SendResponse<Bytes>,
    response: Response<Vec<u8>>,
    trailers: Option<HeaderMap>,
) {
    let (head, body) = response.into_parts();
    let mut body = Bytes::from(body);
    let ends = body.is_empty() && trailers.is_none();
    let Ok(mut stream) = answer.send_response(Response::from_parts(head, ()), ends) else {
        return;
    };
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else {
            return;
        };
        let piece = body.split_to(room.min(body.len()));
        let last = body.is_empty() && trailers.is_none();
        if stream.send_data(piece, last).is_err() {
            return;
        }
    }
    if let Some(trailers) = trailers {
        let _ = stream.send_trailers(trailers);
    }
}
