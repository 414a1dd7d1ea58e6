//! The surroundings of an event on a connection with frames, and the calls that come in. Used by `frame` and
//! `upstream`.

use std::time::Duration;

use bytes::Bytes;

use crate::pending::Ticket;
use crate::route::RouteTable;
use crate::translate::{MethodCall, TranslateContext};
use dualgauge_patterns::json::Json;

/// The routes that apply to an event, and its time.
#[derive(Debug, Clone, Copy)]
pub struct FrameContext<'a> {
    /// The routes.
    pub routes: &'a RouteTable,
    /// The limits of translation.
    pub translate: TranslateContext,
    /// The time, since an instant chosen by the owner.
    pub now: Duration,
}

/// An RPC call to be sent as a frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameCommand<'c> {
    /// The ticket of the caller.
    pub ticket: Ticket,
    /// The method and the params.
    pub call: MethodCall<'c>,
    /// The time when the caller stops waiting.
    pub deadline: Duration,
}

/// A frame that a client has written itself. It is forwarded unchanged, and observed to find its answer.
#[derive(Debug)]
pub struct ClientFrame {
    /// The ticket of the frame.
    pub ticket: Ticket,
    /// The frame as read.
    pub frame: Json,
    /// The frame as received.
    pub text: Bytes,
    /// The time when the observation ends.
    pub deadline: Duration,
}
