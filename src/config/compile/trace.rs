//! `[trace]`: the traces that are recorded, and the target of spans.

use crate::config::problem::Problem;
use crate::config::raw::RawTrace;
use dualgauge_model::rollout::Percent;
use dualgauge_model::trace::{ExportPlan, TracePlan};

/// Compiles the tracing, if it is configured.
pub(super) fn compile(raw: Option<&RawTrace>, problems: &mut Vec<Problem>) -> Option<TracePlan> {
    let raw = raw?;
    let endpoint = raw.endpoint.as_ref();
    if let Some(endpoint) = endpoint {
        let problem = if cfg!(not(feature = "otlp")) {
            Some(
                "this build cannot export traces; build it with the feature `otlp`, or remove the endpoint",
            )
        } else if endpoint.value.scheme_str() != Some("http") {
            Some("spans are sent over `http://` only; use a collector near this proxy")
        } else {
            None
        };
        problems.extend(problem.map(|message| endpoint.problem(message)));
    }
    Some(TracePlan {
        sample: Percent::from_thousandths(raw.sample.value).unwrap_or(Percent::ALL),
        export: endpoint.map(|endpoint| ExportPlan {
            endpoint: endpoint.value.to_string(),
            service: raw.service.value.clone(),
        }),
    })
}
