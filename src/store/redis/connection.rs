//! The connection to the server, opened on demand, with a timeout for every call.
//!
//! Laws: a call ends within the timeout, including the connection setup; a connection that failed is not reused; after
//! a failure the server is retried with a backoff of up to [`LONGEST_PAUSE`], and calls in between fail at once.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError};
use tokio::time::{Instant, timeout_at};

use crate::store::error::{Unreachable, chain};
use crate::store::redis::connect::{Connection, Connector};
use crate::telemetry::clock::now;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The maximum backoff, short so that a recovered server is used within a second.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The connection to the server.
pub(super) struct RedisConnection {
    door: Connector,
    timeout: Duration,
    connection: Option<Connection>,
    pause: Option<Backoff>,
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
    pub(super) fn new(door: Connector, timeout: Duration, seed: u64) -> Self {
        RedisConnection {
            door,
            timeout,
            connection: None,
            pause: None,
            seed,
        }
    }

    /// Returns the address of the server, without secrets.
    pub(super) fn address(&self) -> String {
        self.door.address()
    }

    /// Sends a command and reads its reply. The command must be safe to run twice: if a kept connection broke, before
    /// or after the server read the command, it is replaced and the command is sent again.
    pub(super) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Unreachable> {
        if let Some(pause) = &self.pause
            && now() < pause.until
        {
            return Err(Unreachable::Waiting(pause.error.clone()));
        }
        let answer = timeout_at(now() + self.timeout, Box::pin(self.send(command)));
        let answer = match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Unreachable::Redis(error)),
            Err(_) => Err(Unreachable::Timeout(self.timeout)),
        };
        match &answer {
            Ok(_) => self.pause = None,
            Err(error) => self.rest(chain(error)),
        }
        answer
    }

    /// Sends a command. The connection is taken out meanwhile, so that a cancelled call drops it.
    async fn send<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        if let Some(mut kept) = self.connection.take()
            && let Ok(answer) = kept.ask(command).await
        {
            self.connection = Some(kept);
            return Ok(answer);
        }
        let mut fresh = self.door.open().await?;
        let answer = fresh.ask(command).await?;
        self.connection = Some(fresh);
        Ok(answer)
    }

    fn rest(&mut self, error: String) {
        let failures = self.pause.as_ref().map_or(0, |pause| pause.failures);
        self.pause = Some(Backoff {
            failures: failures.saturating_add(1),
            until: now() + pause_after(failures, self.seed),
            error,
        });
    }
}

/// Returns the backoff: doubled after each failure, and shortened by up to a quarter.
fn pause_after(failures: u32, seed: u64) -> Duration {
    let whole = FIRST_PAUSE
        .saturating_mul(1 << failures.min(10))
        .min(LONGEST_PAUSE);
    let share = seed.rotate_left(failures) % 256;
    whole - whole.mul_f64(share as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pauses_grow_to_their_bound_and_never_vanish(failures in any::<u32>(), seed in any::<u64>()) {
            let pause = pause_after(failures, seed);
            prop_assert!(pause <= LONGEST_PAUSE);
            prop_assert!(pause >= FIRST_PAUSE.mul_f64(0.75));
            prop_assert!(pause_after(failures.max(10), seed) >= LONGEST_PAUSE.mul_f64(0.75));
        }
    }
}
