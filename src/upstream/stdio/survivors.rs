//! Processes that outlive a child because they have left its process group, as `setsid` does.
//!
//! They are found in /proc: processes that still hold a pipe of the child, and processes that descended from the child
//! when it was told to end. A process that did neither is not found; without /proc none is. They are logged but not
//! killed, because the author of the child may want them.
//!
//! Used by `stdio`.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The maximum number of processes examined.
const MOST: usize = 32_768;
/// The maximum number of survivors logged.
const LOGGED: usize = 8;

/// A process, as described by its `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    /// The start time in ticks since boot, which distinguishes processes that had the same id.
    started: u64,
    name: String,
}

impl Process {
    /// Parses `/proc/PID/stat`. A name may contain spaces and parentheses.
    fn parse(stat: &str) -> Option<Process> {
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        if state.starts_with(['Z', 'X']) {
            // A zombie or dead process no longer runs.
            return None;
        }
        Some(Process {
            pid: pid.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            // The 22nd field of the line.
            started: fields.nth(16)?.parse().ok()?,
            name: name.to_owned(),
        })
    }

    fn holds(&self, pipes: &[PathBuf]) -> bool {
        let Ok(open) = fs::read_dir(format!("/proc/{}/fd", self.pid)) else {
            return false;
        };
        let mut targets = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets.any(|target| pipes.contains(&target))
    }
}

/// Returns the name of a pipe in /proc, such as `pipe:[4711]`.
pub(super) fn pipe(end: &impl AsRawFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", end.as_raw_fd())).ok()
}

/// Returns the descendants of a process.
pub(super) fn descendants(of: u32) -> Vec<Process> {
    descendants_among(all(), of)
}

fn descendants_among(mut others: Vec<Process>, of: u32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        let (children, rest): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|process| process.parent == parent);
        others = rest;
        parents.extend(children.iter().map(|child| child.pid));
        found.extend(children);
    }
    found
}

/// Logs the processes outside `group` that hold one of the child's pipes, or are known descendants.
pub(super) fn report(upstream: &str, group: u32, known: &[Process], pipes: &[PathBuf]) {
    let own = std::process::id();
    let all = all();
    let own_name = all.iter().find(|process| process.pid == own);
    let own_name = own_name.map(|process| process.name.clone());
    let survivors = all.into_iter().filter(|process| {
        // A process that this one is just starting inherits its pipes until it executes its program.
        let is_starting = process.parent == own && Some(&process.name) == own_name.as_ref();
        let is_known = || {
            let mut known = known.iter();
            known.any(|other| (other.pid, other.started) == (process.pid, process.started))
        };
        process.pid != own
            && process.group != group
            && !is_starting
            && (is_known() || process.holds(pipes))
    });
    let survivors: Vec<Process> = survivors.collect();
    for Process { pid, name, .. } in survivors.iter().take(LOGGED) {
        tracing::warn!(
            upstream,
            pid,
            program = &**name,
            "a descendant of the child process left its process group and survived"
        );
    }
    if let Some(more) = survivors.len().checked_sub(LOGGED).filter(|more| *more > 0) {
        tracing::warn!(
            upstream,
            more,
            "more descendants of the child process survived"
        );
    }
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let processes = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        // The name need not be UTF-8.
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Process::parse(&String::from_utf8_lossy(&stat))
    });
    processes.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32) -> Process {
        Process {
            pid,
            parent,
            group: parent,
            started: 9,
            name: "a (b) c".to_owned(),
        }
    }

    #[test]
    fn a_line_of_proc_is_a_process_unless_it_is_dead() {
        let line = |state| {
            format!(
                "7 (a (b) c) {state} 3 3 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0 18446744073709551615\n"
            )
        };
        assert_eq!(Process::parse(&line("S")), Some(process(7, 3)));
        for dead in ["Z", "X"] {
            assert_eq!(Process::parse(&line(dead)), None);
        }
        for broken in ["", "7", "7 (a", "7 (a) S", "x (a) S 1 1", "7 (a) S 1 1 1"] {
            assert_eq!(Process::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn descendants_are_found_over_generations() {
        let all = [(1, 0), (5, 1), (6, 5), (8, 1), (9, 6), (7, 5)];
        let all = all.map(|(pid, parent)| process(pid, parent));
        let found = descendants_among(all.to_vec(), 5);
        let mut pids: Vec<u32> = found.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [6, 7, 9]);
        assert!(descendants_among(all.to_vec(), 9).is_empty());
    }
}
