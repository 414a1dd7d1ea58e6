//! Formatting of counted nouns in reports. Used by `check`, `mismatches`, `reload` and `usage`.

use std::fmt::Display;

/// Formats a count: `1 route`, `2 routes`.
pub(super) fn count<N: Display + PartialEq + From<u8>>(number: N, of: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {of}{plural}")
}
