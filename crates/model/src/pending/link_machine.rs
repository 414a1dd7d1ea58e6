//! The state machine of a link: its queue, writes, timeouts and reconnects.
//!
//! Used by `pending`, `gateway`, `telemetry` and `upstream`.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::id_subscription_table::{IdSubscriptions, SubscriptionCounts};
use super::listen_table::ListenTable;
use super::login::LoginCounts;
use super::queue::{QueuedRequest, RequestQueue};
use super::state::{Handshake, LinkState, WriteState};
use super::subscriptions::Subscriptions;
use super::unattributed::{CancelNotice, UnattributedReplies, UnattributedReply};
use super::{
    LinkFault, LinkInput, LinkOutput, LinkSettings, Outbound, Request, RequestError, SUBSCRIPTIONS,
    Ticket,
};
use crate::correlator::{AssignedIds, Correlator};
use crate::jsonrpc;
use crate::mcp::InputCapabilities;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

/// The maximum number of queued control messages. They are replies and notices that a server can do without.
const CONTROLS: usize = 64;

/// Counters over all links so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Attempts to open a link, successful or not.
    pub opened: u64,
    /// Replies that arrived after their caller had given up.
    pub late: u64,
    /// Replies to no pending request, and errors that cannot be assigned to one.
    pub foreign: u64,
    /// Messages that are invalid or exceed the size limit.
    pub skipped: u64,
    /// Requests from the server that were declined.
    pub declined: u64,
    /// Notifications from the server.
    pub notified: u64,
    /// Logins.
    pub logins: LoginCounts,
    /// Subscriptions with ids of the server.
    pub subscriptions: SubscriptionCounts,
}

/// The state machine of a link and its requests.
#[derive(Debug)]
pub struct LinkMachine {
    pub(super) settings: LinkSettings,
    pub(super) state: LinkState,
    pub(super) wire: WriteState,
    /// The requests that are written and have no reply yet, by id.
    pub(super) in_flight: Correlator<u64, QueuedRequest>,
    pub(super) queue: RequestQueue,
    pub(super) subscriptions: Subscriptions,
    pub(super) id_subscriptions: IdSubscriptions,
    /// The subscriptions that the link emulates, if it does.
    pub(super) listeners: ListenTable,
    pub(super) emulates_listen: bool,
    pub(super) unattributed: UnattributedReplies,
    pub(super) greeted: Option<Handshake>,
    /// The error of requests since the last login failed.
    pub(super) login_error: Option<RequestError>,
    pub(super) controls: VecDeque<Bytes>,
    ids: AssignedIds,
    /// Consecutive calls without a reply in time.
    pub(super) consecutive_timeouts: usize,
    /// Consecutive links that did not last for `backoff.steady`.
    pub(super) attempts: u32,
    /// The time of the last event.
    pub(super) now: Duration,
    pub(super) last_received: Duration,
    pinged: Option<Duration>,
    pub(super) counts: LinkCounts,
    pub(super) out: VecDeque<LinkOutput>,
}

impl LinkMachine {
    /// Creates a machine without a link; the first [`LinkInput::Tick`] asks for one.
    #[must_use]
    pub fn new(settings: LinkSettings) -> LinkMachine {
        LinkMachine {
            in_flight: Correlator::new(settings.order.in_flight()),
            settings,
            state: LinkState::Down(Duration::ZERO),
            wire: WriteState::Free,
            queue: RequestQueue::default(),
            subscriptions: Subscriptions::default(),
            id_subscriptions: IdSubscriptions::default(),
            listeners: ListenTable::default(),
            emulates_listen: false,
            unattributed: UnattributedReplies::default(),
            greeted: None,
            login_error: None,
            controls: VecDeque::new(),
            ids: AssignedIds::from(1),
            consecutive_timeouts: 0,
            attempts: 0,
            now: Duration::ZERO,
            last_received: Duration::ZERO,
            pinged: None,
            counts: LinkCounts::default(),
            out: VecDeque::new(),
        }
    }

    /// Handles an event. [`LinkMachine::output`] then returns the actions to take.
    pub fn take(&mut self, now: Duration, input: LinkInput) {
        self.now = now;
        // Deadlines come first: after its deadline, a request can only time out.
        self.expire(now);
        match input {
            LinkInput::Ask(request) => self.request(request),
            LinkInput::Cancel(ticket) => self.cancel(ticket, self.cancel_notice()),
            LinkInput::ClientCancel(ticket) => self.cancel(ticket, CancelNotice::Send),
            LinkInput::Slow(ticket) => self.end_slow(ticket),
            LinkInput::Opened => self.opened(now),
            LinkInput::Written => self.written(now),
            LinkInput::Message(message) => self.message(now, message, None),
            LinkInput::InResponseStream(id, message) => self.message(now, message, Some(id)),
            LinkInput::Overlong => self.overlong(now),
            LinkInput::Failed(id, why) => self.failed(id, why),
            LinkInput::Ended(id) => self.ended(id),
            LinkInput::Forgotten(id) => self.forgotten(now, id),
            LinkInput::Unwritten(why) => self.unwritten(now, why),
            LinkInput::Sign => self.on_received(now),
            LinkInput::Lost { jitter } => self.lost(now, jitter),
            LinkInput::Respond(ticket, responses) => self.respond(now, ticket, responses),
            LinkInput::Over => self.over(),
            LinkInput::Unsubscribe => {
                self.end_subscriptions();
                self.end_id_subscriptions();
                self.end_listeners();
            }
            LinkInput::Tick => {}
        }
        let in_flight = &self.in_flight;
        self.id_subscriptions
            .forget_failed(|id| in_flight.get(id).is_some());
        self.tick(now);
        self.dispatch();
    }

    /// Returns the next action.
    pub fn output(&mut self) -> Option<LinkOutput> {
        self.out.pop_front()
    }

    /// Returns the time by which [`LinkInput::Tick`] is due at the latest.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        let state = match self.state {
            LinkState::Down(at) => Some(at),
            LinkState::Opening(by)
            | LinkState::Greeting { by, .. }
            | LinkState::LoggingIn { by, .. }
            | LinkState::Leaving(by) => Some(by),
            LinkState::Ready(_) => self.heartbeat(),
            LinkState::Closing => None,
        };
        let wire = match self.wire {
            WriteState::Notice(_, at) | WriteState::Resting(at) => Some(at),
            WriteState::Free | WriteState::Busy | WriteState::Unanswered => None,
        };
        let in_flight = self.in_flight.alarm();
        let subscriptions = self.subscriptions.alarm();
        [state, in_flight, wire, self.queue.alarm(), subscriptions]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// Returns the number of requests that are written and have no reply.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the number of queued requests.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns true while calls can be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, LinkState::Ready(_))
    }

    /// Returns true if no caller waits for a result.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let noticed = matches!(self.wire, WriteState::Notice(..));
        self.in_flight.is_empty()
            && self.subscriptions.is_empty()
            && self.id_subscriptions.len() == 0
            && self.listeners.is_empty()
            && self.queue.len() == 0
            && !noticed
    }

    /// Returns true if nothing is left to write: no message of a caller and no control message.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        let is_written = matches!(self.wire, WriteState::Free | WriteState::Resting(_));
        !self.is_ready() || (is_written && self.controls.is_empty())
    }

    /// Returns the number of entries that are kept without a waiting caller.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.unattributed.len() + self.controls.len()
    }

    fn request(&mut self, request: Request) {
        let hopeless = matches!(self.state, LinkState::Down(until) if until >= request.start_by);
        if hopeless {
            return self.fail(request.ticket, self.unsent_error());
        }
        let has_capacity = match request.message {
            Outbound::Subscription(..) => {
                self.subscriptions.has_capacity() && self.listeners.len() < SUBSCRIPTIONS
            }
            Outbound::IdSubscription(..) => self.id_subscriptions.has_capacity(),
            Outbound::Call(_) | Outbound::Notice(_) | Outbound::Greeting => true,
        };
        if !has_capacity || !self.queue.has_capacity(request.rank, self.settings.queue) {
            return self.fail(request.ticket, RequestError::Busy);
        }
        self.queue.push(QueuedRequest {
            request,
            was_sent: false,
            suspension: None,
            missing: InputCapabilities::default(),
        });
    }

    fn cancel(&mut self, ticket: Ticket, notice: CancelNotice) {
        if self.queue.remove(ticket) || self.unlisten(ticket) || self.unsubscribe(ticket) {
            return;
        }
        if self.end_id_subscription(ticket) {
            self.counts.subscriptions.closed += 1;
            return;
        }
        let is_own = |in_flight: &QueuedRequest| (in_flight.request.ticket == ticket).then_some(());
        if let Some((id, ..)) = self.in_flight.end_first(is_own) {
            self.abandon(id, notice);
        }
    }

    /// Records that the caller gave up on a request to which the server may still reply.
    pub(super) fn abandon(&mut self, id: u64, notice: CancelNotice) {
        let abandoned = UnattributedReply::abandoned(self.now, notice, self.settings.clients);
        self.unattributed.add(id, abandoned);
        self.id_subscriptions.abandon(id);
        if notice == CancelNotice::Send {
            let params = format!("{{\"requestId\":{id}}}");
            let params = Rope::from(Bytes::from(params));
            let method = "notifications/cancelled";
            self.control(jsonrpc::notification(method, params, &[]).into_bytes());
        }
    }

    /// Returns whether the server understands cancellation, as far as the link knows: only after an MCP handshake.
    fn cancel_notice(&self) -> CancelNotice {
        match self.settings.initialize_params {
            Some(_) => CancelNotice::Send,
            None => CancelNotice::Silent,
        }
    }

    /// Queues a control message, unless too many are queued.
    pub(super) fn control(&mut self, message: Bytes) {
        if self.controls.len() < CONTROLS {
            self.controls.push_back(message);
        }
    }

    pub(super) fn fail(&mut self, ticket: Ticket, why: RequestError) {
        self.out.push_back(LinkOutput::Failed(ticket, why));
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.ids.assign()
    }

    fn opened(&mut self, now: Duration) {
        let LinkState::Opening(by) = self.state else {
            return;
        };
        self.on_received(now);
        let Some(params) = &self.settings.initialize_params else {
            return self.log_in(now, by);
        };
        let params = Rope::from(Json::clone(params).into_bytes());
        let id = self.next_id();
        let message = jsonrpc::request(id, "initialize", params, &[]);
        self.state = LinkState::Greeting { id, by };
        self.write(message.into_bytes(), WriteState::Busy);
    }

    pub(super) fn ready(&mut self, now: Duration) {
        self.state = LinkState::Ready(now);
        self.out.push_back(LinkOutput::Ready);
    }

    pub(super) fn write(&mut self, message: Bytes, wire: WriteState) {
        self.wire = wire;
        self.out.push_back(LinkOutput::Write(message));
    }

    pub(super) fn written(&mut self, now: Duration) {
        let rest = match self.settings.pause {
            Duration::ZERO => WriteState::Free,
            pause => WriteState::Resting(now + pause),
        };
        self.wire = match self.wire {
            WriteState::Notice(ticket, _) => {
                self.out.push_back(LinkOutput::NoticeSent(ticket));
                rest
            }
            WriteState::Unanswered => rest,
            WriteState::Busy | WriteState::Free | WriteState::Resting(_) => WriteState::Free,
        };
    }

    /// Closes the link and retries or fails the requests on it.
    pub(super) fn close(&mut self, why: LinkFault) {
        self.state = LinkState::Closing;
        self.drop_in_flight();
        self.out.push_back(LinkOutput::Close(why));
    }

    fn lost(&mut self, now: Duration, jitter: u16) {
        if let LinkState::Ready(since) = self.state
            && now.saturating_sub(since) >= self.settings.backoff.steady
        {
            self.attempts = 0;
        }
        self.login_cut();
        self.drop_in_flight();
        self.controls.clear();
        self.unattributed.clear();
        self.greeted = None;
        self.consecutive_timeouts = 0;
        self.pinged = None;
        let wait = self.settings.backoff.wait(self.attempts, jitter);
        self.attempts = self.attempts.saturating_add(1);
        self.state = LinkState::Down(now + wait);
    }

    /// Retries or fails everything that was written to the link. Requests go back to the queue in their original
    /// order.
    fn drop_in_flight(&mut self) {
        if let WriteState::Notice(ticket, _) = self.wire {
            self.fail(ticket, RequestError::Cut);
        }
        self.wire = WriteState::Free;
        self.cut_subscriptions();
        self.cut_id_subscriptions();
        self.cut_listeners();
        for (_, in_flight) in self.in_flight.end_all().rev() {
            self.cut(in_flight);
        }
    }

    fn tick(&mut self, now: Duration) {
        if matches!(self.wire, WriteState::Resting(until) if until <= now) {
            self.wire = WriteState::Free;
        }
        match self.state {
            LinkState::Down(at) if at <= now => {
                self.state = LinkState::Opening(now + self.settings.start_timeout);
                self.counts.opened += 1;
                self.out.push_back(LinkOutput::Open);
            }
            LinkState::Opening(by) | LinkState::Greeting { by, .. } if by <= now => {
                self.close(LinkFault::Slow);
            }
            LinkState::LoggingIn { by, .. } if by <= now => self.login_late(),
            LinkState::Ready(_) if self.is_stalled() => self.close(LinkFault::Stalled),
            LinkState::Ready(_) => self.on_heartbeat(now),
            LinkState::Leaving(by) if by <= now || self.in_flight.is_empty() => {
                self.close(LinkFault::Forgotten);
            }
            LinkState::Leaving(_)
            | LinkState::Down(_)
            | LinkState::Opening(_)
            | LinkState::Greeting { .. }
            | LinkState::LoggingIn { .. }
            | LinkState::Closing => {}
        }
    }

    fn is_stalled(&self) -> bool {
        let limit = self.settings.max_consecutive_timeouts;
        limit > 0 && self.consecutive_timeouts >= limit
    }

    fn expire(&mut self, now: Duration) {
        let unsent_error = match self.state {
            LinkState::Ready(_) => RequestError::Busy,
            LinkState::Down(_)
            | LinkState::Opening(_)
            | LinkState::Greeting { .. }
            | LinkState::LoggingIn { .. }
            | LinkState::Leaving(_)
            | LinkState::Closing => self.unsent_error(),
        };
        for over in self.queue.take_expired(now) {
            let why = match over.was_sent {
                false => unsent_error,
                true => RequestError::Cut,
            };
            self.fail(over.request.ticket, why);
            let writes = !matches!(self.wire, WriteState::Free | WriteState::Resting(_));
            if self.is_ready() && writes {
                // A server that does not read does not reply either.
                self.consecutive_timeouts += 1;
            }
        }
        if let WriteState::Notice(ticket, deadline) = self.wire
            && deadline <= now
        {
            self.wire = WriteState::Unanswered;
            self.fail(ticket, RequestError::Late);
            self.consecutive_timeouts += 1;
        }
        self.expire_subscriptions(now);
        for (id, in_flight) in self.in_flight.end_expired(now) {
            self.fail(in_flight.request.ticket, RequestError::Late);
            self.abandon(id, self.cancel_notice());
            // While a call is suspended, the server waits for the client.
            if in_flight.suspension.is_none() {
                self.consecutive_timeouts += 1;
            }
        }
    }

    /// Returns the time at which the next ping, or the reply to the last one, is due.
    fn heartbeat(&self) -> Option<Duration> {
        let heartbeat = self.settings.heartbeat?;
        Some(match self.pinged {
            None => self.last_received + heartbeat.every,
            Some(at) => at + heartbeat.within,
        })
    }

    fn on_heartbeat(&mut self, now: Duration) {
        if self.heartbeat().is_none_or(|at| at > now) {
            return;
        }
        if self.pinged.is_some() {
            return self.close(LinkFault::Silent);
        }
        self.pinged = Some(now);
        self.out.push_back(LinkOutput::Ping);
    }

    /// Records a sign of life from the server.
    pub(super) fn on_received(&mut self, now: Duration) {
        self.last_received = now;
        self.pinged = None;
    }
}
