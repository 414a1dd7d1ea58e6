//! Listeners: accept, inspect, serve, drain. What a request means is the gateway's.

pub mod admin;
pub mod listen;
pub mod pace;
pub mod wire;
