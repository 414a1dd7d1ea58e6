//! What one call costs the whole program, in instructions: `cargo bench --profile dist --bench proxy`.
//!
//! The proxy runs under valgrind with the configuration of `production.rs`, between an upstream and clients of this
//! program. Each figure is held against the one in `figures.txt`: 3 % more is a failure. `-- shares` prints where they go,
//! `-- grow` how costs grow with routes, flags, clients, bodies, batches and workers, `-- idle` what connections without a
//! call hold, `-- memory` what bodies take, `-- system-calls` what calls ask of the system, and how many there are in a
//! second; `-- links` calls upstreams behind links, through the proxy and without it; `-- streams` measures responses that
//! stream; `-- entry FOLDER` writes what a harness needs that compares proxies; `-- train` serves calls for a program that counts what it executes; `-- executed`
//! prints the functions that a program executes.

#![expect(clippy::print_stdout, reason = "it prints tables")]
#![expect(clippy::cast_precision_loss, reason = "ratios of counts")]

mod counted;
mod executed;
mod idle;
mod links;
mod memory;
mod peers;
mod production;
mod running;
mod shares;
mod streams;
mod system_calls;
mod train;
mod work;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use production::Extent;
use work::{HOT, Kind, Method, RATIOS, RECORDED, Work};

/// Counts the instructions of one call through the whole proxy.
#[derive(Parser)]
struct Asked {
    #[command(subcommand)]
    task: Option<Task>,
    /// Only the work of this name.
    #[arg(long)]
    only: Option<String>,
    /// Writes the figures that later runs are held against: all of them, of the program that is built.
    #[arg(long, conflicts_with_all = ["only", "program"])]
    write: bool,
    /// The program that is measured, in place of the one that is built. The figures are not of it, and hold nothing.
    #[arg(long, global = true)]
    program: Option<PathBuf>,
    /// `cargo bench` says so.
    #[arg(long, global = true, hide = true)]
    bench: bool,
}

#[derive(Subcommand)]
enum Task {
    /// Prints how the cost of a call grows.
    Grow {
        /// With what; with everything where it is not said.
        along: Option<Along>,
    },
    /// Prints what connections hold that wait for their next call, up to 10,000 of them.
    Idle,
    /// Prints the memory of the program at its highest, with bodies of up to 8 MB.
    Memory {
        /// How many calls there are, one after the other.
        #[arg(long, default_value_t = 1)]
        calls: u32,
    },
    /// Prints the system calls of a call, with one worker and with two, and how many calls there are in a second. Needs strace.
    SystemCalls,
    /// Measures calls over a WebSocket and to a child, through the proxy and without it. On a calm machine.
    Links,
    /// Measures responses that stream: the delay of the first event, and with `--events` the memory during a long stream.
    Streams {
        /// Events of the long stream, such as 1000000; without it there is none.
        #[arg(long)]
        events: Option<u64>,
        /// Seconds of the long stream.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
    },
    /// Serves plain calls of each kind for a while, so that a program that counts what it executes writes its profile.
    Train,
    /// Prints the functions that the program executes, and parts of functions that lie apart. Needs valgrind and nm.
    Executed,
    /// Prints where the instructions of a call go. Needs valgrind.
    Shares,
    /// A server on standard input and output.
    #[command(hide = true)]
    Child,
    /// Writes configurations into a folder, and `dualgauge.json`, the entry of a harness that fills in the ports.
    Entry {
        /// The folder.
        folder: PathBuf,
        /// Percent of the calls that are shadowed.
        #[arg(long)]
        shadow: Option<u32>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Along {
    Routes,
    Flags,
    Clients,
    /// Bytes of an answer's body.
    Body,
    /// Bytes of a call's body.
    Call,
    Batch,
    Workers,
    Shadow,
}

/// What a figure may grow by before it is a failure.
const ALLOWED: f64 = 1.03;

fn main() -> ExitCode {
    match done(&Asked::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what is asked for. It is false where a figure is not held.
fn done(asked: &Asked) -> Result<bool, Box<dyn Error>> {
    let built = Path::new(env!("CARGO_BIN_EXE_dualgauge"));
    let program = asked.program.as_deref().unwrap_or(built);
    if let Some(missing) = missing(asked.task.as_ref()) {
        println!("SKIPPED: {missing}");
        return Ok(true);
    }
    match &asked.task {
        Some(Task::Entry { folder, shadow }) => entry(program, folder, *shadow)?,
        Some(Task::Idle) => idle::crowd(program)?,
        Some(Task::Memory { calls }) => memory::bodies(program, *calls)?,
        Some(Task::SystemCalls) => system_calls::trace(program)?,
        Some(Task::Links) => links::compare(program)?,
        Some(Task::Streams { events, seconds }) => {
            let over = Duration::from_secs(*seconds);
            let is_prompt = streams::first_events(program)?;
            let is_steady = match events {
                Some(events) => streams::memory(program, *events, over)?,
                None => true,
            };
            return Ok(is_prompt && is_steady);
        }
        Some(Task::Train) => train::train(program)?,
        Some(Task::Executed) => executed::print(program)?,
        Some(Task::Shares) => shares::print(program)?,
        Some(Task::Child) => links::child()?,
        Some(Task::Grow { along }) => grow(program, *along)?,
        None => return hold(program, asked),
    }
    Ok(true)
}

/// What this machine has not that a task needs.
fn missing(task: Option<&Task>) -> Option<&'static str> {
    match task {
        Some(Task::SystemCalls) if !is_installed("strace") => {
            Some("strace is not installed, no system call was counted")
        }
        None | Some(Task::Grow { .. } | Task::Shares) if !is_installed("valgrind") => {
            Some("valgrind is not installed, no instruction was counted")
        }
        None if !is_comparable() => {
            Some("the figures are of x86-64 with AVX2, which this processor is not")
        }
        _ => None,
    }
}

fn is_installed(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the libraries choose the routines here that they chose where the figures were counted. Valgrind shows every
/// processor with AVX2 as one and the same.
fn is_comparable() -> bool {
    #[cfg(target_arch = "x86_64")]
    let is_so = std::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let is_so = false;
    is_so
}

/// The compiler, as the figures have it.
fn compiler() -> Result<String, Box<dyn Error>> {
    let said = Command::new("rustc").arg("--version").output()?;
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}

fn figures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/proxy/figures.txt")
}

/// Whether no figure has grown by more than is allowed.
fn hold(program: &Path, asked: &Asked) -> Result<bool, Box<dyn Error>> {
    let path = figures();
    let committed = match fs::read_to_string(&path) {
        Err(_) if asked.write => String::new(),
        committed => committed.map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let compiler = compiler()?;
    let before = |name: &str| -> Option<u64> {
        let mut rows = committed.lines().filter_map(|line| line.split_once(' '));
        let (_, count) = rows.find(|(row, _)| *row == name)?;
        count.trim().parse().ok()
    };
    let only = asked.only.as_deref().unwrap_or_default();
    let works: Vec<_> = HOT.iter().filter(|work| work.name.contains(only)).collect();
    if works.is_empty() {
        let names = HOT.map(|work| work.name).join(", ");
        return Err(format!("--only {only}: no work has such a name; there are {names}").into());
    }
    let is_held = !asked.write && asked.program.is_none();
    if is_held && !committed.starts_with(&compiler) {
        let theirs = committed.lines().next().unwrap_or_default();
        println!("note: the figures are of {theirs}, and this is {compiler}");
    }
    let (mut held, mut written) = (true, format!("{compiler}\n"));
    let mut counts = BTreeMap::new();
    println!(
        "{:<16} {:>14} {:>10} {:>7}",
        "work", "instructions", "before", "ratio"
    );
    for work in works {
        let count = counted::per_call(program, work, &Extent::PRODUCTION)?;
        let _ = writeln!(written, "{} {count}", work.name);
        counts.insert(work.name, count);
        let before = before(work.name);
        let verdict = is_held.then(|| Verdict::of(count, before));
        held &= verdict.is_none_or(Verdict::passes);
        print(work.name, (count, before), verdict);
        for (name, _, extent) in RECORDED.iter().filter(|(_, base, _)| *base == work.name) {
            counts.insert(*name, counted::per_call(program, work, extent)?);
        }
    }
    held &= keep_ratios(&counts);
    if asked.write {
        fs::write(path, written)?;
    }
    Ok(held)
}

/// Whether no work costs more beside another than it may.
fn keep_ratios(counts: &BTreeMap<&str, u64>) -> bool {
    let mut kept = true;
    for (work, other, most) in RATIOS {
        let (Some(count), Some(base)) = (counts.get(work), counts.get(other)) else {
            continue;
        };
        let ratio = *count as f64 / *base as f64;
        let verdict = if ratio > most { "  TOO MUCH" } else { "" };
        println!("{work} costs {ratio:.2} times {other}, at most {most}{verdict}");
        kept &= ratio <= most;
    }
    kept
}

fn print(name: &str, (count, before): (u64, Option<u64>), verdict: Option<Verdict>) {
    let what_to_do = verdict.map_or("", Verdict::what_to_do);
    let ratio = before.map(|before| format!("{:.3}", count as f64 / before as f64));
    let before = before.map(|before| before.to_string());
    println!(
        "{name:<16} {count:>14} {:>10} {:>7}{what_to_do}",
        before.as_deref().unwrap_or("none"),
        ratio.as_deref().unwrap_or("-")
    );
}

/// What a count says beside the figure before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Holds,
    Fell,
    Grew,
    /// There is no figure.
    Unknown,
}

impl Verdict {
    fn of(count: u64, before: Option<u64>) -> Verdict {
        let Some(before) = before else {
            return Verdict::Unknown;
        };
        match count as f64 / before as f64 {
            ratio if ratio > ALLOWED => Verdict::Grew,
            ratio if ratio < 1.0 / ALLOWED => Verdict::Fell,
            _ => Verdict::Holds,
        }
    }

    fn passes(self) -> bool {
        matches!(self, Verdict::Holds | Verdict::Fell)
    }

    fn what_to_do(self) -> &'static str {
        match self {
            Verdict::Holds => "",
            Verdict::Fell => "  fell: commit the new figure (-- --write)",
            Verdict::Grew => {
                "  GREW: find out why, or commit the new figure with the reason (-- --write)"
            }
            Verdict::Unknown => "  NO FIGURE to hold it against: commit one (-- --write)",
        }
    }
}

impl Along {
    /// How much of it there is in each row.
    fn counts(self) -> &'static [usize] {
        match self {
            Along::Routes => &[10, 100, 1_000, 10_000],
            Along::Flags => &[1, 10, 100, 1_000],
            Along::Clients => &[1, 100, 1_000, 10_000],
            Along::Body => &[200, 16_384, 131_072, 1_048_576, 8_000_000],
            Along::Call => &[200, 131_072, 8_000_000],
            Along::Batch => &[1, 10, 100],
            Along::Workers => &[1, 2],
            Along::Shadow => &[0, 10, 100],
        }
    }

    /// The work of a kind, and the extent of all else, where there is so much of it; none where that says nothing.
    fn at(self, count: usize, kind: Kind) -> Option<(Work, Extent)> {
        let mut work = work::work("grown", kind, Method::Post, 200);
        let mut extent = Extent::PRODUCTION;
        match self {
            Along::Routes => extent.routes = count,
            Along::Flags => extent.flags = count,
            Along::Clients => extent.clients = count,
            Along::Body => work.size = count,
            Along::Call => work.sent = count,
            Along::Batch if kind.is_rpc() => work.batch = Some(count),
            Along::Batch => return None,
            Along::Workers => extent.workers = count,
            Along::Shadow => extent.shadow = u32::try_from(count).ok(),
        }
        Some((work, extent))
    }
}

/// Prints what calls cost where there is more of something.
fn grow(program: &Path, only: Option<Along>) -> Result<(), Box<dyn Error>> {
    println!(
        "{:<10} {:>9} {:>12} {:>12} {:>12}",
        "with", "of it", "pass", "rest2rpc", "rpc2rest"
    );
    for along in Along::value_variants() {
        if only.is_some_and(|only| only != *along) {
            continue;
        }
        let named = along.to_possible_value();
        let name = named.map_or_else(String::new, |value| value.get_name().to_owned());
        for count in along.counts() {
            let mut line = format!("{name:<10} {count:>9}");
            for kind in Kind::ALL {
                let _ = match along.at(*count, kind) {
                    Some((work, extent)) => {
                        write!(line, " {:>12}", counted::per_call(program, &work, &extent)?)
                    }
                    None => write!(line, " {:>12}", "-"),
                };
            }
            println!("{line}");
        }
    }
    Ok(())
}

/// Writes the entry of a harness.
fn entry(program: &Path, folder: &Path, shadow: Option<u32>) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let folder = fs::canonicalize(folder)?;
    let extent = Extent {
        shadow,
        ..Extent::PRODUCTION
    };
    let mut modes = serde_json::Map::new();
    for kind in Kind::ALL {
        let config = production::write(
            &folder,
            &extent,
            kind,
            ("127.0.0.1:{port}", "127.0.0.1:{up}"),
        )?;
        let mut mode = serde_json::json!({ "conf": config });
        if kind.is_rpc() {
            mode["path"] = "/mcp".into();
        }
        modes.insert(kind.name().to_owned(), mode);
    }
    let entry = serde_json::json!({
        "name": "dualgauge",
        "port": 8120,
        "cmd": [fs::canonicalize(program)?, "run", "--config", "{conf}"],
        "conf": modes["pass"]["conf"],
        "idle": true,
        "modes": modes,
    });
    let path = folder.join("dualgauge.json");
    fs::write(&path, format!("{entry:#}\n"))?;
    println!("{}", path.display());
    Ok(())
}
