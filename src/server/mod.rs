//! Listeners: accept, inspect, serve, drain. What a request means is the gateway's.

mod accepting;
pub mod admin;
mod alarm;
mod certificate;
mod chatter;
mod flushed;
mod http2;
pub mod listen;
pub mod pace;
mod preface;
mod socket;
mod taken;
mod unread;
pub mod wire;
