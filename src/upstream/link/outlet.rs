//! What a link of one client has for it, in the order in which it came about: what the server tells, and answers.
//!
//! Nothing is lost for a client that reads slowly: what it has no room for waits here, and when that is as much again the
//! server is not read. Law: all of it goes out in its order, unless the client is gone or takes nothing for too long.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::ear::{self, Ear, Loss, OWN, Reply, Room, units};
use super::standing::Fate;
use super::{Said, Standing};
use crate::domain::pending::Unanswered;
use crate::telemetry::clock;

/// How long a client may take nothing of what waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What waits to go out.
#[derive(Debug)]
pub(super) struct Outlet<'a> {
    ear: Ear,
    waiting: VecDeque<Outgoing>,
    /// How much of it is told, in units.
    units: usize,
    /// When something last went out.
    since: Instant,
    standing: &'a Standing,
}

#[derive(Debug)]
enum Outgoing {
    Told(Bytes),
    Answer(Reply, Option<Ear>, Result<Said, Unanswered>),
}

impl<'a> Outlet<'a> {
    pub(super) fn new(ear: Ear, standing: &'a Standing) -> Outlet<'a> {
        Outlet {
            ear,
            waiting: VecDeque::new(),
            units: 0,
            since: clock::now(),
            standing,
        }
    }

    /// Whether all is out.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the server is not to be read for the time being. Up to there its pings are seen.
    pub(super) fn is_full(&self) -> bool {
        self.units >= OWN
    }

    /// Until when the client has to take something, if anything waits.
    pub(super) fn patience(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(self.since + PATIENCE)
    }

    /// The client gets no other link of its own.
    pub(super) fn loses(&self) {
        self.ear.loses();
    }

    /// The client is told this.
    pub(super) fn tell(&mut self, text: Bytes) {
        self.units += units(&text, OWN);
        self.push(Outgoing::Told(text));
    }

    /// A caller is answered.
    pub(super) fn answer(
        &mut self,
        (reply, ear): (Reply, Option<Ear>),
        said: Result<Said, Unanswered>,
    ) {
        self.push(Outgoing::Answer(reply, ear, said));
    }

    fn push(&mut self, outgoing: Outgoing) {
        if self.is_empty() {
            self.since = clock::now();
        }
        self.waiting.push_back(outgoing);
        self.advance();
    }

    /// Sends what there is room for.
    fn advance(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            match first {
                Outgoing::Told(text) => match self.ear.room(&text) {
                    Some(room) => self.send(room, text),
                    None => return self.waiting.push_front(Outgoing::Told(text)),
                },
                Outgoing::Answer(reply, ear, said) => ear::answer(reply, ear.as_ref(), said),
            }
        }
    }

    fn send(&mut self, room: Room, text: Bytes) {
        self.since = clock::now();
        self.units -= units(&text, OWN);
        self.standing.came_to(self.ear.tell_in(room, text));
    }

    /// Waits for room for the first of what waits, and sends it; cancel-safe. Never ends where nothing waits.
    pub(super) async fn go_on(&mut self) {
        if let Some(Outgoing::Told(text)) = self.waiting.front()
            && let Some(room) = self.ear.reserve(text).await
        {
            if let Some(Outgoing::Told(text)) = self.waiting.pop_front() {
                self.send(room, text);
            }
            return self.advance();
        }
        // What is no notice has gone out, and there always will be room.
        pending().await
    }

    /// What the client has not taken by now it misses.
    pub(super) fn give_up(&mut self) {
        self.units = 0;
        for outgoing in std::mem::take(&mut self.waiting) {
            match outgoing {
                Outgoing::Told(_) => self.standing.came_to(Fate::Crowded),
                Outgoing::Answer(reply, ear, said) => ear::answer(reply, ear.as_ref(), said),
            }
        }
    }

    /// All of it, as far as the client takes it in time, and at last that its link is gone, if it is not to get another.
    pub(super) async fn end(mut self, loss: Option<Loss>) {
        while let Some(until) = self.patience() {
            let left = until.saturating_duration_since(clock::now());
            if timeout(left, self.go_on()).await.is_err() {
                self.give_up();
            }
        }
        if let Some(loss) = loss {
            self.ear.end(loss);
        }
    }
}

#[cfg(test)]
mod tests;
