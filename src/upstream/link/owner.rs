//! The task that owns a link: what the outputs of [`Pending`] say is done, and what happens is told to it.

use std::collections::BTreeMap;
use std::future::pending;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::ask::Progress;
use super::audience::Audience;
use super::ear::{Ear, Loss, Reply, Through};
use super::line::{Attention, Line, Told};
use super::outlet::Outlet;
use super::recall::Recall;
use super::spread::Load;
use super::standing::Account;
use super::{Asked, Event, Inbox, Link, Said, Standing, Transport};
use crate::domain::json::unmarked;
use crate::domain::pending::{Ask, Hearers, Input, Output, Pending, Settings, Ticket, Unanswered};
use crate::telemetry::clock;

/// How long the last words of a link may take, once nobody asks any more.
const FAREWELL: Duration = Duration::from_secs(1);

/// Who has asked.
struct Caller {
    reply: Reply,
    ear: Option<Ear>,
    progress: Option<Progress>,
    recall: Option<Arc<Recall>>,
    _load: Option<Load>,
}

/// Conducts the links of one upstream until nobody can ask any more and everybody is answered.
pub async fn own<T: Transport>(
    (name, transport): (&str, T),
    settings: Settings,
    mut inbox: Inbox,
    standing: &Standing,
) {
    let mut owner = Owner {
        name,
        transport,
        pending: Pending::new(settings),
        account: Account::new(standing),
        line: Line::Down,
        wanted: Wanted::No,
        callers: BTreeMap::new(),
        next: 0,
        began: clock::now(),
        audience: Audience::new(
            (inbox.notices.clone(), inbox.listeners.clone()),
            (name, standing),
        ),
        used: clock::now(),
        ready: inbox.ready.clone(),
        since: None,
        door: Door::Open,
        retired: Retired::No,
        loss: None,
    };
    owner.run(&mut inbox).await;
    let Owner {
        mut line,
        audience,
        loss,
        account,
        ..
    } = owner;
    // Whoever finds that nobody takes questions finds no link, either.
    drop((account, inbox));
    // The client may take its time, which is none of the server's.
    tokio::join!(line.end(), audience.end(loss));
    tracing::info!(upstream = name, "the link has ended");
}

struct Owner<'a, T: Transport> {
    name: &'a str,
    transport: T,
    pending: Pending,
    account: Account<&'a Standing>,
    line: Line<T::Link>,
    /// Whether a link is to be opened as soon as the one before is gone.
    wanted: Wanted,
    callers: BTreeMap<Ticket, Caller>,
    next: u64,
    /// What times are counted from.
    began: Instant,
    /// Who hears what the server tells.
    audience: Audience<'a>,
    /// When something was last asked, answered, given up, or told.
    used: Instant,
    /// Rung each time that the link is ready.
    ready: Option<Arc<Notify>>,
    /// Since when it is.
    since: Option<Instant>,
    /// Whether more can be asked.
    door: Door,
    retired: Retired,
    /// Why there is no other link for the one client that this was of.
    loss: Option<Loss>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Yes,
    No,
}

/// Whether more can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Open,
    Closed,
}

/// Whether the upstream was changed or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retired {
    No,
    Yes,
}

impl<T: Transport> Owner<'_, T> {
    async fn run(&mut self, inbox: &mut Inbox) {
        let mut farewell = None;
        self.take(Input::Tick);
        loop {
            if self.loss.is_some() {
                return inbox.refuse();
            }
            if self.door == Door::Closed && self.pending.is_idle() {
                // The server is told of calls that were given up at last.
                let until = *farewell.get_or_insert(clock::now() + FAREWELL);
                if self.pending.has_said_all() || until <= clock::now() {
                    if self.retired == Retired::Yes {
                        self.loses(Through::Plan);
                    }
                    return;
                }
            }
            let idle = inbox.idle.filter(|_| !inbox.asks.is_closed());
            let unused = idle.filter(|_| self.pending.is_idle());
            let unused = unused.map(|idle| self.used + idle);
            let age = inbox.max_age.filter(|_| !inbox.asks.is_closed());
            let end = self.since.zip(age).map(|(since, age)| since + age);
            let alarm = self.pending.alarm().map(|at| self.began + at);
            let attention = self.attention();
            let patience = self.audience.only.as_ref().and_then(Outlet::patience);
            // Every branch is cancel-safe: what is not taken is there at the next turn.
            tokio::select! {
                asked = inbox.asks.recv(), if self.door == Door::Open => match asked {
                    Some(asked) => self.asked(asked),
                    None => {
                        self.door = Door::Closed;
                        self.take(Input::Unsubscribe);
                    }
                },
                () = inbox.gone.notified() => self.forget_gone(),
                told = self.line.next(attention) => self.told(told),
                () = goes_on(&mut self.audience) => {}
                () = sleep_until(patience.unwrap_or(self.began)), if patience.is_some() => self.loses_patience(),
                () = sleep_until(alarm.unwrap_or(self.began)), if alarm.is_some() => self.tick(),
                // What was asked before is still answered.
                () = sleep_until(end.unwrap_or(self.began)), if end.is_some() => inbox.asks.close(),
                () = is_over(&mut inbox.over) => self.retire(inbox),
                // What was asked just now is use of it, or is still answered.
                () = sleep_until(unused.unwrap_or(self.began)), if unused.is_some() => {
                    if inbox.asks.is_empty() {
                        inbox.asks.close();
                    }
                }
                () = sleep_until(farewell.unwrap_or(self.began)), if farewell.is_some() => {}
            }
        }
    }

    /// The upstream was changed or removed. One that takes no more questions ends for a reason of its own.
    fn retire(&mut self, inbox: &mut Inbox) {
        inbox.over = None;
        if inbox.asks.is_closed() {
            return;
        }
        self.retired = Retired::Yes;
        // At once, so that its client opens no other one while this has calls to answer.
        if let Some(only) = &self.audience.only {
            only.loses();
        }
        tracing::info!(
            upstream = self.name,
            "the link takes no more calls: its upstream was changed or removed"
        );
        inbox.asks.close();
    }

    /// The server is not listened to while its one client has more to take than may wait.
    fn attention(&self) -> Attention {
        let waits = self.audience.only.as_ref();
        match waits.is_some_and(Outlet::is_full) {
            true => Attention::Busy,
            false => Attention::Listens,
        }
    }

    fn tick(&mut self) {
        self.take(match self.attention() {
            Attention::Listens => Input::Tick,
            // Its signs of life are not read.
            Attention::Busy => Input::Sign,
        });
    }

    fn loses_patience(&mut self) {
        if let Some(only) = &mut self.audience.only {
            only.give_up();
        }
        self.line.leave();
        self.loses(Through::Client);
        self.lost("its client does not take what the server tells");
    }

    /// The one client of the link gets no other: what the server has kept for it is gone.
    fn loses(&mut self, through: Through) {
        if let (Some(only), None) = (&self.audience.only, &self.loss) {
            only.loses();
            self.loss = Some(Loss {
                upstream: self.name.to_owned(),
                through,
            });
        }
    }

    fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.began)
    }

    fn asked(&mut self, asked: Asked) {
        // It hears from now on, whether or not it still waits for this.
        if let Some(listener) = asked.listener {
            self.audience.join(listener);
        }
        if asked.reply.is_closed() {
            return;
        }
        self.used = clock::now();
        let ticket = Ticket(self.next);
        self.next += 1;
        let caller = Caller {
            reply: asked.reply,
            ear: asked.ear,
            progress: asked.progress,
            recall: asked.recall,
            _load: asked.load,
        };
        self.callers.insert(ticket, caller);
        let ask = Ask {
            ticket,
            say: asked.say,
            start_by: self.at(asked.start_by),
            deadline: self.at(asked.deadline),
            repeat: asked.repeat,
            rank: asked.rank,
        };
        self.take(Input::Ask(ask));
    }

    fn forget_gone(&mut self) {
        let callers = self.callers.iter();
        let gone = callers.filter(|(_, caller)| caller.reply.is_closed());
        let gone: Vec<Ticket> = gone.map(|(ticket, _)| *ticket).collect();
        for ticket in gone {
            let caller = self.callers.remove(&ticket);
            self.used = clock::now();
            let recall = caller.and_then(|caller| caller.recall);
            self.take(match recall.is_some_and(|recall| recall.is_rung()) {
                true => Input::Recall(ticket),
                false => Input::Cancel(ticket),
            });
        }
    }

    fn told(&mut self, told: Told<T::Link>) {
        match told {
            Told::Opened(Ok(link)) => {
                self.line = Line::Open(link);
                self.take(Input::Opened);
            }
            Told::Opened(Err(why)) => {
                self.line = Line::Down;
                self.lost(&why);
            }
            Told::Event(Event::Message(message)) => self.said(unmarked(message), Input::Message),
            Told::Event(Event::Beside(id, message)) => {
                self.said(message, |message| Input::Beside(id, message));
            }
            Told::Event(Event::Overlong) => self.take(Input::Overlong),
            Told::Event(Event::Failed(id, why)) => self.take(Input::Failed(id, why)),
            Told::Event(Event::Forgotten(id)) => self.take(Input::Forgotten(id)),
            Told::Event(Event::Unwritten(why)) => self.take(Input::Unwritten(why)),
            Told::Event(Event::Written) => self.take(Input::Written),
            Told::Event(Event::Sign) => self.take(Input::Sign),
            Told::Event(Event::Lost(why)) => {
                self.line.leave();
                self.lost(&why);
            }
            Told::Gone => {
                self.line = Line::Down;
                if self.wanted == Wanted::Yes {
                    self.open();
                }
            }
        }
    }

    /// What is no message of JSON-RPC may be one of the protocol that a client speaks beside it.
    fn said(&mut self, message: Bytes, input: impl FnOnce(Bytes) -> Input) {
        let skipped = self.pending.counts().skipped;
        let copy = self.audience.is_of_one().then(|| message.clone());
        self.take(input(message));
        if let Some(message) = copy.filter(|_| self.pending.counts().skipped > skipped) {
            self.used = clock::now();
            self.audience.hear_unread(message);
        }
    }

    fn lost(&mut self, why: &str) {
        let (upstream, in_flight) = (self.name, self.pending.in_flight());
        tracing::warn!(upstream, in_flight, cause = why, "the link is lost");
        match (self.retired, self.door) {
            (Retired::Yes, _) => self.loses(Through::Plan),
            (Retired::No, Door::Open) if self.since.is_some() => self.loses(Through::Server),
            // One that takes no more questions has another one beside it, or nobody.
            (Retired::No, Door::Open | Door::Closed) => {}
        }
        self.take(Input::Lost { luck: luck() });
        // What was asked where a client has state, or at a server that is planned no more, goes over no other link.
        let ends = self.door == Door::Closed && self.audience.is_of_one();
        if self.loss.is_some() || self.retired == Retired::Yes || ends {
            self.take(Input::Over);
        }
    }

    fn open(&mut self) {
        if matches!(self.line, Line::Leaving(_)) {
            self.wanted = Wanted::Yes;
            return;
        }
        self.wanted = Wanted::No;
        let transport = self.transport.clone();
        self.line = Line::Opening(Box::pin(async move { transport.open().await }));
    }

    fn take(&mut self, input: Input) {
        self.pending.take(self.at(clock::now()), input);
        // Whoever has an answer may look at once.
        self.account.tell(&self.pending);
        while let Some(output) = self.pending.output() {
            self.obey(output);
        }
    }

    fn obey(&mut self, output: Output) {
        match output {
            Output::Open => self.open(),
            Output::Close(fault) => {
                self.wanted = Wanted::No;
                self.line.leave();
                // It is taken in at once: this is one of the outputs that are still being obeyed.
                self.lost(&fault.to_string());
            }
            Output::Write(message) => {
                if let Line::Open(link) = &mut self.line {
                    link.write(message);
                }
            }
            Output::Ping => {
                if let Line::Open(link) = &mut self.line {
                    link.ping();
                }
            }
            Output::Ready => {
                let opened = self.pending.counts().opened;
                tracing::info!(upstream = self.name, opened, "the link is ready");
                self.since = Some(clock::now());
                if let Some(ready) = &self.ready {
                    ready.notify_one();
                }
            }
            Output::Answer {
                ticket,
                id,
                message,
            } => self.reply(ticket, Ok(Said::Answer(id, message))),
            Output::Told(ticket) => self.reply(ticket, Ok(Said::Told)),
            Output::Ended(ticket) => self.reply(ticket, Ok(Said::Ended)),
            Output::Failed(ticket, why) => self.reply(ticket, Err(why)),
            Output::Notified {
                method,
                message,
                hearers,
            } => {
                self.used = clock::now();
                tracing::debug!(upstream = self.name, method, "the server tells something");
                self.notified(message, hearers);
            }
        }
    }

    fn notified(&mut self, message: Bytes, hearers: Hearers) {
        let caller = match hearers {
            Hearers::Caller(ticket) => self.callers.get(&ticket),
            Hearers::Token | Hearers::All | Hearers::Nobody => None,
        };
        let caller = caller.and_then(|caller| caller.ear.as_ref());
        let progress = self.callers.values();
        let progress = progress.filter_map(|caller| caller.progress.as_ref());
        let callers = (caller, progress, self.pending.depth());
        self.audience.hear((hearers, message), callers);
    }

    fn reply(&mut self, ticket: Ticket, told: Result<Said, Unanswered>) {
        if let Some(caller) = self.callers.remove(&ticket) {
            self.used = clock::now();
            self.audience.answer((caller.reply, caller.ear), told);
        }
    }
}

/// Cancel-safe. Never ends where nobody would tell.
async fn is_over(over: &mut Option<watch::Receiver<bool>>) {
    if let Some(over) = over
        && over.wait_for(|over| *over).await.is_ok()
    {
        return;
    }
    pending().await
}

/// Cancel-safe, as what it waits for is.
async fn goes_on(audience: &mut Audience<'_>) {
    match &mut audience.only {
        Some(only) => only.go_on().await,
        None => pending().await,
    }
}

/// Random enough for the waits of many proxies to drift apart.
fn luck() -> u16 {
    u16::try_from(RandomState::new().build_hasher().finish() & 0xffff).unwrap_or_default()
}
