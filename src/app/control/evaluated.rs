//! Evaluations of flags for applications, under the plan in force. Used by `control::task`.

use dualgauge_model::ofrep::{
    Evaluated, EvaluationContext, EvaluationFault, EvaluationReason, evaluate, evaluate_all,
};
use dualgauge_model::time::Timestamp;

use super::state::Control;
use crate::server::admin::EvaluatedFlags;
use crate::telemetry::metrics::{EvaluatedAs, EvaluationRequest};

impl Control {
    /// Returns the value of one flag, and counts the evaluation.
    pub(super) fn evaluated(
        &mut self,
        key: &str,
        body: &[u8],
        at: Timestamp,
    ) -> Result<Evaluated, EvaluationFault> {
        let context = EvaluationContext::parse(body);
        let found = context.and_then(|context| evaluate(&self.plan, key, &context, at));
        let result = match &found {
            Ok(found) => value_of(found.reason),
            Err(fault) => fault_of(fault),
        };
        match &found {
            Ok(found) => tracing::debug!(
                reason = result.as_str(),
                key = found.key,
                variant = found.variant,
                rule = found.rule,
                "evaluated a flag for an application"
            ),
            Err(fault) => self.evaluation_log.log(Some(key), result, fault),
        }
        self.evaluations.add(EvaluationRequest::One, result);
        found
    }

    /// Returns the values of all flags, and counts one evaluation.
    pub(super) fn all_evaluated(
        &mut self,
        body: &[u8],
        at: Timestamp,
    ) -> Result<EvaluatedFlags, EvaluationFault> {
        let context = EvaluationContext::parse(body);
        let found = context.and_then(|context| evaluate_all(&self.plan, &context, at));
        let result = found.as_ref().err().map_or(EvaluatedAs::All, fault_of);
        match &found {
            Ok(found) => {
                let failed = found.iter().filter_map(|one| one.as_ref().err());
                tracing::debug!(
                    reason = result.as_str(),
                    flags = found.len(),
                    failed = failed.clone().count(),
                    "evaluated all flags for an application"
                );
                if let Some((key, fault)) = failed.clone().next() {
                    self.evaluation_log.log(Some(key), fault_of(fault), fault);
                }
            }
            Err(fault) => self.evaluation_log.log(None, result, fault),
        }
        self.evaluations.add(EvaluationRequest::All, result);
        found
    }
}

const fn value_of(reason: EvaluationReason) -> EvaluatedAs {
    match reason {
        EvaluationReason::Static => EvaluatedAs::Static,
        EvaluationReason::Default => EvaluatedAs::Default,
        EvaluationReason::TargetingMatch => EvaluatedAs::TargetingMatch,
        EvaluationReason::Split => EvaluatedAs::Split,
        EvaluationReason::Disabled => EvaluatedAs::Disabled,
    }
}

const fn fault_of(fault: &EvaluationFault) -> EvaluatedAs {
    match fault {
        EvaluationFault::Parse(_) => EvaluatedAs::ParseError,
        EvaluationFault::Context(_) => EvaluatedAs::InvalidContext,
        EvaluationFault::TargetingKey => EvaluatedAs::TargetingKeyMissing,
        EvaluationFault::NotFound => EvaluatedAs::FlagNotFound,
    }
}
