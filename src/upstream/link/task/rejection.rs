//! A server that rejects the handshake of a link by its HTTP status. Used by `link::task`.

use bytes::Bytes;

use super::LinkTask;
use crate::upstream::link::handle::RequestReceiver;
use crate::upstream::link::notifications::{LinkReply, LostBy};
use crate::upstream::link::transport::Transport;
use dualgauge_model::pending::LinkInput;

/// The id of a response that no call on the link has.
const NO_CALL: u64 = 0;

impl<T: Transport> LinkTask<'_, T> {
    /// A link for the credentials of one client is of no use when the server rejects them: its callers are told why.
    pub(super) fn on_rejected(&mut self, status: u16, message: Bytes) {
        self.state.close();
        if self.ends_on_rejection {
            tracing::info!(
                upstream = self.name,
                status,
                "the server rejected the handshake with the client's credentials"
            );
            self.rejection = Some(message);
        } else {
            self.on_lost(&format!(
                "it answered `initialize` with the status {status}"
            ));
        }
    }

    /// Refuses all callers of a link whose login with their credentials the server has refused, and those whose requests
    /// are on the way. A client on a socket is disconnected.
    pub(super) fn refuse_login(&mut self, inbox: &mut RequestReceiver) {
        inbox.requests.close();
        while let Ok(request) = inbox.requests.try_recv() {
            self.on_request(request);
        }
        self.take(LinkInput::Over);
        self.mark_lost(LostBy::Server);
    }

    /// Answers all callers with the rejection, and those whose requests are on the way.
    pub(super) fn reject(&mut self, inbox: &mut RequestReceiver, rejection: &Bytes) {
        inbox.requests.close();
        while let Ok(request) = inbox.requests.try_recv() {
            self.on_request(request);
        }
        for ticket in self.callers.tickets() {
            self.reply(ticket, Ok(LinkReply::Answer(NO_CALL, rejection.clone())));
        }
    }
}
