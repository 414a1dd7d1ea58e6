//! A connection of HTTP/1.1: it serves one call at a time, and is kept for others.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;

use http::{Response, StatusCode};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::again::Heads;
use super::answering::{Answering, Patience};
use super::error::UpstreamError;
use super::line::{Left, Unanswered};
use super::tape::Tape;
use super::{Bell, Body, Haste, Inflow, Outgoing, Socket, Tasks, Watched};
use crate::domain::wire::Spelling;
use crate::telemetry::clock;

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    patience: Patience,
    tape: Tape,
    bell: Bell,
    haste: Haste,
    /// How the names of the last answer were written, where that was noted.
    spelling: Option<Spelling>,
    opened: Instant,
    _alive: Alive,
}

/// Keeps a connection open: dropped, the connection's task ends at once, whatever it waits for, and with it
/// the body that it was sending.
type Alive = oneshot::Sender<Infallible>;

/// A connection that waits for its next call.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) connection: Box<Connection>,
    pub(super) since: Instant,
}

/// Counts an open connection for as long as somebody serves it.
#[derive(Debug)]
pub(super) struct Open(Rc<Cell<usize>>);

impl Open {
    pub(super) fn count(open: Rc<Cell<usize>>) -> Open {
        open.set(open.get() + 1);
        Open(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Connection {
    /// A connection over a socket that was just opened.
    pub(super) async fn over(
        socket: Socket,
        open: Open,
        tasks: &Tasks,
    ) -> Result<Box<Connection>, UpstreamError> {
        let builder = Builder::new();
        let (patience, tape) = (Patience::new(), Tape::default());
        let socket = socket.deferring(tasks.outbox());
        let haste = socket.haste();
        let answering = Answering::new(socket, (patience.clone(), tape.clone()));
        let watched = Watched::new(TokioIo::new(answering));
        let handshake = builder.handshake(watched).await;
        let (sender, connection) = handshake.map_err(UpstreamError::Broken)?;
        let (alive, mut ended) = oneshot::channel();
        let bell = Bell::default();
        let (ringer, mut connection) = (bell.ringer(), connection.with_upgrades());
        let served = poll_fn(move |cx| ringer.poll(Pin::new(&mut connection), cx));
        tasks.start(async move {
            let _open = open;
            // How it ends is told to the call that uses it; between calls nobody needs to know. Dropped by
            // the other branch, the connection is closed where it stands.
            tokio::select! {
                biased;
                _ = served => {}
                _ = &mut ended => {}
            }
        });
        Ok(Box::new(Connection {
            sender,
            patience,
            tape,
            bell,
            haste,
            spelling: None,
            opened: clock::now(),
            _alive: alive,
        }))
    }

    pub(super) fn opened(&self) -> Instant {
        self.opened
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether it takes another call. Its task may not have run since the last answer's end.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.sender.is_ready() || self.sender.ready().await.is_ok()
    }

    /// Sends a call with such heads, and waits for the head of its answer.
    pub(super) async fn offer(
        &mut self,
        outgoing: Outgoing,
        heads: Heads<'_>,
    ) -> Result<Box<Response<Inflow>>, Box<Unanswered>> {
        self.patience.begin();
        self.tape.begin(&outgoing.head.method, heads);
        let answered = self.sender.try_send_request(outgoing.into()).await;
        self.patience.end();
        match answered {
            Ok(answer) => {
                self.spelling = self.tape.stop();
                if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                    // Whoever copies bytes flushes once, and takes them for sent.
                    self.haste.begin();
                }
                // From here to the client, only its place is handed on.
                let whole = self.tape.take_whole();
                Ok(Box::new(Inflow::of_answer(answer, Some(&self.bell), whole)))
            }
            Err(mut failed) => {
                let taken = || Left::Taken(self.tape.recorded());
                let left = failed.take_message().map_or_else(taken, Left::Unsent);
                let error = failed.into_error();
                Err(Box::new(Unanswered { error, left }))
            }
        }
    }

    /// How the names of the answer were written, where that was noted.
    pub(super) fn take_spelling(&mut self) -> Option<Spelling> {
        self.spelling.take()
    }

    /// The bytes of the next call, which has no body, are kept in case that it gets no answer.
    pub(super) fn record(&self) {
        self.tape.record();
    }

    /// In place of the next call, these bytes are sent.
    pub(super) fn play(&self, bytes: Vec<u8>) {
        self.tape.play(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http::Request;
    use http::header::{CONNECTION, HOST, UPGRADE};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::LocalSet;

    use super::*;

    /// Both ends of a connection that has changed its protocol.
    async fn tunnel(tasks: &Tasks) -> (hyper::upgrade::Upgraded, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await;
        let mut far = listener.accept().await.unwrap().0;
        let (socket, open) = (Socket::Plain(near.unwrap()), Open::count(Rc::default()));
        let mut connection = Connection::over(socket, open, tasks).await.unwrap();
        let request = Request::get("/")
            .header(HOST, "a.example")
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "chat")
            .body(Body::empty())
            .unwrap();
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n";
        let answers = async {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(far.read_u8().await.unwrap());
            }
            far.write_all(answer).await.unwrap();
        };
        let (offered, ()) = tokio::join!(connection.offer(request.into(), Heads::Made), answers);
        (hyper::upgrade::on(*offered.unwrap()).await.unwrap(), far)
    }

    #[tokio::test]
    async fn what_goes_into_a_tunnel_waits_for_no_turn() {
        LocalSet::new()
            .run_until(async {
                let tasks = Tasks::default();
                let (near, far) = tunnel(&tasks).await;
                let mut near = TokioIo::new(near);
                near.write_all(b"now").await.unwrap();
                near.flush().await.unwrap();
                // The system is asked at once: no other task has had its turn, which could have sent it.
                let mut found = [0; 8];
                let count = far.into_std().unwrap().read(&mut found);
                assert_eq!(count.unwrap(), 3);
                drop(near);
                tasks.idle().await;
            })
            .await;
    }
}
