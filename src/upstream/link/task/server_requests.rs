//! Requests of the server that the caller of a request answers. Used by `link::task`.

use bytes::Bytes;

use super::LinkTask;
use crate::telemetry::clock;
use crate::upstream::link::notifications::LinkReply;
use crate::upstream::link::reply_slot::{CallerAnswer, ServerRequest, SuspendedCall};
use crate::upstream::link::transport::Transport;
use dualgauge_model::jsonrpc::RequestId;
use dualgauge_model::pending::{LinkInput, Ticket};

impl<T: Transport> LinkTask<'_, T> {
    /// Passes the responses of a caller to the server.
    pub(super) fn on_caller_answer(&mut self, answer: CallerAnswer) {
        let CallerAnswer {
            ticket,
            responses,
            listener,
        } = answer;
        self.last_used = clock::now();
        if let Some(caller) = self.callers.get_mut(ticket) {
            caller.asked = caller.asked.saturating_sub(responses.len());
            if let Some(listener) = listener {
                caller.listen(listener);
            }
        }
        self.take(LinkInput::Respond(ticket, responses));
    }

    /// Replies to a caller with a request of the server.
    pub(super) fn ask_caller(&mut self, ticket: Ticket, id: RequestId, message: Bytes) {
        self.last_used = clock::now();
        let Some(caller) = self.callers.get_mut(ticket) else {
            return;
        };
        let (reply, slot) = caller.next_reply(&self.caller_gone);
        let call = SuspendedCall {
            ticket,
            slot,
            answers: self.answers.clone(),
        };
        let request = LinkReply::ServerRequest(Box::new(ServerRequest { id, message, call }));
        let notifier = caller.ordered_by();
        caller.asked += 1;
        self.subscribers.answer(reply, notifier, Ok(request));
    }
}
