//! Wiring: build from a configuration, spawn, join, drain. No decision about a call is made here.

mod certificates;
mod comparing;
pub mod control;
mod counting;
mod heir;
pub mod inherited;
mod life;
mod links;
mod open_files;
pub mod run;
mod sockets;
mod spans;
pub mod started;
pub mod supervisor;
pub mod workers;
