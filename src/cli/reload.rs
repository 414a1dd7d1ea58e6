//! `dualgauge reload`: makes a running process reload its files, and reports the result. Used by `cli`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;
use http::Method;
use serde_json::{Value, json};

use crate::cli::admin::{AdminArguments, AdminClient, AdminFault, AdminRequest};
use crate::cli::command_error::CommandError;
use crate::cli::plural::count;

#[derive(Debug, Args)]
pub(super) struct ReloadArguments {
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge reload
  dualgauge reload --admin http://127.0.0.1:9090 --token-file token";

pub(super) fn reload(arguments: &ReloadArguments) -> Result<ExitCode, CommandError> {
    let response = AdminClient::new(&arguments.admin)?.ask(&AdminRequest {
        method: Method::POST,
        path: "/api/v1/reload",
        body: Some(json!({})),
        tag: None,
    })?;
    let text = |name: &str| response.get(name).and_then(Value::as_str);
    let number = |name: &str| response.get(name).and_then(Value::as_u64);
    let (Some(result), Some(routes), Some(flags)) =
        (text("result"), number("routes"), number("flags"))
    else {
        return Err(AdminFault::NoJson.into());
    };
    writeln!(
        io::stdout().lock(),
        "{result}: {}, {}",
        count(routes, "route"),
        count(flags, "flag")
    )?;
    Ok(ExitCode::SUCCESS)
}
