//! `[record]`: the recording of calls. Credentials are never among the headers. Used by `compile`.

use std::sync::Arc;

use crate::config::problem::Problem;
use crate::config::raw::RawRecord;
use dualgauge_model::plan::Plan;
use dualgauge_model::record::{RecordLimits, RecordPlan};
use dualgauge_model::redact::Redaction;
use dualgauge_model::rollout::Percent;

/// Compiles the recording of the calls of a plan, if it is configured.
pub(super) fn compile(
    raw: Option<&RawRecord>,
    plan: &Plan,
    problems: &mut Vec<Problem>,
) -> Option<Arc<RecordPlan>> {
    let raw = raw?;
    let mut redaction = Redaction::clone(&plan.redaction);
    let keys = raw.redact.iter().map(|key| key.value.clone());
    redaction.keys.extend(keys);
    let redaction = redaction.of_routes(plan.routes.routes());
    for header in &raw.headers {
        if plan.is_secret(&header.value) || redaction.hides_header(&header.value) {
            problems.push(header.problem(format!(
                "`{}` is a credential, or hidden by `log.redact` or `record.redact`; recordings never have it. Remove it, and give it to `replay --header`",
                header.value
            )));
        }
    }
    Some(Arc::new(RecordPlan {
        directory: raw.directory.value.clone(),
        sample: Percent::from_thousandths(raw.sample.value).unwrap_or(Percent::NONE),
        bodies: raw.bodies.value,
        headers: raw
            .headers
            .iter()
            .map(|header| header.value.clone())
            .collect(),
        redaction: Arc::new(redaction),
        limits: RecordLimits {
            file_size: raw.file_size.value as u64,
            files: raw.files.value,
            total_size: raw.total_size.value as u64,
            time: raw.time_limit.as_ref().map(|limit| limit.value),
        },
    }))
}
