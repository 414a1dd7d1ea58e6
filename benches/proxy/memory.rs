//! What bodies take: memory of the program at its highest, with longer and longer ones. There is one call: behind a further
//! one, an allocator may still have what the one before gave back.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::peers;
use crate::production::Extent;
use crate::running::{Memory, Running};
use crate::work::{self, Kind, Method, Work};

/// Bytes of a body in each row.
const SIZES: [usize; 5] = [200, 16_384, 131_072, 1_048_576, 8_000_000];

/// Prints how much memory the program has had at its highest.
pub(crate) fn bodies(program: &Path) -> io::Result<()> {
    println!(
        "{:<10} {:>9} {:>12} {:>12} {:>12}",
        "KiB with", "bytes", "pass", "rest2rpc", "rpc2rest"
    );
    for size in SIZES {
        row("an answer", program, |kind| Work {
            size,
            ..work::work("long", kind, Method::Post, 200)
        })?;
    }
    for size in SIZES {
        row("a call", program, |kind| Work {
            sent: size,
            ..work::work("long", kind, Method::Post, 200)
        })?;
    }
    Ok(())
}

fn row(name: &str, program: &Path, of: impl Fn(Kind) -> Work) -> io::Result<()> {
    let mut line = String::new();
    let mut bytes = 0;
    for kind in Kind::ALL {
        let work = of(kind);
        bytes = work.size.max(work.sent);
        line.push_str(&format!(" {:>12}", highest(program, &work)?));
    }
    println!("{name:<10} {bytes:>9}{line}");
    Ok(())
}

/// The most memory, in KiB, that a program has had until it has answered a call.
fn highest(program: &Path, work: &Work) -> io::Result<u64> {
    let folder = tempfile::tempdir()?;
    let extent = Extent::PRODUCTION;
    let mut proxy = Running::serving(Command::new(program), folder.path(), (work, &extent))?;
    let address = proxy.address()?;
    peers::load(address, work, 1, 1)?;
    let held = proxy.kib(Memory::Highest)?;
    proxy.end()?;
    Ok(held)
}
