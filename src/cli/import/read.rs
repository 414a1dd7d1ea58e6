//! Reading of documents from files: JSON or YAML.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_saphyr::UserMessageFormatter;

use super::json;
use super::limits::LARGEST;
use dualgauge_model::import::printable;

/// The reason why a file is not a document.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ReadFault {
    /// The file cannot be read.
    #[error("`{path}` cannot be read")]
    File {
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The file exceeds the size limit.
    #[error("`{0}` is larger than {mib} MiB", mib = LARGEST / 1024 / 1024)]
    TooLarge(PathBuf),
    /// The document is empty.
    #[error("`{0}` is empty")]
    Empty(PathBuf),
    /// A web page.
    #[error(
        "`{0}` is a web page (HTML), not a document in JSON or YAML; a server often has its document at `/openapi.json`, `/openapi.yaml` or `/v3/api-docs`"
    )]
    WebPage(PathBuf),
    /// Invalid JSON.
    #[error("`{path}` is not JSON")]
    Json {
        /// The path.
        path: PathBuf,
        /// The position and the fault.
        source: serde_json::Error,
    },
    /// Valid JSON that is not a document.
    #[error("`{path}` is refused")]
    Refused {
        /// The path.
        path: PathBuf,
        /// The position and the fault.
        source: serde_json::Error,
    },
    /// Invalid YAML.
    #[error("`{path}`: line {line}, column {column}: {what}")]
    Yaml {
        /// The path.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The column.
        column: u64,
        /// The fault.
        what: String,
    },
}

/// Reads a document: JSON if it looks like JSON, else YAML.
pub(super) fn read(path: &Path) -> Result<Value, ReadFault> {
    let file = File::open(path).map_err(|source| unread(path, source))?;
    parse(path, &text(path, file)?)
}

/// Reads the text of standard input.
pub(super) fn standard_input() -> Result<String, ReadFault> {
    text(Path::new("standard input"), io::stdin().lock())
}

/// Parses a document: JSON if it looks like JSON, else YAML. The path is for messages, and its extension counts.
pub(super) fn parse(path: &Path, text: &str) -> Result<Value, ReadFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ReadFault::Empty(path.to_path_buf()));
    }
    if is_web_page(text) {
        return Err(ReadFault::WebPage(path.to_path_buf()));
    }
    let is_yaml = path
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml && text.trim_start().starts_with(['{', '[']) {
        return json::parse(text).map_err(|source| {
            let path = path.to_path_buf();
            if source.is_data() {
                ReadFault::Refused { path, source }
            } else {
                ReadFault::Json { path, source }
            }
        });
    }
    // In YAML 1.2 `yes`, `no` and `on` are strings.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        // An error in an empty document has no line.
        let (line, column) = error
            .location()
            .map_or((1, 1), |location| (location.line(), location.column()));
        let what = error
            .without_snippet()
            .render_with_formatter(&UserMessageFormatter);
        ReadFault::Yaml {
            path: path.to_path_buf(),
            line,
            column,
            what: first_line(&what.replace(&format!(" at line {line}, column {column}"), "")),
        }
    })
}

/// Returns true for HTML: its first tag, after comments, is a document type or `html`.
fn is_web_page(text: &str) -> bool {
    let mut text = text.trim_start();
    while let Some((_, rest)) = text
        .strip_prefix("<!--")
        .and_then(|rest| rest.split_once("-->"))
    {
        text = rest.trim_start();
    }
    let begins = |tag: &str| {
        let start = text.get(..tag.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    begins("<!doctype html") || begins("<html")
}

fn first_line(text: &str) -> String {
    printable(text.lines().next().unwrap_or_default())
}

fn unread(path: &Path, source: io::Error) -> ReadFault {
    ReadFault::File {
        path: path.to_path_buf(),
        source,
    }
}

/// Reads the text of a source within the size limit.
fn text(path: &Path, source: impl Read) -> Result<String, ReadFault> {
    let unread = |fault| unread(path, fault);
    let mut bytes = Vec::new();
    let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX);
    let mut bounded = source.take(limit.saturating_add(1));
    bounded.read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() > LARGEST {
        return Err(ReadFault::TooLarge(path.to_path_buf()));
    }
    String::from_utf8(bytes).map_err(|error| {
        unread(io::Error::new(
            io::ErrorKind::InvalidData,
            error.utf8_error(),
        ))
    })
}
