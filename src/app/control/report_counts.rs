//! The counts that a process reports. Used by `control::reporter_id`, `control::reports` and `control::task`.

use dualgauge_model::lifecycle::Usage;
use dualgauge_model::rollout::Tallies;

/// The counts of this process since its start.
#[derive(Debug, Clone, Default)]
pub struct ReportCounts {
    /// The tallies by the name of the guarded flag.
    pub tallies: Tallies,
    /// The usage of routes by client.
    pub usage: Usage,
}
