//! The connection to the server, opened on demand, with a timeout for every call.
//!
//! Laws: a call ends within the timeout, including the connection setup; a connection that failed is not reused; after
//! a failure the server is retried with a backoff of up to [`MAX_BACKOFF`], and calls in between fail at once.
//!
//! Used by `redis`.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError};
use tokio::time::{Instant, timeout_at};

use crate::store::error::{Unreachable, chain};
use crate::store::redis::connect::{Connection, Connector};
use crate::telemetry::clock::now;

const FIRST_BACKOFF: Duration = Duration::from_millis(50);
/// The maximum backoff, short so that a recovered server is used within a second.
const MAX_BACKOFF: Duration = Duration::from_millis(500);

/// The connection to the server.
pub(super) struct RedisConnection {
    connector: Connector,
    timeout: Duration,
    connection: Option<Connection>,
    backoff: Option<Backoff>,
    /// Desynchronizes the retries of replicas that lost the same server.
    seed: u64,
}

/// The backoff after a failure.
struct Backoff {
    failures: u32,
    until: Instant,
    error: String,
}

impl RedisConnection {
    pub(super) fn new(connector: Connector, timeout: Duration, seed: u64) -> Self {
        RedisConnection {
            connector,
            timeout,
            connection: None,
            backoff: None,
            seed,
        }
    }

    /// Returns the address of the server, without secrets.
    pub(super) fn address(&self) -> String {
        self.connector.address()
    }

    /// Sends a command and reads its reply. The command must be safe to run twice: if an existing connection broke,
    /// before or after the server read the command, it is replaced and the command is sent again.
    pub(super) async fn call<T: FromRedisValue>(
        &mut self,
        command: &Cmd,
    ) -> Result<T, Unreachable> {
        if let Some(backoff) = &self.backoff
            && now() < backoff.until
        {
            return Err(Unreachable::Waiting(backoff.error.clone()));
        }
        let reply = timeout_at(now() + self.timeout, Box::pin(self.send(command)));
        let reply = match reply.await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(Unreachable::Redis(error)),
            Err(_) => Err(Unreachable::Timeout(self.timeout)),
        };
        match &reply {
            Ok(_) => self.backoff = None,
            Err(error) => self.back_off(chain(error)),
        }
        reply
    }

    /// Sends a command. The connection is taken out meanwhile, so that a cancelled call drops it.
    async fn send<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        if let Some(mut existing) = self.connection.take()
            && let Ok(reply) = existing.call(command).await
        {
            self.connection = Some(existing);
            return Ok(reply);
        }
        let mut fresh = self.connector.open().await?;
        let reply = fresh.call(command).await?;
        self.connection = Some(fresh);
        Ok(reply)
    }

    fn back_off(&mut self, error: String) {
        let failures = self.backoff.as_ref().map_or(0, |backoff| backoff.failures);
        self.backoff = Some(Backoff {
            failures: failures.saturating_add(1),
            until: now() + backoff_after(failures, self.seed),
            error,
        });
    }
}

/// Returns the backoff: doubled after each failure, and shortened by up to a quarter.
fn backoff_after(failures: u32, seed: u64) -> Duration {
    let whole = FIRST_BACKOFF
        .saturating_mul(1 << failures.min(10))
        .min(MAX_BACKOFF);
    let share = seed.rotate_left(failures) % 256;
    whole - whole.mul_f64(share as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_backoff_grows_to_its_maximum_and_is_never_zero(failures in any::<u32>(), seed in any::<u64>()) {
            let backoff = backoff_after(failures, seed);
            prop_assert!(backoff <= MAX_BACKOFF);
            prop_assert!(backoff >= FIRST_BACKOFF.mul_f64(0.75));
            prop_assert!(backoff_after(failures.max(10), seed) >= MAX_BACKOFF.mul_f64(0.75));
        }
    }
}
