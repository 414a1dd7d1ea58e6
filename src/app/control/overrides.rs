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

/// Compiles the plan with new values of the source. A flag whose value is impossible has that of `changes.source`, or
/// none.
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
        let blamed = problems.iter().filter_map(|problem| match &problem.place {
            SourceLocation::Source(flag) => Some((flag.to_string(), problem.message.clone())),
            SourceLocation::Default
            | SourceLocation::File { .. }
            | SourceLocation::Variable(_)
            | SourceLocation::Argument(_)
            | SourceLocation::Flip(_) => None,
        });
        let blamed: BTreeMap<_, _> = blamed.collect();
        if blamed.is_empty() {
            return Err(problems);
        }
        // Each round replaces at least one value by the one before, or removes it.
        for (flag, problem) in blamed {
            let tried = values.remove(&flag);
            let other = before
                .get(&flag)
                .filter(|known| Some(*known) != tried.as_ref());
            values.extend(other.map(|known| (flag.clone(), known.clone())));
            refused.entry(flag).or_insert(problem);
        }
    }
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
