//! The wait of a caller for its reply from a link task. Used by `link::upstream`.

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use super::notifications::{LinkReply, NotificationSender, SequencedReply};
use dualgauge_model::pending::RequestError;

/// The waiting end of a reply channel. Dropping it notifies the link task.
pub(super) struct ReplySlot<'a> {
    pub(super) answer: oneshot::Receiver<SequencedReply>,
    /// The reply, while earlier replies are still waiting to be taken.
    pub(super) held: Option<SequencedReply>,
    pub(super) caller_gone: &'a Notify,
    pub(super) notifier: Option<NotificationSender>,
}

impl ReplySlot<'_> {
    /// Waits for the reply until `until`, if set, and then for its turn among the replies to the same client.
    pub(super) async fn answer(
        mut self,
        until: Option<Instant>,
    ) -> Result<LinkReply, RequestError> {
        let answer = &mut self.answer;
        let answered = match until {
            Some(until) => timeout_at(until, answer).await,
            None => Ok(answer.await),
        };
        match answered {
            Ok(Ok(answered)) => self.held = Some(answered),
            // The link task has ended, or has not answered in time.
            Ok(Err(_)) => return Err(RequestError::Cut),
            Err(_) => return Err(RequestError::Late),
        }
        if let (Some(notifier), Some(answered)) = (&self.notifier, &self.held) {
            notifier.wait_for_turn(answered).await;
        }
        self.take().unwrap_or(Err(RequestError::Cut))
    }

    fn take(&mut self) -> Option<Result<LinkReply, RequestError>> {
        let answered = self.held.take()?;
        if let Some(notifier) = &self.notifier {
            notifier.mark_received(&answered);
        }
        Some(answered.result)
    }
}

impl Drop for ReplySlot<'_> {
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
