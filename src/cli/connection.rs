//! One HTTP exchange on a connection of its own, for commands that ask a running server.
//!
//! Used by `admin`, `demo::clients` and `import::discover`.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::runtime::Builder;
use tokio::time::timeout;

use dualgauge_net::Connector;

/// The sender of requests on one connection.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// The reason why an exchange failed.
#[derive(Debug)]
pub(super) enum ConnectionFault {
    /// The connection failed, or there is no runtime.
    Unreachable(io::Error),
    /// The response is not valid HTTP.
    Broken(hyper::Error),
}

/// Runs a future to its end; returns `None` if it takes longer than `limit`.
pub(super) fn within<T>(limit: Duration, asking: impl Future<Output = T>) -> io::Result<Option<T>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async { timeout(limit, asking).await.ok() });
    // A pending name resolution is abandoned.
    runtime.shutdown_background();
    Ok(outcome)
}

/// Returns the address of a server: with the default port of the scheme if the authority names none.
pub(super) fn address(authority: &str, usual: u16) -> String {
    match authority.rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => authority.to_owned(),
        Some(_) | None => format!("{authority}:{usual}"),
    }
}

/// Connects, and closes the connection after the exchange, which owns its sender.
pub(super) async fn exchange<T>(
    connector: &Connector,
    exchange: impl AsyncFnOnce(Sender) -> T,
) -> Result<T, ConnectionFault> {
    let stream = connector.connect().await;
    let stream = stream.map_err(ConnectionFault::Unreachable)?;
    let connected = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = connected.map_err(ConnectionFault::Broken)?;
    let (outcome, _) = future::join(exchange(sender), connection).await;
    Ok(outcome)
}
