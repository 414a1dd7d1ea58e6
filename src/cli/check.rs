//! `dualgauge check`: everything that is wrong with a configuration, or what it holds.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::cli::{CheckArguments, CommandError, Format};
use crate::config::configuration::Configuration;
use crate::config::load::{Sources, environment};
use crate::config::problem::{Place, Problem, Problems};

pub(super) fn check(arguments: &CheckArguments) -> Result<ExitCode, CommandError> {
    let sources = Sources {
        file: Some(arguments.config.clone()),
        environment: environment(),
        ..Sources::default()
    };
    let outcome = Configuration::read(&sources);
    match arguments.format {
        Format::Human => write_human(&outcome)?,
        Format::Json => write_json(&outcome)?,
    }
    Ok(match outcome {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn write_human(outcome: &Result<Configuration, Problems>) -> io::Result<()> {
    match outcome {
        Ok(configuration) => io::stdout()
            .lock()
            .write_all(summary(configuration).as_bytes()),
        Err(problems) => writeln!(io::stderr().lock(), "{problems}"),
    }
}

/// A line for each route, and how much there is of everything.
fn summary(configuration: &Configuration) -> String {
    let rows: Vec<RouteRow<'_>> = rows(configuration);
    let widest = |column: usize| {
        let widths = rows.iter().map(|row| row.columns()[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let (name, rest, rpc) = (widest(0), widest(1), widest(2));
    let mut text: String = rows
        .iter()
        .map(|row| {
            format!(
                "{:name$}  {:rest$}  {:rpc$}  {}\n",
                row.name, row.rest, row.rpc, row.effect
            )
        })
        .collect();
    text.push_str(&format!(
        "ok: {}, {}, {}\n",
        count(rows.len(), "route"),
        count(configuration.flags.len(), "flag"),
        count(configuration.raw.clients.len(), "client")
    ));
    text
}

fn count(number: usize, of: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {of}{plural}")
}

/// The outcome as a document; its members are read by programs of others.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Document<'d> {
    Fine {
        ok: bool,
        problems: [(); 0],
        routes: Vec<RouteRow<'d>>,
        flags: usize,
        clients: usize,
    },
    Wrong {
        ok: bool,
        problems: Vec<ProblemRow<'d>>,
    },
}

/// A route as the files spell it, with the effect that holds.
#[derive(Debug, Serialize)]
struct RouteRow<'d> {
    name: &'d str,
    rest: &'d str,
    rpc: &'d str,
    effect: &'static str,
}

impl RouteRow<'_> {
    /// What is padded to one width.
    fn columns(&self) -> [&str; 3] {
        [self.name, self.rest, self.rpc]
    }
}

#[derive(Debug, Serialize)]
struct ProblemRow<'d> {
    /// A file, a variable or an argument.
    place: String,
    line: Option<usize>,
    key: &'d str,
    message: &'d str,
    hint: Option<&'d str>,
}

fn write_json(outcome: &Result<Configuration, Problems>) -> io::Result<()> {
    let document = match outcome {
        Ok(configuration) => Document::Fine {
            ok: true,
            problems: [],
            routes: rows(configuration),
            flags: configuration.flags.len(),
            clients: configuration.raw.clients.len(),
        },
        Err(problems) => Document::Wrong {
            ok: false,
            problems: problems.iter().map(problem_row).collect(),
        },
    };
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, &document)?;
    stdout.write_all(b"\n")
}

/// Routes in the order of the files, which is the order of the plan.
fn rows(configuration: &Configuration) -> Vec<RouteRow<'_>> {
    let raw = configuration.raw.routes.iter();
    raw.zip(configuration.plan.routes.routes())
        .map(|(raw, route)| RouteRow {
            name: &raw.name.value,
            rest: &raw.rest.value,
            rpc: &raw.rpc.value,
            effect: route.effect.as_str(),
        })
        .collect()
}

fn problem_row(problem: &Problem) -> ProblemRow<'_> {
    let (place, line) = match &problem.place {
        Place::File { path, position } => (
            path.display().to_string(),
            position.map(|position| position.line),
        ),
        place @ (Place::Default | Place::Variable(_) | Place::Argument(_) | Place::Flip(_)) => {
            (place.to_string(), None)
        }
    };
    ProblemRow {
        place,
        line,
        key: &problem.key,
        message: &problem.message,
        hint: problem.hint.as_deref(),
    }
}
