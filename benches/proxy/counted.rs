//! Instructions of the proxy, counted by valgrind: those of many calls less those of few, so that starting up is no part.
//!
//! The threads that serve calls and that write the log and recordings are counted. What others do once a second is no part of a call, and
//! under valgrind a second has few calls.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::production::Extent;
use crate::running::{self, Files, Life};
use crate::work::Work;

/// Connections that call at once.
const CONNECTIONS: u32 = 8;

/// How many calls the two runs have whose difference counts.
pub(crate) fn runs(work: &Work) -> [u32; 2] {
    if work.size.max(work.sent) > 100_000 {
        [20, 100]
    } else {
        [400, 2_000]
    }
}

/// Instructions of one call, in user space. The kernel's are not seen.
pub(crate) fn per_call(program: &Path, work: &Work, extent: &Extent) -> io::Result<u64> {
    let [few, many] = runs(work);
    let count = |calls| -> io::Result<u64> {
        let profiles = of_calls(&[], program, (work, extent), calls)?;
        Ok(profiles.iter().map(|profile| total(profile)).sum())
    };
    Ok(count(many)?.saturating_sub(count(few)?) / u64::from(many - few))
}

/// What is in the profile of a thread whose work belongs to calls.
const OF_CALLS: [&str; 2] = ["server::listen::serve", "telemetry::log::writer::write"];

/// What is in the profile of the thread that writes recordings, if it writes one.
const OF_RECORDINGS: &str = "telemetry::recorder::thread::Recording";

/// The profiles of a run, of the threads that count.
pub(crate) fn of_calls(
    options: &[&str],
    program: &Path,
    served: (&Work, &Extent),
    calls: u32,
) -> io::Result<Vec<String>> {
    let (_, extent) = served;
    let mut profiles = profiles(options, program, served, (calls, Files::Stay))?;
    let of_recordings = extent.recorded.map(|_| OF_RECORDINGS);
    let counted: Vec<_> = OF_CALLS.into_iter().chain(of_recordings).collect();
    for function in &counted {
        if !profiles.iter().any(|profile| profile.contains(*function)) {
            let message = format!("no profile is of a thread that executes `{function}`");
            return Err(io::Error::other(message));
        }
    }
    profiles.retain(|profile| counted.iter().any(|function| profile.contains(function)));
    Ok(profiles)
}

/// What callgrind tells of each thread, with options of its own.
pub(crate) fn profiles(
    options: &[&str],
    program: &Path,
    (work, extent): (&Work, &Extent),
    (calls, files): (u32, Files),
) -> io::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let profiles = folder.path().join("profiles");
    std::fs::create_dir(&profiles)?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--separate-threads=yes"]);
    command.args(options);
    // Else a thread that reads a large configuration keeps those that serve from running.
    command.arg("--fair-sched=try");
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(profiles.join("of"));
    command.arg(out);
    command.arg(program);
    let life = Life {
        calls,
        connections: CONNECTIONS,
        files,
    };
    running::serve(command, (work, extent), life)?;
    let written = std::fs::read_dir(&profiles)?;
    let read = written.map(|profile| {
        let profile = std::fs::read(profile?.path())?;
        Ok(String::from_utf8_lossy(&profile).into_owned())
    });
    read.collect()
}

/// The instructions that a profile has in all.
fn total(profile: &str) -> u64 {
    let mut totals = profile
        .lines()
        .filter_map(|line| line.strip_prefix("totals: "));
    totals
        .find_map(|count| count.trim().parse().ok())
        .unwrap_or(0)
}
