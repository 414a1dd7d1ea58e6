//! The handles between a worker and the task that owns a link.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::balance::InFlightGuard;
use super::cancel::CancelSignal;
use super::notifications::{self, NotificationSender, ReplySender, SequencedReply};
use super::per_client::{ClientLinks, LinkSharing, PendingSubscription};
use super::stats::LinkStats;
use super::subscriber_set::{Subscriber, SubscriberSet};
use crate::domain::json::Json;
use crate::domain::pending::{Outbound, Priority, RequestError, RetryRule};
use crate::domain::plan::UpstreamPlan;
use crate::telemetry::clock;

/// Requests that the channel to a link task holds beyond the configured queue.
const ON_THE_WAY: usize = 64;

/// Extra time after its deadline in which a request still waits for the link task to report the timeout.
const GRACE: Duration = Duration::from_millis(250);

/// A request to a link task.
#[derive(Debug)]
pub struct LinkRequest {
    pub(super) say: Outbound,
    pub(super) start_by: Instant,
    pub(super) deadline: Instant,
    pub(super) repeat: RetryRule,
    pub(super) rank: Priority,
    pub(super) reply: ReplySender,
    /// The notification channel of the client that waits for the reply.
    pub(super) ear: Option<NotificationSender>,
    /// A client that subscribes with this request to notifications for all clients.
    pub(super) listener: Option<Subscriber>,
    /// The receiver of the progress notifications of this request.
    pub(super) progress: Option<ProgressSink>,
    /// The cancellation signal of the client.
    pub(super) recall: Option<Arc<CancelSignal>>,
    /// Counts the request as load of its link for as long as it lives.
    pub(super) load: Option<InFlightGuard>,
}

/// The client that sends a request.
#[derive(Debug, Default)]
pub struct Requester<'a> {
    /// The links that belong to the client's connection.
    pub own: Option<&'a ClientLinks>,
    /// The client's cancellation signal for this request.
    pub recall: Option<Arc<CancelSignal>>,
    /// The client's notification channel, which also orders the reply among its notifications.
    pub ear: Option<NotificationSender>,
}

/// The receiver of the progress notifications of a request.
#[derive(Debug)]
pub(super) struct ProgressSink {
    /// The token of the request on the link.
    pub(super) token: String,
    /// The token that the caller chose.
    pub(super) said: Json,
    pub(super) to: NotificationSender,
}

/// A successful reply of a link task.
#[derive(Debug)]
pub enum LinkReply {
    /// The response to the request that was sent with this id.
    Answer(u64, Bytes),
    /// The notification was sent.
    Sent,
    /// A subscription ended in good order, without a response of the server.
    Ended,
}

/// A handle to a link task. When the last handle is dropped, the task closes its link.
#[derive(Debug, Clone)]
pub struct LinkHandle {
    asks: mpsc::Sender<LinkRequest>,
    gone: Arc<Notify>,
}

/// A handle that does not keep the link task alive.
#[derive(Debug)]
pub struct WeakLinkHandle {
    asks: mpsc::WeakSender<LinkRequest>,
    gone: Arc<Notify>,
}

impl WeakLinkHandle {
    /// Returns a handle while another one exists.
    #[must_use]
    pub fn upgrade(&self) -> Option<LinkHandle> {
        Some(LinkHandle {
            asks: self.asks.upgrade()?,
            gone: self.gone.clone(),
        })
    }
}

impl LinkHandle {
    /// Returns true if the link task has ended and takes no more requests.
    pub(super) fn has_ended(&self) -> bool {
        self.asks.is_closed()
    }

    /// Forwards a request that another handle received.
    pub(super) async fn hand_on(&self, asked: LinkRequest) -> Result<(), RequestError> {
        let sent = self.asks.send(asked).await;
        sent.map_err(|_| RequestError::Unreachable)
    }

    /// Tells the link task that a caller has gone away.
    pub(super) fn notify_abandoned(&self) {
        self.gone.notify_one();
    }

    /// Returns an identity that distinguishes this link from others while it exists.
    pub(super) fn identity(&self) -> Weak<Notify> {
        Arc::downgrade(&self.gone)
    }

    /// Returns a handle that does not keep the link task alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakLinkHandle {
        WeakLinkHandle {
            asks: self.asks.downgrade(),
            gone: self.gone.clone(),
        }
    }
}

/// The receiving end of a link task, with the settings of its link.
#[derive(Debug)]
pub struct RequestReceiver {
    pub(super) asks: mpsc::Receiver<LinkRequest>,
    /// Notified when a caller goes away.
    pub(super) gone: Arc<Notify>,
    /// The channel of the only client, if the link belongs to one client.
    pub(super) notices: Option<NotificationSender>,
    /// The longest time in which the link may be unused.
    pub(super) idle: Option<Duration>,
    /// The age at which the link stops taking requests.
    pub(super) max_age: Option<Duration>,
    /// Becomes true when the upstream is changed or removed.
    pub(super) over: Option<watch::Receiver<bool>>,
    /// Notified each time the link becomes ready.
    pub(super) ready: Option<Arc<Notify>>,
    /// The subscribers to notifications for all clients.
    pub(super) listeners: SubscriberSet,
}

impl RequestReceiver {
    /// Configures the receiver for a link that belongs to one client.
    pub(super) fn for_one(
        self,
        notices: Option<NotificationSender>,
        idle: Duration,
    ) -> RequestReceiver {
        RequestReceiver {
            notices,
            idle: Some(idle),
            ..self
        }
    }

    /// Closes the channel and refuses all requests in it; none of them has been written.
    pub(super) fn refuse(&mut self) {
        self.asks.close();
        while let Ok(LinkRequest { reply, ear, .. }) = self.asks.try_recv() {
            notifications::answer(reply, ear.as_ref(), Err(RequestError::Unreachable));
        }
    }

    /// Ends the link when its upstream is changed or removed.
    #[must_use]
    pub fn until(self, over: watch::Receiver<bool>) -> RequestReceiver {
        let over = Some(over);
        RequestReceiver { over, ..self }
    }

    /// Ends the link at an age; the next request opens another one.
    #[must_use]
    pub fn aging(self, max_age: Option<Duration>) -> RequestReceiver {
        RequestReceiver { max_age, ..self }
    }
}

/// Creates a handle and receiver for a link task with a queue of `queue` requests.
#[must_use]
pub fn open(queue: usize) -> (LinkHandle, RequestReceiver) {
    let (sender, asks) = mpsc::channel(queue + ON_THE_WAY);
    let gone = Arc::<Notify>::default();
    let handle = LinkHandle {
        asks: sender,
        gone: gone.clone(),
    };
    let inbox = RequestReceiver {
        asks,
        gone,
        notices: None,
        idle: None,
        max_age: None,
        over: None,
        ready: None,
        listeners: SubscriberSet::default(),
    };
    (handle, inbox)
}

/// The way in which workers reach an upstream that they share.
#[derive(Debug, Clone)]
pub enum LinkRoute {
    /// Through links of the process.
    Link(LinkSharing),
    /// Through legacy sockets that each worker owns and that are counted here.
    Frames(Arc<LinkStats>),
    /// Through connections of each worker alone.
    Other,
}

/// The link routes of a plan, by the index of the upstream.
#[derive(Debug, Clone, Default)]
pub struct Links(Arc<[LinkRoute]>);

impl Links {
    /// Creates the table from routes in the order of the plan.
    #[must_use]
    pub fn new(all: Vec<LinkRoute>) -> Links {
        Links(all.into())
    }

    /// Returns the links of the upstream at `place`, if it uses links.
    #[must_use]
    pub fn of(&self, place: usize) -> Option<&LinkSharing> {
        match self.0.get(place)? {
            LinkRoute::Link(reach) => Some(reach),
            LinkRoute::Frames(_) | LinkRoute::Other => None,
        }
    }

    /// Returns the statistics of the legacy sockets of the upstream at `place`, if it uses them.
    #[must_use]
    pub fn stats(&self, place: usize) -> Option<Arc<LinkStats>> {
        match self.0.get(place) {
            Some(LinkRoute::Frames(standing)) => Some(standing.clone()),
            Some(LinkRoute::Link(_) | LinkRoute::Other) | None => None,
        }
    }
}

/// A worker's view of an upstream that is reached over links.
#[derive(Debug)]
pub struct LinkUpstream {
    plan: UpstreamPlan,
    reach: LinkSharing,
    rank: Priority,
}

impl LinkUpstream {
    /// Creates the view for an upstream whose calls have priority `rank`.
    #[must_use]
    pub fn new(
        plan: UpstreamPlan,
        reach: impl Into<LinkSharing>,
        rank: Priority,
    ) -> Rc<LinkUpstream> {
        let reach = reach.into();
        Rc::new(LinkUpstream { plan, reach, rank })
    }

    /// Returns the plan of the upstream.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    /// Opens the link of a client that only listens, if each client has a link of its own.
    pub fn listen(&self, own: &ClientLinks) {
        if matches!(self.reach, LinkSharing::PerClient(_)) {
            // A failure is ignored: the first call that needs the link opens it and reports the reason.
            let _ = self.way(Some(own));
        }
    }

    /// Sends a request over the shared link and waits for the reply. Dropping the future takes the request back, or
    /// tells the server that it is cancelled.
    ///
    /// # Errors
    /// Returns a [`RequestError`] within `limit`.
    pub async fn request(
        &self,
        say: Outbound,
        limit: Duration,
        repeat: RetryRule,
    ) -> Result<LinkReply, RequestError> {
        let nobody = Requester::default();
        self.request_for(nobody, (say, repeat), limit).await
    }

    /// Sends a request for a client whose connection may have a link of its own.
    ///
    /// # Errors
    /// Returns a [`RequestError`] within `limit`.
    pub async fn request_for(
        &self,
        asker: Requester<'_>,
        (say, repeat): (Outbound, RetryRule),
        limit: Duration,
    ) -> Result<LinkReply, RequestError> {
        let Requester { own, recall, ear } = asker;
        let (handle, shared) = self.way(own)?;
        let listens = shared.and_then(|own| own.pending_subscription(&handle));
        // A client on a socket listens as long as it is connected, and receives everything from a link of its own.
        let on_socket = own.is_some_and(ClientLinks::has_subscriber);
        let told = ear.clone().filter(|_| !on_socket || shared.is_some());
        let (say, progress) = self.in_progress(say, told);
        // A client that uses POST listens while a call with a progress token is open.
        let listener = match on_socket {
            true => listens.as_ref().map(PendingSubscription::listener),
            false => ear
                .clone()
                .filter(|_| progress.is_some())
                .map(Subscriber::new),
        };
        let now = clock::now();
        let deadline = now + limit;
        let patience = match say {
            // The server must acknowledge a subscription by the deadline; after that there is no limit.
            Outbound::Subscription(..) => None,
            Outbound::Call(_) | Outbound::Notice(_) | Outbound::Greeting => Some(deadline + GRACE),
        };
        let (reply, answer) = oneshot::channel();
        let asked = LinkRequest {
            say,
            start_by: now + self.plan.queue_wait(limit),
            deadline,
            repeat,
            rank: self.rank,
            reply,
            ear: ear.clone(),
            listener,
            progress,
            recall,
            load: None,
        };
        let handle = self.send(handle, own, asked)?;
        if let Some(listens) = listens {
            listens.begun();
        }
        let door = ReplySlot {
            answer,
            held: None,
            gone: &handle.gone,
            ear,
        };
        door.answer(patience).await
    }
}

impl LinkUpstream {
    /// Returns the link for a request, and the client's links if the link is shared.
    fn way<'o>(
        &self,
        own: Option<&'o ClientLinks>,
    ) -> Result<(LinkHandle, Option<&'o ClientLinks>), RequestError> {
        let upstream = &self.plan.name;
        if own.is_some_and(ClientLinks::has_lost) {
            return Err(RequestError::Unreachable);
        }
        match (&self.reach, own) {
            (LinkSharing::Shared(link), own) => Ok((link.clone(), own)),
            (LinkSharing::PerClient(opener), Some(own)) => Ok((own.of(upstream, opener)?, None)),
            (LinkSharing::PerClient(_), None) => Err(RequestError::Unreachable),
        }
    }

    /// Sends a request to its link task, or to a new one if that task has just started to end.
    fn send(
        &self,
        handle: LinkHandle,
        own: Option<&ClientLinks>,
        asked: LinkRequest,
    ) -> Result<LinkHandle, RequestError> {
        let (handle, sent) = match handle.asks.try_send(asked) {
            Err(TrySendError::Closed(asked)) => {
                let (next, _) = self.way(own)?;
                let sent = next.asks.try_send(asked);
                (next, sent)
            }
            sent => (handle, sent),
        };
        match sent {
            Ok(()) => Ok(handle),
            Err(TrySendError::Full(_)) => Err(RequestError::Busy),
            Err(TrySendError::Closed(_)) => Err(RequestError::Unreachable),
        }
    }

    /// Gives a call of a client that takes notifications a unique progress token.
    fn in_progress(
        &self,
        say: Outbound,
        ear: Option<NotificationSender>,
    ) -> (Outbound, Option<ProgressSink>) {
        let (Outbound::Call(call), Some(to)) = (&say, ear) else {
            return (say, None);
        };
        let depth = self
            .plan
            .transport
            .link()
            .map_or(1, |link| link.settings.depth);
        let token = token();
        match call.with_token(&token, depth) {
            Some((call, said)) => (Outbound::Call(call), Some(ProgressSink { token, said, to })),
            None => (say, None),
        }
    }
}

/// Returns a unique token that cannot be guessed.
fn token() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let guess = RandomState::new().build_hasher().finish();
    format!("dualgauge-{number}-{guess:016x}")
}

/// The waiting end of a reply channel. Dropping it notifies the link task.
struct ReplySlot<'a> {
    answer: oneshot::Receiver<SequencedReply>,
    /// The reply, while earlier replies are still waiting to be taken.
    held: Option<SequencedReply>,
    gone: &'a Notify,
    ear: Option<NotificationSender>,
}

impl ReplySlot<'_> {
    /// Waits for the reply until `until`, if set, and then for its turn among the replies to the same client.
    async fn answer(mut self, until: Option<Instant>) -> Result<LinkReply, RequestError> {
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
        if let (Some(ear), Some(answered)) = (&self.ear, &self.held) {
            ear.turn_for(answered).await;
        }
        self.take().unwrap_or(Err(RequestError::Cut))
    }

    fn take(&mut self) -> Option<Result<LinkReply, RequestError>> {
        let answered = self.held.take()?;
        if let Some(ear) = &self.ear {
            ear.on_taken(&answered);
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
                Err(_) => self.gone.notify_one(),
            }
        }
        // A reply that is no longer wanted must not delay those behind it.
        drop(self.take());
    }
}
