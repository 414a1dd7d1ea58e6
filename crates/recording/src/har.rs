//! HTTP Archive (HAR) 1.2, read and written.
//!
//! ```text
//! read        a file to calls
//! entry       one entry to a call
//! extension   what HAR has no member for
//! write       calls to a file
//! law         properties for tests and fuzz targets
//! ```
//!
//! Members that HAR does not define are ignored, except `_dualgauge`, in which [`Writer`] keeps what HAR has no member for.
//! Law: the reader returns the calls that the writer wrote.

mod entry;
mod extension;
mod law;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use entry::{EntryFault, HarCall};
pub use law::check_any_file;
pub use read::{HarError, MAX_ENTRIES, MAX_FILE, read};
pub use write::Writer;
