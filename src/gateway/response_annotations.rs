//! What an answer bears beside its own headers: that its route ends, and, where the configuration asks for it, the
//! decision that its call was served by.

use http::{HeaderMap, HeaderValue};

use super::record::Record;
use crate::domain::plan::Plan;
use crate::domain::side::Side;

/// The marks of one answer, whoever makes it.
pub(super) struct ResponseAnnotations {
    route: Option<usize>,
    side: Side,
    decision: Option<HeaderValue>,
}

impl ResponseAnnotations {
    /// Those of a call that has been served.
    pub(super) fn new(record: &Record) -> ResponseAnnotations {
        let rollout = &record.installed().plan.rollout;
        let decision = rollout.decision_header.as_ref().map(|_| {
            let stage = record.stage().map_or("none", |stage| stage.as_str());
            format!("{stage}; {}", rollout.describe(record.why()))
        });
        ResponseAnnotations {
            route: record.route(),
            side: record.side(),
            // A name of a flag may hold what cannot stand in a header.
            decision: decision.and_then(|decision| HeaderValue::try_from(decision).ok()),
        }
    }

    /// Puts them on the answer.
    pub(super) fn write(self, plan: &Plan, headers: &mut HeaderMap) {
        plan.lifecycle.announce(self.route, self.side, headers);
        if let (Some(name), Some(decision)) = (&plan.rollout.decision_header, self.decision) {
            headers.insert(name.clone(), decision);
        }
    }
}
