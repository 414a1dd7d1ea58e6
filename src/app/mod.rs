//! Wiring: build from a configuration, spawn, join, drain. No decision about a call is made here.

mod certificates;
mod comparing;
pub mod control;
mod counting;
mod links;
pub mod run;
mod spans;
pub mod workers;
