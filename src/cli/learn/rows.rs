//! Outcome rows that mismatches show as missing, as sets that routes name. Used by `cli::learn`.
//!
//! Laws: with a proposed set, `check` reports no further problem, and the route translates each pair of responses that
//! the rows were made from without a difference, apart from the fields that the draft names.

use dualgauge_model::import::printable;
use dualgauge_model::plan::Plan;
use dualgauge_model::proposal::{
    MismatchReport, NoRow, ProposedRow, ReplyGroup, RouteMismatches, propose, quoted,
};

use crate::cli::check::problems_of;
use crate::cli::plural::count;
use crate::config::compile::compile;
use crate::config::configuration::Configuration;
use crate::config::outcome_document;
use crate::config::problem::{Problem, Problems, Spanned};

/// The proposed sets of all routes.
#[derive(Debug, Default)]
pub(super) struct ProposedSets {
    /// A file with the sets.
    pub(super) toml: String,
    rows: u64,
    routes: u64,
    left: u64,
}

/// The set of one route.
#[derive(Debug, Default)]
struct ProposedSet {
    name: String,
    /// The tables of the rows, each with its guesses.
    tables: Vec<String>,
    /// Differences that no row removes.
    left: Vec<String>,
}

const HEAD: &str = "\
# Outcome rows that mismatches show as missing, proposed by `dualgauge learn`.
#
# What to do next: read each `guess:`, change or delete the row, then name this file in `include` of the main
# configuration, add the key `outcomes` to each route as shown, and run `dualgauge check --config FILE`.
";

impl ProposedSets {
    /// Proposes the rows of all routes with mismatches.
    pub(super) fn new(report: &MismatchReport, configuration: &Configuration) -> ProposedSets {
        let mut found = ProposedSets {
            toml: HEAD.to_owned(),
            ..ProposedSets::default()
        };
        let known = problems_of(configuration);
        let mut names: Vec<String> = Vec::new();
        for route in &report.routes {
            let attempt = Attempt::new(configuration, known.as_ref(), &route.route, &mut names);
            let Some(attempt) = attempt else {
                let line = format!(
                    "route `{}`: the configuration does not have it",
                    route.route
                );
                found.toml.push_str(&format!("\n# {}\n", printable(&line)));
                continue;
            };
            let set = attempt.propose(route);
            if set.tables.is_empty() && set.left.is_empty() {
                continue;
            }
            found.rows += set.tables.len() as u64;
            found.routes += u64::from(!set.tables.is_empty());
            found.left += set.left.len() as u64;
            found.toml.push_str(&render(route, &attempt, &set));
        }
        found
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "proposed: {} for {}; {} that no row removes\n",
            count(self.rows, "outcome row"),
            count(self.routes, "route"),
            count(self.left, "difference")
        )
    }
}

fn render(route: &RouteMismatches, attempt: &Attempt<'_>, set: &ProposedSet) -> String {
    let mut text = format!("\n# {}\n", printable(&format!("route `{}`", route.route)));
    if !set.tables.is_empty() {
        text.push_str(&format!("# add to the route: {}\n", attempt.key_of_sets()));
    }
    for line in &set.left {
        text.push_str(&format!("# {}\n", printable(line)));
    }
    for table in &set.tables {
        text.push('\n');
        text.push_str(table);
    }
    text
}

/// A route of the configuration, with the set that is tried.
struct Attempt<'c> {
    configuration: &'c Configuration,
    /// The problems without the set.
    known: Option<&'c Problems>,
    /// The index of the route.
    index: usize,
    name: String,
}

impl<'c> Attempt<'c> {
    fn new(
        configuration: &'c Configuration,
        known: Option<&'c Problems>,
        route: &str,
        names: &mut Vec<String>,
    ) -> Option<Attempt<'c>> {
        let raw = &configuration.raw;
        let index = raw.routes.iter().position(|own| own.name.value == route)?;
        let plain = |c: char| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_lowercase(),
            false => '_',
        };
        let wanted: String = route.chars().map(plain).collect();
        let wanted = format!("{wanted}_learned");
        let mut name = wanted.clone();
        let mut number = 1;
        while names.contains(&name) || raw.sets.iter().any(|set| set.name.value == name) {
            number += 1;
            name = format!("{wanted}{number}");
        }
        names.push(name.clone());
        Some(Attempt {
            configuration,
            known,
            index,
            name,
        })
    }

    /// Returns the key of the route that names its sets.
    fn key_of_sets(&self) -> String {
        let sets = self.configuration.raw.routes[self.index].sets.iter();
        let mut names: Vec<String> = sets.map(|set| quoted(&set.value)).collect();
        names.push(quoted(&self.name));
        match &names[..] {
            [name] => format!("outcomes = {name}"),
            names => format!("outcomes = [{}]", names.join(", ")),
        }
    }

    fn propose(&self, route: &RouteMismatches) -> ProposedSet {
        let mut set = ProposedSet {
            name: self.name.clone(),
            ..ProposedSet::default()
        };
        let (mut explained, mut unexplained) = (Vec::new(), Vec::new());
        let mut ignored = Vec::new();
        for group in &route.groups {
            match propose(group)
                .map_err(|why| why.to_string())
                .and_then(|row| {
                    let table = self.add(&set, group, &row)?;
                    Ok((table, row.missing))
                }) {
                Ok((table, missing)) => {
                    set.tables.push(table);
                    explained.push(group);
                    ignored.extend(missing);
                }
                Err(why) => {
                    if why != NoRow::Values.to_string() {
                        set.left.push(format!("no row: {}: {why}", endings(group)));
                    }
                    unexplained.push(group);
                }
            }
        }
        for field in &route.fields {
            let is_in =
                |groups: &[&ReplyGroup]| groups.iter().any(|it| it.differs_at(&field.field));
            if is_in(&explained) && !is_in(&unexplained) && !ignored.contains(&field.field) {
                continue;
            }
            let advice = field.advice();
            let rule = advice.rule.map_or_else(String::new, |(rule, when)| {
                format!("; `{rule}` of the route fits {when}")
            });
            let (name, calls) = (&field.field, count(field.calls, "call"));
            set.left
                .push(format!("no row: {name} in {calls}: {}{rule}", advice.why));
            ignored.retain(|known| known != name);
        }
        for path in ignored {
            set.left.push(format!(
                "no row: {path}: the other response has no such value; `compare.ignore = [{}]` of the route fits if \
                 clients do not read it",
                quoted(&path)
            ));
        }
        set
    }

    /// Returns the table of a row if the configuration accepts it beside those of the set; else the reason.
    fn add(
        &self,
        set: &ProposedSet,
        group: &ReplyGroup,
        row: &ProposedRow,
    ) -> Result<String, String> {
        let mut refused = String::new();
        for lossy in [None, Some(LOSSY)] {
            let table = table(&set.name, group, row, lossy);
            let mut text = set.tables.concat();
            text.push_str(&table);
            match self.check(&text, row) {
                Ok(()) => return Ok(table),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn check(&self, text: &str, row: &ProposedRow) -> Result<(), String> {
        let first = |problems: &Problems| {
            let mut new = problems.iter().filter(|problem| {
                let known = self.known.into_iter().flatten();
                !known.into_iter().any(|known| is_same(known, problem))
            });
            new.next().map(|problem| problem.message.clone())
        };
        let first_of = |problems: Problems| {
            first(&problems)
                .unwrap_or_else(|| "the configuration has problems without it".to_owned())
        };
        let sets = outcome_document::read(text).map_err(first_of)?;
        let mut raw = self.configuration.raw.clone();
        raw.sets.extend(sets);
        let route = &mut raw.routes[self.index];
        let name = route.name.value.clone();
        route.sets.push(Spanned {
            value: self.name.clone(),
            place: route.name.place.clone(),
            key: format!("{}.outcomes", route.key),
        });
        let flags = self.configuration.flags.clone();
        let plan = compile(&raw, &flags).map_err(first_of)?;
        try_with(&plan, &name, row)?;
        let tried = Configuration { raw, flags, plan };
        match problems_of(&tried).as_ref().and_then(first) {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }
}

/// Returns true for the same problem at the same place.
fn is_same(one: &Problem, other: &Problem) -> bool {
    (&one.place, &one.key, &one.message) == (&other.place, &other.key, &other.message)
}

fn try_with(plan: &Plan, route: &str, row: &ProposedRow) -> Result<(), String> {
    let mut routes = plan.routes.routes().iter();
    let route = routes.find(|own| own.name == route);
    let route = route.ok_or("the route does not compile")?;
    row.try_with(&route.outcomes).map_err(|why| why.to_string())
}

/// The reason for an accepted loss.
const LOSSY: &str = "a guess: one side has values that the other does not have";

fn table(name: &str, group: &ReplyGroup, row: &ProposedRow, lossy: Option<&str>) -> String {
    let mut text = format!("# guess: {}\n", printable(&endings(group)));
    for guess in &row.guesses {
        text.push_str(&format!("# guess: {}\n", printable(guess)));
    }
    text.push_str(&format!("[[outcomes.{name}]]\n"));
    if let Some(lossy) = lossy {
        text.push_str(&format!("lossy = \"{lossy}\"\n"));
    }
    text.push_str(&format!("rest = {}\nrpc = {}\n", row.rest(), row.rpc()));
    text
}

fn endings(group: &ReplyGroup) -> String {
    let calls = count(group.calls, "call");
    format!(
        "{calls} with {} from the control and {} from the candidate",
        group.control, group.candidate
    )
}
