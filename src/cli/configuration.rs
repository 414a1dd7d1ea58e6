//! The configuration that a command inspects. Used by `explain` and `routes`.

use std::io::{self, Write as _};
use std::path::Path;

use crate::config::configuration::Configuration;
use crate::config::load::{Sources, environment};

/// Reads the configuration for a command that only inspects it; prints the problems if it is invalid.
pub(super) fn read_configuration(file: &Path) -> io::Result<Option<Configuration>> {
    let sources = Sources {
        file: Some(file.to_owned()),
        environment: environment(),
        ..Sources::default()
    };
    match Configuration::read(&sources) {
        Ok(configuration) => Ok(Some(configuration)),
        Err(problems) => {
            writeln!(io::stderr().lock(), "{problems}")?;
            Ok(None)
        }
    }
}
