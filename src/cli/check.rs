//! `dualgauge check`: the problems of a configuration, or its contents and the losses of translation. Used by `cli`.

mod annotations;
mod findings;
mod format;
mod json;
mod sarif;
mod sets;
mod statements;
mod text;
mod upgrade;
mod verdict;

use std::env;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::cli::command_error::CommandError;
use crate::config::configuration::{Configuration, Flawed};
use crate::config::load::{Sources, environment};
use crate::config::problem::{Problem, Problems};
use dualgauge_model::check;
use findings::Places;
use format::ReportFormat;
use statements::Detail;
use verdict::Checked;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge check --config dualgauge.toml
  dualgauge check --config dualgauge.toml --format json
  dualgauge check --config dualgauge.toml --format sarif > dualgauge.sarif";

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    format: ReportFormat,
    /// Print no notes on routes that a changed default affects
    #[arg(long)]
    no_upgrade_notes: bool,
    /// Print normal forms as well: values that return in another form with the same meaning
    #[arg(short, long)]
    verbose: bool,
}

pub(super) fn check(arguments: &CheckArguments) -> Result<ExitCode, CommandError> {
    let sources = Sources {
        file: Some(arguments.config.clone()),
        environment: environment(),
        ..Sources::default()
    };
    let inspected = Configuration::inspect(&sources);
    let checked = match inspected {
        Ok(ref configuration) => {
            let reports = check::check(&configuration.plan.routes);
            let events = check::check_events(&configuration.plan.events);
            let has_upgrade_notes = !arguments.no_upgrade_notes;
            Ok(Checked::new(
                configuration,
                reports,
                events,
                has_upgrade_notes,
            ))
        }
        Err(flawed) => Err(with_those_of_routes(flawed)),
    };
    let detail = match arguments.verbose {
        true => Detail::Full,
        false => Detail::Brief,
    };
    write(arguments, detail, &checked)?;
    Ok(match checked {
        Ok(checked) if checked.problems.is_none() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    })
}

/// Returns the problems that `check` reports.
#[cfg(test)]
pub(super) fn problems(sources: &Sources) -> Option<Problems> {
    match Configuration::inspect(sources) {
        Ok(configuration) => problems_of(&configuration),
        Err(flawed) => Some(with_those_of_routes(flawed)),
    }
}

/// Returns the problems that `check` reports for a configuration that compiles.
pub(super) fn problems_of(configuration: &Configuration) -> Option<Problems> {
    let reports = check::check(&configuration.plan.routes);
    let events = check::check_events(&configuration.plan.events);
    Checked::new(configuration, reports, events, false).problems
}

/// Adds the losses and examples of the routes without another problem. Routes with a set are left out if a set has a
/// problem.
fn with_those_of_routes(flawed: Flawed) -> Problems {
    let Flawed { part, problems } = flawed;
    let Some(mut part) = part else {
        return problems;
    };
    let mut reports = check::check(&part.plan.routes);
    let mut all = problems.into_vec();
    let is_of_set = |problem: &Problem| {
        problem.key.starts_with("outcomes") || problem.key.contains("].outcomes")
    };
    if all.iter().any(is_of_set) {
        let mut routes = part.raw.routes.iter();
        reports.retain(|_| routes.next().is_some_and(|route| route.sets.is_empty()));
        part.raw.routes.retain(|route| route.sets.is_empty());
    }
    let events = check::check_events(&part.plan.events);
    let checked = Checked::new(&part, reports, events, false);
    all.extend(checked.problems.into_iter().flat_map(Problems::into_vec));
    Problems::new(all)
}

fn write(
    arguments: &CheckArguments,
    detail: Detail,
    checked: &Result<Checked<'_>, Problems>,
) -> io::Result<()> {
    let findings = || {
        let folder = env::current_dir().unwrap_or_default();
        let places = Places {
            main: &arguments.config,
            folder: &folder,
        };
        findings::findings(checked, &places)
    };
    match (arguments.format, checked) {
        (ReportFormat::Human, Ok(checked)) => text::write(checked, detail),
        (ReportFormat::Human, Err(problems)) => text::write_problems(problems),
        (ReportFormat::Json, Ok(checked)) => json::write(checked),
        (ReportFormat::Json, Err(problems)) => json::write_problems(problems),
        (ReportFormat::Github, _) => print(&annotations::render(&findings())),
        (ReportFormat::Sarif, _) => print(&sarif::render(&findings())),
    }
}

fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}
