//! Frames of legacy sockets: commands of frame clients, and events in the form of each client.
//!
//! [`dualgauge_model::frame`] interprets frames, and `upstream` owns the sockets. Like any other call, a command has
//! one record, one route and one decision.
//!
//! Used by `rpc`.

mod command;
mod events;
mod replay;

pub(super) use command::{FrameClient, FrameEnd, FrameOutcome, serve_frame};
pub(super) use events::{ServerEvent, format_event};
