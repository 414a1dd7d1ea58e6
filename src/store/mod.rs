//! Flips: changes of flags at run time, laid over the flags file and kept on disk.
//!
//! ```text
//! flip   a flip, and what the flags are with the flips over them (pure)
//! disk   the state folder: one owner, one file, replaced whole
//! ```
//!
//! Laws: a flip is on disk before it is said to be made; one on a flag that was edited or removed since is
//! dropped and said so; what cannot be read is never thrown away.

mod disk;
mod flip;
#[cfg(test)]
mod tests;

pub use disk::{Damage, FlipStore, StoreError};
pub use flip::{Applied, DropReason, Flip, apply};
