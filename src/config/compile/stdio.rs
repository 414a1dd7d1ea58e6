//! A child process: its command, its environment and its link. Used by `compile::upstreams` and `compile::websocket`.

use std::sync::Arc;
use std::time::Duration;

use super::login;
use super::redaction::redaction;
use crate::config::load::is_inherited;
use crate::config::problem::Problem;
use crate::config::raw::{ModeWord, RawConfig, RawStdio};
use dualgauge_model::mcp::accepted_revisions;
use dualgauge_model::pending::{
    AnswerOrder, Backoff, LinkClients, LinkSettings, LogMessages, ServerRequests,
};
use dualgauge_model::plan::{LinkPlan, SecretMap, StdioPlan};
use dualgauge_model::rollout::Glob;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// Waits before a link is opened again.
pub(super) const BACKOFF: Backoff = Backoff {
    least: Duration::from_millis(100),
    most: Duration::from_secs(30),
    steady: Duration::from_secs(10),
};

/// The wait of a serial child after a line without a response.
const PAUSE: Duration = Duration::from_millis(100);

/// The default handshake. The revision is the last one that has a handshake.
const INITIALIZE: &str = concat!(
    r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}},"#,
    r#""clientInfo":{"name":"dualgauge","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}"#
);

/// Checks the parts that decoding leaves open.
pub(super) fn check(child: &RawStdio, side: Side, problems: &mut Vec<Problem>) {
    let Some(program) = child.command.first() else {
        return;
    };
    if side == Side::Rest {
        let message = "a child process uses JSON-RPC, but this upstream is on the `rest` side";
        problems.push(program.problem(message).hint("write `side = \"rpc\"`"));
    }
    if program.value.trim().is_empty() {
        problems.push(program.problem("the program name is empty"));
    }
}

pub(super) fn plan(child: &RawStdio, config: &RawConfig) -> StdioPlan {
    let own = child.env.iter();
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (order, pause) = match child.mode.value {
        ModeWord::Serial => (AnswerOrder::Serial, PAUSE),
        ModeWord::Pipelined => (
            AnswerOrder::Pipelined(child.in_flight.value),
            Duration::ZERO,
        ),
    };
    let revision = child.revision.as_ref().map(|revision| revision.value);
    let of_revision = revision.map(|revision| revision.initialize(ServerRequests::Caller));
    let initialize = child.initialize.clone().or(of_revision);
    let initialize_params = initialize_params(child.has_handshake.value, initialize.as_ref());
    let login = child.login.as_ref();
    let login = login.map(|login| login::plan(login, config));
    let settings = LinkSettings {
        login: login::own_login(login.as_ref()),
        order,
        pause,
        queue: child.queue.value,
        revisions: initialize_params
            .as_ref()
            .map_or_else(Vec::new, accepted_revisions),
        initialize_params,
        start_timeout: child.start_timeout.value,
        backoff: BACKOFF,
        max_consecutive_timeouts: child.unanswered.value,
        heartbeat: None,
        log_messages: log_messages(child),
        server_requests: ServerRequests::Caller,
        clients: LinkClients::Several,
        depth: u16::try_from(config.limits.depth.value).unwrap_or(u16::MAX),
    };
    StdioPlan {
        command: child
            .command
            .iter()
            .map(|argument| argument.value.clone())
            .collect(),
        env: SecretMap::new(inherited(child, config).chain(own)),
        directory: child.directory.as_ref().map(|folder| folder.value.clone()),
        framing: child.framing.value,
        line_limit: child.line_limit.value,
        revision,
        link: LinkPlan {
            redaction: Arc::new(redaction(config)),
            settings,
            login,
            blocked_methods: child.withhold.clone(),
        },
    }
}

/// Returns the variables that a child inherits: the usual ones, and those that `inherit` names.
fn inherited<'c>(
    child: &'c RawStdio,
    config: &'c RawConfig,
) -> impl Iterator<Item = (String, String)> + 'c {
    let globs: Vec<Glob> = child
        .inherit
        .iter()
        .map(|glob| Glob::new(glob.value.as_str()))
        .collect();
    let variables = config.inherited.iter();
    let chosen = variables
        .filter(move |(name, _)| is_inherited(name) || globs.iter().any(|glob| glob.fits(name)));
    chosen.cloned()
}

/// Returns the recipients of log messages. A pipelined child without a handshake is no MCP server, so its messages may be
/// about any client.
fn log_messages(child: &RawStdio) -> LogMessages {
    match (child.mode.value, child.has_handshake.value) {
        (ModeWord::Pipelined, false) => child.log_messages.value,
        (ModeWord::Serial, _) | (ModeWord::Pipelined, true) => attributed(child.log_messages.value),
    }
}

/// Returns the recipients of log messages on a link without response streams.
pub(super) fn attributed(log_messages: LogMessages) -> LogMessages {
    match log_messages {
        LogMessages::Drop | LogMessages::OnlyCaller => LogMessages::OnlyCaller,
        LogMessages::AllSubscribers => LogMessages::AllSubscribers,
    }
}

/// Returns the handshake of each link, if there is one.
pub(super) fn initialize_params(has_handshake: bool, params: Option<&Json>) -> Option<Json> {
    has_handshake.then(|| params.cloned().unwrap_or(Json::literal(INITIALIZE)))
}
