//! `dualgauge schema`: the JSON Schema of a configuration file, for editors; and the lines of shipped and drafted files that
//! name one.
//!
//! Used by `cli`, `demo`, `drafted_server`, `import`, `kit` and `learn`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::cli::command_error::CommandError;
use crate::config::json_schema;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge schema > dualgauge.schema.json
  dualgauge schema routes > routes.schema.json
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
pub(super) enum DescribedFile {
    /// The main file
    Config,
    /// A file that the main file includes
    Routes,
    /// The flags file
    Flags,
}

pub(super) fn schema(arguments: &SchemaArguments) -> Result<ExitCode, CommandError> {
    let text = arguments.file.schema();
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

impl DescribedFile {
    /// Returns the text of the schema.
    fn schema(self) -> String {
        let schema = match self {
            DescribedFile::Config => json_schema::main_file(),
            DescribedFile::Routes => json_schema::included_file(),
            DescribedFile::Flags => json_schema::flags_file(),
        };
        format!("{schema:#}\n")
    }

    /// Returns the name of the schema's file.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            DescribedFile::Config => "dualgauge.schema.json",
            DescribedFile::Routes => "routes.schema.json",
            DescribedFile::Flags => "flags.schema.json",
        }
    }
}

/// The start of a first line that names the schema of a file.
const DIRECTIVE: &str = "#:schema ";

/// Returns the text of a shipped file without the line that names its schema.
#[cfg(feature = "demo")]
pub(super) fn without_schema(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with(DIRECTIVE) => rest,
        Some(_) | None => text,
    }
}

/// Returns the text of a shipped file that names its schema beside it.
pub(super) fn with_schema_beside(text: &str) -> String {
    let Some((path, rest)) = text
        .strip_prefix(DIRECTIVE)
        .and_then(|text| text.split_once('\n'))
    else {
        return text.to_owned();
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{DIRECTIVE}./{name}\n{rest}")
}

/// Returns the text of a drafted file with a line that names the schema beside it.
pub(super) fn name_schema(file: DescribedFile, text: &str) -> String {
    format!("{DIRECTIVE}./{}\n{text}", file.file_name())
}

/// Writes the schema of a drafted file into its folder, unless there is one. Returns true if the file of the schema is new.
pub(super) fn write_schema(file: DescribedFile, folder: &Path) -> io::Result<bool> {
    let path = folder.join(file.file_name());
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut opened) => opened.write_all(file.schema().as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes the schema of a drafted file beside it, and then the file. Without the file, a new schema does not stay.
pub(super) fn write_with_schema<E>(
    file: DescribedFile,
    path: &Path,
    unwritten: impl FnOnce(PathBuf, io::Error) -> E,
    write: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let schema = folder.join(file.file_name());
    let is_new = match write_schema(file, folder) {
        Ok(is_new) => is_new,
        Err(error) => return Err(unwritten(schema, error)),
    };
    let written = write();
    if is_new && written.is_err() {
        // A leftover does no harm.
        let _ = fs::remove_file(schema);
    }
    written
}

/// Returns the name and the text of each schema.
pub(super) fn all() -> impl Iterator<Item = (&'static str, String)> {
    let files = DescribedFile::value_variants().iter();
    files.map(|file| (file.file_name(), file.schema()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_schemas_are_those_of_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schema");
        for (name, schema) in all() {
            let file = folder.join(name);
            if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
                fs::write(&file, &schema).unwrap();
            }
            let shipped = fs::read_to_string(&file).unwrap_or_default();
            assert!(
                shipped == schema,
                "{name} is not what `dualgauge schema` prints; INSTA_UPDATE=always writes it"
            );
        }
        assert_eq!(fs::read_dir(folder).unwrap().count(), all().count());
    }

    #[test]
    fn a_written_file_names_the_schema_beside_it() {
        let shipped = "#:schema ../../schema/flags.schema.json\n# Flags.\n";
        let written = "#:schema ./flags.schema.json\n# Flags.\n";
        assert_eq!(with_schema_beside(shipped), written);
        assert_eq!(with_schema_beside("# Flags.\n"), "# Flags.\n");
    }

    #[test]
    fn a_draft_names_the_schema_beside_it_and_keeps_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let schema = folder.path().join("routes.schema.json");
        let named = "#:schema ./routes.schema.json\n# Routes.\n";
        let routes = DescribedFile::Routes;
        assert_eq!(name_schema(routes, "# Routes.\n"), named);
        assert!(write_schema(routes, folder.path()).unwrap());
        let written = fs::read_to_string(&schema).unwrap();
        assert_eq!(written, routes.schema());
        fs::write(&schema, "{}").unwrap();
        assert!(!write_schema(routes, folder.path()).unwrap());
        assert_eq!(fs::read_to_string(&schema).unwrap(), "{}");
    }

    #[test]
    fn a_schema_is_written_before_its_file_and_does_not_stay_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/routes.toml");
        let schema = folder.path().join("new/routes.schema.json");
        let write = |write: fn() -> Result<(), PathBuf>| {
            write_with_schema(DescribedFile::Routes, &path, |path, _| path, write)
        };
        // There is no such folder yet.
        let fault = write(|| panic!("the file is written without its schema"));
        assert_eq!(fault, Err(schema.clone()));
        fs::create_dir(folder.path().join("new")).unwrap();
        let failing = || Err(PathBuf::from("the file"));
        assert_eq!(write(failing), Err(PathBuf::from("the file")));
        assert!(!schema.exists());
        assert_eq!(write(|| Ok(())), Ok(()));
        assert!(schema.exists());
        // This one was there before.
        assert!(write(failing).is_err());
        assert!(schema.exists());
    }
}
