//! Overrides: the changes that people and guards have made at run time on top of the flags file.
//!
//! A pure state machine: a [`Change`] leads from one [`Standing`] to the next or is refused. The history records the
//! state before and after each change. The store writes a standing as a whole, under one revision. Laws: a refused
//! change changes nothing; an undo restores the state before; the history is bounded; a standing survives writing and
//! reading unchanged.
//!
//! Used by `app`, `rollout` and `server`.

mod change;
mod history;
mod standing;
#[cfg(test)]
mod tests;

pub use change::{Change, ChangeFault, ChangeResult};
pub use history::{HISTORY, HistoryEntry, Reverted};
pub use standing::{ChangeMeta, FlagStanding, Flip, RampStanding, Standing, Tripped};
