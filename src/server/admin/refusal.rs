//! Failures of commands. Used throughout `admin`.

use std::fmt;

use crate::config::problem::Problems;
use crate::store::{Late, StoreError};
use crate::telemetry::recorder::StartRefused;
use dualgauge_model::rollout::overrides::ChangeFault;

/// The failure of a command. Except in the `Pending` variants, the command has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No flag has this name.
    #[error("no flag has this name")]
    Unknown {
        /// A flag with a similar name.
        nearest: Option<String>,
    },
    /// No route has this name.
    #[error("no route has this name")]
    UnknownRoute {
        /// A route with a similar name.
        nearest: Option<String>,
    },
    /// The state has changed since the client read it.
    #[error("{subject} has changed; the current {version} is `{found}`", version = subject.version())]
    Stale {
        /// The part of the state.
        subject: StaleSubject,
        /// The current entity tag.
        found: String,
    },
    /// Concurrent changes by other replicas won every attempt.
    #[error("other replicas are changing flags; read the flag again and retry")]
    Lost,
    /// The source of flags governs the flag.
    #[error("the flag `{flag}` follows the source {url}; change it there")]
    Governed {
        /// The flag.
        flag: String,
        /// The URL of the source.
        url: String,
    },
    /// The change does not apply to the current state.
    #[error(transparent)]
    Fault(ChangeFault),
    /// The changed plan would be invalid.
    #[error("the flag cannot have this value")]
    Invalid(#[source] Problems),
    /// The configuration files have problems.
    #[error("the configuration has problems; the previous configuration stays in force")]
    Config(#[source] Problems),
    /// The files were not read in time.
    #[error("cannot read the files; the previous configuration stays in force")]
    Unread(#[source] Late),
    /// The change could not be stored.
    #[error("cannot store the change")]
    Store(#[source] StoreError),
    /// The configuration has no `[record]`.
    #[error(
        "recordings are not configured; set `record.directory` to the folder for them, and reload"
    )]
    NoRecordings,
    /// The recording did not start.
    #[error("no recording was started")]
    Recording(#[source] StartRefused),
    /// The state could not be serialised, which is a bug.
    #[error("cannot write the change")]
    Unwritable(#[source] serde_json::Error),
    /// The change is stored, but not every worker has the new plan.
    #[error("the change is stored")]
    Pending(#[source] StillMissing),
    /// The kill switch is not stored, and not every worker has it yet.
    #[error("the kill switch is on, but not stored; the proxy retries")]
    PendingKill(#[source] StillMissing),
}

/// The part of the state that has changed since a client read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleSubject {
    /// The flag of the change.
    Flag,
    /// Anything, for a change of no flag.
    Rollout,
}

impl StaleSubject {
    const fn version(self) -> &'static str {
        match self {
            StaleSubject::Flag => "tag",
            StaleSubject::Rollout => "revision",
        }
    }
}

impl fmt::Display for StaleSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StaleSubject::Flag => "the flag",
            StaleSubject::Rollout => "the rollout",
        })
    }
}

/// The error that some workers have not applied the plan yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("some workers have not applied the new plan; it is sent again until all have")]
pub struct StillMissing;
