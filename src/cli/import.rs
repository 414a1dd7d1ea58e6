//! `dualgauge import`: a draft of a route table, from documents and from a running server.
//!
//! Files are read and the server is asked before anything is written; [`dualgauge_model::import`] interprets the
//! documents.
//!
//! Used by `cli`.

mod command;
mod discover;
mod fault;
mod json;
mod limits;
mod message;
mod read;
mod refresh;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::command_error::CommandError;
use crate::cli::plural::count;
use crate::cli::schema::{DescribedFile, name_schema, write_schema, write_with_schema};
use dualgauge_model::import::{
    DocumentKind, ImportDraft, ImportReport, SourceDocument, ToolDraftOptions, draft,
    draft_as_tools, printable,
};
use dualgauge_model::rollout::Glob;

pub(super) use discover::DiscoverError;
use discover::Method;
pub(super) use fault::ImportFault;
pub(super) use limits::LARGEST;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge import --openapi api.yaml --openrpc rpc.json --output routes.toml
  dualgauge import --openapi api.yaml --from http://127.0.0.1:9002/rpc
  dualgauge import --from http://127.0.0.1:9002/mcp --method tools/list --header 'Authorization: Bearer TOKEN'
  dualgauge import --openapi https://api.example/openapi.json -- npx -y some-mcp-server
  dualgauge import --openapi api.yaml --output routes.toml --refresh

Standard error shows how many operations were read and paired, which were left out, and what to check in the draft.

Exit codes: 0 with a draft, 1 if a source is refused, 2 for a wrong command line, 3 for a refreshed table with conflicts.";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("documents").args(["openapi", "openrpc", "from", "command"]).required(true).multiple(true))]
pub(super) struct ImportArguments {
    /// An OpenAPI 3.0 to 3.2 or Swagger 2.0 document, JSON or YAML: a file, `http(s)://…`, or `-`; may be given several
    /// times
    #[arg(long, value_name = "SOURCE")]
    openapi: Vec<PathBuf>,
    /// An OpenRPC document, JSON or YAML: a file, `http(s)://…`, or `-`; may be given several times
    #[arg(long, value_name = "SOURCE")]
    openrpc: Vec<PathBuf>,
    /// A JSON-RPC server to ask, `http://host[:port]/path` or `https://…`
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    #[command(flatten)]
    tools: ToolArguments,
    /// The method to call; by default `rpc.discover`, then `tools/list` if the server does not know it
    #[arg(long, value_enum, value_name = "METHOD", requires = "from")]
    method: Option<Method>,
    /// A request header for each server and URL, `Name: value`; may be given several times
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// PEM file with the CAs trusted for the server; replaces the public ones
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Timeout of each server or command in seconds, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Write the draft to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long, requires = "output")]
    force: bool,
    /// Merge the changes since the last draft into the output file; edits stay, and conflicts become comments (exit code 3)
    #[arg(long, requires = "output", conflicts_with = "force")]
    refresh: bool,
    /// After `--`: an MCP server to start and to ask for its tools over standard input and output
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Asks an MCP server for its tools, all pages of `tools/list` as one document, and for its name. The text of `loss` is
/// the reason why it cannot answer any more.
///
/// # Errors
/// [`DiscoverError`]
pub(super) fn list_tools(
    url: &str,
    headers: &[String],
    limit: Duration,
    loss: impl Future<Output = String>,
) -> Result<(serde_json::Value, Option<String>), DiscoverError> {
    let server = discover::DiscoverServer::parse(url, headers, None)?;
    let (listed, name) = server.ask_for_tools(limit, loss)?;
    Ok((listed.document, name))
}

/// Returns true if a server speaks MCP over HTTP with SSE, the transport of 2024-11-05.
///
/// # Errors
/// [`DiscoverError`] if the URL or a header is not valid.
pub(super) fn speaks_sse(
    url: &str,
    headers: &[String],
    limit: Duration,
) -> Result<bool, DiscoverError> {
    let server = discover::DiscoverServer::parse(url, headers, None)?;
    Ok(server.speaks_sse(limit))
}

/// The exit code of a refreshed table with conflicts.
const IN_CONFLICT: u8 = 3;

/// The most notes on routes that the summary lists.
const MOST_NOTES: usize = 40;

/// The timeout of a document that a server serves.
const DOCUMENT_LIMIT: Duration = Duration::from_secs(30);

/// Reads a document from a file.
pub(super) fn read_document(path: &str) -> Result<serde_json::Value, ImportFault> {
    Ok(read::read(Path::new(path))?)
}

/// Parses a document; `name` is its source, for people.
pub(super) fn parse_document(name: &str, text: &str) -> Result<serde_json::Value, ImportFault> {
    Ok(read::parse(Path::new(name), text)?)
}

/// Gets a document from a server.
pub(super) fn get_document(url: &str) -> Result<serde_json::Value, ImportFault> {
    let server = discover::DiscoverServer::parse(url, &[], None)?;
    let (name, text) = server.fetch(DOCUMENT_LIMIT)?;
    Ok(read::parse(Path::new(&name), &text)?)
}

/// The kind of server that a draft makes of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DraftAs {
    /// An MCP server whose tools are the operations of OpenAPI documents
    Mcp,
}

/// The choices of a draft with tools.
#[derive(Debug, Args)]
pub(super) struct ToolArguments {
    /// Draft an MCP server for the operations of `--openapi`, without pairing
    #[arg(
        long = "as",
        value_enum,
        value_name = "KIND",
        requires = "openapi",
        conflicts_with_all = ["openrpc", "from"]
    )]
    kind: Option<DraftAs>,
    /// Name of the MCP server; the title of the document by default
    #[arg(long, value_name = "NAME", requires = "kind")]
    name: Option<String>,
    /// Glob of operations to draft: tool, operationId, path, `METHOD /path` or tag; may be given several times
    #[arg(long, value_name = "GLOB", requires = "kind")]
    include: Vec<String>,
    /// Glob of operations to leave out; may be given several times
    #[arg(long, value_name = "GLOB", requires = "kind")]
    exclude: Vec<String>,
}

impl ToolArguments {
    fn options(&self) -> ToolDraftOptions {
        let globs = |globs: &[String]| globs.iter().map(Glob::new).collect();
        ToolDraftOptions {
            name: self.name.clone(),
            include: globs(&self.include),
            exclude: globs(&self.exclude),
        }
    }
}

pub(super) fn import(arguments: &ImportArguments) -> Result<ExitCode, CommandError> {
    let draft = drafted(arguments).map_err(CommandError::Import)?;
    let mut text = summary(arguments.tools.kind, &draft.report);
    let mut code = ExitCode::SUCCESS;
    match &arguments.output {
        Some(path) => {
            let toml = name_schema(DescribedFile::Routes, &draft.toml);
            if arguments.refresh {
                let refreshed = refresh::refresh(path, &toml).map_err(ImportFault::from)?;
                text.push_str(&refreshed.summary());
                if refreshed.has_conflicts() {
                    code = ExitCode::from(IN_CONFLICT);
                }
                // A table of a former version has no schema beside it.
                let folder = path.parent().unwrap_or(Path::new(""));
                let written = write_schema(DescribedFile::Routes, folder);
                let schema = folder.join(DescribedFile::Routes.file_name());
                written.map_err(|source| unwritten(&schema, source))?;
            } else {
                write_beside_schema(path, &toml, arguments.force)?;
                text.push_str(&format!("written: {}\n", path.display()));
            }
        }
        None => io::stdout().lock().write_all(draft.toml.as_bytes())?,
    }
    io::stderr().lock().write_all(text.as_bytes())?;
    Ok(code)
}

fn drafted(arguments: &ImportArguments) -> Result<ImportDraft, ImportFault> {
    let mut given: Vec<SourceDocument> = Vec::new();
    let limit = Duration::from_secs(arguments.timeout);
    let sources = [
        (DocumentKind::OpenApi, &arguments.openapi),
        (DocumentKind::OpenRpc, &arguments.openrpc),
    ];
    for (kind, paths) in sources {
        for path in paths {
            given.push(document(arguments, kind, path)?);
        }
    }
    if let Some(url) = &arguments.from {
        let server =
            discover::DiscoverServer::parse(url, &arguments.header, arguments.ca.as_deref())?;
        given.push(server.ask(arguments.method, limit)?);
    }
    if !arguments.command.is_empty() {
        given.push(command::ask(&arguments.command, limit)?);
    }
    match arguments.tools.kind {
        Some(DraftAs::Mcp) => {
            let draft = draft_as_tools(&given, &arguments.tools.options())?;
            match draft.report.rest_alone {
                0 => Err(ImportFault::NoTool),
                _ => Ok(draft),
            }
        }
        None => Ok(draft(&given)?),
    }
}

/// Reads a document from a file, from `http://` or `https://`, or from standard input (`-`).
fn document(
    arguments: &ImportArguments,
    kind: DocumentKind,
    source: &Path,
) -> Result<SourceDocument, ImportFault> {
    let url = source.to_str().filter(|text| {
        let text = text.to_ascii_lowercase();
        text.starts_with("http://") || text.starts_with("https://")
    });
    let (name, document) = match url {
        Some(url) => {
            let server =
                discover::DiscoverServer::parse(url, &arguments.header, arguments.ca.as_deref())?;
            let (name, text) = server.fetch(Duration::from_secs(arguments.timeout))?;
            let document = read::parse(Path::new(&name), &text)?;
            (name, document)
        }
        None if source == Path::new("-") => {
            let name = "standard input".to_owned();
            let document = read::parse(Path::new(&name), &read::standard_input()?)?;
            (name, document)
        }
        None => (source.display().to_string(), read::read(source)?),
    };
    Ok(SourceDocument {
        name,
        kind,
        document,
    })
}

/// Writes the draft, and its schema before it. A missing folder is created.
fn write_beside_schema(path: &Path, toml: &str, is_forced: bool) -> Result<(), ImportFault> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| unwritten(path, source))?;
    }
    let write = || write(path, toml, is_forced);
    let unwritten = |path: PathBuf, source| unwritten(&path, source);
    write_with_schema(DescribedFile::Routes, path, unwritten, write)
}

/// Writes the draft. An existing file is replaced if `is_forced`, else it is an error.
fn write(path: &Path, toml: &str, is_forced: bool) -> Result<(), ImportFault> {
    let mut options = OpenOptions::new();
    options.write(true);
    match is_forced {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let mut file = options.open(path).map_err(|source| {
        if source.kind() == io::ErrorKind::AlreadyExists {
            ImportFault::Exists(path.to_path_buf())
        } else {
            unwritten(path, source)
        }
    })?;
    file.write_all(toml.as_bytes())
        .map_err(|source| unwritten(path, source))?;
    // For `--refresh`.
    Ok(refresh::replace(&refresh::draft_of(path), toml)?)
}

fn unwritten(path: &Path, source: io::Error) -> ImportFault {
    ImportFault::Write {
        path: path.to_path_buf(),
        source,
    }
}

/// Returns the summary of the converted operations, as text.
fn summary(kind: Option<DraftAs>, report: &ImportReport) -> String {
    let mut text = format!("read: {} REST, {} RPC\n", report.rest, report.rpc);
    text.push_str(&match kind {
        Some(DraftAs::Mcp) => format!("drafted: {}\n", count(report.rest_alone, "tool")),
        None => format!(
            "drafted: {} of a pair, {} of REST alone, {} of RPC alone\n",
            report.paired, report.rest_alone, report.rpc_alone
        ),
    });
    if !report.left_out.is_empty() {
        text.push_str(&format!("no route: {}\n", report.left_out.len()));
    }
    for left_out in &report.left_out {
        let line = format!("{}: {}", left_out.what, left_out.why);
        text.push_str(&format!("  {}\n", printable(&line)));
    }
    if report.notes.is_empty() {
        return text;
    }
    text.push_str(&format!(
        "to check: {} (each is a `look:` in the draft)\n",
        report.notes.len()
    ));
    for note in report.notes.iter().take(MOST_NOTES) {
        let line = format!("{}: {}", note.route, note.text);
        text.push_str(&format!("  {}\n", printable(&line)));
    }
    if let Some(more) = report.notes.len().checked_sub(MOST_NOTES + 1) {
        text.push_str(&format!("  and {} more\n", more + 1));
    }
    text
}
