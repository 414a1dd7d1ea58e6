//! The `dualgauge` program: parse the arguments, run, turn the outcome into an exit code.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match dualgauge::cli::knows_all() {
        Ok(()) => dualgauge::cli::main(),
        Err(code) => code,
    }
}
