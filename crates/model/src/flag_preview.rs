//! The effect that a change of a flag would have, in numbers and in one sentence for people.
//!
//! Percentages are shares of callers, so shares of calls are estimates. Laws: the preview changes nothing; a change to
//! the values in force has the effect [`PreviewEffect::Nothing`].
//!
//! Used by `app::control`.

use crate::lifecycle::Usage;
use crate::rollout::{
    Arming, Flag, FlagFault, Kill, OTHER, Percent, Rollout, RouteEntry, Stage, Way,
};
use crate::route::Route;
use dualgauge_patterns::side::Side;

/// The most earlier flags that a preview names.
const NAMED: usize = 3;

/// The state that a preview is computed from.
#[derive(Debug, Clone, Copy)]
pub struct PreviewInput<'p> {
    /// The flags and clients in force.
    pub rollout: &'p Rollout,
    /// The routes in force.
    pub routes: &'p [Route],
    /// The calls counted so far.
    pub usage: &'p Usage,
    /// The sides that have an upstream.
    pub upstreams: &'p [Side],
}

/// The values of a flag that can change at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagValues {
    /// The stage.
    pub stage: Stage,
    /// The percentage of callers.
    pub percent: Percent,
}

/// The direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewEffect {
    /// The values are those in force.
    Nothing,
    /// More calls are served by the new side.
    Moves,
    /// More calls are served by the old side.
    Returns,
    /// Other calls are compared; the same side serves them.
    Compares,
    /// Calls are refused.
    Refuses,
}

impl PreviewEffect {
    /// Returns the word used in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            PreviewEffect::Nothing => "nothing",
            PreviewEffect::Moves => "moves",
            PreviewEffect::Returns => "returns",
            PreviewEffect::Compares => "compares",
            PreviewEffect::Refuses => "refuses",
        }
    }
}

/// The expected effect of a change of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagPreview {
    /// The direction.
    pub effect: PreviewEffect,
    /// The share of callers on the new side, before and after.
    pub new_side: [Percent; 2],
    /// The number of routes that the flag covers.
    pub routes: usize,
    /// The number of configured clients that the flag covers.
    pub clients: usize,
    /// The calls counted so far that the flag covers, and all calls.
    pub calls: [u64; 2],
    /// Earlier flags that take some of the calls.
    pub earlier: Vec<String>,
    /// The reasons why the flag cannot have these values.
    pub faults: Vec<FlagFault>,
    /// All of this in words.
    pub text: String,
}

/// Returns the effect of new values of a flag, given by its index.
#[must_use]
pub fn preview(input: PreviewInput<'_>, index: usize, to: FlagValues) -> Option<FlagPreview> {
    let flag = input.rollout.flags.get(index)?;
    let covers_side = |side| flag.side.is_none_or(|only| only == side);
    let routes = input.routes.iter().filter(|route| {
        let mut sides = Side::ALL.into_iter();
        flag.route.fits(&route.name)
            && sides.any(|side| covers_side(side) && route.enters_from(side))
    });
    let clients = input.rollout.clients.all().iter();
    let clients: Vec<&str> = clients
        .map(|client| client.name.as_str())
        .filter(|name| flag.client.fits(name))
        .collect();
    let mut calls = [0_u64; 2];
    for (route, client, side, seen) in input.usage.rows() {
        let count = seen.all().calls;
        calls[1] = calls[1].saturating_add(count);
        if flag.client.fits(client) && flag.route.fits(route) && covers_side(side) {
            calls[0] = calls[0].saturating_add(count);
        }
    }
    let earlier = input.rollout.flags.iter().take(index);
    let earlier = earlier.filter(|other| takes_calls_of(other, flag));
    let from = FlagValues {
        stage: flag.stage,
        percent: flag.percent,
    };
    let new_side = [share(flag, from), share(flag, to)];
    let mut found = FlagPreview {
        effect: effect([from, to], new_side),
        new_side,
        routes: routes.count(),
        clients: clients.len(),
        calls,
        earlier: earlier.map(|other| other.name.clone()).collect(),
        faults: faults(input, flag, to),
        text: String::new(),
    };
    found.text = text(input.rollout.kill, flag, to, &found, &clients);
    Some(found)
}

/// Returns the reasons why a flag cannot have these values.
fn faults(input: PreviewInput<'_>, flag: &Flag, to: FlagValues) -> Vec<FlagFault> {
    let changed = Flag {
        stage: to.stage,
        percent: to.percent,
        ..flag.clone()
    };
    let routes = input.routes.iter().map(|route| RouteEntry {
        name: &route.name,
        from: route.from,
    });
    let routes: Vec<RouteEntry<'_>> = routes.collect();
    changed.faults(&input.rollout.clients, &routes, input.upstreams)
}

/// Returns true if some call may match both flags.
fn takes_calls_of(earlier: &Flag, flag: &Flag) -> bool {
    let same_side = earlier.side.is_none() || flag.side.is_none() || earlier.side == flag.side;
    let is_armed = earlier.arming == Arming::Armed && earlier.share() > Percent::NONE;
    is_armed && same_side && earlier.client.meets(&flag.client) && earlier.route.meets(&flag.route)
}

/// Returns the share of callers that the new side serves.
fn share(flag: &Flag, values: FlagValues) -> Percent {
    match values.stage.control() {
        Some(Way::New) => values.percent.min(flag.holdback.rest()),
        Some(Way::Old) | None => Percent::NONE,
    }
}

/// Returns the direction of a change of values, with the shares of the new side before and after it.
fn effect([from, to]: [FlagValues; 2], new_side: [Percent; 2]) -> PreviewEffect {
    if from == to {
        PreviewEffect::Nothing
    } else if to.stage == Stage::Retired && to.percent > Percent::NONE {
        PreviewEffect::Refuses
    } else if new_side[1] > new_side[0] {
        PreviewEffect::Moves
    } else if new_side[1] < new_side[0] || from.stage == Stage::Retired {
        PreviewEffect::Returns
    } else {
        PreviewEffect::Compares
    }
}

fn text(kill: Kill, flag: &Flag, to: FlagValues, found: &FlagPreview, clients: &[&str]) -> String {
    let [before, after] = found.new_side.map(Percent::thousandths);
    let change = Percent::from_thousandths(before.abs_diff(after)).unwrap_or(Percent::NONE);
    let share = to.percent.min(flag.holdback.rest());
    let who = callers(flag, clients);
    let on = counted(found.routes, "route");
    let mut text = match found.effect {
        PreviewEffect::Nothing => "Changes nothing: these are the values in force.".to_owned(),
        PreviewEffect::Moves if before == 0 => {
            format!("Moves about {change} % of {who} to the new side, on {on}.")
        }
        PreviewEffect::Moves => {
            format!("Moves about {change} % more of {who} to the new side, on {on}.")
        }
        PreviewEffect::Returns if change > Percent::NONE => {
            format!("Returns about {change} % of {who} to the old side, on {on}.")
        }
        PreviewEffect::Returns => format!("Serves {who} on the old side again, on {on}."),
        PreviewEffect::Refuses => format!("Refuses about {share} % of {who}, on {on}."),
        PreviewEffect::Compares if share == Percent::NONE || to.stage.candidate().is_none() => {
            format!("Leaves {who} on the same side and compares none, on {on}.")
        }
        PreviewEffect::Compares => {
            format!("Compares about {share} % of {who} with the other side, on {on}.")
        }
    };
    if found.effect != PreviewEffect::Nothing && to.stage == Stage::Verify && share > Percent::NONE
    {
        text.push_str(" The old side answers them as well, for comparison.");
    }
    let [covered, all] = found.calls;
    if all > 0 {
        let percent = u128::from(covered) * 100 / u128::from(all);
        text.push_str(&format!(
            " So far, {percent} % of all calls match the flag."
        ));
    }
    if !found.earlier.is_empty() {
        text.push_str(&format!(
            " Earlier flags decide some of them: {}.",
            names(&found.earlier)
        ));
    }
    if flag.arming == Arming::Tripped {
        text.push_str(" The guard has tripped the flag: it decides nothing until it is re-armed.");
    }
    if kill == Kill::On {
        text.push_str(" The kill switch is on: no flag decides until it is off.");
    }
    text
}

fn callers(flag: &Flag, clients: &[&str]) -> String {
    match clients {
        _ if flag.client.as_str() == "*" => "all calls".to_owned(),
        [one] if !flag.client.fits(OTHER) => format!("client `{one}`'s calls"),
        [] => format!("the calls of `{}`", flag.client.as_str()),
        several => format!("the calls of {}", counted(several.len(), "client")),
    }
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

fn names(all: &[String]) -> String {
    let shown: Vec<String> = all
        .iter()
        .take(NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    match all.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests;
