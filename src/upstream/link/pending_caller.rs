//! A caller that waits for its reply, as the link task knows it. Used by `link::task`.

use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use super::cancel::CancelSignal;
use super::handle::{InFlightGuard, ProgressSink};
use super::notifications::{NotificationSender, ReplySender};
use super::reply_slot::{CallListener, ReplySlot};
use crate::upstream::callers::Caller;
use dualgauge_model::mcp::LogFilter;

/// A caller that waits for a reply.
pub(super) struct PendingCaller {
    pub(super) reply: ReplySender,
    pub(super) notifier: Option<NotificationSender>,
    pub(super) progress: Option<ProgressSink>,
    pub(super) cancel_signal: Option<Arc<CancelSignal>>,
    pub(super) logs: LogFilter,
    /// The requests of the server that the caller has not answered yet.
    pub(super) asked: usize,
    #[expect(
        dead_code,
        reason = "it counts the request as load until it is dropped"
    )]
    pub(super) load: Option<InFlightGuard>,
}

impl Caller for PendingCaller {
    fn is_gone(&self) -> bool {
        self.reply.is_closed()
    }
}

impl PendingCaller {
    /// Returns the channel for a reply that is not the last one, and the waiting end for the next reply.
    pub(super) fn next_reply(&mut self, caller_gone: &Arc<Notify>) -> (ReplySender, ReplySlot) {
        let (next, answer) = oneshot::channel();
        let reply = std::mem::replace(&mut self.reply, next);
        (reply, ReplySlot::new(answer, caller_gone.clone()))
    }

    /// Returns the channel that orders the next reply among the client's notifications and other replies. A caller that
    /// is asked takes no reply before its answer, which may never come, so its replies must not hold up others.
    pub(super) fn ordered_by(&self) -> Option<NotificationSender> {
        self.notifier.clone().filter(|_| self.asked == 0)
    }

    /// Sends further notifications of the call to another receiver.
    pub(super) fn listen(&mut self, listener: CallListener) {
        let CallListener {
            notifier,
            progress_token,
        } = listener;
        if let Some(progress) = &mut self.progress {
            progress.to = notifier.clone();
            if let Some(token) = progress_token {
                progress.client_token = token;
            }
        }
        self.notifier = Some(notifier);
    }
}
