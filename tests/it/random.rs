//! Route tables made at random, with what their maker knows of them.
//!
//! A table is made of patterns that are plain values here ([`pattern`]); from the same values come the TOML text
//! ([`table`]), the calls and replies that fit ([`call`], [`route`]), and what each must become on the other side.
//! Law: nothing here asks the program what a pattern means.

pub(crate) mod call;
pub(crate) mod dice;
pub(crate) mod explained;
pub(crate) mod json;
mod pair;
pub(crate) mod pattern;
pub(crate) mod route;
pub(crate) mod row;
pub(crate) mod scripted;
mod side;
pub(crate) mod table;
pub(crate) mod verdicts;
