//! Storage of the runtime state, for restarts and for other replicas.
//!
//! ```text
//! backend     a store: files or a server, with the same contract
//! versioned   texts with revisions
//! state       the stored data: reports, limits, health
//! error       the errors of a store
//! file        the files of one process: `rollout.json`, `watch.json`
//! flag_source the server with the values of flags
//! redis       Redis or Valkey, for many replicas
//! snapshot    a local copy of a shared store's state, or of the values of a source, for a start without it
//! background  file operations in background threads
//! state_dir   the locked state folder, whose files are replaced atomically
//! pretty_json JSON with line breaks and indentation
//! record      the stored form of a report
//! legacy      `flips.json` of earlier versions
//! ```
//!
//! Laws: confirmed data survives `kill -9`; a write never overwrites a revision that its writer has not seen;
//! unreadable data is never discarded.

mod backend;
mod background;
mod error;
mod file;
mod flag_source;
mod legacy;
mod pretty_json;
mod record;
mod redis;
mod snapshot;
mod state;
mod state_dir;
mod versioned;

pub use backend::{Store, StoreSettings};
pub use background::{Background, Late, START_LIMIT, within};
pub use error::{CommitError, Corruption, StoreError, Unreachable};
pub use file::FileStore;
pub use flag_source::{LONGEST_RESPONSE, PollError, PolledFlags, SourceSettings};
pub use legacy::{Flip, legacy};
pub use redis::{RedisSettings, RedisStore};
pub use snapshot::{SnapshotContents, SnapshotDir, SnapshotKind};
pub use state::{Health, LONGEST_TEXT, MOST_REPORTS, ReplicaReport, Reports, boot};
pub use versioned::Versioned;
