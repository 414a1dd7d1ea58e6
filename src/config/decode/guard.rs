//! `guard` and `ramp` of a flag. Used by `flags`.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::raw::{RawGuard, RawRamp};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{
    RawValue, ValueError, boolean, decimal, duration, percent, string, timeout, whole,
};
use dualgauge_model::rollout::{Fast, Guard, Mode, Ratio, Share};

/// A shorter window has too few calls, and its slices are shorter than the interval of evaluation.
const LEAST_WINDOW: Duration = Duration::from_secs(10);
const MOST_WINDOW: Duration = Duration::from_secs(24 * 3600);
/// With fewer calls, the result is random.
const CALLS: RangeInclusive<u64> = 10..=1_000_000;
/// Fewer consecutive failures happen to any server.
const IN_ROW: RangeInclusive<u64> = 5..=10_000;
/// Differences of rates, in millionths. Below the minimum, noise alone would trip the guard.
const DELTA: RangeInclusive<u32> = 1_000..=500_000;
/// Allowed shares of mismatches; zero is a valid limit.
const MISMATCH: RangeInclusive<u32> = 0..=500_000;
/// Ratios, in thousandths.
const RATIO: RangeInclusive<u32> = 1_100..=100_000;
const FAST_SHARE: RangeInclusive<u32> = 300_000..=1_000_000;

/// The word for no limit.
const OFF: &str = "off";

/// Decodes the guard, with the defaults of [`Guard`].
pub(in crate::config) fn guard(table: &mut Table<'_>) -> Option<RawGuard> {
    let here = table.here();
    let usual = Guard::default();
    let limits = usual.limits;
    let window = table.get_or("window", window, usual.window);
    let min_calls = table.get_or("min_calls", whole(CALLS), usual.min_calls);
    let failure_delta = table.get_or("failure_delta", or_off(share(DELTA)), limits.failure_delta);
    let refused_delta = table.get_or("refused_delta", or_off(share(DELTA)), limits.refused_delta);
    let tool_error_delta = table.get_or(
        "tool_error_delta",
        or_off(share(DELTA)),
        limits.tool_error_delta,
    );
    let latency_ratio = table.get_or("latency_ratio", or_off(ratio), limits.latency_ratio);
    let mismatch = table.get_or("mismatch", or_off(share(MISMATCH)), limits.mismatch);
    let fast = fast(table);
    let dry_run = boolean(Mode::Act, Mode::DryRun);
    let mode = table.get_or("dry_run", dry_run, usual.mode);
    Some(RawGuard {
        place: here.place,
        key: here.key,
        window: window?,
        min_calls: min_calls?,
        failure_delta: failure_delta?,
        refused_delta: refused_delta?,
        tool_error_delta: tool_error_delta?,
        latency_ratio: latency_ratio?,
        mismatch: mismatch?,
        fast: fast?,
        mode: mode?,
    })
}

/// Decodes the ramp.
pub(in crate::config) fn ramp(table: &mut Table<'_>) -> Option<RawRamp> {
    let here = table.here();
    if table.shape("steps") == Shape::Absent {
        table.add(here.problem("`steps` is missing"));
    }
    let steps = table.list("steps", percent);
    let every = table.require("every", timeout);
    Some(RawRamp {
        place: here.place,
        key: here.key,
        steps: steps?,
        every: every?,
    })
}

/// Decodes `"off"`, or a table.
fn fast(table: &mut Table<'_>) -> Option<Option<Fast>> {
    let usual = Fast::default();
    match table.shape("fast") {
        Shape::Absent => Some(Some(usual)),
        Shape::Value => table.get("fast", no_fast).map(|fast| fast.value),
        Shape::Table => table.table("fast", |fast| {
            let in_row = fast.get_or("in_row", whole(IN_ROW), usual.in_row);
            let calls = fast.get_or("calls", whole(CALLS), usual.calls);
            let share = fast.get_or("share", share(FAST_SHARE), usual.share);
            Some(Some(Fast {
                in_row: in_row?.value,
                calls: calls?.value,
                share: share?.value,
            }))
        }),
    }
}

fn no_fast(found: RawValue<'_>) -> Result<Option<Fast>, ValueError> {
    match string(found) {
        Ok(text) if text == OFF => Ok(None),
        Ok(_) | Err(_) => Err(ValueError::new(format!(
            "{} is not allowed here; write `\"{OFF}\"`, or a table such as `{{ in_row = 10, calls = 20, share = 0.5 }}`",
            found.describe()
        ))),
    }
}

fn window(found: RawValue<'_>) -> Result<Duration, ValueError> {
    let window = duration(found)?;
    if (LEAST_WINDOW..=MOST_WINDOW).contains(&window) {
        return Ok(window);
    }
    Err(ValueError::new("a window must be from `10s` to `24h`"))
}

/// Decodes a value, or `"off"` as `None`.
fn or_off<T>(
    kind: impl Fn(RawValue<'_>) -> Result<T, ValueError>,
) -> impl Fn(RawValue<'_>) -> Result<Option<T>, ValueError> {
    move |found| match string(found) {
        Ok(text) if text == OFF => Ok(None),
        Ok(_) | Err(_) => kind(found).map(Some).map_err(|wrong| ValueError {
            message: format!("{}; write one, or `\"{OFF}\"`", wrong.message),
            hint: wrong.hint,
        }),
    }
}

/// Decodes a share from 0 to 1, to a millionth.
fn share(allowed: RangeInclusive<u32>) -> impl Fn(RawValue<'_>) -> Result<Share, ValueError> {
    move |found| {
        let millionths = decimal(found, 6).filter(|number| allowed.contains(number));
        millionths.and_then(Share::from_millionths).ok_or_else(|| {
            let [from, to] = [allowed.start(), allowed.end()].map(|n| f64::from(*n) / 1e6);
            let percent = decimal(found, 4).filter(|n| (10_000..=1_000_000).contains(n));
            ValueError {
                message: format!("{} is not a share from {from} to {to}", found.describe()),
                hint: percent
                    .map(|n| format!("{} % is {}", f64::from(n) / 1e4, f64::from(n) / 1e6)),
            }
        })
    }
}

fn ratio(found: RawValue<'_>) -> Result<Ratio, ValueError> {
    let thousandths = decimal(found, 3).filter(|number| RATIO.contains(number));
    thousandths
        .and_then(Ratio::from_thousandths)
        .ok_or_else(|| {
            let shown = found.describe();
            ValueError::new(format!("{shown} is not a ratio from 1.1 to 100"))
        })
}

#[cfg(test)]
mod tests;
