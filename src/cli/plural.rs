//! Formatting of counted nouns, their verbs, and times. Used throughout `cli`.

use std::fmt::Display;

/// Formats a count: `1 route`, `2 routes`.
pub(super) fn count<N: Display + PartialEq + From<u8>>(number: N, of: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {of}{plural}")
}

/// Returns the verb behind a count: `1 differs`, `2 differ`.
pub(super) const fn differ(number: u64) -> &'static str {
    match number {
        1 => "differs",
        _ => "differ",
    }
}

/// Formats seconds, with the two largest units: `2 min 30 s`, `1 h 25 min`.
pub(super) fn duration(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {} s", seconds % 60),
        (_, _) => format!("{hours} h {} min", minutes % 60),
    }
}
