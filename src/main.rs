//! The `dualgauge` program: parse the arguments, run, turn the outcome into an exit code.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
// Linked, it is what `malloc` of the C library would be, and so the allocator of Rust.
use mimalloc as _;

#[cfg(not(target_os = "linux"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match dualgauge::cli::has_all() {
        Ok(()) => dualgauge::cli::main(),
        Err(code) => code,
    }
}
