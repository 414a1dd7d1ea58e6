//! One HTTP exchange on a connection of its own, for commands that ask a running server.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::upstream::Connector;

/// The way to send requests of one connection.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// Why there was no exchange.
#[derive(Debug)]
pub(super) enum ConnectionFault {
    /// No connection, or no runtime to make one.
    Unreachable(io::Error),
    /// What answered speaks no HTTP.
    Broken(hyper::Error),
}

/// Runs what asks a server to its end; nothing where that takes longer than `limit`.
pub(super) fn within<T>(limit: Duration, asking: impl Future<Output = T>) -> io::Result<Option<T>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let told = runtime.block_on(async { timeout(limit, asking).await.ok() });
    // A name that is still being resolved is not waited for.
    runtime.shutdown_background();
    Ok(told)
}

/// Where a server listens: the port is that of its scheme where the authority names none.
pub(super) fn address(authority: &str, usual: u16) -> String {
    match authority.rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => authority.to_owned(),
        Some(_) | None => format!("{authority}:{usual}"),
    }
}

/// Connects, and ends the connection when the exchange, which owns its sender, is over.
pub(super) async fn exchange<T>(
    connector: &Connector,
    exchange: impl AsyncFnOnce(Sender) -> T,
) -> Result<T, ConnectionFault> {
    let stream = connector.connect().await;
    let stream = stream.map_err(ConnectionFault::Unreachable)?;
    let connected = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = connected.map_err(ConnectionFault::Broken)?;
    let (told, _) = future::join(exchange(sender), connection).await;
    Ok(told)
}
