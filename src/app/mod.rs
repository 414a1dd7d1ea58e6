//! Wiring: build from a configuration, spawn, join, drain. No decision about a call is made here.

pub mod control;
mod counting;
pub mod run;
pub mod workers;
