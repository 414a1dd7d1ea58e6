//! What the end-to-end tests are made of: the real program between ends that a test drives byte by byte.
//!
//! - [`Proxy`] is the program in a process of its own, with its log.
//! - [`Upstream`] is a server behind it. A test either holds its connections itself ([`Upstream::accept`]), so
//!   that it reads as a transcript, or lets it answer alone ([`Upstream::answering`]).
//! - [`Wire`] is one end of a connection, a client's or an upstream's: raw bytes out, whole messages in.
//!
//! - [`eventually`] and [`becomes`] look again until something is there.
//!
//! Nothing sleeps and no port is fixed: whatever a test waits for comes within [`WITHIN`], or fails it.

mod admin;
pub(crate) mod certificates;
mod config;
mod message;
mod multiplex;
mod proxy;
mod track;
mod upstream;
mod wire;

use std::time::Duration;

pub(crate) use admin::{becomes, eventually};
pub(crate) use config::{both, rest_only, rpc_only, sha256};
pub(crate) use message::{Head, Message, chunked, fields};
pub(crate) use multiplex::{Act, Multiplex};
pub(crate) use proxy::{Ended, Proxy, program, run_to_end};
pub(crate) use track::{Carried, Open, Track, carry};
pub(crate) use upstream::Upstream;
pub(crate) use wire::{End, Wire};

/// How long anything that must happen may take.
pub(crate) const WITHIN: Duration = Duration::from_secs(30);
