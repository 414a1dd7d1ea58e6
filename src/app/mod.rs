//! Wiring: build from a configuration, spawn, join, drain. No decision about a call is made here.

pub mod control;
pub mod run;
mod tally;
pub mod workers;
