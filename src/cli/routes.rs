//! `dualgauge routes`: the route table as a table, or as the API documents generated from it. Used by `cli`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::command_error::CommandError;
use crate::cli::configuration::read_configuration;
use crate::cli::names;
use crate::cli::no_route::NoRoute;
use dualgauge_model::document::{ApiInfo, openapi, openrpc};
use dualgauge_model::rollout::Glob;
use dualgauge_model::route::Route;
use dualgauge_model::stream::Stream;
use dualgauge_patterns::side::Side;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge routes --config dualgauge.toml
  dualgauge routes --config dualgauge.toml --route 'agent.*' --format markdown
  dualgauge routes --config dualgauge.toml --format openapi > openapi.json";

#[derive(Debug, Args)]
pub(super) struct RoutesArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Human)]
    format: TableFormat,
    /// Only routes whose names match; `*` matches any text
    #[arg(long, value_name = "GLOB", default_value = "*", add = names::routes())]
    route: String,
}

/// The format of the route table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// Aligned columns
    Human,
    /// One JSON document, a member for each column
    Json,
    /// A Markdown table
    Markdown,
    /// An OpenAPI 3.1 document of the REST side
    Openapi,
    /// An OpenRPC document of the RPC side
    Openrpc,
}

/// A row for a route or a stream; the JSON members have these names.
#[derive(Debug, Serialize)]
struct RouteTableRow<'r> {
    name: &'r str,
    rest: Cow<'r, str>,
    rpc: Cow<'r, str>,
    /// `stream` for a stream.
    effect: &'static str,
    extra: Option<&'static str>,
    /// Each hole with its type: `limit:integer=50`.
    holes: Vec<String>,
    /// The number of rows before the built-in table.
    outcomes: usize,
    timeout_ms: Option<u128>,
    #[serde(skip)]
    timeout: Option<Duration>,
    from: Option<&'static str>,
    lossy: Option<&'r str>,
}

pub(super) fn routes(arguments: &RoutesArguments) -> Result<ExitCode, CommandError> {
    let Some(configuration) = read_configuration(&arguments.config)? else {
        return Ok(ExitCode::from(2));
    };
    let glob = Glob::new(&arguments.route);
    let table = &configuration.plan.routes;
    let names = table.routes().iter().map(|route| route.name.as_str());
    let streams = configuration.plan.streams.all().iter();
    NoRoute::check(
        &arguments.route,
        names.chain(streams.map(|stream| stream.name.as_str())),
    )?;
    let chosen = table.routes().iter().filter(|route| glob.fits(&route.name));
    let chosen: Vec<&Route> = chosen.collect();
    let streams = configuration.plan.streams.all().iter();
    let streams = streams.filter(|stream| glob.fits(&stream.name));
    let rows: Vec<RouteTableRow<'_>> = chosen
        .iter()
        .map(|route| RouteTableRow::new(route))
        .chain(streams.map(RouteTableRow::of_stream))
        .collect();
    let api = ApiInfo::of_clients(&configuration.plan.rollout.clients);
    let text = match arguments.format {
        TableFormat::Human => human(&rows),
        TableFormat::Markdown => markdown(&rows),
        TableFormat::Json => pretty(&rows)?,
        TableFormat::Openapi => pretty(&openapi(chosen.iter().copied(), &api))?,
        TableFormat::Openrpc => pretty(&openrpc(chosen.iter().copied(), &api))?,
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn pretty(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    text.push('\n');
    Ok(text)
}

impl<'r> RouteTableRow<'r> {
    fn new(route: &'r Route) -> RouteTableRow<'r> {
        RouteTableRow {
            name: &route.name,
            rest: route.rest.as_str().into(),
            rpc: route.rpc.as_str().into(),
            effect: route.effect.as_str(),
            extra: Some(route.extra.as_str()),
            holes: route.hole_notations(),
            outcomes: route.outcomes.rows().len(),
            timeout_ms: route.timeout.map(|timeout| timeout.as_millis()),
            timeout: route.timeout,
            from: route.from.map(Side::as_str),
            lossy: route.lossy.as_deref(),
        }
    }

    fn of_stream(stream: &'r Stream) -> RouteTableRow<'r> {
        let path = |side: Side| format!("GET {}", stream.path(side).as_str()).into();
        RouteTableRow {
            name: &stream.name,
            rest: path(Side::Rest),
            rpc: path(Side::Rpc),
            effect: "stream",
            extra: None,
            holes: stream.rest.holes().map(str::to_owned).collect(),
            outcomes: 0,
            timeout_ms: None,
            timeout: None,
            from: None,
            lossy: None,
        }
    }

    fn cells(&self) -> [String; 10] {
        let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
        let timeout = self.timeout.map(|timeout| format!("{timeout:?}"));
        let holes = self.holes.join(", ");
        [
            self.name.to_owned(),
            self.rest.to_string(),
            self.rpc.to_string(),
            self.effect.to_owned(),
            or_dash(self.extra),
            or_dash(Some(holes.as_str()).filter(|holes| !holes.is_empty())),
            self.outcomes.to_string(),
            or_dash(timeout.as_deref()),
            or_dash(self.from),
            or_dash(self.lossy),
        ]
    }
}

const COLUMNS: [&str; 10] = [
    "name", "rest", "rpc", "effect", "extra", "holes", "outcomes", "timeout", "from", "lossy",
];

/// Formats columns as wide as their widest cell; the last one is unlimited.
fn human(rows: &[RouteTableRow<'_>]) -> String {
    let head = COLUMNS.map(|column| column.to_uppercase());
    let lines: Vec<[String; 10]> = std::iter::once(head)
        .chain(rows.iter().map(RouteTableRow::cells))
        .collect();
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| {
            let widths = lines.iter().map(|line| line[column].chars().count());
            widths.max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn markdown(rows: &[RouteTableRow<'_>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&COLUMNS.map(str::to_owned));
    text.push_str(&line(&COLUMNS.map(|_| "---".to_owned())));
    for row in rows {
        let [
            name,
            rest,
            rpc,
            effect,
            extra,
            holes,
            outcomes,
            timeout,
            from,
            lossy,
        ] = row.cells();
        let code = |cell: String| match cell.as_str() {
            "-" => cell,
            _ => format!("`{}`", cell.replace('|', "\\|")),
        };
        text.push_str(&line(&[
            code(name),
            code(rest),
            code(rpc),
            effect,
            extra,
            code(holes),
            outcomes,
            timeout,
            from,
            lossy.replace('|', "\\|"),
        ]));
    }
    text
}
