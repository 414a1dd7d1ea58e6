//! Listeners: accept, inspect, serve, drain. What a request means is the gateway's.

pub mod admin;
mod certificate;
pub mod listen;
pub mod pace;
mod socket;
pub mod wire;
