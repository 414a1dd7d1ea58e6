//! `guard` and `ramp` of a flag: limits without an effect, steps that do not rise, a ramp without a guard.
//!
//! Used by `compile::rollout`.

use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawGuard, RawRamp};
use dualgauge_model::rollout::{Guard, Limits, Percent, Ramp, RampFault};

/// Compiles a guard.
pub(in crate::config) fn guard(raw: &RawGuard, problems: &mut Vec<Problem>) -> Guard {
    let limits = Limits {
        failure_delta: raw.failure_delta.value,
        refused_delta: raw.refused_delta.value,
        tool_error_delta: raw.tool_error_delta.value,
        latency_ratio: raw.latency_ratio.value,
        mismatch: raw.mismatch.value,
    };
    let nothing = Limits {
        failure_delta: None,
        refused_delta: None,
        tool_error_delta: None,
        latency_ratio: None,
        mismatch: None,
    };
    if limits == nothing {
        let here = here(raw.place.clone(), &raw.key);
        let message =
            "every limit is off, so the guard would never trip; set one, or remove the guard";
        problems.push(here.problem(message));
    }
    Guard {
        window: raw.window.value,
        min_calls: raw.min_calls.value,
        limits,
        fast: raw.fast,
        mode: raw.mode.value,
    }
}

/// Compiles a ramp, under the guard of the same flag.
pub(in crate::config) fn ramp(
    raw: &RawRamp,
    guard: Option<&Guard>,
    problems: &mut Vec<Problem>,
) -> Option<Ramp> {
    let steps = raw.steps.iter();
    let steps = steps.filter_map(|step| Percent::from_thousandths(step.value));
    let ramp = Ramp::new(steps.collect(), raw.every.value);
    let ramp = match ramp {
        Ok(ramp) => ramp,
        Err(fault) => {
            problems.push(problem(raw, fault));
            return None;
        }
    };
    if let Err(fault) = ramp.guarded(guard) {
        problems.push(problem(raw, fault));
    }
    Some(ramp)
}

/// Returns the problem for a fault of a ramp, at its key.
fn problem(raw: &RawRamp, fault: RampFault) -> Problem {
    let table = here(raw.place.clone(), &raw.key);
    match fault {
        RampFault::NoStep => table
            .problem(fault.to_string())
            .hint("write `steps = [1, 5, 25, 50, 100]`"),
        RampFault::Falls { place, .. } => {
            let step = raw.steps.get(place);
            step.map_or_else(
                || table.problem(fault.to_string()),
                |step| step.problem(fault.to_string()),
            )
        }
        RampFault::NoGuard => table
            .problem(fault.to_string())
            .hint("write `guard = {}` for the default limits"),
        RampFault::Hasty { .. } => raw.every.problem(fault.to_string()),
    }
}

fn here(place: crate::config::problem::SourceLocation, key: &str) -> Spanned<()> {
    Spanned {
        value: (),
        place,
        key: key.to_owned(),
    }
}
