//! The bounds of candidates: the file bounds the process, the plan each worker.

use crate::config::problem::{Located, Problem};
use crate::config::raw::RawCandidates;
use crate::domain::candidates::Candidates;
use crate::domain::rollout::Percent;

pub(super) fn compile(
    raw: &RawCandidates,
    workers: usize,
    problems: &mut Vec<Problem>,
) -> Candidates {
    let share = |whole: &Located<usize>| whole.value.div_ceil(workers.max(1));
    let mut percent = |raw: &Located<u32>| {
        Percent::from_thousandths(raw.value).unwrap_or_else(|| {
            problems.push(raw.problem("a percentage is at most 100"));
            Percent::ALL
        })
    };
    Candidates {
        concurrency: share(&raw.concurrency),
        memory: share(&raw.memory),
        timeout: raw.timeout.value,
        sample: percent(&raw.sample),
        per_request: raw.per_request.value,
        noise: percent(&raw.noise),
    }
}
