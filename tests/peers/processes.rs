//! Processes of installed programs. The test crates `peers` and `kits` use this file.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// A process that ends with the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a process, and returns what follows `start` on a line of its standard output.
pub(crate) fn started(command: &mut Command, start: &str) -> (Process, String) {
    try_started(command, start).unwrap()
}

/// Starts a process, and returns what follows `start` on a line of its standard output; `None` if the output ends first.
pub(crate) fn try_started(command: &mut Command, start: &str) -> Option<(Process, String)> {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let process = Process(child);
    Some((process, line_after(output, start)?))
}

/// Reads an output up to a line with `start`, and returns what follows it there.
pub(crate) fn line_after(output: impl Read + Send + 'static, start: &str) -> Option<String> {
    line_of(output, |line| {
        let (_, rest) = line.split_once(start)?;
        Some(rest.to_owned())
    })
}

/// Reads an output up to a line of which `found` returns something, and returns that.
pub(crate) fn line_of<T>(
    output: impl Read + Send + 'static,
    found: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let found = lines.find_map(|line| found(&line));
    // A process that cannot write its output would stop.
    thread::spawn(move || lines.for_each(drop));
    found
}

/// Returns a file or a folder that a script of `.ci` installs.
pub(crate) fn installed(path: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_dualgauge"));
    let found = own.ancestors().nth(2).unwrap().join(path);
    assert!(
        found.exists(),
        "{} is missing; run .ci/install-peers, .ci/install-kits and .ci/install-ofrep",
        found.display()
    );
    found
}
