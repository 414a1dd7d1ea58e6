//! The load that a program is trained with whose compiler then arranges the code for it (`deploy/optimize`).

use std::io;
use std::path::Path;
use std::process::Command;

use crate::peers;
use crate::production::Extent;
use crate::running::Running;
use crate::work::{HOT, Kind, Method, Work, work};

/// How many calls of each work there are. Twice as many bring the same program.
const CALLS: u32 = 4_000;

/// Connections that call at once.
const CONNECTIONS: u32 = 16;

/// Serves each kind of call for a while; a program that counts what it executes writes that when it ends.
pub(crate) fn train(program: &Path) -> io::Result<()> {
    let plain = Extent::PRODUCTION;
    for work in HOT {
        serve(program, &work, &plain, CALLS)?;
    }
    for (kind, size) in [
        (Kind::Pass, 1_048_576),
        (Kind::RestToRpc, 131_072),
        (Kind::RpcToRest, 131_072),
    ] {
        serve(
            program,
            &work("long", kind, Method::Post, size),
            &plain,
            100,
        )?;
    }
    let batch = Work {
        batch: Some(10),
        ..work("batch", Kind::RpcToRest, Method::Post, 200)
    };
    serve(program, &batch, &plain, CALLS / 10)?;
    let shadowed = Extent {
        shadow: Some(100),
        ..plain
    };
    let compared = work("shadowed", Kind::Pass, Method::Post, 200);
    serve(program, &compared, &shadowed, CALLS / 4)
}

fn serve(program: &Path, work: &Work, extent: &Extent, calls: u32) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut proxy = Running::serving(Command::new(program), folder.path(), (work, extent))?;
    peers::load(proxy.address()?, work, calls, CONNECTIONS)?;
    proxy.end()
}
