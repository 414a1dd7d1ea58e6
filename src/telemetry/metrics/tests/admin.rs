//! Counts of the admin listener.

use super::*;

pub(super) fn evaluations() -> EvaluationCounts {
    let mut counts = EvaluationCounts::default();
    counts.add(EvaluationRequest::One, EvaluatedAs::Split);
    counts.add(EvaluationRequest::One, EvaluatedAs::Split);
    counts.add(EvaluationRequest::All, EvaluatedAs::All);
    counts
}

pub(super) fn live_streams() -> LiveStreamCounts {
    LiveStreamCounts {
        open: 2,
        opened: 5,
        refused: 1,
        failed: 3,
    }
}
