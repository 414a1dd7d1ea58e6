//! The accept loop and the connections of the admin listener.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, yield_now};
use tokio::time;

use super::connection_limit::{ConnectionLimit, ConnectionSlot};
use super::live::{Closing, whole};
use super::problem::busy;
use crate::server::admin::{AdminApi, AdminCommand, AdminTokens, LiveStreams};
use dualgauge_net::AcceptBackoff;

/// The timeout for a request head, which also bounds the idle time between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_HEAD: usize = 16 * 1024;
/// The lifetime of a connection. A connection takes no request after it, so that clients that never read their
/// responses do not use up all connections.
const LIFETIME: Duration = Duration::from_secs(60);
/// The time for a request in progress once its connection is to close.
const GRACE: Duration = Duration::from_secs(6);

/// Serves the admin listener until `shutdown` is ready. It then closes idle connections at once, gives requests in
/// progress some seconds, and returns when every connection is closed.
///
/// # Errors
/// Fails if the listener has no address.
pub async fn serve(
    listener: TcpListener,
    control: mpsc::Sender<AdminCommand>,
    tokens: AdminTokens,
    streams: LiveStreams,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let admin = Arc::new(AdminApi::new(address, tokens, control, streams));
    let (open, closing) = Closing::channel();
    let mut connections = JoinSet::new();
    let mut limit = ConnectionLimit::new();
    let mut pause = AcceptBackoff::new("admin");
    let mut shutdown = pin!(shutdown);
    loop {
        let has_capacity = limit.has_capacity();
        // Every branch is cancel-safe: a connection is either still in the backlog or already spawned.
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => report(ended),
            () = limit.changed(), if !has_capacity => {}
            () = pause.wait(), if pause.is_on() => {}
            accepted = listener.accept(), if has_capacity && !pause.is_on() => match accepted {
                Ok((stream, peer)) => {
                    let (admin, slot) = (Arc::clone(&admin), limit.new_slot());
                    let talk = serve_connection(stream, admin, slot.clone(), closing.clone());
                    limit.add(peer.ip(), connections.spawn(talk), slot);
                    // The request may have arrived already: it is read before another connection can displace this
                    // one.
                    yield_now().await;
                }
                Err(error) => pause.begin(&error),
            },
        }
    }
    drop((listener, open));
    while let Some(ended) = connections.join_next().await {
        report(ended);
    }
    Ok(())
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    // A cancelled connection was displaced by another one.
    if let Err(error) = ended
        && !error.is_cancelled()
    {
        tracing::error!(%error, "a connection of the admin listener failed");
    }
}

/// Frees the slot of a connection when it ends, however it ends.
struct Draining(Arc<ConnectionSlot>);

impl Drop for Draining {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A request body that tells its connection's slot when it waits for the client.
struct Awaited {
    body: Incoming,
    slot: Arc<ConnectionSlot>,
}

impl Body for Awaited {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let arrived = Pin::new(&mut self.body).poll_frame(context);
        match arrived.is_pending() {
            true => self.slot.set_waiting(),
            false => self.slot.set_working(),
        }
        arrived
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves one connection from its first request to its last.
async fn serve_connection(
    stream: TcpStream,
    admin: Arc<AdminApi>,
    slot: Arc<ConnectionSlot>,
    mut closing: Closing,
) {
    let slot = Draining(slot);
    // Streams end with the connection, not with the listener only: a stream may begin late in a lifetime.
    let (open, ending) = Closing::channel();
    let service = service_fn(|request: Request<Incoming>| async {
        let answer = match slot.0.begin(request.uri().path()) {
            Ok(()) => {
                let slot = slot.0.clone();
                let mut request = request.map(|body| Awaited { body, slot });
                request.extensions_mut().insert(ending.clone());
                admin.answer(request).await
            }
            Err(_) => {
                let detail = "connection limit of the admin API reached; retry later";
                busy(detail).map(whole)
            }
        };
        slot.0.set_waiting();
        Ok::<_, Infallible>(answer)
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service)
    );
    // The error of a broken connection has no receiver. Cancel-safe: the connection continues below.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = closing.wait() => {}
        () = time::sleep(LIFETIME) => {}
    }
    drop(open);
    connection.as_mut().graceful_shutdown();
    let _ = time::timeout(GRACE, connection).await;
}
