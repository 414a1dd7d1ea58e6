//! `dualgauge man`: manual pages from the definitions of the commands. Used by `cli`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::cli::command_error::CommandError;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge man --write ~/.local/share/man/man1
  man dualgauge-check";

/// The arguments of `man`.
#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// Write the pages into this folder, which is created if it is missing; existing pages are replaced
    #[arg(long, value_name = "DIR")]
    write: PathBuf,
}

pub(super) fn man(arguments: &ManArguments, command: Command) -> Result<ExitCode, CommandError> {
    fs::create_dir_all(&arguments.write)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default().to_owned();
    write_pages(&command, &version, &arguments.write)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &Command, version: &str, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    fs::write(
        folder.join(format!("{name}.1")),
        page(command, name, version)?,
    )?;
    let subcommands = command.get_subcommands();
    subcommands
        .filter(|subcommand| !subcommand.is_hide_set())
        .try_for_each(|subcommand| write_pages(subcommand, version, folder))
}

fn page(command: &Command, name: &str, version: &str) -> io::Result<String> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    let title = format!(
        ".TH {} 1 \"\" \"dualgauge {version}\" \"dualgauge\"\n",
        name.to_uppercase()
    );
    page.extend_from_slice(title.as_bytes());
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(help) = command.get_after_help() {
        examples(&help.to_string()).to_writer(&mut page)?;
    }
    see_also(command, name).to_writer(&mut page)?;
    Ok(tidied(&String::from_utf8_lossy(&page)))
}

/// Renders the options with their values, and the arguments.
fn synopsis(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let arguments = command.get_arguments().filter(|one| !one.is_hide_set());
    let (arguments, options): (Vec<&Arg>, Vec<&Arg>) =
        arguments.partition(|one| one.is_positional());
    let options = options.iter().map(|option| match option.is_required_set() {
        true => option.to_string(),
        false => format!("[{option}]"),
    });
    let mut words: Vec<String> = options.collect();
    words.extend(arguments.iter().map(ToString::to_string));
    words.extend(command.has_subcommands().then(|| "<COMMAND>".to_owned()));
    let line = match command.get_overridden_usage() {
        Some(usage) => usage.to_string().replacen(name, "", 1),
        None => format!(" {}", words.join(" ")),
    };
    roff.text([bold(name), roman(line)]);
    roff
}

/// Renders the examples line by line.
fn examples(help: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    let lines = help.strip_prefix("Examples:\n").unwrap_or(help).lines();
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

/// Names the page of the program, or on that page, the documentation.
fn see_also(command: &Command, name: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    let seen: [Inline; 2] = match name == command.get_name() {
        true => [italic(env!("CARGO_PKG_REPOSITORY")), roman("")],
        false => [bold("dualgauge"), roman("(1)")],
    };
    roff.text(seen);
    roff
}

/// Removes blanks at the ends of lines, and line breaks beside empty lines, which linters of pages report.
fn tidied(page: &str) -> String {
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    let is_empty = |at: Option<usize>| {
        at.and_then(|at| lines.get(at))
            .is_some_and(|line| line.is_empty())
    };
    let mut kept = String::new();
    for (at, line) in lines.iter().enumerate() {
        let is_needless = *line == ".br" && (is_empty(at.checked_sub(1)) || is_empty(Some(at + 1)));
        if !is_needless {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
