//! Why something cannot be read or stored.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::json::JsonFault;
use crate::store::background::Late;
use crate::store::state::Versioned;

/// Why something cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process owns the folder.
    #[error(
        "the state folder `{}` is in use by another process; give each its own with `rollout.state`",
        .0.display()
    )]
    InUse(PathBuf),
    /// Another process of the same restart owns the folder at this moment.
    #[error(
        "the state folder `{}` (`rollout.state`) is with the other process of a restart; try again in a second",
        .0.display()
    )]
    Elsewhere(PathBuf),
    /// The system refuses.
    #[error("the state folder (`rollout.state`): `{}` cannot be {action}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried with it.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The file system does not answer. What was to be written may be written later.
    #[error("the state folder (`rollout.state`) cannot be used")]
    Late(#[from] Late),
    /// The file is not what this program writes.
    #[error(
        "the state folder (`rollout.state`): `{}` is damaged; mend it, or move it away to begin without it",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Corruption,
    },
    /// The shared store cannot be asked.
    #[error("the shared store at {address} is away")]
    Away {
        /// Where it should be; never with a password.
        address: String,
        /// What was noticed.
        source: Unreachable,
    },
    /// The shared store holds under our keys what this program does not write.
    #[error(
        "the shared store holds under `{key}` {what}; another program writes there, or a newer version of this one"
    )]
    Foreign {
        /// The key.
        key: String,
        /// What was found.
        what: &'static str,
    },
    /// The store came back without what it had confirmed: emptied, or from an older copy.
    #[error("the store has forgotten: it is at revision {found}, and was at {known}")]
    Forgot {
        /// The revision that it has confirmed.
        known: u64,
        /// The revision that it is at now; 0 where nothing is left.
        found: u64,
    },
    /// More than a store takes.
    #[error("a text of {size} bytes is too long for the store, which takes {longest}")]
    TooLong {
        /// The bytes of the text.
        size: usize,
        /// The most that are taken.
        longest: usize,
    },
    /// What was to be stored is no JSON.
    #[error("only JSON can be stored: {0}")]
    NoJson(JsonFault),
}

/// What was noticed of a shared store that cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// It takes longer than `rollout.store.timeout`.
    #[error("it has not answered within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// It was away just now, and is not asked again yet.
    #[error("it is asked again in a moment; before: {0}")]
    Waiting(String),
    /// The connection fails, or the server refuses.
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
}

/// What is wrong with a file of the store.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// No JSON, or other members than there should be.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// A form that this version does not know.
    #[error("its version is {found}, and this program knows version {known}")]
    Version {
        /// What the file says.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// A revision that no write can have left.
    #[error("its revision is {0}")]
    Revision(u64),
    /// Deeper nested than anything that is stored.
    #[error("what it holds cannot be read: {0}")]
    Text(JsonFault),
    /// No stage.
    #[error("`{0}` is no stage")]
    Stage(String),
    /// No percentage.
    #[error("`{0}` is no percentage from 0 to 100 in steps of 0.001")]
    Percent(String),
    /// Two flips of one flag.
    #[error("the flag `{0}` is flipped twice")]
    Twice(String),
}

/// Why a text was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Somebody else was first; this is what is there now.
    #[error("somebody else was first: the store is at revision {}", .0.revision)]
    Conflict(Versioned),
    /// The store fails. Where it is [`StoreError::Away`], [`StoreError::DeferredWrites`], or [`StoreError::Io`] at the flush of the folder, the
    /// text may be there all the same: the same call again tells, and never stores it twice.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An error with its causes, for people.
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
