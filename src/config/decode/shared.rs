//! Words and limits that several tables have. Used by `decode` and `flags`.

use dualgauge_model::rollout::Stage;
use dualgauge_patterns::side::Side;

/// The words of a side.
pub(in crate::config) const SIDES: &[(&str, Side)] = &[("rest", Side::Rest), ("rpc", Side::Rpc)];
/// The words of a stage.
pub(in crate::config) const STAGES: &[(&str, Stage)] = &[
    ("passthrough", Stage::Passthrough),
    ("shadow", Stage::Shadow),
    ("verify", Stage::Verify),
    ("translate", Stage::Translate),
    ("retired", Stage::Retired),
];

/// The maximum of counts that are split or summed: far from overflow.
pub(super) const MOST: i64 = 1_000_000;
