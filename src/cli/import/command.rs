//! Tools of an MCP server that is a command: one child process, asked over standard input and output.
//!
//! The child is always ended and reaped. All messages share one time limit and one size limit.

use std::collections::BTreeSet;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::discover::tools::greeting;
use super::json;
use super::limits::LARGEST;
use super::message::error_of;
use crate::cli::connection::within;
use dualgauge_model::import::{DocumentKind, SourceDocument, printable};

/// The most pages of a list of tools.
const MOST_PAGES: usize = 10_000;
/// The longest part of standard error that is shown.
const SHOWN: usize = 2_000;
/// The time limit for a child to end after its standard input is closed.
const PATIENCE: Duration = Duration::from_secs(1);

/// The reason why a command did not list its tools.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum CommandFault {
    /// The command cannot be started.
    #[error("`{0}` cannot be started")]
    Start(String, #[source] io::Error),
    /// The command did not list its tools.
    #[error("`{command}` did not list its tools: {what}{said}")]
    Asked {
        /// The command.
        command: String,
        /// The cause.
        what: String,
        /// The end of its standard error.
        said: String,
    },
}

/// Starts a command, asks for its tools, and ends it.
pub(super) fn ask(command: &[String], limit: Duration) -> Result<SourceDocument, CommandFault> {
    let name = printable(&command.join(" "));
    let fault = |what: String, said: String| CommandFault::Asked {
        command: name.clone(),
        what,
        said,
    };
    // The command may take its whole time; ending it takes little more.
    let outcome = within(limit + 4 * PATIENCE, run(command, limit));
    let asked = outcome
        .map_err(|source| CommandFault::Start(name.clone(), source))?
        .ok_or_else(|| fault("it did not end".to_owned(), String::new()))?;
    match asked {
        Ok((Ok(tools), _)) => Ok(SourceDocument {
            name: format!("`tools/list` of `{name}`"),
            kind: DocumentKind::Tools,
            document: json!({ "tools": tools }),
        }),
        Ok((Err(what), said)) => Err(fault(what, said)),
        Err(source) => Err(CommandFault::Start(name.clone(), source)),
    }
}

/// The tools or the reason why there are none, and the end of standard error.
type Asked = (Result<Vec<Value>, String>, String);

async fn run(command: &[String], limit: Duration) -> io::Result<Asked> {
    let [program, arguments @ ..] = command else {
        return Err(io::Error::other("no command is given"));
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The processes that it starts end with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let mut conversation = Conversation::new(stdin, stdout);
    let mut said = Vec::new();
    let mut stderr = stderr;
    let tools = {
        let asking = timeout(limit, conversation.tools());
        let mut asking = std::pin::pin!(asking);
        // Standard error is read all the time, so that the child never waits for it.
        tokio::select! {
            biased;
            tools = &mut asking => tools,
            () = drain(&mut stderr, &mut said) => asking.await,
        }
    };
    let tools =
        tools.unwrap_or_else(|_| Err(format!("no answer within {limit:?}; raise `--timeout`")));
    drop(conversation);
    let status = end(&mut child, &mut stderr, &mut said).await;
    Ok((tools, shown(&said, status)))
}

/// Reads standard error to its end, and keeps its last part.
async fn drain(stderr: &mut ChildStderr, said: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        said.extend_from_slice(&buffer[..read]);
        if said.len() > 2 * SHOWN {
            said.drain(..said.len() - SHOWN);
        }
    }
}

/// Waits a moment for the child to end, then kills it and all that it started. Always reaps it.
async fn end(
    child: &mut Child,
    stderr: &mut ChildStderr,
    said: &mut Vec<u8>,
) -> Option<ExitStatus> {
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let group = group.and_then(Pid::from_raw);
    let _ = timeout(PATIENCE, drain(stderr, said)).await;
    let by_itself = timeout(PATIENCE, child.wait()).await;
    if let Some(group) = group {
        // The group may have members after the child itself has ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
    match by_itself {
        Ok(status) => status.ok(),
        Err(_) => {
            let _ = child.wait().await;
            None
        }
    }
}

/// Renders the exit status and the end of standard error.
fn shown(said: &[u8], status: Option<ExitStatus>) -> String {
    let said = &said[said.len().saturating_sub(SHOWN)..];
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(|line| format!("\n  {}", printable(line)));
    let lines: String = lines.collect();
    let status = status.filter(|status| !status.success());
    let status = status.map_or_else(String::new, |status| format!(" ({status})"));
    if lines.is_empty() {
        return status;
    }
    format!("{status}; its standard error:{lines}")
}

/// The messages of one child.
struct Conversation {
    stdin: ChildStdin,
    lines: BufReader<Take<ChildStdout>>,
    id: u64,
}

impl Conversation {
    fn new(stdin: ChildStdin, stdout: ChildStdout) -> Conversation {
        let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX);
        Conversation {
            stdin,
            lines: BufReader::new(stdout.take(limit)),
            id: 0,
        }
    }

    async fn tools(&mut self) -> Result<Vec<Value>, String> {
        // A server without sessions refuses the handshake, and still lists its tools.
        if self.call("initialize", greeting()).await?.is_ok() {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            self.send(&note).await?;
        }
        let mut tools = Vec::new();
        let mut cursors = BTreeSet::new();
        let mut params = json!({});
        while cursors.len() < MOST_PAGES {
            let result = self.call("tools/list", params).await?;
            let mut result =
                result.map_err(|error| format!("`tools/list` was refused: {error}"))?;
            let Some(Value::Array(page)) = result.get_mut("tools").map(Value::take) else {
                return Err("its answer to `tools/list` has no list of tools".to_owned());
            };
            tools.extend(page);
            let next = result.get("nextCursor").and_then(Value::as_str);
            let next = next.filter(|next| !next.is_empty()).map(str::to_owned);
            // A repeated cursor would lead to the same pages again.
            let Some(next) = next.filter(|next| cursors.insert(next.clone())) else {
                return Ok(tools);
            };
            params = json!({ "cursor": next });
        }
        Err(format!("`tools/list` has more than {MOST_PAGES} pages"))
    }

    async fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let sent = self.stdin.write_all(line.as_bytes()).await;
        sent.map_err(|error| format!("it does not read: {error}"))
    }

    /// Sends a request and returns its result, or its error as text.
    async fn call(&mut self, method: &str, params: Value) -> Result<Result<Value, String>, String> {
        self.id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.send(&request).await?;
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.lines.read_line(&mut line).await;
            let read = read.map_err(|error| format!("its output cannot be read: {error}"))?;
            if read == 0 {
                let most = LARGEST / 1024 / 1024;
                let what = match self.lines.get_ref().limit() {
                    0 => format!("it wrote more than {most} MiB"),
                    _ => format!("it ended before it answered `{method}`"),
                };
                return Err(what);
            }
            // Servers also write notifications, requests, and lines that are no messages.
            let Ok(mut message) = json::parse(&line) else {
                continue;
            };
            if message.get("id").and_then(Value::as_u64) != Some(self.id) {
                continue;
            }
            if let Some(error) = error_of(&message) {
                return Ok(Err(error));
            }
            if let Some(result) = message.get_mut("result").map(Value::take) {
                return Ok(Ok(result));
            }
        }
    }
}
