//! Output of explanations, and of input that cannot be read. Used by `explain`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use super::explained::Explained;
use super::input_error::InputError;
use super::text;
use crate::cli::format::Format;

/// Prints explanations in a format.
pub(super) fn print(format: Format, explained: &[Explained]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Human => out.write_all(text::render(explained).as_bytes()),
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, explained).map_err(io::Error::from)?;
            out.write_all(b"\n")
        }
    }
}

/// Reports unreadable input with its causes.
pub(super) fn unreadable(error: &InputError) -> io::Result<ExitCode> {
    let mut text = format!("error: {error}\n");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!("  caused by: {error}\n"));
        cause = error.source();
    }
    io::stderr().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::from(2))
}
