//! The listener of one worker: accepts connections, and serves them until a drain.
//!
//! Each worker has its own socket on the same address (`SO_REUSEPORT`), so that a connection stays on one thread.
//! Every inherited socket is accepted from, whatever the number of workers, since connections wait in each. Other
//! threads reach a worker through its command channel only.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::unconstrained;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::rustls::ServerConfig;

use super::drain::drain_calls;
use super::http2;
use super::tls_handshake;
use super::worker_command::{WorkerCommand, WorkerConfig};
use crate::gateway::{ConnectionGuard, HeaderReadTime, RequestOrigin, Worker, handle};
use dualgauge_model::hosts::Reach;
use dualgauge_model::plan::Limits;
use dualgauge_net::{
    AcceptBackoff, DisconnectWatch, FlushBeforeError, IncomingBody, Inspected, Inspection,
    Interims, SharedTimer, Socket as ClientSocket, UnreadBody, WriteControl, WriteTimeout,
    proxy_protocol,
};
use dualgauge_transport::proxy_protocol::ProxyProtocolUse;
use dualgauge_transport::wire::HeadLimits as WireLimits;

/// The interval between checks for idle upstream connections.
const TIDY: Duration = Duration::from_secs(1);

/// The number of waiting connections of a listener that are accepted when it closes.
const BACKLOG: usize = 1024;

/// The listening sockets of a worker.
#[derive(Debug)]
pub struct Listeners {
    /// The sockets; each has its own backlog.
    pub listeners: Vec<std::net::TcpListener>,
    /// The TLS configuration; without it connections are plain.
    pub tls: Option<Arc<ServerConfig>>,
}

/// An accepted connection before the first read.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    reach: Reach,
    tls: Option<Arc<ServerConfig>>,
}

/// The shutdown state that a connection observes.
#[derive(Debug, Clone)]
struct ShutdownSignal {
    /// True if each response is to be the last of its connection.
    is_closing: Rc<Cell<bool>>,
    /// A channel whose sender is dropped when idle connections are to close.
    drains: watch::Receiver<()>,
}

/// Accepts the next connection of any listener, in round-robin order.
async fn accept(
    listeners: &[(TcpListener, Reach)],
    turn: &Cell<usize>,
) -> io::Result<(TcpStream, SocketAddr, Reach)> {
    poll_fn(|context| {
        let (before, after) = listeners.split_at(turn.get() % listeners.len().max(1));
        for (step, (listener, reach)) in after.iter().chain(before).enumerate() {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                turn.set(turn.get() % listeners.len() + step + 1);
                return Poll::Ready(accepted.map(|(stream, peer)| (stream, peer, *reach)));
            }
        }
        Poll::Pending
    })
    .await
}

/// Serves until a drain is requested, and returns when every connection has ended or the drain limit has passed.
///
/// # Errors
/// Fails if the listener cannot be used at all.
pub async fn run(
    worker: Rc<Worker>,
    entrance: Listeners,
    commands: &mut mpsc::Receiver<WorkerCommand>,
) -> io::Result<()> {
    let Listeners { listeners, mut tls } = entrance;
    let listeners = listeners.into_iter().map(|listener| {
        let reach = Reach::from_address(listener.local_addr()?.ip());
        Ok((TcpListener::from_std(listener)?, reach))
    });
    let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
    let turn = Cell::new(0);
    let (drain, drains) = watch::channel(());
    let ending = ShutdownSignal {
        is_closing: Rc::default(),
        drains,
    };
    let mut pause = AcceptBackoff::new("calls");
    let mut tidy = interval(TIDY);
    tidy.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Every branch is cancel-safe: accept, recv, the pause and tick lose nothing when another one wins.
        tokio::select! {
            accepted = accept(&listeners, &turn), if !pause.is_on() => match accepted {
                Ok((stream, peer, reach)) => {
                    let tls = tls.clone();
                    admit(&worker, Accepted { stream, peer, reach, tls }, ending.clone());
                }
                Err(error) => pause.begin(&error),
            },
            () = pause.wait(), if pause.is_on() => {}
            command = commands.recv() => match command {
                Some(WorkerCommand::Install(next, done)) => {
                    let WorkerConfig { plan, links, tls: new_tls, generation } = *next;
                    worker.install(plan, &links, generation);
                    tls = new_tls;
                    let _ = done.send(());
                }
                Some(WorkerCommand::Snapshot(reply)) => drop(reply.send(worker.snapshot())),
                Some(WorkerCommand::Mismatches(detail, reply)) => {
                    drop(reply.send(worker.mismatches(detail)));
                }
                Some(WorkerCommand::ForgetMismatches(routes, reply)) => {
                    drop(reply.send(worker.forget_mismatches(&routes)));
                }
                // Connections that wait stay for the next process.
                Some(WorkerCommand::Retire) => {
                    drop(listeners);
                    break;
                }
                Some(WorkerCommand::Drain) | None => {
                    admit_waiting(&worker, listeners, tls.as_ref(), &ending);
                    break;
                }
            },
            _ = tidy.tick() => worker.evict_idle(),
        }
    }
    // Connections in use get time to end with a response that announces the close.
    ending.is_closing.set(true);
    drain_calls(&worker, commands, drain).await;
    Ok(())
}

/// Closes the listeners, after accepting the connections that wait: closing would reset them, with the calls that their
/// clients have already sent.
fn admit_waiting(
    worker: &Rc<Worker>,
    listeners: Vec<(TcpListener, Reach)>,
    tls: Option<&Arc<ServerConfig>>,
    ending: &ShutdownSignal,
) {
    for (listener, reach) in listeners {
        let Ok(listener) = listener.into_std() else {
            continue;
        };
        for (stream, peer) in waiting(|| listener.accept()) {
            let stream = stream
                .set_nonblocking(true)
                .and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                let tls = tls.cloned();
                admit(
                    worker,
                    Accepted {
                        stream,
                        peer,
                        reach,
                        tls,
                    },
                    ending.clone(),
                );
            }
        }
    }
}

/// Returns the connections that wait at a listener which does not block, at most [`BACKLOG`] of them.
fn waiting<T>(mut accept: impl FnMut() -> io::Result<T>) -> impl Iterator<Item = T> {
    let attempts = (0..BACKLOG).map_while(move |_| match accept() {
        Ok(accepted) => Some(Some(accepted)),
        // This client gave up while it waited.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Some(None),
        // No connection waits, or none can be opened.
        Err(_) => None,
    });
    attempts.flatten()
}

fn admit(worker: &Rc<Worker>, accepted: Accepted, ending: ShutdownSignal) {
    // The client behind a PROXY header is not known yet.
    let peer = match worker.runtime_plan().plan.proxy_protocol {
        ProxyProtocolUse::Off => worker.peer(accepted.peer.ip()),
        ProxyProtocolUse::Required => None,
    };
    if !worker.has_capacity(peer.as_deref()) {
        worker.count(|shard| shard.refused_connection());
        return;
    }
    let connected = worker.count_connection(peer);
    let served = serve(worker.clone(), accepted, connected, ending);
    worker.tasks().start(served);
}

/// Reads the PROXY header and completes the handshake; returns `None` if that fails or takes too long.
async fn set_up(
    worker: &Worker,
    accepted: Accepted,
    connected: &mut ConnectionGuard,
    limit: Duration,
) -> Option<(ClientSocket, RequestOrigin)> {
    let Accepted {
        mut stream,
        peer,
        reach,
        tls,
    } = accepted;
    // A small response is sent at once; Nagle's algorithm would only delay it.
    let _ = stream.set_nodelay(true);
    let ready = async {
        let plan = worker.runtime_plan().plan.clone();
        let client = match plan.proxy_protocol {
            ProxyProtocolUse::Off => peer.ip(),
            ProxyProtocolUse::Required => {
                if !plan.rollout.clients.hops().trusts(peer.ip()) {
                    return Err(io::Error::other("the peer is not a trusted proxy"));
                }
                proxy_protocol::client_address(&mut stream, peer.ip()).await?
            }
        };
        let socket = tls_handshake::handshake(stream, tls.as_ref()).await?;
        io::Result::Ok((socket, client))
    };
    let ready = timeout(limit, ready).await;
    let Ok(Ok((socket, client))) = ready else {
        if let Ok(Err(error)) = ready {
            tracing::debug!(%peer, %error, "cannot set up a client connection");
        }
        worker.count(|shard| shard.failed_handshake());
        return None;
    };
    let request_origin = match &socket {
        ClientSocket::Plain(_) | ClientSocket::Deferring(_) => {
            RequestOrigin::from_peer(client, reach)
        }
        ClientSocket::Secured(_) => {
            RequestOrigin::from_tls_peer(client, reach, tls_handshake::subject(&socket))
        }
    };
    let counted = connected.count(request_origin);
    if counted.is_none() {
        worker.count(|shard| shard.refused_connection());
    }
    Some((socket, counted?))
}

/// Wraps a client's socket in the layers that [`super`] shows, so that hyper reads only what the inspector passes on.
fn inspect(
    socket: ClientSocket,
    inspection: Inspection,
    interims: Interims,
    limits: &Limits,
) -> DisconnectWatch<WriteTimeout<ClientSocket>> {
    let wire = WireLimits {
        head: limits.head,
        target: limits.target,
    };
    let write_control = socket.write_control();
    let paced = WriteTimeout::new(socket, limits.write_timeout, write_control);
    let inspected = Inspected::new(paced, wire, inspection).with_interims(interims);
    DisconnectWatch::new(inspected.head_within(limits.header_timeout))
}

/// Serves one connection until it ends or has drained.
async fn serve(
    worker: Rc<Worker>,
    accepted: Accepted,
    mut connected: ConnectionGuard,
    ending: ShutdownSignal,
) {
    let (is_closing, mut drains) = (ending.is_closing, ending.drains);
    let limits = worker.runtime_plan().plan.limits;
    // A handshake dropped by a drain has carried no call yet. Its future, and that of HTTP/2, are boxed: inline, they
    // would take memory for as long as an HTTP/1.1 connection is open.
    let ready = tokio::select! {
        ready = Box::pin(set_up(&worker, accepted, &mut connected, limits.header_timeout)) => ready,
        _ = drains.changed() => return,
    };
    let Some((socket, origin)) = ready else {
        return;
    };
    if tls_handshake::is_http2(&socket) {
        return Box::pin(http2::serve(worker, socket, origin, drains)).await;
    }
    let socket = socket.coalescing(worker.tasks().write_coalescer());
    let write_control = socket.write_control();
    let inspection = Inspection::with_write_control(write_control.clone());
    let interims = Interims::default();
    let origin = origin.with_interims(interims.clone());
    let io = inspect(socket, inspection.clone(), interims.clone(), &limits);
    let service = service_fn(|mut request: Request<Incoming>| {
        let begun = inspection.begin();
        let (number, head_time) = (begun.number, begun.head_time);
        if !head_time.is_zero() {
            request.extensions_mut().insert(HeaderReadTime(head_time));
        }
        let request_origin = origin
            .with_violation(begun.violation)
            .with_header_case(begun.header_case)
            .with_sent_target(begun.target);
        let (inspection, is_closing) = (inspection.clone(), is_closing.clone());
        let interims = interims.clone();
        let mut request = IncomingBody::from_request(request, begun.inline_body, limits.body_rate);
        let unread = UnreadBody::new(request.body_mut());
        handle(worker.clone(), request, request_origin).map(move |mut response| {
            let status = response.status();
            interims.clear();
            inspection.record_status(number, status);
            inspection.record_response_case(response.body_mut().take_header_case());
            let is_last = is_closing.get() || unread.is_left(&inspection, number);
            if is_last && status != StatusCode::SWITCHING_PROTOCOLS {
                let close = const { HeaderValue::from_static("close") };
                response.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, Infallible>(response.map(|body| FlushBeforeError::new(body, inspection)))
        })
    });
    let builder = builder(write_control, limits.idle_timeout);
    let mut connection = pin!(builder.serve_connection(io, service).with_upgrades());
    let mut served = |cx: &mut Context<'_>| connection.as_mut().poll(cx).map(drop);
    if poll_until_drained(&mut served, drains).await {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Returns hyper's settings for an HTTP/1.1 connection.
fn builder(write_control: WriteControl, idle_timeout: Duration) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(SharedTimer::new(write_control, idle_timeout))
        // From the last response to the end of the next head; the inspector limits the time of the head itself.
        .header_read_timeout(idle_timeout)
        // While a call is served, the disconnect watch reads the socket instead of hyper.
        .half_close(true);
    builder
}

/// Polls a connection until it ends or a drain begins; returns true if it must be polled further.
async fn poll_until_drained(
    mut served: impl FnMut(&mut Context<'_>) -> Poll<()>,
    mut drains: watch::Receiver<()>,
) -> bool {
    let look = drains.clone();
    let mut begins = pin!(unconstrained(drains.changed()));
    let mut asked = false;
    poll_fn(|cx| {
        if served(cx).is_ready() {
            return Poll::Ready(false);
        }
        // After the first poll the task is registered for a wake-up, so a cheap check is enough.
        if asked && look.has_changed().is_ok() {
            return Poll::Pending;
        }
        asked = true;
        begins.as_mut().poll(cx).map(|_| true)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_client_that_gave_up_while_it_waited_hides_no_other_one() {
        let mut results = [
            Ok(1),
            Err(ErrorKind::ConnectionAborted),
            Ok(2),
            Err(ErrorKind::WouldBlock),
            Ok(3),
        ]
        .into_iter();
        let accepted = waiting(|| results.next().unwrap().map_err(io::Error::from));
        assert_eq!(accepted.collect::<Vec<_>>(), [1, 2]);
        let without_end = waiting(|| Ok(1));
        assert_eq!(without_end.count(), BACKLOG);
    }
}
