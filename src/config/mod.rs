//! Files, environment and command line → what they say, or every problem at once.

mod include;
mod kind;
mod layer;
pub mod problem;
mod reader;
mod toml;
