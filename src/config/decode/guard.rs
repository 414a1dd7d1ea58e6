//! `guard` and `ramp` of a flag. Used by `flags`.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::key::{Key, List, SubTable, key, list, section, table};
use crate::config::kind::{DURATIONS, Kind, PERCENT, TIMEOUT, boolean, other, whole};
use crate::config::raw::{RawGuard, RawRamp};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, decimal, duration, string};
use dualgauge_model::rollout::{Fast, Mode, Ratio, Share};

/// A shorter window has too few calls, and its slices are shorter than the interval of evaluation.
const LEAST_WINDOW: Duration = Duration::from_secs(10);
const MOST_WINDOW: Duration = Duration::from_secs(24 * 3600);
/// With fewer calls, the result is random.
const CALLS: Kind<u64> = whole(10, 1_000_000);
/// Fewer consecutive failures happen to any server.
const IN_ROW: Kind<u64> = whole(5, 10_000);
/// Differences of rates, in millionths. Below the minimum, noise alone would trip the guard.
const DELTA: RangeInclusive<u32> = 1_000..=500_000;
/// Allowed shares of mismatches; zero is a valid limit.
const MISMATCH: RangeInclusive<u32> = 0..=500_000;
/// Ratios, in thousandths.
const RATIO: RangeInclusive<u32> = 1_100..=100_000;
const FAST_SHARE: RangeInclusive<u32> = 300_000..=1_000_000;

/// The word for no limit.
const OFF: &str = "off";

/// A difference of rates, or `"off"`.
const DELTA_OR_OFF: Kind<Option<Share>> = other(
    "share from 0.001 to 0.5, or `\"off\"`",
    r#"{ "anyOf": [{ "type": "number", "minimum": 0.001, "maximum": 0.5 }, { "const": "off" }] }"#,
    |found| or_off(found, share(DELTA)),
);
const MISMATCH_OR_OFF: Kind<Option<Share>> = other(
    "share from 0 to 0.5, or `\"off\"`",
    r#"{ "anyOf": [{ "type": "number", "minimum": 0, "maximum": 0.5 }, { "const": "off" }] }"#,
    |found| or_off(found, share(MISMATCH)),
);
const RATIO_OR_OFF: Kind<Option<Ratio>> = other(
    "ratio from 1.1 to 100, or `\"off\"`",
    r#"{ "anyOf": [{ "type": "number", "minimum": 1.1, "maximum": 100 }, { "const": "off" }] }"#,
    |found| or_off(found, ratio),
);

section! {
    /// `fast` of a guard.
    FAST {
        /// Consecutive failures
        FAST_IN_ROW: Key<u64> = key("in_row", IN_ROW).or("10");
        /// Calls of which a share has failed
        FAST_CALLS: Key<u64> = key("calls", CALLS).or("20");
        /// Share of failed calls
        SHARE: Key<Share> = key(
            "share",
            other(
                "share from 0.3 to 1",
                r#"{ "type": "number", "minimum": 0.3, "maximum": 1 }"#,
                |found| share(FAST_SHARE)(found),
            ),
        ).or("0.5");
    }
}

section! {
    /// `guard` of a flag.
    pub(in crate::config) GUARD {
        /// Time span of a comparison
        WINDOW: Key<Duration> = key("window", other("duration from `10s` to `24h`", DURATIONS, window)).or("60s");
        /// Minimum calls of each way in a window
        MIN_CALLS: Key<u64> = key("min_calls", CALLS).or("100");
        /// Accepted increase of the share of failed calls
        FAILURE_DELTA: Key<Option<Share>> = key("failure_delta", DELTA_OR_OFF).or("0.02");
        /// Accepted increase of the share of refused calls
        REFUSED_DELTA: Key<Option<Share>> = key("refused_delta", DELTA_OR_OFF).or("0.05");
        /// Accepted increase of the share of tool errors
        TOOL_ERROR_DELTA: Key<Option<Share>> = key("tool_error_delta", DELTA_OR_OFF).or("0.05");
        /// Accepted ratio of the latency of served calls
        LATENCY_RATIO: Key<Option<Ratio>> = key("latency_ratio", RATIO_OR_OFF).or("2.0");
        /// Accepted share of comparisons that differ
        MISMATCHES: Key<Option<Share>> = key("mismatch", MISMATCH_OR_OFF).or("off");
        /// No trip without a whole window
        NOT_FAST: Key<Option<Fast>> = key("fast", other("`\"off\"`", r#"{ "const": "off" }"#, no_fast));
        /// Condition of a trip without a whole window
        OF_FAST: SubTable = table("fast", &FAST).implied();
        /// A trip is only reported
        DRY_RUN: Key<Mode> = key("dry_run", boolean(&[Mode::Act, Mode::DryRun])).or("false");
    }
}

section! {
    /// `ramp` of a flag.
    pub(in crate::config) RAMP {
        /// Percentages, each higher than the one before
        STEPS: List<u32> = list("steps", PERCENT).required();
        /// Time between two steps
        INTERVAL: Key<Duration> = key("every", TIMEOUT).required();
    }
}

/// Decodes the guard.
pub(in crate::config) fn guard(table: &mut Table<'_>) -> Option<RawGuard> {
    let here = table.here();
    let window = table.get(&WINDOW);
    let min_calls = table.get(&MIN_CALLS);
    let failure_delta = table.get(&FAILURE_DELTA);
    let refused_delta = table.get(&REFUSED_DELTA);
    let tool_error_delta = table.get(&TOOL_ERROR_DELTA);
    let latency_ratio = table.get(&LATENCY_RATIO);
    let mismatch = table.get(&MISMATCHES);
    let fast = fast(table);
    let mode = table.get(&DRY_RUN);
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
    let steps = table.list(&STEPS);
    let every = table.get(&INTERVAL);
    Some(RawRamp {
        place: here.place,
        key: here.key,
        steps: steps?,
        every: every?,
    })
}

/// Decodes `"off"`, or a table.
fn fast(table: &mut Table<'_>) -> Option<Option<Fast>> {
    match table.shape(OF_FAST.name) {
        Shape::Value => table.get(&NOT_FAST).map(|fast| fast.value),
        Shape::Absent | Shape::Table => table.table(&OF_FAST, |fast| {
            let in_row = fast.get(&FAST_IN_ROW);
            let calls = fast.get(&FAST_CALLS);
            let share = fast.get(&SHARE);
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
    found: RawValue<'_>,
    kind: impl Fn(RawValue<'_>) -> Result<T, ValueError>,
) -> Result<Option<T>, ValueError> {
    match string(found) {
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
