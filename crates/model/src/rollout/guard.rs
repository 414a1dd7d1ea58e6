//! The guard of a flag: a statistical test that the new way is not worse than the old one.
//!
//! The caller of [`GuardState::observe`] passes the cumulative tally of a flag about once a second and gets a
//! decision. The guard compares both ways over the same slices of time and the same clients, so that a problem of
//! both is not blamed on the new one. It trips only if a confidence bound, not just the observed value, exceeds a
//! limit. Too few calls give [`GuardDecision::Inconclusive`], which neither advances nor rolls back. Laws: a decision
//! depends only on sums, never on the worker that counted; failures of the old way never cause a trip; no input
//! causes a panic.
//!
//! Used by `app`, `config`, `check` and `rollout`.

mod bounds;
mod burst;
mod comparison;
mod decision;
mod settings;
mod state;
mod windows;

#[cfg(test)]
mod tests;

pub use decision::{Baseline, Breach, GuardDecision, Inconclusive, Limit, Quantile, Trigger, Trip};
pub use settings::{Fast, Guard, Limits, Mode, Ratio, Share};
pub use state::GuardState;
