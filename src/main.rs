//! The `dualgauge` program: parse the arguments, run, turn the outcome into an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    dualgauge::cli::main()
}
