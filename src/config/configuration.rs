//! The complete configuration: reading, decoding and compiling. Used at start, on reload, and by `check`.
//!
//! Used by `app` and `cli`.

use std::collections::BTreeSet;

use crate::config::compile::compile_parts;
use crate::config::digest::Digests;
use crate::config::flags;
use crate::config::load::{Loaded, Sources, load_parts};
use crate::config::problem::{Problem, Problems};
use crate::config::raw::{RawConfig, RawFlag};
use dualgauge_model::plan::Plan;

/// A configuration without problems.
#[derive(Debug)]
pub struct Configuration {
    /// The values of files, variables and arguments. Listeners, files and the log are configured from here.
    pub raw: RawConfig,
    /// The flags of the flags file.
    pub flags: Vec<RawFlag>,
    /// The compiled plan.
    pub plan: Plan,
}

/// A configuration with problems.
#[derive(Debug)]
pub struct Flawed {
    /// The routes without a problem, as a configuration for inspection only.
    pub part: Option<Box<Configuration>>,
    /// Every problem.
    pub problems: Problems,
}

impl Configuration {
    /// Reads the configuration and the flags file that it names, and compiles both.
    ///
    /// # Errors
    /// Every problem of both: see [`Configuration::inspect`].
    pub fn read(sources: &Sources) -> Result<Configuration, Problems> {
        Configuration::inspect(sources).map_err(|flawed| flawed.problems)
    }

    /// Returns the same; with problems, it also returns the valid part.
    ///
    /// An element that cannot be decoded, such as a route, hides no problem of the others. Problems that may follow
    /// from it are omitted: a flag that names a client, if a client cannot be decoded.
    ///
    /// # Errors
    /// Every problem. If the main file cannot be read or is not TOML, that and the problems that do not depend on it.
    pub fn inspect(sources: &Sources) -> Result<Configuration, Flawed> {
        let lone = |problems| Flawed {
            part: None,
            problems,
        };
        let loaded = load_parts(sources, &mut Digests::new()).map_err(lone)?;
        let Loaded {
            config,
            mut problems,
        } = loaded;
        let Some(mut raw) = config else {
            return Err(lone(Problems::new(problems)));
        };
        let incomplete = incomplete(&problems);
        let (flags, found) = match &raw.rollout.flags {
            Some(file) => flags::load_parts(file),
            None => (Vec::new(), Vec::new()),
        };
        problems.extend(found);
        let (plan, found) = compile_parts(&raw, &flags);
        let found = found.into_iter();
        problems.extend(found.filter(|problem| is_independent(&problem.key, &incomplete)));
        if problems.is_empty() {
            return Ok(Configuration { raw, flags, plan });
        }
        let routes = plan.routes.routes().iter();
        let mut names: BTreeSet<&str> = routes.map(|route| route.name.as_str()).collect();
        // Of two routes with one name, the second is invalid.
        raw.routes
            .retain(|route| names.remove(route.name.value.as_str()));
        let part = Some(Box::new(Configuration { raw, flags, plan }));
        let problems = Problems::new(problems);
        Err(Flawed { part, problems })
    }
}

/// The tables that an included file may have.
const INCLUDED: [&str; 5] = ["route", "outcomes", "stream", "event", "local"];

/// Returns the tables with an element that could not be decoded.
fn incomplete(problems: &[Problem]) -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for problem in problems {
        match root(&problem.key) {
            // An unreadable file.
            "" => tables.extend(INCLUDED.map(str::to_owned)),
            table => {
                tables.insert(table.to_owned());
            }
        }
    }
    tables
}

/// Returns whether a problem found by compilation is independent of the incomplete tables.
fn is_independent(key: &str, incomplete: &BTreeSet<String>) -> bool {
    match refers_to(key) {
        Some(tables) => !tables.iter().any(|table| incomplete.contains(*table)),
        None => incomplete.is_empty(),
    }
}

/// Returns the tables that a value refers to, in addition to its own; `None` if it may refer to any.
fn refers_to(key: &str) -> Option<&'static [&'static str]> {
    let has = |part: &str| key.contains(part);
    Some(match root(key) {
        "route" if has("].outcomes") => &["outcomes"],
        "route" if has("].upstream") => &["upstream"],
        "route" if has("].successor") => &["route"],
        "flag" if has("].client") || has("].percent") || has("].holdback") => &["client"],
        "flag" if has("].stage") => &["upstream"],
        "flag" if has("].guard") || has("].ramp") => &[],
        "flag" => &["route", "stream"],
        // A list that lost its elements looks empty.
        "rollout" => &["upstream", "rollout"],
        "route" | "outcomes" | "client" | "listen" | "cors" | "limits" | "trace" | "compare" => &[],
        _ => return None,
    })
}

fn root(key: &str) -> &str {
    key.split(['.', '[']).next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_may_follow_from_another_is_left_out() {
        let cases = [
            ("route[0].rest", "route", true),
            ("outcomes.common[1].rpc", "route", true),
            ("route[0].outcomes", "outcomes", false),
            ("route[0].outcomes", "route", true),
            ("route[0].upstream", "upstream", false),
            ("flag[0].client", "client", false),
            ("flag[0].client", "route", true),
            ("flag[0].route", "route", false),
            ("flag[0].stage", "route", true),
            ("flag[0].stage", "upstream", false),
            ("local[0].rpc", "limits", false),
            ("listen.tls.key", "route", true),
            ("rollout.bearer.keys", "rollout", false),
        ];
        for (key, table, expected) in cases {
            let incomplete = BTreeSet::from([table.to_owned()]);
            assert_eq!(is_independent(key, &incomplete), expected, "{key}, {table}");
            assert!(is_independent(key, &BTreeSet::new()), "{key}");
        }
    }
}
