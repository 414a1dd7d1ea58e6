//! The wait of a caller for its reply from a link task, and requests of the server that interrupt it.
//!
//! Laws: a call is resumed at most once per request of the server; dropping a call that waits cancels it.
//!
//! Used by `gateway` and `link`.

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::notifications::{LinkReply, NotificationSender, SequencedReply};
use dualgauge_model::jsonrpc::RequestId;
use dualgauge_model::pending::{RequestError, Ticket};
use dualgauge_patterns::json::Json;

/// The number of answers that may wait for a link task.
pub(super) const ANSWERS: usize = 64;

/// The waiting end of a reply channel. Dropping it notifies the link task.
pub(super) struct ReplySlot {
    pub(super) answer: oneshot::Receiver<SequencedReply>,
    /// The reply, while earlier replies are still waiting to be taken.
    held: Option<SequencedReply>,
    caller_gone: Arc<Notify>,
}

impl ReplySlot {
    pub(super) fn new(
        answer: oneshot::Receiver<SequencedReply>,
        caller_gone: Arc<Notify>,
    ) -> ReplySlot {
        ReplySlot {
            answer,
            held: None,
            caller_gone,
        }
    }

    /// Returns the signal to the link task that a caller has gone away.
    pub(super) fn caller_gone(&self) -> Arc<Notify> {
        self.caller_gone.clone()
    }

    /// Waits for the reply until `until`, if set, and then for its turn among the replies to the same client.
    pub(super) async fn answer(
        mut self,
        until: Option<Instant>,
    ) -> Result<LinkReply, RequestError> {
        match until {
            Some(until) => timeout_at(until, self.arrived())
                .await
                .map_err(|_| RequestError::Late)?,
            None => self.arrived().await,
        }
        if let Some(answered) = &self.held {
            answered.wait_for_turn().await;
        }
        // Without a reply, the link task has ended.
        self.take().unwrap_or(Err(RequestError::Cut))
    }

    /// Waits until the reply is there, or the link task has ended; cancel-safe.
    async fn arrived(&mut self) {
        if self.held.is_none() && !self.answer.is_terminated() {
            self.held = (&mut self.answer).await.ok();
        }
    }

    /// Returns true if the reply that is there, if any, is a request of the server.
    fn holds_request(&self) -> bool {
        let held = self.held.as_ref().map(|held| &held.result);
        matches!(held, Some(Ok(LinkReply::ServerRequest(_))))
    }

    fn take(&mut self) -> Option<Result<LinkReply, RequestError>> {
        let answered = self.held.take()?;
        answered.mark_received();
        Some(answered.result)
    }
}

impl Drop for ReplySlot {
    fn drop(&mut self) {
        if !self.answer.is_terminated() {
            self.answer.close();
            match self.answer.try_recv() {
                Ok(unwanted) => self.held = Some(unwanted),
                Err(_) => self.caller_gone.notify_one(),
            }
        }
        // A reply that is no longer wanted must not delay those behind it.
        drop(self.take());
    }
}

/// A request of the server, which replaces the reply to a call for now.
#[derive(Debug)]
pub struct ServerRequest {
    /// The server's id of the request.
    pub id: RequestId,
    /// The request as received.
    pub message: Bytes,
    /// The call that waits for the answer.
    pub call: SuspendedCall,
}

/// A call whose server waits for answers of the caller.
pub struct SuspendedCall {
    pub(super) ticket: Ticket,
    pub(super) slot: ReplySlot,
    pub(super) answers: mpsc::Sender<CallerAnswer>,
}

impl fmt::Debug for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedCall").finish_non_exhaustive()
    }
}

/// The receiver of the further notifications of a call.
#[derive(Debug)]
pub struct CallListener {
    /// The channel of the client.
    pub notifier: NotificationSender,
    /// The progress token that the client expects.
    pub progress_token: Option<Json>,
}

/// A caller's answers to requests of the server, for the link task.
#[derive(Debug)]
pub(super) struct CallerAnswer {
    pub(super) ticket: Ticket,
    /// The responses to the requests.
    pub(super) responses: Vec<Bytes>,
    /// The receiver of further notifications, if it changes.
    pub(super) listener: Option<CallListener>,
}

impl SuspendedCall {
    /// Returns a call of a link that has ended.
    #[cfg(test)]
    pub(crate) fn detached() -> SuspendedCall {
        let (_, answer) = oneshot::channel();
        let (answers, _) = mpsc::channel(1);
        SuspendedCall {
            ticket: Ticket(0),
            slot: ReplySlot::new(answer, Arc::default()),
            answers,
        }
    }

    /// Waits until the call has its last reply, which [`SuspendedCall::resume`] returns; cancel-safe. Another request of
    /// the server is no last reply.
    pub async fn replied(&mut self) {
        self.slot.arrived().await;
        if self.slot.holds_request() {
            pending().await
        }
    }

    /// Sends responses to the server's requests and waits for the next reply until `until`.
    ///
    /// # Errors
    /// Returns a [`RequestError`] if the call failed meanwhile, or fails now.
    pub async fn resume(
        self,
        responses: Vec<Bytes>,
        listener: Option<CallListener>,
        until: Instant,
    ) -> Result<LinkReply, RequestError> {
        let answer = CallerAnswer {
            ticket: self.ticket,
            responses,
            listener,
        };
        match timeout_at(until, self.answers.send(answer)).await {
            // If the link task has ended, the slot tells the reason.
            Ok(Ok(()) | Err(_)) => self.slot.answer(Some(until)).await,
            Err(_) => Err(RequestError::Late),
        }
    }
}
