//! The admin API without its socket: the way to the owner of the state.
//!
//! Used by `admin`, `admin::live`, `admin::response`, `admin::serve` and `admin::views`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time;

use super::live_streams::LiveStreams;
use super::problem::{AdminProblem, unavailable};
use super::token::AdminTokens;
use crate::server::admin::AdminCommand;
use dualgauge_net::run_blocking;

/// The timeout for queueing a command and waiting for its reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of calculations on threads of their own.
const CALCULATIONS: usize = 2;

/// The admin API without its socket.
#[derive(Debug, Clone)]
pub struct AdminApi {
    /// The address of the listener: it decides the accepted hosts, and whether the API is open.
    pub(super) address: SocketAddr,
    /// The tokens of the API; without any, the API is open on a loopback address only.
    pub(super) tokens: AdminTokens,
    /// The command channel to the owner of the state.
    control: mpsc::Sender<AdminCommand>,
    pub(super) streams: LiveStreams,
    calculations: Arc<Semaphore>,
}

impl AdminApi {
    /// Creates the API of a listener at `address`, which sends its commands over `control` and counts `streams`.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        tokens: AdminTokens,
        control: mpsc::Sender<AdminCommand>,
        streams: LiveStreams,
    ) -> AdminApi {
        AdminApi {
            address,
            tokens,
            control,
            streams,
            calculations: Arc::new(Semaphore::new(CALCULATIONS)),
        }
    }

    /// Runs `work` on a thread of its own, when the limit allows it. A requester that has gone does not end the work, so
    /// the work keeps its place until it is done.
    ///
    /// # Errors
    /// Fails if no place is free within the reply timeout, or if the work panics.
    pub(super) async fn calculate<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AdminProblem> {
        let place = self.calculations.clone().acquire_owned();
        let place = time::timeout(REPLY_TIMEOUT, place).await;
        let Ok(Ok(place)) = place else {
            return Err(unavailable(
                "limit of simultaneous route checks reached; retry later",
            ));
        };
        let calculated = run_blocking(place, work).await;
        calculated.map_err(|_| unavailable("the check of the route failed"))
    }

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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_calculation_keeps_its_place_until_it_is_done() {
        let (control, _commands) = mpsc::channel(1);
        let address = "127.0.0.1:9090".parse().unwrap();
        let admin = AdminApi::new(
            address,
            AdminTokens::default(),
            control,
            LiveStreams::default(),
        );
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        for _ in 0..CALCULATIONS {
            let ended = ended.clone();
            let work = admin.calculate(move || ended.lock().unwrap().recv().is_err());
            // The work begins, and its requester goes away.
            assert!(work.now_or_never().is_none());
        }
        let too_many = admin.calculate(|| ());
        let (refused, ()) = tokio::join!(too_many, time::advance(REPLY_TIMEOUT * 2));
        let text = format!("{:?}", refused.unwrap_err());
        assert!(
            text.contains("limit of simultaneous route checks"),
            "{text}"
        );
        drop(end);
        assert_eq!(admin.calculate(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_calculation_that_panics_frees_its_place() {
        let (control, _commands) = mpsc::channel(1);
        let address = "127.0.0.1:9090".parse().unwrap();
        let admin = AdminApi::new(
            address,
            AdminTokens::default(),
            control,
            LiveStreams::default(),
        );
        for _ in 0..=CALCULATIONS {
            assert!(admin.calculate(|| panic!("on purpose")).await.is_err());
        }
        assert_eq!(admin.calculate(|| 7).await.unwrap(), 7);
    }
}
