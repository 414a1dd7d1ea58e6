//! Unsolicited server messages, converted to the form of the client. Used by `rpc::websocket_session`.

use bytes::Bytes;

use crate::gateway::rpc_reply::context;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::worker::Worker;
use dualgauge_model::event::{EventAction, EventForm, EventValue};
use dualgauge_model::frame::SocketMessage;
use dualgauge_model::stream::EventResultKind;
use dualgauge_patterns::side::Side;

/// An unsolicited message of a server.
pub(in crate::gateway) struct ServerEvent {
    /// The side of the server.
    pub(in crate::gateway) side: Side,
    pub(in crate::gateway) text: Bytes,
}

/// Converts an event to the client's form; returns `None` if the client does not get it.
pub(in crate::gateway) fn format_event(
    worker: &Worker,
    runtime_plan: &RuntimePlan,
    event: ServerEvent,
    form: EventForm,
) -> Option<Bytes> {
    let plan = &runtime_plan.plan;
    let (text, depth) = (event.text, plan.limits.depth);
    let message = match event.side {
        Side::Rest => SocketMessage::of_server(&text, depth, &plan.routes),
        Side::Rpc => SocketMessage::new(&text, depth),
    };
    let event = match message {
        SocketMessage::Rpc(text) => EventValue::rpc(&text, plan.limits.depth)?,
        SocketMessage::Frame(frame) => EventValue::frame(frame),
        SocketMessage::Unrecognized(_) => return None,
    };
    if event.form() == form {
        return Some(text);
    }
    let (kind, text) = match plan.events.rewrite(&event, form, context(&plan.limits)) {
        EventAction::Untouched => (EventResultKind::Untouched, Some(text)),
        EventAction::Swallowed => (EventResultKind::Swallowed, None),
        EventAction::Rewritten { event, .. } => {
            let text = event.message().map(|message| message.clone().into_bytes());
            (EventResultKind::Rewritten, text)
        }
        EventAction::Failed { key, why } => {
            tracing::debug!(event = key, cause = %why, "event cannot be rewritten");
            (EventResultKind::Failed, None)
        }
    };
    let side = match form {
        EventForm::Rpc => Side::Rpc,
        EventForm::Frame | EventForm::Sse => Side::Rest,
    };
    worker.count(|shard| shard.event(runtime_plan.route_label(None), side, kind));
    text
}
