//! The connection to the server: one, made when it is needed, and every call over it within a time.
//!
//! Laws: a call ends within the timeout, connecting included; a connection on which anything went wrong is not used
//! again; a server that is away is asked again after a pause that grows to [`LONGEST_PAUSE`], and calls in between
//! fail at once.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError};
use tokio::time::{Instant, timeout_at};

use crate::store::error::{Unreachable, chain};
use crate::store::redis::connect::{Connection, Connector};
use crate::telemetry::clock::now;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Short, since a server that is back is to be used within a second.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The line to the server.
pub(super) struct RedisConnection {
    door: Connector,
    timeout: Duration,
    connection: Option<Connection>,
    pause: Option<Backoff>,
    /// So that replicas that lost the same server do not come back in step.
    seed: u64,
}

/// After a failure.
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

    /// Where the server should be; nothing of it is secret.
    pub(super) fn address(&self) -> String {
        self.door.address()
    }

    /// Sends a command and reads its answer. The command must do no harm when it is run twice: a kept connection may
    /// have broken since, before or after the server had read it, and is then replaced at once.
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

    /// The connection is taken out meanwhile, so that one whose answer was not awaited is dropped.
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

/// Twice as long after each failure, and up to a quarter of it shorter.
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
