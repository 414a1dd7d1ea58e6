//! `dualgauge schema`: the JSON Schema of a configuration file, for editors. Used by `cli`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::cli::command_error::CommandError;
use crate::config::json_schema;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge schema > dualgauge.schema.json
  dualgauge schema flags > flags.schema.json";

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// The file to describe
    #[arg(value_enum, default_value_t = DescribedFile::Config)]
    file: DescribedFile,
}

/// A file with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DescribedFile {
    /// The main file, and the files that it includes
    Config,
    /// The flags file
    Flags,
}

pub(super) fn schema(arguments: &SchemaArguments) -> Result<ExitCode, CommandError> {
    let schema = match arguments.file {
        DescribedFile::Config => json_schema::main_file(),
        DescribedFile::Flags => json_schema::flags_file(),
    };
    writeln!(io::stdout().lock(), "{schema:#}")?;
    Ok(ExitCode::SUCCESS)
}
