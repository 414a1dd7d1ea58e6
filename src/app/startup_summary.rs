//! The summary that `run` prints once it accepts calls: the endpoints, the configuration files, and the location of the
//! state.
//!
//! It contains no secrets: of an upstream only the scheme and authority, of a child only the program without arguments.
//!
//! Used by `run` and `cli::run`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::bound_addresses::BoundAddresses;
use super::link_thread::LinkLosses;
use crate::config::raw::RawConfig;
use crate::store::StoreSettings;
use dualgauge_model::plan::{Plan, Transport, Unrouted, UpstreamPlan};

/// The addresses, the plan and the summary of a run that accepts calls.
#[derive(Debug)]
pub struct StartupSummary {
    /// The bound addresses.
    pub addresses: BoundAddresses,
    /// The plan in force.
    pub plan: Arc<Plan>,
    /// The summary.
    pub summary: SummaryLine,
    /// The losses of links.
    pub losses: LinkLosses,
}

/// The summary of a run, in rows of a name and a text.
#[derive(Debug)]
pub struct SummaryLine {
    rows: Vec<(&'static str, String)>,
}

impl SummaryLine {
    pub(super) fn new(config: &RawConfig, plan: &Plan, addresses: BoundAddresses) -> SummaryLine {
        let base = addresses.base();
        let upstreams = plan.upstreams.all.iter().map(upstream);
        let counts = [
            counted(config.routes.len(), "route"),
            counted(plan.rollout.flags.len(), "flag"),
            counted(config.clients.len(), "client"),
        ];
        let mut rows = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("configuration", files(config)),
            ("REST", rest(&base, plan)),
            ("RPC", rpc(&base, plan)),
            ("upstreams", listed(upstreams)),
            ("loaded", listed(counts)),
            ("state", shown(&config.rollout.state.value)),
        ];
        if let StoreSettings::Shared(store) = StoreSettings::new(&config.rollout) {
            rows.push(("store", store.identity()));
        }
        SummaryLine { rows }
    }
}

impl fmt::Display for SummaryLine {
    /// Writes each row as an indented line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, text) in &self.rows {
            // A path may contain any character, but a row must stay one line.
            let text = text.replace(char::is_control, "?");
            writeln!(f, "  {name:<14} {text}")?;
        }
        Ok(())
    }
}

fn files(config: &RawConfig) -> String {
    let flags = config.rollout.flags.iter().map(|flags| shown(&flags.value));
    let files = config.files.iter().map(|path| shown(path));
    match listed(files.chain(flags)) {
        none if none.is_empty() => "defaults, variables and arguments only".to_owned(),
        files => files,
    }
}

fn rest(base: &str, plan: &Plan) -> String {
    match plan.unrouted {
        Unrouted::Passthrough => format!("{base}/ (every path; calls of no route pass through)"),
        Unrouted::Reject | Unrouted::Unavailable => {
            format!("{base}/ (the paths of routes; calls of no route are refused)")
        }
    }
}

fn rpc(base: &str, plan: &Plan) -> String {
    let paths = plan.face.paths.iter().map(|path| format!("{base}{path}"));
    let streams = plan.face.event_streams.iter();
    let streams = streams.map(|streams| format!("{base}{} (HTTP with SSE)", streams.path));
    listed(paths.chain(streams))
}

fn upstream(upstream: &UpstreamPlan) -> String {
    let UpstreamPlan { name, side, .. } = upstream;
    let authority = upstream.authority.as_str();
    let is_secured = upstream.tls.is_some();
    let place = match (&upstream.transport, is_secured) {
        (Transport::Http | Transport::Mcp(_), false) => format!("http://{authority}"),
        (Transport::Http | Transport::Mcp(_), true) => format!("https://{authority}"),
        (Transport::WebSocket(_) | Transport::Frames(_), false) => format!("ws://{authority}"),
        (Transport::WebSocket(_) | Transport::Frames(_), true) => format!("wss://{authority}"),
        (Transport::Stdio(_), _) => format!("child `{authority}`"),
    };
    match upstream.more.len() {
        0 => format!("{name} ({side}) {place}"),
        more => format!("{name} ({side}) {place} and {more} more"),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn listed(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(", ")
}
