//! Translation of commands and their answers, between frames and JSON-RPC.
//!
//! Used by `explain`, `frame`, `local_reply` and `gateway`.

use crate::jsonrpc::ResponseReply;
use crate::outcome::TranslatedReply;
use crate::route::{MatchError, Route};
use crate::translate::{ToRpc, TranslateContext, rest_to_rpc};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{Bindings, PatternReader};
use dualgauge_patterns::rope::Rope;

/// The reply to a client that speaks in frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameReply {
    /// This frame.
    Frame(Rope),
    /// No frame: the old protocol answers with silence here.
    Silence,
    /// No row expresses this reply as a frame, so none can be sent.
    NoRow,
}

/// Renders the RPC call of a command that matches a route.
///
/// # Errors
/// [`MatchError`] names the member that does not fit.
pub fn command_to_rpc(
    route: &Route,
    frame: Json,
    context: TranslateContext,
) -> Result<ToRpc<'_>, MatchError> {
    let holes = route.facts.holes.len();
    let reading = PatternReader::new(holes, route.extra.unknown_members(), context.depth);
    rest_to_rpc(route, reading, Some(frame), context)
}

/// Translates the answer of a command for its client.
#[must_use]
pub fn answer_to_frame(
    route: &Route,
    reply: ResponseReply,
    call: &Bindings,
    context: TranslateContext,
) -> TranslatedReply<FrameReply> {
    let answered = route.outcomes.rpc_to_rest(reply, call, context);
    let body = answered.answer.body;
    let frame_reply = match answered.row {
        None => FrameReply::NoRow,
        Some(_) if body.is_empty() => FrameReply::Silence,
        Some(_) => FrameReply::Frame(body),
    };
    TranslatedReply {
        answer: frame_reply,
        dropped: answered.dropped,
        row: answered.row,
        tool_error: answered.tool_error,
        result_type: answered.result_type,
    }
}
