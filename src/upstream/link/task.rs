//! The task that owns a link. It executes the outputs of [`LinkMachine`] and feeds events back into it.
//!
//! Used by `app::link_thread` and `app::sockets`.

mod rejection;
mod server_requests;
mod subscriptions;

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::client_queue::LinkClientQueue;
use super::handle::{LinkRequest, RequestReceiver, wait_until_over};
use super::notifications::{LinkLost, LinkReply, LostBy, NotificationSender};
use super::pending_caller::PendingCaller;
use super::reply_slot::{ANSWERS, CallerAnswer};
use super::state::{LinkConnection, LinkEvent};
use super::stats::{LinkLoss, LinkStats, StatsHandle};
use super::subscribers::Subscribers;
use super::transport::{Event, Link, Transport};
use crate::telemetry::clock;
use crate::upstream::callers::Callers;
use dualgauge_model::pending::{
    LinkInput, LinkMachine, LinkOutput, LinkSettings, Recipients, Request, RequestError, Ticket,
};
use dualgauge_net::random_u64;
use dualgauge_patterns::json::unmarked;

/// The time limit for the last messages of a link once there are no more callers.
const FAREWELL: Duration = Duration::from_secs(1);

/// Runs the links of one upstream until no more requests can come and all callers are answered.
pub async fn run_link<T: Transport>(
    name: &str,
    transport: T,
    mut settings: LinkSettings,
    mut inbox: RequestReceiver,
    stats: &LinkStats,
) {
    settings.login = inbox.login.take().or(settings.login);
    let depth = settings.depth;
    let (answers, mut answered) = mpsc::channel(ANSWERS);
    let mut owner = LinkTask {
        name,
        transport,
        pending: LinkMachine::new(settings),
        account: StatsHandle::new(stats),
        state: LinkConnection::Down,
        reopen: false,
        callers: Callers::default(),
        readers: BTreeMap::new(),
        started: clock::now(),
        subscribers: Subscribers::new(
            inbox.notifier.clone(),
            inbox.subscribers.clone(),
            name,
            stats,
            depth,
        ),
        last_used: clock::now(),
        ready: inbox.ready.clone(),
        era: inbox.era.clone(),
        caller_gone: inbox.caller_gone.clone(),
        answers,
        depth,
        since: None,
        takes_requests: true,
        loss: None,
        ends_on_rejection: inbox.ends_on_rejection,
        rejection: None,
        ending: Ending::default(),
    };
    owner.run(&mut inbox, &mut answered).await;
    let LinkTask {
        mut state,
        subscribers,
        loss,
        account,
        ..
    } = owner;
    // Dropped together: a handle that finds the channel closed finds no link in the statistics either.
    drop((account, inbox));
    // Concurrently, because a slow client must not delay the end of the connection to the server.
    tokio::join!(state.end(), subscribers.end(loss));
    tracing::info!(upstream = name, "the link has ended");
}

struct LinkTask<'a, T: Transport> {
    name: &'a str,
    transport: T,
    pending: LinkMachine,
    account: StatsHandle<&'a LinkStats>,
    state: LinkConnection<T::Link>,
    /// True if another link is opened once the previous one is closed.
    reopen: bool,
    callers: Callers<PendingCaller>,
    /// The clients that read subscriptions with ids of the server.
    readers: BTreeMap<Ticket, NotificationSender>,
    /// The epoch of the state machine's times.
    started: Instant,
    /// The recipients of the server's notifications.
    subscribers: Subscribers<'a>,
    /// The time of the last request, reply, cancellation or notification.
    last_used: Instant,
    /// Notified each time the link becomes ready.
    ready: Option<Arc<Notify>>,
    /// The number of the era of the server, for handles of this link.
    era: Arc<AtomicU8>,
    /// Notified when a caller goes away.
    caller_gone: Arc<Notify>,
    /// The channel for answers of callers to requests of the server.
    answers: mpsc::Sender<CallerAnswer>,
    /// The maximum nesting depth of messages.
    depth: u16,
    /// The time at which the link became ready.
    since: Option<Instant>,
    /// False once the request channel is closed.
    takes_requests: bool,
    /// The reason why the only client of this link gets no other.
    loss: Option<LinkLost>,
    /// True if this link ends when the server rejects the handshake.
    ends_on_rejection: bool,
    /// The rejection that ends this link, as the response to its callers.
    rejection: Option<Bytes>,
    ending: Ending,
}

/// Reasons for this link to end that other parts decide.
#[derive(Debug, Default)]
struct Ending {
    /// True once the upstream was changed or removed.
    is_retired: bool,
    /// True once the server has refused a login with the credentials of the client.
    is_unauthenticated: bool,
}

impl<T: Transport> LinkTask<'_, T> {
    async fn run(
        &mut self,
        inbox: &mut RequestReceiver,
        answered: &mut mpsc::Receiver<CallerAnswer>,
    ) {
        let mut farewell = None;
        self.take(LinkInput::Tick);
        loop {
            if self.ending.is_unauthenticated {
                return self.refuse_login(inbox);
            }
            if self.loss.is_some() {
                return inbox.refuse();
            }
            if let Some(rejection) = self.rejection.take() {
                return self.reject(inbox, &rejection);
            }
            if !self.takes_requests && self.pending.is_idle() {
                // The server must still be sent the cancellations of the last calls.
                let until = *farewell.get_or_insert(clock::now() + FAREWELL);
                if self.pending.has_sent_all() || until <= clock::now() {
                    if self.ending.is_retired {
                        self.mark_lost(LostBy::Plan);
                    }
                    return;
                }
            }
            let unused = self.unused_at(inbox);
            let age = inbox.max_age.filter(|_| !inbox.requests.is_closed());
            let end = self.since.zip(age).map(|(since, age)| since + age);
            let next_tick = self.pending.alarm().map(|at| self.started + at);
            let reads = self.reads();
            let client_deadline = self
                .subscribers
                .owner
                .as_ref()
                .and_then(LinkClientQueue::deadline);
            // All branches are cancel-safe: nothing is lost before the next iteration.
            tokio::select! {
                request = inbox.requests.recv(), if self.takes_requests => match request {
                    Some(request) => self.on_request(request),
                    None => {
                        self.takes_requests = false;
                        self.take(LinkInput::Unsubscribe);
                    }
                },
                Some(answer) = answered.recv() => self.on_caller_answer(answer),
                () = inbox.caller_gone.notified() => self.forget_abandoned(),
                event = self.state.next(reads) => self.on_event(event),
                () = wait_for_client(&mut self.subscribers) => {}
                () = sleep_until(client_deadline.unwrap_or(self.started)), if client_deadline.is_some() => self.expire_notifications(),
                () = sleep_until(next_tick.unwrap_or(self.started)), if next_tick.is_some() => self.tick(),
                // Requests that are already in the channel are still answered.
                () = sleep_until(end.unwrap_or(self.started)), if end.is_some() => inbox.requests.close(),
                () = wait_until_over(&mut inbox.over) => self.retire(inbox),
                // A request in the channel counts as use of the link, and is answered.
                () = sleep_until(unused.unwrap_or(self.started)), if unused.is_some() => {
                    if inbox.requests.is_empty() {
                        inbox.requests.close();
                    }
                }
                () = sleep_until(farewell.unwrap_or(self.started)), if farewell.is_some() => {}
            }
        }
    }

    /// Returns the time at which the link was unused for too long.
    fn unused_at(&self, inbox: &RequestReceiver) -> Option<Instant> {
        let is_idle = !inbox.requests.is_closed() && self.pending.is_idle();
        let idle = inbox.idle.filter(|_| is_idle);
        idle.map(|idle| self.last_used + idle)
    }

    /// Stops taking requests because the upstream was changed or removed. A link that is ending already keeps its own
    /// reason.
    fn retire(&mut self, inbox: &mut RequestReceiver) {
        inbox.over = None;
        if inbox.requests.is_closed() {
            return;
        }
        self.ending.is_retired = true;
        // Marked at once, so that the client opens no other link while this one still has calls to answer.
        if let Some(owner) = &self.subscribers.owner {
            owner.mark_lost();
        }
        tracing::info!(
            upstream = self.name,
            "the link accepts no more calls: its upstream was changed or removed"
        );
        inbox.requests.close();
    }

    /// Returns false while the queue of the owner is full: the server is not read.
    fn reads(&self) -> bool {
        let queue = self.subscribers.owner.as_ref();
        !queue.is_some_and(LinkClientQueue::is_full)
    }

    fn tick(&mut self) {
        self.take(match self.reads() {
            true => LinkInput::Tick,
            // The server's signs of life are not read meanwhile, so it is treated as alive.
            false => LinkInput::Sign,
        });
    }

    fn expire_notifications(&mut self) {
        if let Some(owner) = &mut self.subscribers.owner {
            owner.drop_notifications();
        }
        self.state.close();
        self.mark_lost(LostBy::Client);
        self.on_lost("its client does not read notifications");
    }

    /// Marks the link of the owner as lost: the state that the server kept for it is gone.
    fn mark_lost(&mut self, through: LostBy) {
        if let (Some(owner), None) = (&self.subscribers.owner, &self.loss) {
            owner.mark_lost();
            self.loss = Some(LinkLost {
                upstream: self.name.to_owned(),
                through,
            });
        }
    }

    fn since_start(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.started)
    }

    fn on_request(&mut self, request: LinkRequest) {
        // The subscription counts even if the caller no longer waits.
        if let Some(subscriber) = request.subscriber {
            self.subscribers.join(subscriber);
        }
        if request.reply.is_closed() {
            return;
        }
        self.last_used = clock::now();
        let ticket = self.callers.add(PendingCaller {
            reply: request.reply,
            notifier: request.notifier,
            progress: request.progress,
            cancel_signal: request.cancel_signal,
            logs: request.logs,
            asked: 0,
            load: request.load,
        });
        let queued = Request {
            ticket,
            message: request.outbound,
            start_by: self.since_start(request.start_by),
            deadline: self.since_start(request.deadline),
            repeat: request.repeat,
            rank: request.rank,
            input: request.input,
        };
        self.take(LinkInput::Ask(queued));
    }

    fn on_event(&mut self, event: LinkEvent<T::Link>) {
        match event {
            LinkEvent::Opened(Ok(link)) => {
                self.state = LinkConnection::Open(link);
                self.take(LinkInput::Opened);
            }
            LinkEvent::Opened(Err(why)) => {
                self.state = LinkConnection::Down;
                self.on_lost(&why);
            }
            LinkEvent::Event(Event::Message(message)) => {
                self.on_message(unmarked(message), LinkInput::Message)
            }
            LinkEvent::Event(Event::StreamMessage(id, message)) => {
                self.on_message(message, |message| LinkInput::InResponseStream(id, message));
            }
            LinkEvent::Event(Event::Overlong) => self.take(LinkInput::Overlong),
            LinkEvent::Event(Event::Failed(id, why)) => self.take(LinkInput::Failed(id, why)),
            LinkEvent::Event(Event::Ended(id)) => self.take(LinkInput::Ended(id)),
            LinkEvent::Event(Event::SessionLost(id)) => self.take(LinkInput::Forgotten(id)),
            LinkEvent::Event(Event::Undelivered(why)) => self.take(LinkInput::Unwritten(why)),
            LinkEvent::Event(Event::Written) => self.take(LinkInput::Written),
            LinkEvent::Event(Event::SignOfLife) => self.take(LinkInput::Sign),
            LinkEvent::Event(Event::Rejected(status, message)) => self.on_rejected(status, message),
            LinkEvent::Event(Event::Lost(why)) => {
                self.state.close();
                self.on_lost(&why);
            }
            LinkEvent::Gone => {
                self.state = LinkConnection::Down;
                if self.reopen {
                    self.open();
                }
            }
        }
    }

    /// A message that is not JSON-RPC may belong to another protocol that the client speaks on the link.
    fn on_message(&mut self, message: Bytes, input: impl FnOnce(Bytes) -> LinkInput) {
        let skipped = self.pending.counts().skipped;
        let copy = self.subscribers.is_per_client().then(|| message.clone());
        self.take(input(message));
        if let Some(message) = copy.filter(|_| self.pending.counts().skipped > skipped) {
            self.last_used = clock::now();
            self.subscribers.deliver_raw(message);
        }
    }

    fn on_lost(&mut self, why: &str) {
        let (upstream, in_flight) = (self.name, self.pending.in_flight());
        let why = &*self.transport.redaction().text(why);
        tracing::warn!(upstream, in_flight, cause = why, "the link is lost");
        self.account.stats().record_loss(&LinkLoss {
            cause: why.to_owned(),
            output: self.transport.last_output(),
        });
        if self.ending.is_retired {
            self.mark_lost(LostBy::Plan);
        } else if self.takes_requests && self.since.is_some() {
            // A link that takes no more requests has a successor, or no users.
            self.mark_lost(LostBy::Server);
        }
        self.take(LinkInput::Lost {
            // The retries of many proxies drift apart.
            jitter: u16::try_from(random_u64() & 0xffff).unwrap_or_default(),
        });
        // A request to a stateful link, or to a server that no plan refers to, is never sent over another link.
        let ends = !self.takes_requests && self.subscribers.is_per_client();
        if self.loss.is_some() || self.ending.is_retired || ends {
            self.take(LinkInput::Over);
        }
    }

    fn open(&mut self) {
        if matches!(self.state, LinkConnection::Closing(_)) {
            self.reopen = true;
            return;
        }
        self.reopen = false;
        let transport = self.transport.clone();
        self.state = LinkConnection::Opening(Box::pin(async move { transport.open().await }));
    }

    fn take(&mut self, input: LinkInput) {
        if let LinkConnection::Open(link) = &self.state {
            self.pending.set_era(link.era());
        }
        self.pending.take(self.since_start(clock::now()), input);
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
                self.reopen = false;
                self.state.close();
                // Takes the loss in at once, although `take` is still executing its outputs.
                self.on_lost(&fault.to_string());
                self.ending.is_unauthenticated = self.pending.is_unauthenticated();
            }
            LinkOutput::Write(message) => {
                if let LinkConnection::Open(link) = &mut self.state {
                    link.write(message);
                }
            }
            LinkOutput::Ping => {
                if let LinkConnection::Open(link) = &mut self.state {
                    link.ping();
                }
            }
            LinkOutput::Ready => self.on_ready(),
            LinkOutput::Answer {
                ticket,
                id,
                message,
            } => self.reply(ticket, Ok(LinkReply::Answer(id, message))),
            LinkOutput::ServerRequest {
                ticket,
                id,
                message,
            } => self.ask_caller(ticket, id, message),
            LinkOutput::Subscribed {
                ticket,
                id,
                message,
            } => self.on_subscribed(ticket, id, message),
            LinkOutput::SubscriptionLost(ticket) => self.on_subscription_lost(ticket),
            LinkOutput::NoticeSent(ticket) => self.reply(ticket, Ok(LinkReply::Sent)),
            LinkOutput::Ended(ticket) => self.reply(ticket, Ok(LinkReply::Ended)),
            LinkOutput::Failed(ticket, why) => self.reply(ticket, Err(why)),
            LinkOutput::Notified {
                method,
                message,
                recipients,
            } => {
                self.last_used = clock::now();
                tracing::debug!(
                    upstream = self.name,
                    method,
                    "received a notification from the server"
                );
                self.on_notification(&method, message, recipients);
            }
        }
    }

    fn on_ready(&mut self) {
        let opened = self.pending.counts().opened;
        tracing::info!(upstream = self.name, opened, "the link is ready");
        self.since = Some(clock::now());
        if let LinkConnection::Open(link) = &self.state {
            self.era.store(link.era() as u8, Ordering::Relaxed);
        }
        if let Some(ready) = &self.ready {
            ready.notify_one();
        }
    }

    fn on_notification(&mut self, method: &str, message: Bytes, recipients: Recipients) {
        let caller = match recipients {
            Recipients::Subscriber(ticket) => return self.notify_reader(ticket, message),
            Recipients::Caller(ticket) => self.callers.get(ticket),
            Recipients::Token | Recipients::All | Recipients::NoClient => None,
        };
        let caller = caller.filter(|caller| caller.logs.passes(method, &message, self.depth));
        let caller = caller.and_then(|caller| caller.notifier.as_ref());
        let progress = self.callers.iter();
        let progress = progress.filter_map(|caller| caller.progress.as_ref());
        self.subscribers
            .deliver(recipients, message, caller, progress);
    }

    fn reply(&mut self, ticket: Ticket, result: Result<LinkReply, RequestError>) {
        if let Some(caller) = self.callers.take(ticket) {
            self.last_used = clock::now();
            let notifier = caller.ordered_by();
            self.subscribers.answer(caller.reply, notifier, result);
        }
    }
}

/// Waits until the queue of the owner has made progress; cancel-safe.
async fn wait_for_client(subscribers: &mut Subscribers<'_>) {
    match &mut subscribers.owner {
        Some(owner) => owner.send_next().await,
        None => pending().await,
    }
}
