//! `dualgauge learn`: a draft of a route table, from calls that were recorded or logged, and outcome rows from mismatches.
//!
//! `read` reads files into calls, `documents` infers API documents from them, and [`dualgauge_model::import`] drafts these
//! as `dualgauge import` does. `rows` proposes outcome rows. Used by `cli`.

mod documents;
mod fault;
mod marked;
mod observed;
mod paths;
mod read;
mod rows;
mod shape;
#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use http::StatusCode;

use crate::cli::admin::{AdminArguments, AdminClient, AdminFault};
use crate::cli::command_error::CommandError;
use crate::cli::configuration::read_configuration;
use crate::cli::plural::count;
use crate::cli::schema::{DescribedFile, name_schema, write_with_schema};
use documents::infer;
use dualgauge_model::import::{DocumentKind, ImportDraft, SourceDocument, draft_observed};
use dualgauge_model::lifecycle::UsageReport;
use dualgauge_model::proposal::MismatchReport;
use dualgauge_model::unrouted::UnroutedReport;
pub(super) use fault::LearnFault;
use observed::Observed;
use read::{Which, read};
use rows::ProposedSets;

#[derive(Debug, Args)]
pub(super) struct LearnArguments {
    /// Recordings, HAR files, or access logs: nginx and Apache combined or common, or JSON lines. With `--config` also
    /// reports of `dualgauge replay --format json` and of `dualgauge mismatches --format json`
    #[arg(required_unless_present = "admin", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The main configuration file: propose outcome rows for its routes, from the mismatches of reports and of `--admin`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also use recorded calls that had a route; by default only calls without one
    #[arg(long)]
    all: bool,
    /// A running proxy, such as `http://127.0.0.1:9090`: also draft routes from the calls without a route that it has counted
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// A file with the token of the admin API; without it, the variable `DUALGAUGE_TOKEN`
    #[arg(long, value_name = "FILE", requires = "admin")]
    token_file: Option<PathBuf>,
    /// Write the draft to a new file instead of standard output
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge learn /var/log/nginx/access.log --write routes.toml
  dualgauge learn browser.har rpc-calls.jsonl
  dualgauge learn access.log --admin http://127.0.0.1:9090
  dualgauge learn replay.json --config dualgauge.toml --write rows.toml
  dualgauge learn --admin http://127.0.0.1:9090 --config dualgauge.toml

Standard error shows what was read, paired and left out. The draft marks each guess with a comment.";

pub(super) fn learn(arguments: &LearnArguments) -> Result<ExitCode, CommandError> {
    let mut observed = Observed::default();
    let which = if arguments.all {
        Which::All
    } else {
        Which::Unrouted
    };
    for path in &arguments.files {
        read(path, which, &mut observed)?;
    }
    let mut text = String::new();
    if let Some(url) = &arguments.admin {
        let admin = AdminClient::new(&AdminArguments::at(url, arguments.token_file.clone()))?;
        text.push_str(&unrouted(&admin)?);
        counted(&admin, &mut observed)?;
        if arguments.config.is_some() {
            observed.mismatches.extend(mismatches(&admin)?);
        }
    }
    let sets = match &arguments.config {
        Some(path) => {
            let Some(configuration) = read_configuration(path)? else {
                return Ok(ExitCode::FAILURE);
            };
            Some(ProposedSets::new(&observed.mismatches, &configuration))
        }
        None if !observed.mismatches.routes.is_empty() => {
            return Err(LearnFault::NoConfiguration.into());
        }
        None => None,
    };
    let names = arguments
        .files
        .iter()
        .map(|path| path.display().to_string());
    let names = names.chain(arguments.admin.clone());
    let drafted = drafted(&mut observed, &names.collect::<Vec<_>>().join(", "));
    // The draft leaves out calls as well.
    text.insert_str(0, &left_out(&observed));
    if let Ok(draft) = &drafted {
        text.push_str(&summary(draft));
    }
    if let Some(sets) = &sets {
        text.push_str(&sets.summary());
    }
    io::stderr().lock().write_all(text.as_bytes())?;
    let toml = match (drafted, sets) {
        (Ok(draft), Some(sets)) => format!("{}\n{}", draft.toml, sets.toml),
        (Ok(draft), None) => draft.toml,
        // Without calls, there are only rows.
        (Err(LearnFault::Nothing), Some(sets)) => sets.toml,
        (Err(fault), _) => return Err(fault.into()),
    };
    match &arguments.write {
        Some(path) => write(path, &toml)?,
        None => io::stdout().lock().write_all(toml.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks a proxy for the calls without a route by path.
fn counted(admin: &AdminClient, observed: &mut Observed) -> Result<(), AdminFault> {
    let report = match admin.get("/api/v1/unrouted") {
        // An older proxy does not have the list.
        Err(AdminFault::Refused { status, .. }) if status == StatusCode::NOT_FOUND => return Ok(()),
        report => report?,
    };
    let report: UnroutedReport = serde_json::from_value(report).map_err(|_| AdminFault::NoJson)?;
    for path in &report.paths {
        observed.add_counted(path);
    }
    if report.more > 0 {
        let why = "counted by the proxy without their path";
        *observed.left_out.entry(why).or_default() += report.more;
    }
    Ok(())
}

/// Asks a proxy for its mismatches.
fn mismatches(admin: &AdminClient) -> Result<MismatchReport, AdminFault> {
    let body = admin.get("/api/v1/mismatches")?.to_string();
    MismatchReport::read(body.as_bytes()).map_err(|_| AdminFault::NoJson)
}

/// Drafts the routes of all calls; `name` names their sources.
fn drafted(observed: &mut Observed, name: &str) -> Result<ImportDraft, LearnFault> {
    observed.leave_out_old_messages();
    if observed.rest.is_empty() && observed.rpc.is_empty() {
        return Err(LearnFault::Nothing);
    }
    let documents = infer(observed);
    let all = [
        (
            DocumentKind::OpenApi,
            &documents.openapi,
            documents.rest_guesses.is_empty(),
        ),
        (
            DocumentKind::OpenRpc,
            &documents.openrpc,
            documents.openrpc["methods"] == serde_json::json!([]),
        ),
        (
            DocumentKind::Tools,
            &documents.tools,
            documents.tools["tools"] == serde_json::json!([]),
        ),
    ];
    let given = all.into_iter().filter(|(_, _, is_empty)| !is_empty);
    let given: Vec<SourceDocument> = given
        .map(|(kind, document, _)| SourceDocument {
            name: name.to_owned(),
            kind,
            document: document.clone(),
        })
        .collect();
    if given.is_empty() {
        return Err(LearnFault::Nothing);
    }
    let draft = draft_observed(&given)?;
    Ok(ImportDraft {
        toml: marked::marked(&draft.toml, &documents),
        report: draft.report,
    })
}

/// Writes the draft into a new file, and its schema before it.
fn write(path: &Path, toml: &str) -> Result<(), LearnFault> {
    let unwritable = |path: PathBuf, cause| LearnFault::Unwritable { path, cause };
    write_with_schema(DescribedFile::Routes, path, unwritable, || {
        let own = |cause: io::Error| match cause.kind() == io::ErrorKind::AlreadyExists {
            true => LearnFault::Exists(path.to_path_buf()),
            false => unwritable(path.to_path_buf(), cause),
        };
        let opened = OpenOptions::new().write(true).create_new(true).open(path);
        let text = name_schema(DescribedFile::Routes, toml);
        let mut file = opened.map_err(own)?;
        file.write_all(text.as_bytes()).map_err(own)
    })
}

fn left_out(observed: &Observed) -> String {
    let mut text = format!(
        "used: {}, {}\n",
        count(observed.rest_calls(), "REST call"),
        count(observed.rpc.len() as u64, "RPC call")
    );
    for (why, calls) in &observed.left_out {
        text.push_str(&format!("  left out {}: {why}\n", count(*calls, "call")));
    }
    text
}

fn summary(draft: &ImportDraft) -> String {
    let report = &draft.report;
    let mut text = format!(
        "drafted: {} of a pair, {} of REST alone, {} of RPC alone\n",
        report.paired, report.rest_alone, report.rpc_alone
    );
    for left_out in &report.left_out {
        let line = format!("no route: {}: {}", left_out.what, left_out.why);
        text.push_str(&format!(
            "  {}\n",
            dualgauge_model::import::printable(&line)
        ));
    }
    text
}

/// Asks a proxy for the calls without a route by the prefixes of its routes.
fn unrouted(admin: &AdminClient) -> Result<String, AdminFault> {
    let report: UsageReport =
        serde_json::from_value(admin.get("/api/v1/usage")?).map_err(|_| AdminFault::NoJson)?;
    let unrouted = report
        .routes
        .into_iter()
        .filter_map(|route| route.evidence.unrouted);
    let mut found: Vec<(String, u64)> = unrouted.map(|it| (it.prefix, it.calls)).collect();
    found.sort();
    found.dedup();
    let mut text = "calls without a route that the proxy has counted, by prefix:\n".to_owned();
    for (prefix, calls) in found.iter().filter(|(_, calls)| *calls > 0) {
        text.push_str(&format!("  {prefix}: {calls}\n"));
    }
    if found.iter().all(|(_, calls)| *calls == 0) {
        text.push_str("  none\n");
    }
    Ok(text)
}
