//! Keys of a child-process upstream. Used by `decode::upstream`.

use std::path::PathBuf;

use super::link::{
    HANDSHAKES, QUEUE, START_TIMEOUT, UNANSWERED, initialize, log_messages, withhold,
};
use super::mcp;
use super::shared::MOST;
use crate::config::problem::Spanned;
use crate::config::raw::{HandshakeWord, ModeWord, RawStdio};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, size, string, text, timeout, whole, word};
use dualgauge_model::mcp::Revision;
use dualgauge_model::plan::SecretMap;
use dualgauge_patterns::json::Json;

/// Keys of child processes only, other than the command.
pub(super) const OWN: &[&str] = &["env", "directory", "mode", "line_limit"];

const MODES: &[(&str, ModeWord)] = &[
    ("serial", ModeWord::Serial),
    ("pipelined", ModeWord::Pipelined),
];
const IN_FLIGHT: usize = 16;
const LINE_LIMIT: usize = 16 * 1024 * 1024;

pub(super) fn stdio(table: &mut Table<'_>) -> Option<RawStdio> {
    let command = table.list("command", argument);
    if command.as_ref().is_some_and(Vec::is_empty) {
        let message = "the list is empty; write the program and its arguments";
        table.report("command", ValueError::new(message));
    }
    let env = variables(table);
    let directory = table.get("directory", |found| text(found).map(PathBuf::from));
    let mode = table.get_or("mode", word(MODES, &[]), ModeWord::Serial);
    let in_flight = table.get_or("in_flight", whole(1..=MOST), IN_FLIGHT);
    let is_serial = mode
        .as_ref()
        .is_some_and(|mode| mode.value == ModeWord::Serial);
    if is_serial && table.shape("in_flight") != Shape::Absent {
        let wrong = ValueError::new("a serial child has one call in flight");
        table.report(
            "in_flight",
            wrong.hint("write `mode = \"pipelined\"`, or remove it"),
        );
    }
    let queue = table.get_or("queue", whole(1..=MOST), QUEUE);
    let handshake = table.get_or("handshake", word(HANDSHAKES, &[]), HandshakeWord::Mcp);
    let initialize = initialize(table, handshake.as_ref());
    let revision = revision(table, handshake.as_ref(), initialize.as_ref());
    let start_timeout = table.get_or("start_timeout", timeout, START_TIMEOUT);
    let log_messages = log_messages(table);
    let line_limit = table.get_or("line_limit", size(1024), LINE_LIMIT);
    let unanswered = table.get_or("unanswered", whole(0..=MOST), UNANSWERED);
    let withhold = withhold(table);
    Some(RawStdio {
        command: command?,
        env: env?,
        directory,
        mode: mode?,
        in_flight: in_flight?,
        queue: queue?,
        handshake: handshake?,
        initialize,
        revision,
        start_timeout: start_timeout?,
        log_messages: log_messages?,
        line_limit: line_limit?,
        unanswered: unanswered?,
        withhold: withhold?,
    })
}

/// Decodes the MCP revision; `None` if the proxy does not choose it.
fn revision(
    table: &mut Table<'_>,
    handshake: Option<&Spanned<HandshakeWord>>,
    initialize: Option<&Json>,
) -> Option<Spanned<Revision>> {
    let is_set = table.shape("revision") != Shape::Absent;
    let is_none = handshake.is_some_and(|word| word.value == HandshakeWord::None);
    let revision = table.get_or("revision", mcp::revision, Revision::Auto);
    let wrong = match (is_none, initialize) {
        (true, _) => "a link without a handshake has no revision",
        (false, Some(_)) => "`initialize` already contains the revision",
        (false, None) => return revision,
    };
    if is_set {
        let wrong = ValueError::new(wrong);
        table.report("revision", wrong.hint("remove one of the two"));
    }
    None
}

fn argument(found: RawValue<'_>) -> Result<String, ValueError> {
    let text = string(found)?;
    if text.contains('\0') {
        return Err(ValueError::new("a program argument cannot contain NUL"));
    }
    Ok(text)
}

fn variables(table: &mut Table<'_>) -> Option<SecretMap> {
    if table.shape("env") == Shape::Absent {
        return Some(SecretMap::default());
    }
    let variables = table.named_values("env", |found| {
        // The value is never shown: it may be a secret.
        let wrong = "the value of a variable must be a string; write it in quotes";
        let value = string(found).map_err(|_| ValueError::new(wrong))?;
        if value.contains('\0') {
            return Err(ValueError::new(
                "the value of a variable cannot contain NUL",
            ));
        }
        Ok(value)
    })?;
    for (name, _) in &variables {
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            table.add(name.problem("this is not a variable name; write it without `=`"));
        }
    }
    let pairs = variables
        .into_iter()
        .map(|(name, value)| (name.value, value.value));
    Some(SecretMap::new(pairs))
}
