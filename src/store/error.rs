//! Errors of a store. Used by `app`, `server` and `store`.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::store::background::Late;
use crate::store::versioned::Versioned;
use dualgauge_patterns::json::JsonFault;

/// The reason why data cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process owns the folder.
    #[error(
        "another dualgauge process uses the state folder `{}`; stop it, or set a different `rollout.state` for each",
        .0.display()
    )]
    InUse(PathBuf),
    /// The other process of a restart owns the folder at this moment.
    #[error(
        "the state folder `{}` (`rollout.state`) still belongs to the other process of a restart; retry in a second",
        .0.display()
    )]
    NotOwned(PathBuf),
    /// The operating system reports an error.
    #[error("the state folder (`rollout.state`): `{}` cannot be {action}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file system does not respond. A pending write may still happen later.
    #[error("the state folder (`rollout.state`) cannot be used")]
    Late(#[from] Late),
    /// The file was not written by this program, or is damaged.
    #[error(
        "the state folder (`rollout.state`): `{}` is damaged; repair it, or move it away to start without it",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        source: Corruption,
    },
    /// The shared store is unavailable.
    #[error("the shared store at {address} is unavailable")]
    Away {
        /// The address of the store, without a password.
        address: String,
        /// The cause.
        source: Unreachable,
    },
    /// The shared store holds data under our keys that this program did not write.
    #[error(
        "the key `{key}` of the shared store holds {what}; another program or a newer version of this one writes to it"
    )]
    Foreign {
        /// The key.
        key: String,
        /// The data that was found.
        what: &'static str,
    },
    /// The store has lost confirmed data: it was emptied, or restored from an older copy.
    #[error("the store has lost data: it is at revision {found}, and was at {known}")]
    Forgot {
        /// The revision that the store confirmed.
        known: u64,
        /// The revision that the store has now; 0 if it is empty.
        found: u64,
    },
    /// The text exceeds the size limit.
    #[error("a text of {size} bytes is too long for the store; the limit is {longest}")]
    TooLong {
        /// The size of the text in bytes.
        size: usize,
        /// The limit in bytes.
        longest: usize,
    },
    /// The text is not JSON.
    #[error("only JSON can be stored: {0}")]
    InvalidJson(JsonFault),
}

/// The reason why a shared store is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// A call exceeded `rollout.store.timeout`.
    #[error("no response within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// A call failed just before, and the store is not tried again yet.
    #[error("the next attempt follows shortly; last error: {0}")]
    Waiting(String),
    /// The connection failed, or the server reported an error.
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
}

/// The damage of a stored file.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The file is not JSON, or has unexpected members.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// This version does not know the file's format version.
    #[error("the format version is {found}; this program supports version {known}")]
    Version {
        /// The version in the file.
        found: u32,
        /// The version that is supported.
        known: u32,
    },
    /// The revision cannot result from any write.
    #[error("invalid revision {0}")]
    Revision(u64),
    /// The JSON is invalid, or nested too deeply.
    #[error("the contents cannot be parsed: {0}")]
    Text(JsonFault),
    /// The stage is unknown.
    #[error("unknown stage `{0}`")]
    Stage(String),
    /// The percentage is invalid.
    #[error("`{0}` is not a percentage from 0 to 100 in steps of 0.001")]
    Percent(String),
    /// One flag has two overrides.
    #[error("the flag `{0}` has two overrides")]
    Duplicate(String),
}

/// The reason why a text was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another writer was first; contains the current text.
    #[error("another writer was first: the store is at revision {}", .0.revision)]
    Conflict(Versioned),
    /// The store failed. After [`StoreError::Away`], [`StoreError::Late`], or [`StoreError::Io`] at the flush of the
    /// folder, the text may be stored all the same. Repeating the call finds out, and never stores it twice.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Formats an error with all its causes.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
