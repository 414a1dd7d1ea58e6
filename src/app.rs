//! Startup, wiring and shutdown of the process. No decision about a call is made here.

pub mod bound_addresses;
mod certificates;
mod compare_thread;
pub mod control;
mod hot_restart;
pub mod inherited_sockets;
mod link_thread;
mod open_files;
mod recorder_thread;
mod recordings;
pub mod replay;
pub mod run;
pub mod service_manager;
mod signals;
mod sockets;
mod spans;
pub mod startup_summary;
mod usage_counts;
pub mod workers;
