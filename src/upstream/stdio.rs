//! A child process as an upstream: JSON messages on its standard input and output, one per line or with their lengths.
//!
//! It is started without a shell, in its own process group, and with only the environment variables that its plan
//! names. Its standard error is logged, within limits. It is stopped in steps: its input is closed; its group gets
//! SIGTERM; then SIGKILL, which any processes left in the group always get. Processes that have left the group are
//! logged.
//!
//! Used by `stdio::revision`.

mod framing;
mod revision;
mod survivors;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio as Pipe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process_group};
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, prlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{self, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

use self::framing::{DecodedMessage, MessageDecoder};
pub use self::revision::Child;
use self::revision::ProbeHistory;
use self::survivors::Process;
use super::link::{Event, Link};
use crate::telemetry::clock;
use dualgauge_model::plan::StdioPlan;
use dualgauge_model::redact::Redaction;
use dualgauge_net::{DecodedLine, LineDecoder};

/// The time limit of each step.
const STEP: Duration = Duration::from_secs(2);
/// The time to wait for output that a child wrote before its end.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The bytes that are logged of a line on standard error.
const LOGGED: usize = 1024;
/// The last lines that are kept for the report of a loss.
const KEPT: usize = 20;
/// The lines logged per second, and at most at once.
const LOGGED_RATE: u32 = 20;
const LOGGED_BURST: u32 = 200;

/// A program that can be started as a child.
#[derive(Debug, Clone)]
pub struct Stdio {
    name: Arc<str>,
    plan: Arc<StdioPlan>,
    /// The results of probing children for the protocol revision.
    probe_history: Rc<Cell<ProbeHistory>>,
    /// The end of the standard error of the last child; borrowed only between awaits.
    last_output: Rc<RefCell<VecDeque<Bytes>>>,
    /// The soft limit of open files of a child, if it differs from that of this process.
    open_files: Option<u64>,
}

impl Stdio {
    /// Creates the stdio transport of an upstream.
    #[must_use]
    pub fn new(name: &str, plan: StdioPlan) -> Stdio {
        Stdio {
            name: name.into(),
            plan: Arc::new(plan),
            probe_history: Rc::new(Cell::new(ProbeHistory::Answered)),
            last_output: Rc::default(),
            open_files: None,
        }
    }

    /// Returns the same with a soft limit of open files for its children.
    #[must_use]
    pub fn with_open_files(self, open_files: Option<u64>) -> Stdio {
        Stdio { open_files, ..self }
    }

    fn start(&self) -> std::io::Result<RunningChild> {
        let (program, arguments) = match self.plan.command.split_first() {
            Some((program, arguments)) => (program.as_str(), arguments),
            None => ("", &[][..]),
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.plan.env.iter())
            .stdin(Pipe::piped())
            .stdout(Pipe::piped())
            .stderr(Pipe::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &self.plan.directory {
            command.current_dir(directory);
        }
        self.last_output.borrow_mut().clear();
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw);
        if let (Some(pid), Some(limit)) = (pid, self.open_files) {
            limit_open_files(pid, limit);
        }
        Ok(RunningChild {
            name: self.name.clone(),
            group: ProcessGroup(pid),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            messages: MessageDecoder::new(self.plan.framing, self.plan.line_limit),
            writing: Bytes::new(),
            log: ChildLog::new(self.plan.link.redaction.clone(), self.last_output.clone()),
            has_exited: false,
            last: None,
            family: Vec::new(),
        })
    }
}

impl Stdio {
    /// Starts a child.
    fn begin(&self) -> Result<RunningChild, String> {
        let program = self.plan.command.first().map_or("", String::as_str);
        self.start()
            .map_err(|error| format!("cannot start `{program}`: {error}"))
    }
}

/// Sets the soft limit of open files of a child that has just been started.
///
/// Only Linux can do so from outside; in the child, before its program runs, it would take unsafe code.
fn limit_open_files(child: Pid, limit: u64) {
    #[cfg(target_os = "linux")]
    {
        let own = rustix::process::getrlimit(Resource::Nofile);
        let limits = Rlimit {
            current: Some(limit),
            ..own
        };
        // A child of another user keeps the limit of this process, and one that has ended needs none.
        let _ = prlimit(Some(child), Resource::Nofile, limits);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (child, limit);
}

/// A process group. Processes left in it are killed with the link.
#[derive(Debug)]
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Returns its id, which is the child's process id as well.
    fn id(&self) -> Option<u32> {
        let group = self.0?;
        u32::try_from(group.as_raw_nonzero().get()).ok()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // A group without processes needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// A running child.
#[derive(Debug)]
struct RunningChild {
    name: Arc<str>,
    child: process::Child,
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    messages: MessageDecoder,
    /// The bytes still to be written.
    writing: Bytes,
    log: ChildLog,
    has_exited: bool,
    /// The deadline for the last output, and the reason why it is the last.
    last: Option<(Instant, String)>,
    /// The descendants of the child at the time when it was told to end.
    family: Vec<Process>,
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
        let Some(group) = self.group.id() else {
            return;
        };
        let (stdout, stderr) = (self.stdout.as_ref(), self.stderr.as_ref());
        let pipes = [
            stdout.and_then(survivors::pipe),
            stderr.and_then(survivors::pipe),
        ];
        let pipes: Vec<PathBuf> = pipes.into_iter().flatten().collect();
        survivors::report(&self.name, group, &self.family, &pipes);
    }
}

/// An event of a child.
enum ChildEvent {
    Read(usize),
    Written(usize),
    Stderr(usize),
    /// Its input is closed: it does not read any more.
    InputClosed(String),
    Exited(String),
    OutputTimeout,
}

impl Link for RunningChild {
    async fn event(&mut self) -> Event {
        loop {
            match self.messages.next_message() {
                Ok(Some(DecodedMessage::Complete(message))) => return Event::Message(message),
                Ok(Some(DecodedMessage::Overlong)) => return Event::Overlong,
                Ok(None) => {}
                // The start of the next message is unknown, so the output is not read any more.
                Err(why) if self.stdout.is_some() => {
                    self.stdout = None;
                    self.record_end(why);
                }
                Err(_) => {}
            }
            match self.next_event().await {
                ChildEvent::Read(0) => {
                    self.stdout = None;
                    let known = self.last.as_ref().map(|(_, why)| why.clone());
                    self.record_end(known.unwrap_or("it closed its standard output".to_owned()));
                }
                ChildEvent::Read(_) => {}
                ChildEvent::Stderr(0) => {
                    self.stderr = None;
                    if let Some((_, why)) = self.last.take() {
                        self.record_end(why);
                    }
                }
                ChildEvent::Stderr(_) => self.log.write(&self.name, clock::now()),
                ChildEvent::Written(written) => {
                    self.writing.advance(written);
                    if self.writing.is_empty() {
                        return Event::Written;
                    }
                }
                ChildEvent::InputClosed(why) => {
                    // The end of the process is the cause.
                    let known = self.last.as_ref().filter(|_| self.has_exited);
                    let known = known.map(|(_, why)| why.clone());
                    self.record_end(known.unwrap_or(why));
                }
                ChildEvent::Exited(why) => {
                    self.has_exited = true;
                    self.record_end(why);
                }
                ChildEvent::OutputTimeout => {
                    let why = self.last.take().map(|(_, why)| why);
                    return Event::Lost(why.unwrap_or_default());
                }
            }
        }
    }

    fn write(&mut self, message: Bytes) {
        self.writing = self.messages.encode(&message);
    }

    /// Does nothing: the operating system reports the end of a child.
    fn ping(&mut self) {}

    async fn close(mut self) {
        if let Some(child) = self.group.id() {
            self.family = survivors::descendants(child);
        }
        // First step: close its input.
        self.stdin = None;
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let Some(signal) = signal {
                tracing::warn!(
                    upstream = &*self.name,
                    ?signal,
                    "the child process does not exit"
                );
                self.group.signal(signal);
            }
            if timeout(STEP, self.end()).await.is_ok() {
                break;
            }
        }
    }
}

impl RunningChild {
    /// Starts to write a message of the transport itself, and another one after it. [`Event::Written`] follows once.
    fn write_both(&mut self, first: &[u8], second: &[u8]) {
        let both = [first, second].map(|message| self.messages.encode(message));
        self.writing = both.concat().into();
    }

    /// Waits for the next event of the child. Cancel-safe, as each branch is.
    async fn next_event(&mut self) -> ChildEvent {
        let RunningChild {
            child,
            stdin,
            stdout,
            stderr,
            messages,
            writing,
            log,
            has_exited,
            last,
            ..
        } = self;
        let is_last = last.is_some();
        let until = last.as_ref().map_or_else(clock::now, |(until, _)| *until);
        tokio::select! {
            read = read(stdout.as_mut(), messages.spare_capacity()), if stdout.is_some() => ChildEvent::Read(read),
            count = read(stderr.as_mut(), log.lines.spare_capacity()), if stderr.is_some() => {
                ChildEvent::Stderr(count)
            }
            written = write(stdin.as_mut(), writing), if !writing.is_empty() && stdin.is_some() => match written {
                Ok(written) => ChildEvent::Written(written),
                Err(error) => {
                    *stdin = None;
                    ChildEvent::InputClosed(format!("cannot write to its standard input: {error}"))
                }
            },
            status = child.wait(), if !*has_exited => ChildEvent::Exited(match status {
                Ok(status) => format!("the child process exited: {status}"),
                Err(error) => format!("cannot wait for the child process: {error}"),
            }),
            () = sleep_until(until), if is_last => ChildEvent::OutputTimeout,
        }
    }

    /// Records the reason of the end, and limits the wait for output that was written before.
    fn record_end(&mut self, why: String) {
        let now = clock::now();
        let is_read = self.stdout.is_none() && self.stderr.is_none();
        let until = match self.has_exited && is_read {
            true => now,
            false => now + LAST_WORDS,
        };
        let known = self.last.as_ref().map_or(until, |(until, _)| *until);
        self.last = Some((until.min(known), why));
    }

    /// Waits for the end, and discards the output meanwhile.
    async fn end(&mut self) {
        let (mut rest, mut complaints) = (LineDecoder::new(0), LineDecoder::new(0));
        let RunningChild {
            child,
            stdout,
            stderr,
            ..
        } = self;
        loop {
            // All branches are cancel-safe: the output is discarded.
            tokio::select! {
                _ = child.wait() => return,
                got = read(stdout.as_mut(), rest.spare_capacity()), if stdout.is_some() => if got == 0 { *stdout = None },
                got = read(stderr.as_mut(), complaints.spare_capacity()), if stderr.is_some() => if got == 0 { *stderr = None },
            }
            while rest.next_line().or(complaints.next_line()).is_some() {}
        }
    }
}

async fn read(from: Option<&mut (impl AsyncReadExt + Unpin)>, into: &mut BytesMut) -> usize {
    match from {
        // A read error counts as the end of the output.
        Some(from) => from.read_buf(into).await.unwrap_or(0),
        None => 0,
    }
}

async fn write(to: Option<&mut ChildStdin>, message: &[u8]) -> std::io::Result<usize> {
    match to {
        Some(to) => to.write(message).await,
        None => Ok(0),
    }
}

/// The log of a child's standard error.
#[derive(Debug)]
struct ChildLog {
    /// The redaction applied to each line.
    redaction: Arc<Redaction>,
    lines: LineDecoder,
    /// The last lines, as they came.
    last: Rc<RefCell<VecDeque<Bytes>>>,
    /// The lines that may be logged now.
    left: u32,
    /// The time of the last refill of `left`.
    since: Instant,
    dropped: u64,
}

impl ChildLog {
    fn new(redaction: Arc<Redaction>, last: Rc<RefCell<VecDeque<Bytes>>>) -> ChildLog {
        ChildLog {
            redaction,
            last,
            lines: LineDecoder::new(LOGGED),
            left: LOGGED_BURST,
            since: clock::now(),
            dropped: 0,
        }
    }

    fn write(&mut self, upstream: &str, now: Instant) {
        let seconds = now.saturating_duration_since(self.since).as_secs();
        if seconds > 0 {
            let more = u32::try_from(seconds).unwrap_or(u32::MAX);
            let more = more.saturating_mul(LOGGED_RATE);
            self.left = self.left.saturating_add(more).min(LOGGED_BURST);
            self.since = now;
            if self.dropped > 0 {
                let dropped = std::mem::take(&mut self.dropped);
                tracing::warn!(upstream, dropped, "dropped log output of the child process");
            }
        }
        while let Some(line) = self.lines.next_line() {
            let (DecodedLine::Complete(line) | DecodedLine::Truncated(line)) = line;
            match self.left.checked_sub(1) {
                Some(left) => {
                    self.left = left;
                    let line = redacted(&line, &self.redaction);
                    tracing::info!(upstream, line, "output of the child process");
                }
                None => self.dropped += 1,
            }
            self.keep(&line);
        }
    }

    /// Keeps a line for the report of a loss.
    fn keep(&self, line: &[u8]) {
        let mut last = self.last.borrow_mut();
        if last.len() == KEPT {
            last.pop_front();
        }
        // A copy: the line is a part of a buffer that would stay alive.
        last.push_back(Bytes::copy_from_slice(line));
    }
}

/// Returns the text of a line without secrets.
fn redacted(line: &[u8], redaction: &Redaction) -> String {
    let line = String::from_utf8_lossy(line);
    redaction.text(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logged_output_of_a_child_is_limited() {
        let mut log = ChildLog::new(Arc::default(), Rc::default());
        let start = log.since;
        for _ in 0..LOGGED_BURST + 5 {
            log.lines.spare_capacity().extend_from_slice(b"x\n");
        }
        log.write("u", start);
        assert_eq!((log.left, log.dropped), (0, 5));
        assert_eq!(log.last.borrow().len(), KEPT);
        log.lines.spare_capacity().extend_from_slice(b"x\n");
        log.write("u", start + Duration::from_secs(2));
        assert_eq!((log.left, log.dropped), (2 * LOGGED_RATE - 1, 0));
    }
}
