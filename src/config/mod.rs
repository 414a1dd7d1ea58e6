//! Files, environment and command line → what they say, or every problem at once.

mod include;
mod layer;
pub mod problem;
mod toml;
