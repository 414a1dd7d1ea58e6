//! The flags with the overrides applied. Used by `control`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::compile::compile;
use crate::config::problem::{Problems, SourceLocation};
use crate::config::raw::{RawConfig, RawFlag};
use dualgauge_model::lifecycle::Brownouts;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::overrides::{ChangeMeta, FlagOverrides, Overrides};
use dualgauge_model::rollout::{Arming, Kill, Percent};

/// The runtime changes that apply on top of the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuntimeChanges<'c> {
    pub(super) overrides: &'c Overrides,
    /// The flags that are tripped in this process only, with the reasons.
    pub(super) tripped_here: &'c BTreeMap<String, String>,
    /// The author of the kill switch, if it is on.
    pub(super) kill: Option<&'c ChangeMeta>,
}

/// Applies the runtime changes to the flags of the file, in their order.
pub(super) fn laid(file_flags: &[RawFlag], changes: RuntimeChanges<'_>) -> Vec<RawFlag> {
    let flags = file_flags.iter().cloned();
    flags
        .map(|mut flag| {
            let plain = FlagOverrides::default();
            let stands = changes.overrides.of(&flag.name.value, &flag.text_hash);
            lay(&mut flag, stands.unwrap_or(&plain));
            if changes.tripped_here.contains_key(&flag.name.value) {
                flag.arming = Arming::Tripped;
            }
            flag
        })
        .collect()
}

fn lay(flag: &mut RawFlag, stands: &FlagOverrides) {
    flag.arming = stands.arming();
    // Problems of a flip's values are reported for the flip, not for the file.
    let place = || SourceLocation::Flip(Arc::from(flag.name.value.as_str()));
    if let Some(flip) = &stands.flip {
        (flag.stage.place, flag.percent.place) = (place(), place());
        flag.stage.value = flip.stage;
        flag.percent.value = flip.percent.thousandths();
    } else if let Some(ramp) = &flag.ramp {
        // A ramp that has not started is at its first step.
        let step = stands.ramp.map_or(0, |ramp| ramp.step);
        let share = ramp.steps.get(step).or(ramp.steps.last());
        flag.percent.value = share.map_or(flag.percent.value, |share| share.value);
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
