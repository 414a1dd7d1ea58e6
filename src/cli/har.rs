//! `dualgauge har`: a recording as a HAR file, for browsers and other programs. Used by `cli`.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::cli::command_error::CommandError;
use crate::cli::replay::{FilePart, Input, ReplayFault};
use dualgauge_recording::har::Writer;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge har calls.jsonl --output calls.har
  dualgauge har calls.jsonl --origin https://api.example | gzip > calls.har.gz";

#[derive(Debug, Args)]
pub(super) struct HarArguments {
    /// A recording of dualgauge, or a HAR file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write; without it, standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Scheme and host of the URLs of calls whose `host` header was not recorded
    #[arg(long, value_name = "URL", default_value = "http://localhost", value_parser = origin)]
    origin: String,
}

/// Parses a scheme and an authority.
fn origin(text: &str) -> Result<String, &'static str> {
    let text = text.trim_end_matches('/');
    let is_origin = |uri: &http::Uri| {
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        is_http && uri.host().is_some() && uri.path() == "/" && uri.query().is_none()
    };
    let uri: Option<http::Uri> = text.parse().ok();
    match uri.is_some_and(|uri| is_origin(&uri)) {
        true => Ok(text.to_owned()),
        false => Err("write a scheme and a host, such as `https://api.example:8443`"),
    }
}

pub(super) fn har(arguments: &HarArguments) -> Result<ExitCode, CommandError> {
    let mut input = Input::open(&arguments.file)?;
    let unreadable = match &arguments.output {
        None => write(&mut input, &arguments.origin, io::stdout().lock())?,
        Some(path) => {
            if is_same(&arguments.file, path) {
                return Err(ReplayFault::SameFile(path.clone()).into());
            }
            let mut options = OpenOptions::new();
            // As private as the recording.
            options.write(true).create(true).truncate(true).mode(0o600);
            let file = options.open(path).map_err(|source| ReplayFault::Write {
                path: path.clone(),
                source,
            })?;
            write(&mut input, &arguments.origin, file)?
        }
    };
    Ok(match unreadable {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Returns true if two paths lead to one file, also over links.
fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((file(one), file(other)), (Ok(one), Ok(other)) if one == other)
}

/// Writes the calls of a file as HAR, and reports the lines or entries that are none; returns their number.
fn write(input: &mut Input, origin: &str, out: impl Write) -> Result<usize, ReplayFault> {
    let mut out = BufWriter::new(out);
    let mut unreadable = 0;
    let unit = input.unit();
    let (mut writer, begin) = Writer::begin(origin, "dualgauge", env!("CARGO_PKG_VERSION"));
    out.write_all(&begin)?;
    while let Some(part) = input.next()? {
        match part {
            FilePart::Call(call) => out.write_all(&writer.entry(&call.call))?,
            FilePart::NoCall(number, why) | FilePart::End(number, why) => {
                unreadable += 1;
                writeln!(io::stderr().lock(), "skipped: {unit} {number}: {why}")?;
            }
        }
    }
    out.write_all(&writer.end())?;
    out.flush()?;
    Ok(unreadable)
}
