//! What changes at run time, kept where a restart and other replicas find it.
//!
//! ```text
//! choice   a store: a file or a shared one, with the same contract
//! state    what lies in it: texts with revisions, reports, health
//! error    why it fails
//! file     the state folder of one process: `rollout.json`, `watch.json`
//! shared   Redis or Valkey, for many replicas
//! copy     the state of a shared store, for a start without it
//! background  work on files, off the task that waits for it
//! folder   one owner, and files that are replaced whole
//! layout   JSON for people
//! record   a report as it is stored
//! legacy   `flips.json` of earlier versions
//! ```
//!
//! Laws: what is said to be stored survives `kill -9`; nobody overwrites what he has not seen; what cannot be read is
//! never thrown away.

mod backend;
mod background;
mod error;
mod file;
mod legacy;
mod pretty_json;
mod record;
mod redis;
mod snapshot;
mod state;
mod state_dir;

pub use backend::{Store, StoreSettings};
pub use background::{Background, Late, START_LIMIT, within};
pub use error::{CommitError, Corruption, StoreError, Unreachable};
pub use file::FileStore;
pub use legacy::{Flip, legacy};
pub use redis::{RedisSettings, RedisStore};
pub use snapshot::{SnapshotContents, SnapshotDir};
pub use state::{Health, LONGEST_TEXT, MOST_REPORTS, ReplicaReport, Reports, Versioned, boot};
