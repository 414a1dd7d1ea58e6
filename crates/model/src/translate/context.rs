//! The settings of every translation. Used by `model` and `gateway`.

use dualgauge_patterns::pattern::Now;

/// The settings of every translation of a plan.
#[derive(Debug, Clone, Copy)]
pub struct TranslateContext {
    /// The deepest nesting of arrays and objects.
    pub depth: u16,
    /// The clock.
    pub now: Now,
}
