//! Overrides: the changes that people and guards have made at run time on top of the flags file.
//!
//! A pure state machine: a [`Change`] leads from one [`Overrides`] to the next or is refused. The history records the
//! state before and after each change. The store writes overrides as a whole, under one revision. Laws: a refused
//! change changes nothing; an undo restores the state before; the history is bounded; overrides survive writing and
//! reading unchanged.
//!
//! Used by `app`, `rollout` and `server`.

mod change;
mod history;
mod in_force;
#[cfg(test)]
mod tests;

pub use change::{Change, ChangeFault, ChangeResult};
pub use history::{HISTORY, HistoryEntry, Reverted};
pub use in_force::{ChangeMeta, FlagOverrides, Flip, Overrides, RampProgress, Tripped};
