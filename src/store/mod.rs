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

mod background;
mod choice;
mod copy;
mod error;
mod file;
mod folder;
mod layout;
mod legacy;
mod record;
mod shared;
mod state;

pub use background::{Background, Late, START_LIMIT, within};
pub use choice::{Settings, Store};
pub use copy::{Copied, Copies};
pub use error::{CommitError, Damage, StoreError, Unreachable};
pub use file::FileStore;
pub use legacy::{Flip, legacy};
pub use shared::{SharedSettings, SharedStore};
pub use state::{Health, LONGEST_TEXT, MOST_REPORTS, Report, Reports, Versioned, boot};
