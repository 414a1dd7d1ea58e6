//! The program with the tools of its users: editors (taplo), shells, viewers of manual pages, and pipelines.
//!
//! `.ci/install-user-tools` installs them; the tests are ignored unless they are asked for.

#![expect(
    clippy::unwrap_used,
    reason = "a tool that cannot be started fails the test"
)]

#[path = "user_tools/editors.rs"]
mod editors;
#[path = "user_tools/manual.rs"]
mod manual;
#[path = "user_tools/pipelines.rs"]
mod pipelines;
#[path = "user_tools/shells.rs"]
mod shells;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const DUALGAUGE: &str = env!("CARGO_BIN_EXE_dualgauge");

/// Returns the path of something that `.ci/install-user-tools` installs.
fn installed(path: &str) -> PathBuf {
    let target = Path::new(DUALGAUGE).ancestors().nth(2).unwrap();
    let path = target.join(path);
    assert!(
        path.exists(),
        "{} is missing; run .ci/install-user-tools",
        path.display()
    );
    path
}

/// Returns a program of the Python environment.
fn python_tool(name: &str) -> Command {
    Command::new(installed("user-tools/bin").join(name))
}

/// The result of a program.
struct Ended {
    is_success: bool,
    /// Standard output, followed by standard error.
    text: String,
}

fn run(command: &mut Command) -> Ended {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Ended {
        is_success: status.success(),
        text: text.concat(),
    }
}

/// Runs a program that must succeed, and returns its output.
fn succeed(command: &mut Command) -> String {
    let ended = run(command);
    assert!(ended.is_success, "{command:?}: {}", ended.text);
    ended.text
}

/// Returns the files of a folder and its subfolders with an ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path
            .extension()
            .is_some_and(|extension| extension == ending)
        {
            found.push(path);
        }
    }
    found.sort();
    found
}
