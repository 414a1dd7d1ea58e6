//! `dualgauge explain`: the processing of a request, without contacting any upstream.
//!
//! The request has the form of curl arguments, an HTTP file, or JSON-RPC. The model explains it with the functions
//! that also serve calls.
//!
//! Used by `cli`.

mod arguments;
mod explained;
mod http_file;
mod input;
mod input_error;
mod live;
mod output;
mod text;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use sha2::{Digest as _, Sha256};

use crate::cli::command_error::CommandError;
use crate::cli::configuration::read_configuration;
use crate::telemetry::clock;
use dualgauge_model::explain::{ExplainEnvironment, ExplainRequest, explain as explain_one};
use dualgauge_model::routing::RequestHead;

pub(super) use arguments::{EXAMPLES, ExplainArguments};
use explained::Explained;
use output::{print, unreadable};

pub(super) fn explain(arguments: &ExplainArguments) -> Result<ExitCode, CommandError> {
    let code = match (&arguments.admin, &arguments.config) {
        (Some(url), _) => live::explain(arguments, url)?,
        (None, Some(file)) => by_files(arguments, file)?,
        // clap requires one of them.
        (None, None) => return Ok(ExitCode::from(2)),
    };
    if let Some(note) = arguments.url.as_deref().and_then(input::host_note) {
        io::stderr().lock().write_all(note.as_bytes())?;
    }
    Ok(code)
}

/// Explains requests according to the files.
fn by_files(arguments: &ExplainArguments, file: &Path) -> Result<ExitCode, CommandError> {
    let Some(configuration) = read_configuration(file)? else {
        return Ok(ExitCode::from(2));
    };
    let plan = &configuration.plan;
    let input = match input::read(arguments, Some(plan)) {
        Ok(input) => input,
        Err(error) => return Ok(unreadable(&error)?),
    };
    let environment = ExplainEnvironment {
        digest: |key| Sha256::digest(key).into(),
        now: clock::rfc3339,
        unix_seconds: clock::whole_unix_seconds,
    };
    let explained = input.requests.iter().map(|request| {
        let asked = ExplainRequest {
            head: RequestHead {
                method: &request.method,
                uri: &request.target,
                headers: &request.headers,
            },
            peer: arguments.from,
            body: &request.body,
            reply: input.reply.as_ref(),
        };
        Explained {
            name: request.name.clone(),
            explanations: explain_one(plan, asked, environment),
        }
    });
    print(arguments.format, &explained.collect::<Vec<_>>())?;
    io::stderr().lock().write_all(BY_FILES.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A note on the limits of an explanation from files.
const BY_FILES: &str = "note: the files say nothing of flag changes, guard trips and the kill switch; `--admin URL` in place of \
                        `--config` asks a running process\n";
