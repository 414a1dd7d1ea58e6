//! How reports speak of numbers.

use std::fmt::Display;

/// So many of something: `1 route`, `2 routes`.
pub(super) fn count<N: Display + PartialEq + From<u8>>(number: N, of: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {of}{plural}")
}
