//! The admin API without its socket: the way to the owner of the state.
//!
//! Used by `admin`, `admin::live`, `admin::response`, `admin::serve` and `admin::views`.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time;

use super::problem::{AdminProblem, unavailable};
use super::token::AdminTokens;
use crate::server::admin::AdminCommand;

/// The timeout for queueing a command and waiting for its reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The admin API without its socket.
#[derive(Debug, Clone)]
pub struct AdminApi {
    /// The address of the listener: it decides the accepted hosts, and whether the API is open.
    pub address: SocketAddr,
    /// The tokens of the API; without any, the API is open on a loopback address only.
    pub tokens: AdminTokens,
    /// The command channel to the owner of the state.
    pub control: mpsc::Sender<AdminCommand>,
}

impl AdminApi {
    /// Sends a command to the owner of the state, and waits for the reply.
    pub(super) async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> AdminCommand,
    ) -> Result<T, AdminProblem> {
        let (reply, answer) = oneshot::channel();
        let exchange = async {
            self.control.send(command(reply)).await.ok()?;
            answer.await.ok()
        };
        match time::timeout(REPLY_TIMEOUT, exchange).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(unavailable("no response: the process is shutting down")),
            Err(_) => Err(unavailable(
                "no response within 5 s; a requested change may still be applied, so read it again",
            )),
        }
    }
}
