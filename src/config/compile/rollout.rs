//! Clients, flags and the default stages.

use http::HeaderName;

use crate::config::compile::{guard, identity, upstreams};
use crate::config::problem::{Problem, SourceLocation, Spanned, nearest};
use crate::config::raw::{RawConfig, RawFlag, RawHeaderGlob};
use dualgauge_model::lifecycle::Brownouts;
use dualgauge_model::rollout::{
    Clients, Defaults, Flag, FlagFault, Glob, Kill, OTHER, Percent, Rollout, RouteEntry, Stage,
    StageFault,
};
use dualgauge_patterns::side::Side;

/// Compiles the clients, flags and default stages.
pub(super) fn compile(raw: &RawConfig, flags: &[RawFlag], problems: &mut Vec<Problem>) -> Rollout {
    let upstreams = upstreams::sides(raw);
    let clients = identity::clients(raw, problems);
    let context = FlagContext {
        routes: raw
            .routes
            .iter()
            .map(|route| RouteEntry {
                name: &route.name.value,
                from: route.from.as_ref().map(|from| from.value),
            })
            .chain(raw.streams.iter().map(|stream| RouteEntry {
                name: &stream.name.value,
                from: None,
            }))
            .collect(),
        names: raw
            .clients
            .iter()
            .map(|client| client.name.value.as_str())
            .chain([OTHER])
            .collect(),
        clients: &clients,
        upstreams: &upstreams,
    };
    let flags = flags.iter().map(|flag| context.flag(flag, problems));
    let flags: Vec<Flag> = flags.collect();
    let [rest, rpc] = Side::ALL.map(|side| context.default(raw, side, problems));
    Rollout {
        flags: flags.into(),
        defaults: Defaults { rest, rpc },
        clients,
        session_grace: raw.rollout.session_grace.value,
        kill: Kill::Off,
        decision_header: raw
            .rollout
            .decision_header
            .as_ref()
            .map(|header| header.value.clone()),
        brownouts: Brownouts::default(),
    }
}

fn headers(rules: &[RawHeaderGlob]) -> Vec<(HeaderName, Glob)> {
    let rules = rules.iter();
    rules
        .map(|rule| (rule.header.value.clone(), Glob::new(&*rule.glob.value)))
        .collect()
}

/// The context that flags and defaults refer to.
struct FlagContext<'g> {
    routes: Vec<RouteEntry<'g>>,
    names: Vec<&'g str>,
    clients: &'g Clients,
    upstreams: &'g [Side],
}

impl FlagContext<'_> {
    fn flag(&self, raw: &RawFlag, problems: &mut Vec<Problem>) -> Flag {
        let guard = raw
            .guard
            .as_ref()
            .map(|guard| guard::guard(guard, problems));
        let flag = Flag {
            name: raw.name.value.clone(),
            client: Glob::new(&*raw.client.value),
            route: Glob::new(&*raw.route.value),
            side: raw.side.as_ref().map(|side| side.value),
            headers: headers(&raw.headers),
            stage: raw.stage.value,
            percent: percent(&raw.percent, problems),
            without_key: raw.without_key.value,
            holdback: percent(&raw.holdback, problems),
            ramp: raw
                .ramp
                .as_ref()
                .and_then(|ramp| guard::ramp(ramp, guard.as_ref(), problems)),
            guard,
            arming: raw.arming,
        };
        for fault in flag.faults(self.clients, &self.routes, self.upstreams) {
            problems.push(self.problem(raw, &flag, &fault));
        }
        flag
    }

    fn problem(&self, raw: &RawFlag, flag: &Flag, fault: &FlagFault) -> Problem {
        let message = fault.to_string();
        let (problem, hint) = match fault {
            FlagFault::NoClient(glob) => {
                (raw.client.problem(message), did_you_mean(glob, &self.names))
            }
            FlagFault::NoRoute(glob) => {
                let names: Vec<&str> = self.routes.iter().map(|route| route.name).collect();
                (raw.route.problem(message), did_you_mean(glob, &names))
            }
            FlagFault::NotEntered(side) => {
                let on_side = raw.side.as_ref().map(|side| side.problem(&*message));
                let hint = format!("write `side = \"{}\"`, or name another route", side.other());
                (
                    on_side.unwrap_or_else(|| raw.name.problem(message)),
                    Some(hint),
                )
            }
            FlagFault::Stage(fault) => {
                let way_out = match flag.side {
                    Some(_) => "choose another stage".to_owned(),
                    None => format!("limit the flag by `side = \"{}\"`", fault.calls.other()),
                };
                let hint = format!("{}, or {way_out}", add_upstream(*fault));
                (raw.stage.problem(message), Some(hint))
            }
            FlagFault::NoKey { .. } => {
                let hint = "name a client that has a `key`, or write `percent = 100`".to_owned();
                (raw.percent.problem(message), Some(hint))
            }
        };
        let problem = located_or_at_flag(problem, raw);
        Problem { hint, ..problem }
    }

    /// Returns the default stage: passthrough if the side has an upstream, else translate, unless configured.
    fn default(&self, raw: &RawConfig, side: Side, problems: &mut Vec<Problem>) -> Stage {
        let configured: Option<&Spanned<Stage>> = match side {
            Side::Rest => raw.rollout.default_rest.as_ref(),
            Side::Rpc => raw.rollout.default_rpc.as_ref(),
        };
        let Some(configured) = configured else {
            return if self.upstreams.contains(&side) {
                Stage::Passthrough
            } else {
                Stage::Translate
            };
        };
        let stage = configured.value;
        // Only calls of a route are ever translated.
        let entered = self.routes.iter().any(|route| route.enters_from(side));
        let never = stage.needs(side).any(|needed| needed != side) && !entered;
        if let Some(fault) = stage.fault(side, self.upstreams).filter(|_| !never) {
            let hint = format!("{}, or choose another stage", add_upstream(fault));
            problems.push(configured.problem(fault.to_string()).hint(hint));
        }
        stage
    }
}

/// Moves a problem with a default of the flags file to the flag, since a default has no line.
fn located_or_at_flag(problem: Problem, raw: &RawFlag) -> Problem {
    let place = match problem.place {
        SourceLocation::Default => raw.place.clone(),
        place @ (SourceLocation::File { .. }
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_)) => place,
    };
    Problem { place, ..problem }
}

fn percent(raw: &Spanned<u32>, problems: &mut Vec<Problem>) -> Percent {
    Percent::from_thousandths(raw.value).unwrap_or_else(|| {
        problems.push(raw.problem("a percentage is at most 100"));
        Percent::ALL
    })
}

fn add_upstream(fault: StageFault) -> String {
    format!("add `[upstream.NAME]` with `side = \"{}\"`", fault.needs)
}

/// Returns the nearest name, or the nearest prefix if the glob ends with a star.
fn did_you_mean(glob: &str, names: &[&str]) -> Option<String> {
    let beginnings: Vec<String> = names.iter().flat_map(|name| beginnings(name)).collect();
    let globs = beginnings
        .iter()
        .map(String::as_str)
        .filter(|_| glob.ends_with('*'));
    let known = names.iter().copied().chain(globs);
    nearest(glob, known).map(|near| format!("did you mean `{near}`?"))
}

/// Returns the prefixes of a name as globs: `agent.*` for `agent.search`.
fn beginnings(name: &str) -> impl Iterator<Item = String> {
    name.match_indices(['.', '-', '_', '/'])
        .map(|(at, separator)| format!("{}*", &name[..at + separator.len()]))
}
