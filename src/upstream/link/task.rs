//! The task that owns a link. It executes the outputs of [`LinkMachine`] and feeds events back into it.

use std::collections::BTreeMap;
use std::future::pending;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::balance::InFlightGuard;
use super::cancel::CancelSignal;
use super::client_queue::LinkClientQueue;
use super::handle::ProgressSink;
use super::notifications::{LinkLost, LostBy, NotificationSender, ReplySender};
use super::state::{LinkEvent, LinkState, Listening};
use super::stats::StatsHandle;
use super::subscribers::Subscribers;
use super::{Event, Link, LinkReply, LinkRequest, LinkStats, RequestReceiver, Transport};
use crate::domain::json::unmarked;
use crate::domain::pending::{
    LinkInput, LinkMachine, LinkOutput, LinkSettings, Recipients, Request, RequestError, Ticket,
};
use crate::telemetry::clock;

/// The time limit for the last messages of a link once there are no more callers.
const FAREWELL: Duration = Duration::from_secs(1);

/// A caller that waits for a reply.
struct PendingCaller {
    reply: ReplySender,
    ear: Option<NotificationSender>,
    progress: Option<ProgressSink>,
    recall: Option<Arc<CancelSignal>>,
    _load: Option<InFlightGuard>,
}

/// Runs the links of one upstream until no more requests can come and all callers are answered.
pub async fn own<T: Transport>(
    (name, transport): (&str, T),
    settings: LinkSettings,
    mut inbox: RequestReceiver,
    standing: &LinkStats,
) {
    let mut owner = LinkTask {
        name,
        transport,
        pending: LinkMachine::new(settings),
        account: StatsHandle::new(standing),
        line: LinkState::Down,
        wanted: Reopen::No,
        callers: BTreeMap::new(),
        next: 0,
        began: clock::now(),
        audience: Subscribers::new(
            (inbox.notices.clone(), inbox.listeners.clone()),
            (name, standing),
        ),
        used: clock::now(),
        ready: inbox.ready.clone(),
        since: None,
        door: Intake::Open,
        retired: Retired::No,
        loss: None,
    };
    owner.run(&mut inbox).await;
    let LinkTask {
        mut line,
        audience,
        loss,
        account,
        ..
    } = owner;
    // Dropped together: a handle that finds the channel closed finds no link in the statistics either.
    drop((account, inbox));
    // Concurrently, because a slow client must not delay the end of the connection to the server.
    tokio::join!(line.end(), audience.end(loss));
    tracing::info!(upstream = name, "the link has ended");
}

struct LinkTask<'a, T: Transport> {
    name: &'a str,
    transport: T,
    pending: LinkMachine,
    account: StatsHandle<&'a LinkStats>,
    line: LinkState<T::Link>,
    /// Requests another link once the previous one is closed.
    wanted: Reopen,
    callers: BTreeMap<Ticket, PendingCaller>,
    next: u64,
    /// The epoch of the state machine's times.
    began: Instant,
    /// The recipients of the server's notifications.
    audience: Subscribers<'a>,
    /// The time of the last request, reply, cancellation or notification.
    used: Instant,
    /// Notified each time the link becomes ready.
    ready: Option<Arc<Notify>>,
    /// The time at which the link became ready.
    since: Option<Instant>,
    /// The state of the request channel.
    door: Intake,
    retired: Retired,
    /// The reason why the only client of this link gets no other.
    loss: Option<LinkLost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reopen {
    Yes,
    No,
}

/// The state of the request channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intake {
    Open,
    Closed,
}

/// Set when the upstream was changed or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retired {
    No,
    Yes,
}

impl<T: Transport> LinkTask<'_, T> {
    async fn run(&mut self, inbox: &mut RequestReceiver) {
        let mut farewell = None;
        self.take(LinkInput::Tick);
        loop {
            if self.loss.is_some() {
                return inbox.refuse();
            }
            if self.door == Intake::Closed && self.pending.is_idle() {
                // The server must still be sent the cancellations of the last calls.
                let until = *farewell.get_or_insert(clock::now() + FAREWELL);
                if self.pending.has_sent_all() || until <= clock::now() {
                    if self.retired == Retired::Yes {
                        self.lose(LostBy::Plan);
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
            let patience = self
                .audience
                .only
                .as_ref()
                .and_then(LinkClientQueue::deadline);
            // All branches are cancel-safe: nothing is lost before the next iteration.
            tokio::select! {
                asked = inbox.asks.recv(), if self.door == Intake::Open => match asked {
                    Some(asked) => self.on_request(asked),
                    None => {
                        self.door = Intake::Closed;
                        self.take(LinkInput::Unsubscribe);
                    }
                },
                () = inbox.gone.notified() => self.forget_gone(),
                told = self.line.next(attention) => self.on_event(told),
                () = wait_for_client(&mut self.audience) => {}
                () = sleep_until(patience.unwrap_or(self.began)), if patience.is_some() => self.expire_notifications(),
                () = sleep_until(alarm.unwrap_or(self.began)), if alarm.is_some() => self.tick(),
                // Requests that are already in the channel are still answered.
                () = sleep_until(end.unwrap_or(self.began)), if end.is_some() => inbox.asks.close(),
                () = is_over(&mut inbox.over) => self.retire(inbox),
                // A request in the channel counts as use of the link, and is answered.
                () = sleep_until(unused.unwrap_or(self.began)), if unused.is_some() => {
                    if inbox.asks.is_empty() {
                        inbox.asks.close();
                    }
                }
                () = sleep_until(farewell.unwrap_or(self.began)), if farewell.is_some() => {}
            }
        }
    }

    /// Stops taking requests because the upstream was changed or removed. A link that is ending already keeps its own
    /// reason.
    fn retire(&mut self, inbox: &mut RequestReceiver) {
        inbox.over = None;
        if inbox.asks.is_closed() {
            return;
        }
        self.retired = Retired::Yes;
        // Marked at once, so that the client opens no other link while this one still has calls to answer.
        if let Some(only) = &self.audience.only {
            only.lose();
        }
        tracing::info!(
            upstream = self.name,
            "the link accepts no more calls: its upstream was changed or removed"
        );
        inbox.asks.close();
    }

    /// Returns `Busy` while the queue of the only client is full, so that the server is not read.
    fn attention(&self) -> Listening {
        let waits = self.audience.only.as_ref();
        match waits.is_some_and(LinkClientQueue::is_full) {
            true => Listening::Busy,
            false => Listening::Listens,
        }
    }

    fn tick(&mut self) {
        self.take(match self.attention() {
            Listening::Listens => LinkInput::Tick,
            // The server's signs of life are not read meanwhile, so it is treated as alive.
            Listening::Busy => LinkInput::Sign,
        });
    }

    fn expire_notifications(&mut self) {
        if let Some(only) = &mut self.audience.only {
            only.give_up();
        }
        self.line.close();
        self.lose(LostBy::Client);
        self.lost("its client does not read notifications");
    }

    /// Marks the link of the only client as lost: the state that the server kept for it is gone.
    fn lose(&mut self, through: LostBy) {
        if let (Some(only), None) = (&self.audience.only, &self.loss) {
            only.lose();
            self.loss = Some(LinkLost {
                upstream: self.name.to_owned(),
                through,
            });
        }
    }

    fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.began)
    }

    fn on_request(&mut self, asked: LinkRequest) {
        // The subscription counts even if the caller no longer waits.
        if let Some(listener) = asked.listener {
            self.audience.join(listener);
        }
        if asked.reply.is_closed() {
            return;
        }
        self.used = clock::now();
        let ticket = Ticket(self.next);
        self.next += 1;
        let caller = PendingCaller {
            reply: asked.reply,
            ear: asked.ear,
            progress: asked.progress,
            recall: asked.recall,
            _load: asked.load,
        };
        self.callers.insert(ticket, caller);
        let ask = Request {
            ticket,
            message: asked.say,
            start_by: self.at(asked.start_by),
            deadline: self.at(asked.deadline),
            repeat: asked.repeat,
            rank: asked.rank,
        };
        self.take(LinkInput::Ask(ask));
    }

    fn forget_gone(&mut self) {
        let callers = self.callers.iter();
        let gone = callers.filter(|(_, caller)| caller.reply.is_closed());
        let gone: Vec<Ticket> = gone.map(|(ticket, _)| *ticket).collect();
        for ticket in gone {
            let caller = self.callers.remove(&ticket);
            self.used = clock::now();
            let recall = caller.and_then(|caller| caller.recall);
            self.take(match recall.is_some_and(|recall| recall.is_cancelled()) {
                true => LinkInput::ClientCancel(ticket),
                false => LinkInput::Cancel(ticket),
            });
        }
    }

    fn on_event(&mut self, told: LinkEvent<T::Link>) {
        match told {
            LinkEvent::Opened(Ok(link)) => {
                self.line = LinkState::Open(link);
                self.take(LinkInput::Opened);
            }
            LinkEvent::Opened(Err(why)) => {
                self.line = LinkState::Down;
                self.lost(&why);
            }
            LinkEvent::Event(Event::Message(message)) => {
                self.on_message(unmarked(message), LinkInput::Message)
            }
            LinkEvent::Event(Event::Aside(id, message)) => {
                self.on_message(message, |message| LinkInput::InResponseStream(id, message));
            }
            LinkEvent::Event(Event::Overlong) => self.take(LinkInput::Overlong),
            LinkEvent::Event(Event::Failed(id, why)) => self.take(LinkInput::Failed(id, why)),
            LinkEvent::Event(Event::Forgotten(id)) => self.take(LinkInput::Forgotten(id)),
            LinkEvent::Event(Event::Unwritten(why)) => self.take(LinkInput::Unwritten(why)),
            LinkEvent::Event(Event::Written) => self.take(LinkInput::Written),
            LinkEvent::Event(Event::Sign) => self.take(LinkInput::Sign),
            LinkEvent::Event(Event::Lost(why)) => {
                self.line.close();
                self.lost(&why);
            }
            LinkEvent::Gone => {
                self.line = LinkState::Down;
                if self.wanted == Reopen::Yes {
                    self.open();
                }
            }
        }
    }

    /// A message that is not JSON-RPC may belong to another protocol that the client speaks on the link.
    fn on_message(&mut self, message: Bytes, input: impl FnOnce(Bytes) -> LinkInput) {
        let skipped = self.pending.counts().skipped;
        let copy = self.audience.is_of_one().then(|| message.clone());
        self.take(input(message));
        if let Some(message) = copy.filter(|_| self.pending.counts().skipped > skipped) {
            self.used = clock::now();
            self.audience.deliver_raw(message);
        }
    }

    fn lost(&mut self, why: &str) {
        let (upstream, in_flight) = (self.name, self.pending.in_flight());
        tracing::warn!(upstream, in_flight, cause = why, "the link is lost");
        match (self.retired, self.door) {
            (Retired::Yes, _) => self.lose(LostBy::Plan),
            (Retired::No, Intake::Open) if self.since.is_some() => self.lose(LostBy::Server),
            // A link that takes no more requests has a successor, or no users.
            (Retired::No, Intake::Open | Intake::Closed) => {}
        }
        self.take(LinkInput::Lost {
            jitter: random_jitter(),
        });
        // A request to a stateful link, or to a server that no plan refers to, is never sent over another link.
        let ends = self.door == Intake::Closed && self.audience.is_of_one();
        if self.loss.is_some() || self.retired == Retired::Yes || ends {
            self.take(LinkInput::Over);
        }
    }

    fn open(&mut self) {
        if matches!(self.line, LinkState::Closing(_)) {
            self.wanted = Reopen::Yes;
            return;
        }
        self.wanted = Reopen::No;
        let transport = self.transport.clone();
        self.line = LinkState::Opening(Box::pin(async move { transport.open().await }));
    }

    fn take(&mut self, input: LinkInput) {
        self.pending.take(self.at(clock::now()), input);
        // Reported before the outputs, so that a caller with a reply sees current statistics.
        self.account.report(&self.pending);
        while let Some(output) = self.pending.output() {
            self.apply(output);
        }
    }

    fn apply(&mut self, output: LinkOutput) {
        match output {
            LinkOutput::Open => self.open(),
            LinkOutput::Close(fault) => {
                self.wanted = Reopen::No;
                self.line.close();
                // Takes the loss in at once, although `take` is still executing its outputs.
                self.lost(&fault.to_string());
            }
            LinkOutput::Write(message) => {
                if let LinkState::Open(link) = &mut self.line {
                    link.write(message);
                }
            }
            LinkOutput::Ping => {
                if let LinkState::Open(link) = &mut self.line {
                    link.ping();
                }
            }
            LinkOutput::Ready => {
                let opened = self.pending.counts().opened;
                tracing::info!(upstream = self.name, opened, "the link is ready");
                self.since = Some(clock::now());
                if let Some(ready) = &self.ready {
                    ready.notify_one();
                }
            }
            LinkOutput::Answer {
                ticket,
                id,
                message,
            } => self.reply(ticket, Ok(LinkReply::Answer(id, message))),
            LinkOutput::NoticeSent(ticket) => self.reply(ticket, Ok(LinkReply::Sent)),
            LinkOutput::Ended(ticket) => self.reply(ticket, Ok(LinkReply::Ended)),
            LinkOutput::Failed(ticket, why) => self.reply(ticket, Err(why)),
            LinkOutput::Notified {
                method,
                message,
                recipients,
            } => {
                self.used = clock::now();
                tracing::debug!(
                    upstream = self.name,
                    method,
                    "received a notification from the server"
                );
                self.on_notification(message, recipients);
            }
        }
    }

    fn on_notification(&mut self, message: Bytes, recipients: Recipients) {
        let caller = match recipients {
            Recipients::Caller(ticket) => self.callers.get(&ticket),
            Recipients::Token | Recipients::All | Recipients::NoClient => None,
        };
        let caller = caller.and_then(|caller| caller.ear.as_ref());
        let progress = self.callers.values();
        let progress = progress.filter_map(|caller| caller.progress.as_ref());
        let callers = (caller, progress, self.pending.depth());
        self.audience.deliver((recipients, message), callers);
    }

    fn reply(&mut self, ticket: Ticket, told: Result<LinkReply, RequestError>) {
        if let Some(caller) = self.callers.remove(&ticket) {
            self.used = clock::now();
            self.audience.answer((caller.reply, caller.ear), told);
        }
    }
}

/// Waits until the upstream is changed or removed; cancel-safe. Never completes without a receiver or a sender.
async fn is_over(over: &mut Option<watch::Receiver<bool>>) {
    if let Some(over) = over
        && over.wait_for(|over| *over).await.is_ok()
    {
        return;
    }
    pending().await
}

/// Waits until the queue of the only client has made progress; cancel-safe.
async fn wait_for_client(audience: &mut Subscribers<'_>) {
    match &mut audience.only {
        Some(only) => only.go_on().await,
        None => pending().await,
    }
}

/// Returns a random number that is good enough to let the retries of many proxies drift apart.
fn random_jitter() -> u16 {
    u16::try_from(RandomState::new().build_hasher().finish() & 0xffff).unwrap_or_default()
}
