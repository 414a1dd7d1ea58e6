//! Limits of candidates: the file has those of the process, the plan those of each worker.

use crate::config::problem::{Problem, Spanned};
use crate::config::raw::RawCandidates;
use dualgauge_model::rollout::Percent;
use dualgauge_model::shadow_limits::ShadowLimits;

pub(super) fn compile(
    raw: &RawCandidates,
    workers: usize,
    problems: &mut Vec<Problem>,
) -> ShadowLimits {
    let share = |whole: &Spanned<usize>| whole.value.div_ceil(workers.max(1));
    let mut percent = |raw: &Spanned<u32>| {
        Percent::from_thousandths(raw.value).unwrap_or_else(|| {
            problems.push(raw.problem("a percentage is at most 100"));
            Percent::ALL
        })
    };
    ShadowLimits {
        concurrency: share(&raw.concurrency),
        memory: share(&raw.memory),
        timeout: raw.timeout.value,
        sample: percent(&raw.sample),
        per_request: raw.per_request.value,
        noise: percent(&raw.noise),
    }
}
