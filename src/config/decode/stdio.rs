//! Keys of a child-process upstream. Used by `decode::upstream`.

use std::path::PathBuf;

use super::link::{
    HANDSHAKES, LOG_MESSAGES, OF_LOGIN, QUEUE, START_TIMEOUT, UNANSWERED, initialize, withhold,
};
use super::login::login;
use super::mcp;
use super::shared::MOST;
use crate::config::key::{Key, List, NamedValues, key, list, named_values, section};
use crate::config::kind::{ANY_TEXT, FILE, TEXT, other, size, whole, words};
use crate::config::problem::Spanned;
use crate::config::raw::{ModeWord, RawStdio};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, string};
use dualgauge_model::mcp::Revision;
use dualgauge_model::plan::{Framing, SecretMap};
use dualgauge_patterns::json::Json;

/// Keys of child processes only, other than the command.
pub(super) const OWN: &[&str] = &[
    "env",
    "inherit",
    "directory",
    "mode",
    "framing",
    "line_limit",
];

const MODES: &[(&str, ModeWord)] = &[
    ("serial", ModeWord::Serial),
    ("pipelined", ModeWord::Pipelined),
];

const FRAMINGS: &[(&str, Framing)] = &[
    ("lines", Framing::Lines),
    ("content-length", Framing::ContentLength),
];

section! {
    /// Keys of a child process.
    pub(super) STDIO {
        /// Program and arguments, without a shell
        COMMAND: List<String> = list("command", other("string", ANY_TEXT, argument));
        /// Variables of the child
        ENV: NamedValues<String> = named_values("env", other("string", ANY_TEXT, variable));
        /// Names of further variables that the child inherits, as globs
        INHERIT: List<String> = list("inherit", TEXT);
        /// Working directory; that of this process by default
        DIRECTORY: Key<PathBuf> = key("directory", FILE);
        /// One call at a time, or up to `in_flight`
        MODE: Key<ModeWord> = key("mode", words(MODES)).or("serial");
        /// Concurrent calls of a pipelined child
        IN_FLIGHT: Key<usize> = key("in_flight", whole(1, MOST)).or("16");
        /// Handshake before the first call
        HANDSHAKE: Key<bool> = key("handshake", words(HANDSHAKES)).or("mcp");
        /// Boundaries of messages: line ends, or `Content-Length` headers as in the Language Server Protocol
        FRAMING: Key<Framing> = key("framing", words(FRAMINGS)).or("lines");
        /// Longest line or message read
        LINE_LIMIT: Key<usize> = key("line_limit", size(1024)).or("16MiB");
    }
}

pub(super) fn stdio(table: &mut Table<'_>) -> Option<RawStdio> {
    let command = table.list(&COMMAND);
    if command.as_ref().is_some_and(Vec::is_empty) {
        let message = "the list is empty; write the program and its arguments";
        table.report(COMMAND.name, ValueError::new(message));
    }
    let env = variables(table);
    let inherit = table.list(&INHERIT);
    let directory = table.get(&DIRECTORY);
    let mode = table.get(&MODE);
    let in_flight = table.get(&IN_FLIGHT);
    let is_serial = mode
        .as_ref()
        .is_some_and(|mode| mode.value == ModeWord::Serial);
    if is_serial && table.shape(IN_FLIGHT.name) != Shape::Absent {
        let wrong = ValueError::new("a serial child has one call in flight");
        table.report(
            IN_FLIGHT.name,
            wrong.hint("write `mode = \"pipelined\"`, or remove it"),
        );
    }
    let queue = table.get(&QUEUE);
    let has_handshake = table.get(&HANDSHAKE);
    let initialize = initialize(table, has_handshake.as_ref());
    let revision = revision(table, has_handshake.as_ref(), initialize.as_ref());
    let login = table.table(&OF_LOGIN, login);
    let start_timeout = table.get(&START_TIMEOUT);
    let log_messages = table.get(&LOG_MESSAGES);
    let framing = table.get(&FRAMING);
    let line_limit = table.get(&LINE_LIMIT);
    let unanswered = table.get(&UNANSWERED);
    let withhold = withhold(table);
    Some(RawStdio {
        command: command?,
        env: env?,
        inherit: inherit?,
        directory,
        mode: mode?,
        in_flight: in_flight?,
        queue: queue?,
        has_handshake: has_handshake?,
        initialize,
        revision,
        login,
        start_timeout: start_timeout?,
        log_messages: log_messages?,
        framing: framing?,
        line_limit: line_limit?,
        unanswered: unanswered?,
        withhold: withhold?,
    })
}

/// Decodes the MCP revision; `None` if the proxy does not choose it.
fn revision(
    table: &mut Table<'_>,
    has_handshake: Option<&Spanned<bool>>,
    initialize: Option<&Json>,
) -> Option<Spanned<Revision>> {
    let is_set = table.shape(mcp::REVISION.name) != Shape::Absent;
    let is_none = has_handshake.is_some_and(|word| !word.value);
    let revision = table.get(&mcp::REVISION);
    let wrong = match (is_none, initialize) {
        (true, _) => "a link without a handshake has no revision",
        (false, Some(_)) => "`initialize` already contains the revision",
        (false, None) => return revision,
    };
    if is_set {
        let wrong = ValueError::new(wrong);
        table.report(mcp::REVISION.name, wrong.hint("remove one of the two"));
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

fn variable(found: RawValue<'_>) -> Result<String, ValueError> {
    // The value is never shown: it may be a secret.
    let wrong = "the value of a variable must be a string; write it in quotes";
    let value = string(found).map_err(|_| ValueError::new(wrong))?;
    if value.contains('\0') {
        return Err(ValueError::new(
            "the value of a variable cannot contain NUL",
        ));
    }
    Ok(value)
}

fn variables(table: &mut Table<'_>) -> Option<SecretMap> {
    if table.shape(ENV.name) == Shape::Absent {
        return Some(SecretMap::default());
    }
    let variables = table.named_values(&ENV)?;
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
