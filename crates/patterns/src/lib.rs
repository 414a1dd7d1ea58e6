#![doc = include_str!("../README.md")]

pub mod json;
pub mod pattern;
pub mod percent;
pub mod rope;
pub mod schema;
pub mod side;

// Shared with other crates of the workspace. They are no part of the API.
#[doc(hidden)]
pub mod simd;
#[doc(hidden)]
pub mod swar;
