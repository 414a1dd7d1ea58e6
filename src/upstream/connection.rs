//! A connection of HTTP/1.1: it serves one call at a time, and is kept for others.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Context;

use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use tokio::time::Instant;

use super::again::Heads;
use super::answering::{Answering, Patience};
use super::driven::Driver;
use super::error::UpstreamError;
use super::line::{Left, Unanswered};
use super::tape::Tape;
use super::{Body, Inflow, Outgoing, Reins, Socket, Tasks, Watched, placed};
use crate::domain::wire::Spelling;
use crate::telemetry::clock;

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    patience: Patience,
    tape: Tape,
    driver: Driver,
    reins: Reins,
    /// How the names of the last answer were written, where that was noted.
    spelling: Option<Spelling>,
    opened: Instant,
    _alive: Alive,
}

/// How long a body may be that a system takes at once, or nearly so, in bytes.
const AT_ONCE: u64 = 64 * 1024;

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
        let mut builder = Builder::new();
        // White space before a colon is removed (RFC 9112 §5.1).
        builder.allow_spaces_after_header_name_in_responses(true);
        let (patience, tape) = (Patience::new(), Tape::default());
        let socket = socket.deferring(tasks.outbox());
        let reins = socket.reins();
        let answering = Answering::new(socket, (patience.clone(), tape.clone()), tasks.room());
        let watched = Watched::new(TokioIo::new(answering));
        let handshake = builder.handshake(watched).await;
        let (sender, connection) = handshake.map_err(UpstreamError::Broken)?;
        let (alive, mut ended) = oneshot::channel();
        let driver = Driver::of(connection.with_upgrades().map(drop));
        let driven = driver.clone();
        tasks.start(async move {
            let _open = open;
            // How it ends is told to the call that uses it; between calls nobody needs to know. Dropped by
            // the other branch, the connection is closed where it stands.
            tokio::select! {
                biased;
                () = poll_fn(|cx| driven.poll_in_task(cx)) => {}
                _ = &mut ended => driven.ends(),
            }
        });
        Ok(Box::new(Connection {
            sender,
            patience,
            tape,
            driver,
            reins,
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
        let answered = self.asked(outgoing).await;
        self.patience.end();
        match answered {
            Ok(answer) => {
                self.spelling = self.tape.stop();
                if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                    // Whoever copies bytes flushes once, and takes them for sent.
                    self.reins.hasten();
                    self.rests();
                }
                Ok(answer)
            }
            Err(mut failed) => {
                let taken = || Left::Taken(self.tape.recorded());
                let left = failed.take_message().map_or_else(taken, Left::Unsent);
                let error = failed.into_error();
                Err(Box::new(Unanswered { error, left }))
            }
        }
    }

    /// Sends a request, and polls the connection until its answer is there, unless there is much to send, or the client still
    /// sends: that goes on while nobody asks for more of the answer.
    async fn asked(
        &mut self,
        outgoing: Outgoing,
    ) -> Result<Box<Response<Inflow>>, Box<TrySendError<Request<Body>>>> {
        let (driver, tape) = (&self.driver, &self.tape);
        // From here to the client, only its place is handed on.
        let read = |answer, driver| placed(|| Inflow::of_answer(answer, driver, tape.take_whole()));
        if outgoing.body.is_streamed() || outgoing.body.size_hint().lower() > AT_ONCE {
            let mut sent = pin!(self.sender.try_send_request(outgoing.into()));
            let answered = poll_fn(|cx| {
                tape.wakes(cx);
                sent.as_mut().poll(cx)
            });
            let answered = answered.await;
            return answered.map(|answer| read(answer, None)).map_err(Box::new);
        }
        driver.hushes();
        let mut sent = pin!(unconstrained(self.sender.try_send_request(outgoing.into())));
        let mut poll = |own: &mut Context<'_>| {
            let answered = sent.as_mut().poll(own);
            answered.map(|answered| {
                answered
                    .map(|answer| read(answer, Some(driver)))
                    .map_err(Box::new)
            })
        };
        poll_fn(|cx| driver.poll_asked(cx, &mut poll)).await
    }

    /// Has no call now, or none that polls it.
    pub(super) fn rests(&self) {
        self.driver.leaves_to_task();
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
