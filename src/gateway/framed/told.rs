//! What servers say unasked, in the form that a client wants.

use bytes::Bytes;

use crate::domain::event::{Form, Rewriting, Told};
use crate::domain::frame::Heard;
use crate::domain::side::Side;
use crate::domain::stream::Kind;
use crate::gateway::translated::terms;
use crate::gateway::{Installed, Worker};

/// An event for a client of this form; none where it hears nothing of it.
pub(in crate::gateway) fn told(
    (worker, installed): (&Worker, &Installed),
    text: Bytes,
    form: Form,
) -> Option<Bytes> {
    let plan = &installed.plan;
    let told = match Heard::of(&text, plan.limits.depth) {
        Heard::Rpc(text) => Told::rpc(&text, plan.limits.depth)?,
        Heard::Frame(frame) => Told::frame(frame),
        Heard::Noise(_) => return None,
    };
    if told.form() == form {
        return Some(text);
    }
    let (kind, text) = match plan.events.rewrite(&told, form, terms(&plan.limits)) {
        Rewriting::Untouched => (Kind::Untouched, Some(text)),
        Rewriting::Swallowed => (Kind::Swallowed, None),
        Rewriting::Rewritten { told, .. } => {
            let text = told.message().map(|message| message.clone().into_bytes());
            (Kind::Rewritten, text)
        }
        Rewriting::Failed { key, why } => {
            tracing::debug!(event = key, cause = %why, "an event could not be rewritten");
            (Kind::Failed, None)
        }
    };
    let side = match form {
        Form::Rpc => Side::Rpc,
        Form::Frame | Form::Sse => Side::Rest,
    };
    worker.count(|shard| shard.event(installed.route_label(None), side, kind));
    text
}
