//! Who hears what a server tells on a link.
//!
//! Over a link of one client everything is that client's. Over one that all share, [`Hearers`] say who hears it: one
//! caller, everybody who has asked something there and can be told, or nobody. Laws: the one client of a link is waited
//! for, and loses nothing; of those who share one nobody is waited for; whatever is not passed on is counted.

use bytes::Bytes;

use super::ask::Progress;
use super::ear::{self, Ear, Loss, Reply};
use super::listeners::{Joined, Listener, Listeners};
use super::outlet::Outlet;
use super::standing::Fate;
use super::{Said, Standing};
use crate::domain::jsonrpc::{retold, told_token};
use crate::domain::pending::{Hearers, Unanswered};

/// Those who hear.
#[derive(Debug)]
pub(super) struct Audience<'a> {
    /// The way to the one client whose link it is, if it is one's.
    pub(super) only: Option<Outlet<'a>>,
    all: Listeners,
    upstream: &'a str,
    standing: &'a Standing,
}

impl<'a> Audience<'a> {
    pub(super) fn new(
        (only, all): (Option<Ear>, Listeners),
        (upstream, standing): (&'a str, &'a Standing),
    ) -> Audience<'a> {
        Audience {
            only: only.map(|ear| Outlet::new(ear, standing)),
            all,
            upstream,
            standing,
        }
    }

    /// One more hears what is everybody's.
    pub(super) fn join(&self, listener: Listener) {
        match self.all.join(listener) {
            Joined::Hears => {}
            Joined::First(most) => {
                let upstream = self.upstream;
                tracing::warn!(
                    upstream,
                    most,
                    "more clients than may listen to a link do, and those miss what the server tells to all"
                );
                self.standing.came_to(Fate::Crowded);
            }
            Joined::Not => self.standing.came_to(Fate::Crowded),
        }
    }

    /// Passes something on that the server tells: to the one caller who hears it, or by the calls that are open.
    pub(super) fn hear<'p>(
        &mut self,
        (hearers, message): (Hearers, Bytes),
        (caller, mut open, depth): (Option<&Ear>, impl Iterator<Item = &'p Progress>, u16),
    ) {
        if let Some(only) = &mut self.only {
            return only.tell(message);
        }
        match hearers {
            Hearers::Token => {
                let token = told_token(&message, depth);
                let of_call = open.find(|progress| Some(&progress.token) == token.as_ref());
                let told = of_call.and_then(|progress| {
                    let message = retold(&message, &progress.said, depth)?;
                    Some(self.tell(&progress.to, message))
                });
                self.count(told);
            }
            Hearers::Caller(_) => self.count(caller.map(|ear| self.tell(ear, message))),
            // They have it from another link, and would have it twice.
            Hearers::All if self.all.hear_another() => {}
            Hearers::All => {
                let tell = |listener: &Ear| self.tell(listener, message.clone());
                self.count(self.all.each(tell));
            }
            Hearers::Nobody => self.count([]),
        }
    }

    /// Whether all is one client's.
    pub(super) fn is_of_one(&self) -> bool {
        self.only.is_some()
    }

    /// Passes on what is no message of JSON-RPC, to the one client whose link it is: it may know what that means.
    pub(super) fn hear_unread(&mut self, message: Bytes) {
        if let Some(only) = &mut self.only {
            only.tell(message);
        }
    }

    /// Answers a caller, behind what its client was told before.
    pub(super) fn answer(
        &mut self,
        (reply, ear): (Reply, Option<Ear>),
        said: Result<Said, Unanswered>,
    ) {
        match &mut self.only {
            Some(only) => only.answer((reply, ear), said),
            None => ear::answer(reply, ear.as_ref(), said),
        }
    }

    /// Nothing more is told; the one client whose link it is hears of its loss.
    pub(super) async fn end(self, loss: Option<Loss>) {
        if let Some(only) = self.only {
            only.end(loss).await;
        }
    }

    /// A link that others share is not held up by one that does not keep up: it misses some.
    fn tell(&self, listener: &Ear, message: Bytes) -> Fate {
        let fate = listener.tell(message);
        if fate == Fate::Crowded && listener.begins_to_miss() {
            let upstream = self.upstream;
            tracing::warn!(
                upstream,
                "a client is too slow for what the server tells, and misses some"
            );
        }
        fate
    }

    fn count(&self, fates: impl IntoIterator<Item = Fate>) {
        let mut fates = fates.into_iter().peekable();
        if fates.peek().is_none() {
            self.standing.came_to(Fate::Nobody);
        }
        fates.for_each(|fate| self.standing.came_to(fate));
    }
}
