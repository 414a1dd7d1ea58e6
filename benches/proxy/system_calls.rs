//! System calls of a call, and how many of them wait for another thread or wake one; and calls a second.
//!
//! Tracing makes the program slower, so that more of its reads find one connection ready where they would find several.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::peers;
use crate::production::Extent;
use crate::running::{Files, Life, Running, serve, wait_for};
use crate::work::{HOT, Work};

/// Connections that call at once.
const CONNECTIONS: u32 = 64;
/// Calls of each of the two runs whose difference counts.
const FEW: u32 = 4_000;
const MANY: u32 = 20_000;

/// System calls of a run.
#[derive(Debug, Clone, Copy, Default)]
struct Traced {
    all: u64,
    /// `futex`: somebody waits for another thread, or wakes one.
    futex: u64,
}

/// Prints what calls of each kind ask of the system, and how many there are in a second, with one worker and with two.
pub(crate) fn trace(program: &Path) -> io::Result<()> {
    println!(
        "{:<16} {:>8} {:>13} {:>8} {:>10}",
        "work", "workers", "system calls", "futexes", "calls/s"
    );
    for workers in [1, 2] {
        let extent = Extent {
            workers,
            ..Extent::PRODUCTION
        };
        for work in &HOT {
            let few = traced(program, work, &extent, FEW)?;
            let many = traced(program, work, &extent, MANY)?;
            let each =
                |many: u64, few: u64| many.saturating_sub(few) as f64 / f64::from(MANY - FEW);
            println!(
                "{:<16} {workers:>8} {:>13.2} {:>8.3} {:>10.0}",
                work.name,
                each(many.all, few.all),
                each(many.futex, few.futex),
                rate(program, work, &extent)?
            );
        }
    }
    Ok(())
}

fn traced(program: &Path, work: &Work, extent: &Extent, calls: u32) -> io::Result<Traced> {
    let folder = tempfile::tempdir()?;
    let table = folder.path().join("table");
    let mut command = Command::new("strace");
    // The program stays a child of this one, which ends it.
    command.args(["-D", "-f", "-c", "-U", "calls,name", "-o"]);
    command.arg(&table).arg(program);
    let life = Life {
        calls,
        connections: CONNECTIONS,
        files: Files::Stay,
    };
    serve(command, (work, extent), life)?;
    // It is written when the program has ended.
    let table = wait_for(&table, "total")?;
    let rows = table.lines().filter_map(|row| {
        let (count, name) = row.trim().split_once(' ')?;
        Some((count.parse().ok()?, name.trim()))
    });
    let mut traced = Traced::default();
    for (count, name) in rows {
        match name {
            "total" => traced.all = count,
            "futex" => traced.futex = count,
            _ => {}
        }
    }
    Ok(traced)
}

/// Calls a second of a program that nobody traces. Its clients and its upstream have the same processors.
fn rate(program: &Path, work: &Work, extent: &Extent) -> io::Result<f64> {
    let folder = tempfile::tempdir()?;
    let mut proxy = Running::serving(Command::new(program), folder.path(), (work, extent))?;
    let address = proxy.address()?;
    peers::load(address, work, FEW, CONNECTIONS)?;
    let since = peers::now();
    peers::load(address, work, MANY, CONNECTIONS)?;
    let rate = f64::from(MANY) / since.elapsed().as_secs_f64();
    proxy.end()?;
    Ok(rate)
}
