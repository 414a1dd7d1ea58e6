//! `instructions CASE SIZE N`: a case as often as told and nothing else, for `instructions.sh` to count.

#![expect(clippy::expect_used, reason = "fixed values")]

use std::process::ExitCode;

mod cases;

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let [name, size, times] = &asked[..] else {
        // `cargo bench` and `cargo test --benches` start it with arguments of their own.
        return ExitCode::SUCCESS;
    };
    let (Ok(size), Ok(times)) = (size.parse(), times.parse::<u32>()) else {
        return ExitCode::FAILURE;
    };
    let Some(run) = cases::case(name, size) else {
        return ExitCode::FAILURE;
    };
    let done = (0..times).map(|_| run()).fold(0, usize::wrapping_add);
    ExitCode::from(u8::from(done == usize::MAX))
}
