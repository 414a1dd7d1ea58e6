//! The flags with the overrides applied. Used by `control`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::compile::compile;
use crate::config::problem::{Problems, SourceLocation};
use crate::config::raw::{RawConfig, RawFlag};
use dualgauge_model::lifecycle::Brownouts;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::overrides::{ChangeMeta, FlagOverrides, Overrides};
use dualgauge_model::rollout::{
    Arming, Kill, Percent, SourcedFlag, SourcedFlags, SourcedValue, WithoutKey,
};

/// The runtime changes that apply on top of the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuntimeChanges<'c> {
    pub(super) overrides: &'c Overrides,
    /// The flags that are tripped in this process only, with the reasons.
    pub(super) tripped_here: &'c BTreeMap<String, String>,
    /// The author of the kill switch, if it is on.
    pub(super) kill: Option<&'c ChangeMeta>,
    /// The values of the flags that a source governs.
    pub(super) source: &'c SourcedFlags,
}

/// Applies the runtime changes to the flags of the file, in their order.
pub(super) fn laid(file_flags: &[RawFlag], changes: RuntimeChanges<'_>) -> Vec<RawFlag> {
    let flags = file_flags.iter().cloned();
    flags
        .map(|mut flag| {
            let plain = FlagOverrides::default();
            let stands = changes.overrides.of(&flag.name.value, &flag.text_hash);
            let sourced = changes.source.get(&flag.name.value);
            lay(&mut flag, stands.unwrap_or(&plain), sourced);
            if changes.tripped_here.contains_key(&flag.name.value) {
                flag.arming = Arming::Tripped;
            }
            flag
        })
        .collect()
}

fn lay(flag: &mut RawFlag, stands: &FlagOverrides, sourced: Option<&SourcedFlag>) {
    flag.arming = stands.arming();
    let name: Arc<str> = Arc::from(flag.name.value.as_str());
    if let Some(sourced) = sourced {
        lay_sourced(flag, &sourced.value, &SourceLocation::Source(name));
    } else if let Some(flip) = &stands.flip {
        // Problems of a flip's values are reported for the flip, not for the file.
        let place = SourceLocation::Flip(name);
        (flag.stage.place, flag.percent.place) = (place.clone(), place);
        flag.stage.value = flip.stage;
        flag.percent.value = flip.percent.thousandths();
    } else if let Some(ramp) = &flag.ramp {
        // A ramp that has not started is at its first step.
        let step = stands.ramp.map_or(0, |ramp| ramp.step);
        let share = ramp.steps.get(step).or(ramp.steps.last());
        flag.percent.value = share.map_or(flag.percent.value, |share| share.value);
    }
}

/// Applies the value of the source, which replaces flips and ramps.
fn lay_sourced(flag: &mut RawFlag, value: &SourcedValue, place: &SourceLocation) {
    match value {
        SourcedValue::Off => {
            flag.percent.place = place.clone();
            flag.percent.value = Percent::NONE.thousandths();
            flag.without_key.value = WithoutKey::Out;
        }
        SourcedValue::On { stage, percent } => {
            if let Some(stage) = stage {
                flag.stage.place = place.clone();
                flag.stage.value = *stage;
            }
            flag.percent.place = place.clone();
            flag.percent.value = percent.thousandths();
        }
    }
}

/// A plan with the values of a source that it can have.
pub(super) struct Settled {
    pub(super) flags: Vec<RawFlag>,
    pub(super) plan: Arc<Plan>,
    pub(super) values: SourcedFlags,
    /// The reasons why other values cannot be in force, by the name of the flag.
    pub(super) refused: BTreeMap<String, String>,
}

/// Compiles the plan with new values of the source. A flag whose new value is impossible keeps that of
/// `changes.source`; if that is impossible too, the flag is off. A flag without a former value does not follow the source
/// then. A flag that the source has dropped keeps its former value if there is no plan without it.
///
/// # Errors
/// All problems that are not due to the source.
pub(super) fn settle(
    config: &RawConfig,
    file_flags: &[RawFlag],
    changes: RuntimeChanges<'_>,
    mut values: SourcedFlags,
) -> Result<Settled, Problems> {
    let before = changes.source;
    let mut refused = BTreeMap::new();
    loop {
        let source = &values;
        let changes = RuntimeChanges { source, ..changes };
        let flags = laid(file_flags, changes);
        let problems = match plan(config, &flags, changes) {
            Ok(plan) => {
                return Ok(Settled {
                    flags,
                    plan: Arc::new(plan),
                    values,
                    refused,
                });
            }
            Err(problems) => problems,
        };
        let blamed = blamed_values(&problems);
        if blamed.is_empty() {
            // Each flag returns once.
            let returned = needed(before, &problems, |flag| {
                !values.contains_key(flag) && !refused.contains_key(flag)
            });
            if returned.is_empty() {
                return Err(problems);
            }
            for (flag, problem) in returned {
                values.extend(before.get(&flag).map(|known| (flag.clone(), known.clone())));
                refused.insert(flag, problem);
            }
        }
        // Each round replaces at least one value: by the former one, then by `Off`, then by none.
        for (flag, problem) in blamed {
            let tried = values.remove(&flag);
            let other = match before.get(&flag) {
                Some(known) if !refused.contains_key(&flag) && tried.as_ref() != Some(known) => {
                    Some(known.clone())
                }
                Some(_) => tried.and_then(off),
                None => None,
            };
            values.extend(other.map(|other| (flag.clone(), other)));
            refused.entry(flag).or_insert(problem);
        }
    }
}

/// Returns the flags whose values of the source are impossible, with the reasons.
fn blamed_values(problems: &Problems) -> BTreeMap<String, String> {
    let blamed = problems.iter().filter_map(|problem| match &problem.place {
        SourceLocation::Source(flag) => Some((flag.to_string(), problem.message.clone())),
        SourceLocation::Default
        | SourceLocation::File { .. }
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_) => None,
    });
    blamed.collect()
}

/// Returns the flags that the source has dropped and whose former values avoid the problems, with the reasons: those
/// with an impossible flip, or else all of them, because the problems are in the files.
fn needed(
    before: &SourcedFlags,
    problems: &Problems,
    is_dropped: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    let reason = |message: &str| format!("it has none now, and without one: {message}");
    let dropped = before.keys().filter(|flag| is_dropped(flag));
    let flipped = problems.iter().filter_map(|problem| match &problem.place {
        SourceLocation::Flip(flag) => Some((flag.to_string(), reason(&problem.message))),
        SourceLocation::Default
        | SourceLocation::File { .. }
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Source(_) => None,
    });
    let mut needed: BTreeMap<_, _> = flipped.collect();
    needed.retain(|flag, _| before.contains_key(flag) && is_dropped(flag));
    if needed.is_empty() {
        let first = problems.iter().next();
        let first = reason(first.map_or("", |problem| &problem.message));
        needed.extend(dropped.map(|flag| (flag.clone(), first.clone())));
    }
    needed
}

/// Returns the value with which a flag takes no caller, unless that was tried.
fn off(tried: SourcedFlag) -> Option<SourcedFlag> {
    let value = SourcedValue::Off;
    (tried.value != value).then_some(SourcedFlag { value, ..tried })
}

/// Compiles the plan of the configuration with these flags, which have the runtime changes already, and with the other
/// changes.
pub(super) fn plan(
    config: &RawConfig,
    flags: &[RawFlag],
    changes: RuntimeChanges<'_>,
) -> Result<Plan, Problems> {
    let mut plan = compile(config, flags)?;
    let called_off = &changes.overrides.called_off;
    if !called_off.is_empty() {
        plan.rollout.brownouts = Brownouts::OffFor(called_off.clone());
    }
    plan.rollout.kill = kill(changes.kill);
    Ok(plan)
}

/// Returns the state of the kill switch.
pub(super) const fn kill(thrown: Option<&ChangeMeta>) -> Kill {
    match thrown {
        Some(_) => Kill::On,
        None => Kill::Off,
    }
}

/// Returns the percentage of a flag. Neither files nor flips can exceed 100 %.
pub(super) fn percent(flag: &RawFlag) -> Percent {
    Percent::from_thousandths(flag.percent.value).unwrap_or(Percent::ALL)
}
