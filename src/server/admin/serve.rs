//! The admin listener on its socket.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time;

use crate::server::admin::{Admin, Command, Tokens};

/// One more waits in the backlog of the listener.
const MAX_CONNECTIONS: usize = 64;
/// For a whole request head, and so also for the pause between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_HEAD: usize = 16 * 1024;
/// After this a connection takes no further request, so that callers who never read their answers do not use up
/// all connections.
const LIFETIME: Duration = Duration::from_secs(60);
/// How long a request under way may take once its connection is to end.
const GRACE: Duration = Duration::from_secs(6);
/// The pause after the system has refused a connection, as it does when it has no file descriptors left.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Never carries a value: that its sender is gone is the message.
type Closing = watch::Receiver<()>;

/// Serves the admin listener until `shutdown` is ready; then ends idle connections at once, gives requests under
/// way some seconds, and returns when every connection is closed.
///
/// # Errors
/// When the listener has no address.
pub async fn serve(
    listener: TcpListener,
    (control, tokens): (mpsc::Sender<Command>, Tokens),
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let admin = Arc::new(Admin {
        address,
        tokens,
        control,
    });
    let (open, closing) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        // Every branch is cancel-safe: a connection is either still in the backlog or already spawned.
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => report(ended),
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&admin), closing.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin listener could not accept a connection");
                    time::sleep(REFUSED_PAUSE).await;
                }
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
    if let Err(error) = ended {
        tracing::error!(%error, "a connection of the admin listener failed");
    }
}

/// One connection, from its first request to its last.
async fn converse(stream: TcpStream, admin: Arc<Admin>, mut closing: Closing) {
    let service = service_fn(|request| async { Ok::<_, Infallible>(admin.answer(request).await) });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service)
    );
    // A connection that breaks has nobody left to tell. Cancel-safe: the connection goes on below.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.changed() => {}
        () = time::sleep(LIFETIME) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = time::timeout(GRACE, connection).await;
}
