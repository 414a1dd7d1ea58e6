//! What bodies take: memory of the program at its highest, with longer and longer ones. Mostly there is one call: behind a
//! further one, an allocator may still have what the one before gave back.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::peers;
use crate::production::Extent;
use crate::running::{Memory, Running};
use crate::work::{self, Kind, Method, Work};

/// Bytes of a body in each row.
const SIZES: [usize; 5] = [200, 16_384, 131_072, 1_048_576, 8_000_000];

/// Prints how much memory the program has had at its highest, with so many calls one after the other.
pub(crate) fn bodies(program: &Path, calls: u32) -> io::Result<()> {
    println!(
        "{:<10} {:>9} {:>12} {:>12} {:>12}",
        "KiB with", "bytes", "pass", "rest2rpc", "rpc2rest"
    );
    let work = |kind| work::work("long", kind, Method::Post, 200);
    for size in SIZES {
        row((program, calls), ("an answer", size), |kind| Work {
            size,
            ..work(kind)
        })?;
    }
    for sent in SIZES {
        row((program, calls), ("a call", sent), |kind| Work {
            sent,
            ..work(kind)
        })?;
    }
    Ok(())
}

fn row(
    (program, calls): (&Path, u32),
    (name, bytes): (&str, usize),
    work: impl Fn(Kind) -> Work,
) -> io::Result<()> {
    let highest = Kind::ALL.map(|kind| highest(program, &work(kind), calls));
    let [pass, rest_to_rpc, rpc_to_rest] = highest;
    println!(
        "{name:<10} {bytes:>9} {:>12} {:>12} {:>12}",
        pass?, rest_to_rpc?, rpc_to_rest?
    );
    Ok(())
}

/// The most memory, in KiB, that a program has had until it has answered so many calls.
fn highest(program: &Path, work: &Work, calls: u32) -> io::Result<u64> {
    let folder = tempfile::tempdir()?;
    let extent = Extent::PRODUCTION;
    let mut proxy = Running::serving(Command::new(program), folder.path(), (work, &extent))?;
    let address = proxy.address()?;
    peers::load(address, work, calls, 1)?;
    let held = proxy.kib(Memory::Highest)?;
    proxy.end()?;
    Ok(held)
}
