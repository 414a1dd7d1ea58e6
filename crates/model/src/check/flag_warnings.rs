//! Warnings for flags that are valid but have no effect. Such a flag is no error: it may wait for a change at run time,
//! or for a route that is added later.
//!
//! Used by `cli::check::verdict`.

use core::fmt;

use crate::plan::Plan;
use crate::rollout::{Flag, Mode, OTHER, Percent, Stage};
use crate::route::Route;
use crate::shadow_limits::never;
use dualgauge_patterns::side::Side;

/// The most names in one warning.
const NAMES: usize = 5;

/// A warning for one flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagWarning {
    /// The index of the flag.
    pub flag: usize,
    /// The missing effect.
    pub what: MissingEffect,
}

/// An effect that a flag never has as long as the file stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingEffect {
    /// It compares nothing: no call of its routes is repeated.
    Comparison {
        /// The stage of the flag.
        stage: Stage,
        /// The routes of the flag.
        routes: Vec<String>,
    },
    /// Its guard judges nothing: no call is translated.
    Judgement {
        /// The stage of the flag.
        stage: Stage,
        /// True if a ramp waits for the guard.
        has_ramp: bool,
    },
    /// It moves nothing: each of its routes always passes.
    Movement {
        /// The routes of the flag.
        routes: Vec<String>,
    },
    /// It decides nothing: another flag takes every call that it covers.
    Decision {
        /// The name of the earlier flag.
        earlier: String,
    },
}

impl fmt::Display for MissingEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingEffect::Comparison { stage, routes } => {
                write!(
                    f,
                    "`{}` compares nothing here: no call of {} is repeated; set `effect = \"safe\"` on routes whose calls may be repeated",
                    stage.as_str(),
                    named(routes)
                )
            }
            MissingEffect::Judgement { stage, has_ramp } => {
                let waits = if *has_ramp {
                    "the guard and the ramp have"
                } else {
                    "the guard has"
                };
                write!(
                    f,
                    "`{}` translates no call, so {waits} no data until the stage changes",
                    stage.as_str()
                )
            }
            MissingEffect::Movement { routes } => write!(
                f,
                "the flag never moves a call: `stage = \"passthrough\"` of {} applies whatever flags say; remove `stage` from routes whose calls the flag shall move",
                named(routes)
            ),
            MissingEffect::Decision { earlier } => write!(
                f,
                "the flag never decides: `{earlier}`, which precedes it, takes every call that it covers"
            ),
        }
    }
}

/// Returns the names of routes, for people.
fn named(routes: &[String]) -> String {
    let names = routes.iter().take(NAMES);
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let more = match routes.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.join(", ") + &more
}

/// Returns the warnings for all flags of a plan, in their order.
#[must_use]
pub fn idle(plan: &Plan) -> Vec<FlagWarning> {
    let covered: Vec<Covered<'_>> = plan
        .rollout
        .flags
        .iter()
        .map(|flag| Covered::new(plan, flag))
        .collect();
    let mut idle = Vec::new();
    for (index, covers) in covered.iter().enumerate() {
        let earlier = covered
            .iter()
            .take(index)
            .find(|earlier| earlier.hides(covers));
        let undecided = earlier.map(|earlier| MissingEffect::Decision {
            earlier: earlier.flag.name.clone(),
        });
        let unmoved = covers.moves_nothing();
        let all = match unmoved {
            // The others follow from it.
            Some(_) => [unmoved, None, undecided],
            None => [
                covers.compares_nothing(),
                covers.judges_nothing(),
                undecided,
            ],
        };
        idle.extend(
            all.into_iter()
                .flatten()
                .map(|what| FlagWarning { flag: index, what }),
        );
    }
    idle
}

/// The clients and calls that a flag covers.
struct Covered<'p> {
    flag: &'p Flag,
    clients: Vec<&'p str>,
    /// Each route with a side from which it can be called.
    calls: Vec<(&'p Route, Side)>,
}

impl<'p> Covered<'p> {
    fn new(plan: &'p Plan, flag: &'p Flag) -> Covered<'p> {
        let clients = plan.rollout.clients.all().iter();
        let clients = clients.map(|client| client.name.as_str()).chain([OTHER]);
        let routes = plan.routes.routes().iter();
        let routes = routes.filter(|route| flag.route.fits(&route.name));
        let calls = routes.flat_map(|route| {
            let sides = Side::ALL.into_iter();
            let sides = sides.filter(|side| flag.side.is_none_or(|own| own == *side));
            let sides = sides.filter(|side| route.enters_from(*side));
            sides.map(move |side| (route, side))
        });
        Covered {
            flag,
            clients: clients.filter(|name| flag.client.fits(name)).collect(),
            calls: calls.collect(),
        }
    }

    fn compares_nothing(&self) -> Option<MissingEffect> {
        let stage = self.flag.stage;
        stage.candidate()?;
        let repeats = |route: &Route| never(route).is_none() && !route.always_passes;
        if self.calls.is_empty() || self.calls.iter().any(|(route, _)| repeats(route)) {
            return None;
        }
        let routes = self.routes();
        Some(MissingEffect::Comparison { stage, routes })
    }

    fn moves_nothing(&self) -> Option<MissingEffect> {
        let all_pass = self.calls.iter().all(|(route, _)| route.always_passes);
        let routes = self.routes();
        (all_pass && !routes.is_empty()).then_some(MissingEffect::Movement { routes })
    }

    /// Returns the names of the routes that the flag covers.
    fn routes(&self) -> Vec<String> {
        let routes = self.calls.iter();
        let mut routes: Vec<String> = routes.map(|(route, _)| route.name.clone()).collect();
        routes.dedup();
        routes
    }

    fn judges_nothing(&self) -> Option<MissingEffect> {
        self.flag.guard.as_ref()?;
        let has_ramp = self.flag.ramp.is_some();
        match self.flag.stage {
            stage @ (Stage::Passthrough | Stage::Retired) => {
                Some(MissingEffect::Judgement { stage, has_ramp })
            }
            Stage::Shadow | Stage::Verify | Stage::Translate => None,
        }
    }

    /// Returns true when this flag takes every call that the other one covers. A guard that acts, or a ramp, leaves
    /// calls to later flags.
    fn hides(&self, other: &Covered<'_>) -> bool {
        let own = self.flag;
        let acts = own
            .guard
            .as_ref()
            .is_some_and(|guard| guard.mode == Mode::Act);
        let takes_all = own.share() == Percent::ALL && own.headers.is_empty();
        takes_all
            && !acts
            && own.ramp.is_none()
            && other.clients.iter().all(|name| own.client.fits(name))
            && other.calls.iter().all(|(route, side)| {
                own.route.fits(&route.name) && own.side.is_none_or(|own| own == *side)
            })
    }
}
