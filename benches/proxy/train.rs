//! The load that a program is trained with whose compiler then arranges the code for it (`deploy/optimize`).

use std::io;
use std::path::Path;
use std::process::Command;

use crate::production::Extent;
use crate::running::{self, Files, Life};
use crate::work::{HOT, Kind, Method, Work, work};

/// How many calls of each work there are: what counts is how often each branch is taken beside the others.
const CALLS: u32 = 4_000;

/// Connections that call at once.
const CONNECTIONS: u32 = 64;

/// Serves plain calls of each kind over HTTP/1.1 for a while, some of which come apart, and changes its files; a program that
/// counts what it executes writes that when it ends.
pub(crate) fn train(program: &Path) -> io::Result<()> {
    let plain = Extent::PRODUCTION;
    let serve = |work: &Work, extent: &Extent, calls: u32| {
        let life = Life {
            calls,
            connections: CONNECTIONS,
            files: Files::Change,
        };
        running::serve(Command::new(program), (work, extent), life)
    };
    for work in HOT {
        serve(&work, &plain, CALLS)?;
    }
    for (kind, size) in [
        (Kind::Pass, 1_048_576),
        (Kind::RestToRpc, 131_072),
        (Kind::RpcToRest, 131_072),
    ] {
        serve(&work("long", kind, Method::Post, size), &plain, 100)?;
    }
    let batch = Work {
        batch: Some(10),
        ..work("batch", Kind::RpcToRest, Method::Post, 200)
    };
    serve(&batch, &plain, CALLS / 10)?;
    let shadowed = Extent {
        shadow: Some(100),
        ..plain
    };
    let compared = work("shadowed", Kind::Pass, Method::Post, 200);
    serve(&compared, &shadowed, CALLS / 4)
}
