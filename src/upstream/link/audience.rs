//! Who hears what a server tells on a link.
//!
//! Over a link of one client everything is that client's. Over one that all share, the progress of a call is its
//! caller's; what says nothing of any one client is everybody's who has asked something there and can be told; all else
//! could be anybody's, and is nobody's. Laws: nobody is waited for, and whatever is not passed on is counted.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::Standing;
use super::ask::Progress;
use super::listeners::Listeners;
use super::standing::Fate;
use crate::domain::jsonrpc::{PROGRESS, retold, told_token};

/// Those who hear.
#[derive(Debug)]
pub(super) struct Audience<'a> {
    /// The one client whose link it is, if it is one's.
    only: Option<mpsc::Sender<Bytes>>,
    all: Listeners,
    standing: &'a Standing,
}

impl<'a> Audience<'a> {
    pub(super) fn new(
        (only, all): (Option<mpsc::Sender<Bytes>>, Listeners),
        standing: &'a Standing,
    ) -> Audience<'a> {
        Audience {
            only,
            all,
            standing,
        }
    }

    /// One more hears what is everybody's.
    pub(super) fn join(&self, listener: mpsc::Sender<Bytes>) {
        self.all.join(listener);
    }

    /// Passes something on that the server tells, while these calls are open.
    pub(super) fn hear<'p>(
        &self,
        method: &str,
        message: Bytes,
        (mut open, depth): (impl Iterator<Item = &'p Progress>, u16),
    ) {
        if let Some(only) = &self.only {
            return self.count([tell(only, message)]);
        }
        if method == PROGRESS {
            let token = told_token(&message, depth);
            let of_call = open.find(|progress| Some(&progress.token) == token.as_ref());
            let told = of_call.and_then(|progress| {
                let message = retold(&message, &progress.said, depth)?;
                Some(tell(&progress.to, message))
            });
            return self.count(told);
        }
        if !is_everybodys(method) {
            return self.count([]);
        }
        if self.all.hear_another() {
            // They have it from there, and would have it twice.
            return;
        }
        let fates = self.all.each(|listener| tell(listener, message.clone()));
        self.count(fates);
    }

    /// Whether all is one client's.
    pub(super) fn is_of_one(&self) -> bool {
        self.only.is_some()
    }

    /// Passes on what is no message of JSON-RPC, to the one client whose link it is: it may know what that means.
    pub(super) fn hear_unread(&self, message: Bytes) {
        if let Some(only) = &self.only {
            // As of all that a server tells, one that does not keep up misses some.
            tell(only, message);
        }
    }

    fn count(&self, fates: impl IntoIterator<Item = Fate>) {
        let mut fates = fates.into_iter().peekable();
        if fates.peek().is_none() {
            self.standing.came_to(Fate::Nobody);
        }
        fates.for_each(|fate| self.standing.came_to(fate));
    }
}

/// Whether a notification says nothing of any one client (MCP, "Logging", "List Changed Notification").
fn is_everybodys(method: &str) -> bool {
    let of_lists = method.strip_prefix("notifications/");
    method == "notifications/message"
        || of_lists.is_some_and(|method| method.ends_with("/list_changed"))
}

/// One that does not keep up misses some; a link is not held up by what nobody has asked for.
fn tell(listener: &mpsc::Sender<Bytes>, message: Bytes) -> Fate {
    match listener.try_send(message) {
        Ok(()) => Fate::Told,
        Err(TrySendError::Full(_)) => Fate::Crowded,
        Err(TrySendError::Closed(_)) => Fate::Nobody,
    }
}
