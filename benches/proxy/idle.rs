//! What connections take that wait for their next call: memory of the program that no file is behind.

use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::peers;
use crate::production::Extent;
use crate::running::{Memory, Running};
use crate::work::HOT;

/// How many connections there are in each row.
const CONNECTIONS: [usize; 5] = [0, 100, 1_000, 4_000, 10_000];

/// Prints what the program holds with more and more connections, each of which has called once.
pub(crate) fn crowd(program: &Path) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    // Each connection is a file descriptor here and one there, and a program that is started has the limits of this one.
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    )?;
    let [work, ..] = HOT;
    let folder = tempfile::tempdir()?;
    let extent = Extent::PRODUCTION;
    let mut proxy = Running::serving(Command::new(program), folder.path(), (&work, &extent))?;
    let address = proxy.address()?;
    // What the first calls need once is no part of a connection.
    peers::load(address, &work, 1_000, 1)?;
    println!(
        "{:>11} {:>10} {:>14}",
        "connections", "KiB", "bytes of each"
    );
    let mut idle: Vec<TcpStream> = Vec::new();
    let mut before = None;
    for count in CONNECTIONS {
        while idle.len() < count {
            idle.push(peers::idle(address, &work)?);
        }
        let held = proxy.kib(Memory::Anonymous)?;
        let none = *before.get_or_insert(held);
        let each = (held.saturating_sub(none) * 1024).checked_div(count as u64);
        let each = each.map_or_else(|| "-".to_owned(), |each| each.to_string());
        println!("{count:>11} {held:>10} {each:>14}");
    }
    drop(idle);
    proxy.end()
}
