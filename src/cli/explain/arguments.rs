//! The arguments of `dualgauge explain`. Used by `explain`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

use crate::cli::format::Format;

pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  dualgauge explain --config dualgauge.toml '/api/search?query=a&limit=5'
  dualgauge explain --config dualgauge.toml -H 'x-client-id: ios-1' -d '{\"name\":\"a\"}' http://localhost:8080/items
  dualgauge explain --config dualgauge.toml --http requests.http
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | dualgauge explain --config dualgauge.toml
  dualgauge explain --config dualgauge.toml /items/7 --reply answer.json --status 404
  dualgauge explain --admin http://127.0.0.1:9090 -H 'x-client-id: ios-1' /items/7";

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("source").args(["config", "admin"]).required(true)),
    group(ArgGroup::new("input").args(["url", "http", "json"]))
)]
pub(in crate::cli) struct ExplainArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The admin listener of a running process, which explains with its current configuration instead of files
    #[arg(long, value_name = "URL", conflicts_with = "reply")]
    pub(super) admin: Option<String>,
    /// A file with the token of the API; without it, the variable `DUALGAUGE_TOKEN`
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(super) token_file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
    /// The URL or the path of a request
    #[arg(value_name = "URL")]
    pub(super) url: Option<String>,
    /// The HTTP method of the URL; by default POST with data, else GET
    #[arg(short = 'X', long, value_name = "METHOD", requires = "url")]
    pub(super) request: Option<String>,
    /// A header of the URL or of JSON; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE", conflicts_with = "http")]
    pub(super) header: Vec<String>,
    /// The body of the URL, or `@FILE`; JSON unless a header says otherwise
    #[arg(short = 'd', long, value_name = "BODY", requires = "url")]
    pub(super) data: Option<String>,
    /// An HTTP file (`.http`) with `###` between requests; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(super) http: Option<PathBuf>,
    /// A JSON-RPC message or batch; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// The path that JSON is posted to; by default the first of `rpc.paths`
    #[arg(long, value_name = "PATH", conflicts_with_all = ["url", "http"])]
    pub(super) path: Option<String>,
    /// The address of the caller; without it, headers are trusted and no address matches
    #[arg(long, value_name = "ADDRESS")]
    pub(super) from: Option<IpAddr>,
    /// A response of the upstream to translate as well: a body, or a whole response with its head
    #[arg(long, value_name = "FILE")]
    pub(super) reply: Option<PathBuf>,
    /// The HTTP status of the reply; by default the status in the reply, else 200
    #[arg(long, value_name = "STATUS", requires = "reply")]
    pub(super) status: Option<u16>,
}
