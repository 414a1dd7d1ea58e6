//! `dualgauge check`: everything that is wrong with a configuration, or what it holds and what survives it.

mod human;
mod json;
mod own_codes;
mod sets;
mod statements;
mod upgrade;
mod verdict;

use std::io;
use std::process::ExitCode;

use crate::cli::{CheckArguments, CommandError, Format};
use crate::config::configuration::Configuration;
use crate::config::load::{Sources, environment};
use crate::config::problem::Problems;
use crate::domain::check;
use statements::Detail;
use upgrade::UpgradeNotes;
use verdict::Checked;

pub(super) fn check(arguments: &CheckArguments) -> Result<ExitCode, CommandError> {
    let sources = Sources {
        file: Some(arguments.config.clone()),
        environment: environment(),
        ..Sources::default()
    };
    let outcome = Configuration::read(&sources);
    let checked = match &outcome {
        Ok(configuration) => {
            let reports = check::check(&configuration.plan.routes);
            let events = check::check_events(&configuration.plan.events);
            let upgrade = match arguments.no_upgrade_notes {
                true => UpgradeNotes::Hidden,
                false => UpgradeNotes::Shown,
            };
            Ok(Checked::of(configuration, (reports, events), upgrade))
        }
        Err(problems) => Err(problems),
    };
    let detail = match arguments.verbose {
        true => Detail::Full,
        false => Detail::Brief,
    };
    write((arguments.format, detail), &checked)?;
    Ok(match checked {
        Ok(checked) if checked.problems.is_none() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    })
}

fn write(
    (format, detail): (Format, Detail),
    checked: &Result<Checked<'_>, &Problems>,
) -> io::Result<()> {
    match (format, checked) {
        (Format::Human, Ok(checked)) => human::write(checked, detail),
        (Format::Human, Err(problems)) => human::write_problems(problems),
        (Format::Json, Ok(checked)) => json::write(checked),
        (Format::Json, Err(problems)) => json::write_problems(problems),
    }
}
