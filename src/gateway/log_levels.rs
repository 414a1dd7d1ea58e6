//! The log levels that clients with sessions set by `logging/setLevel`, for stateless servers.
//!
//! All workers share them: a client's calls may come over several connections. Keys are keyed hashes, never the session
//! id itself. Law: the number of entries is bounded; a forgotten session gets no log messages until it sets its level
//! again.
//!
//! Used by `link_call`, `rpc`, `shared_state` and `worker`.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::cancellation::CancelScope;
use dualgauge_model::mcp::{LogLevel, SessionLevels};

/// The maximum number of sessions with a level.
const SESSIONS: usize = 16 * 1024;

/// The log levels of sessions.
#[derive(Debug)]
pub struct LogLevels {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    /// True once a level was set: most processes never take the lock.
    is_used: AtomicBool,
    levels: Mutex<SessionLevels<[u64; 2]>>,
}

impl Default for LogLevels {
    fn default() -> LogLevels {
        LogLevels {
            hashers: [RandomState::new(), RandomState::new()],
            is_used: AtomicBool::new(false),
            levels: Mutex::new(SessionLevels::new(SESSIONS)),
        }
    }
}

impl LogLevels {
    /// Sets the level of a session.
    pub(super) fn set(&self, session: CancelScope<'_>, level: LogLevel) {
        let key = self.key(session);
        // The table is consistent even after a panic.
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.set(key, level);
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Returns the level of a session, if it was set.
    pub(super) fn get(&self, session: CancelScope<'_>) -> Option<LogLevel> {
        if !self.is_used.load(Ordering::Relaxed) {
            return None;
        }
        let key = self.key(session);
        let levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.get(&key)
    }

    fn key(&self, session: CancelScope<'_>) -> [u64; 2] {
        [
            self.hashers[0].hash_one(session),
            self.hashers[1].hash_one(session),
        ]
    }
}
