//! The handles between a worker and the task that owns a link.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::balance::InFlightGuard;
use super::cancel::CancelSignal;
use super::notifications::{self, NotificationSender, ReplySender};
use super::per_client::{ClientLinks, LinkSharing, PendingSubscription};
use super::reply_slot::ReplySlot;
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
    pub(super) outbound: Outbound,
    pub(super) start_by: Instant,
    pub(super) deadline: Instant,
    pub(super) repeat: RetryRule,
    pub(super) rank: Priority,
    pub(super) reply: ReplySender,
    /// The notification channel of the client that waits for the reply.
    pub(super) notifier: Option<NotificationSender>,
    /// A client that subscribes with this request to notifications for all clients.
    pub(super) subscriber: Option<Subscriber>,
    /// The receiver of the progress notifications of this request.
    pub(super) progress: Option<ProgressSink>,
    /// The cancellation signal of the client.
    pub(super) cancel_signal: Option<Arc<CancelSignal>>,
    /// Counts the request as load of its link for as long as it lives.
    pub(super) load: Option<InFlightGuard>,
}

/// The client that sends a request.
#[derive(Debug, Default)]
pub struct Requester<'a> {
    /// The links that belong to the client's connection.
    pub links: Option<&'a ClientLinks>,
    /// The client's cancellation signal for this request.
    pub cancel_signal: Option<Arc<CancelSignal>>,
    /// The client's notification channel, which also orders the reply among its notifications.
    pub notifier: Option<NotificationSender>,
}

/// The receiver of the progress notifications of a request.
#[derive(Debug)]
pub(super) struct ProgressSink {
    /// The token of the request on the link.
    pub(super) token: String,
    /// The token that the caller chose.
    pub(super) client_token: Json,
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
    requests: mpsc::Sender<LinkRequest>,
    abandoned: Arc<Notify>,
}

/// A handle that does not keep the link task alive.
#[derive(Debug)]
pub struct WeakLinkHandle {
    requests: mpsc::WeakSender<LinkRequest>,
    abandoned: Arc<Notify>,
}

impl WeakLinkHandle {
    /// Returns a handle while another one exists.
    #[must_use]
    pub fn upgrade(&self) -> Option<LinkHandle> {
        Some(LinkHandle {
            requests: self.requests.upgrade()?,
            abandoned: self.abandoned.clone(),
        })
    }
}

impl LinkHandle {
    /// Returns true if the link task has ended and takes no more requests.
    pub(super) fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }

    /// Forwards a request that another handle received.
    pub(super) async fn forward(&self, request: LinkRequest) -> Result<(), RequestError> {
        let sent = self.requests.send(request).await;
        sent.map_err(|_| RequestError::Unreachable)
    }

    /// Tells the link task that a caller has gone away.
    pub(super) fn notify_abandoned(&self) {
        self.abandoned.notify_one();
    }

    /// Returns an identity that distinguishes this link from others while it exists.
    pub(super) fn identity(&self) -> Weak<Notify> {
        Arc::downgrade(&self.abandoned)
    }

    /// Returns a handle that does not keep the link task alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakLinkHandle {
        WeakLinkHandle {
            requests: self.requests.downgrade(),
            abandoned: self.abandoned.clone(),
        }
    }
}

/// The receiving end of a link task, with the settings of its link.
#[derive(Debug)]
pub struct RequestReceiver {
    pub(super) requests: mpsc::Receiver<LinkRequest>,
    /// Notified when a caller goes away.
    pub(super) abandoned: Arc<Notify>,
    /// The channel of the only client, if the link belongs to one client.
    pub(super) notifier: Option<NotificationSender>,
    /// The longest time in which the link may be unused.
    pub(super) idle: Option<Duration>,
    /// The age at which the link stops taking requests.
    pub(super) max_age: Option<Duration>,
    /// Becomes true when the upstream is changed or removed.
    pub(super) over: Option<watch::Receiver<bool>>,
    /// Notified each time the link becomes ready.
    pub(super) ready: Option<Arc<Notify>>,
    /// The subscribers to notifications for all clients.
    pub(super) subscribers: SubscriberSet,
}

impl RequestReceiver {
    /// Configures the receiver for a link that belongs to one client.
    pub(super) fn for_client(
        self,
        notifier: Option<NotificationSender>,
        idle: Duration,
    ) -> RequestReceiver {
        RequestReceiver {
            notifier,
            idle: Some(idle),
            ..self
        }
    }

    /// Closes the channel and refuses all requests in it; none of them has been written.
    pub(super) fn refuse(&mut self) {
        self.requests.close();
        while let Ok(LinkRequest {
            reply, notifier, ..
        }) = self.requests.try_recv()
        {
            notifications::answer(reply, notifier.as_ref(), Err(RequestError::Unreachable));
        }
    }

    /// Ends the link when its upstream is changed or removed.
    #[must_use]
    pub fn ending_with(self, over: watch::Receiver<bool>) -> RequestReceiver {
        let over = Some(over);
        RequestReceiver { over, ..self }
    }

    /// Ends the link at an age; the next request opens another one.
    #[must_use]
    pub fn with_max_age(self, max_age: Option<Duration>) -> RequestReceiver {
        RequestReceiver { max_age, ..self }
    }
}

/// Creates a handle and receiver for a link task with a queue of `queue` requests.
#[must_use]
pub fn open(queue: usize) -> (LinkHandle, RequestReceiver) {
    let (sender, requests) = mpsc::channel(queue + ON_THE_WAY);
    let abandoned = Arc::<Notify>::default();
    let handle = LinkHandle {
        requests: sender,
        abandoned: abandoned.clone(),
    };
    let inbox = RequestReceiver {
        requests,
        abandoned,
        notifier: None,
        idle: None,
        max_age: None,
        over: None,
        ready: None,
        subscribers: SubscriberSet::default(),
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

    /// Returns the links of the upstream at `index`, if it uses links.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&LinkSharing> {
        match self.0.get(index)? {
            LinkRoute::Link(sharing) => Some(sharing),
            LinkRoute::Frames(_) | LinkRoute::Other => None,
        }
    }

    /// Returns the statistics of the legacy sockets of the upstream at `index`, if it uses them.
    #[must_use]
    pub fn stats(&self, index: usize) -> Option<Arc<LinkStats>> {
        match self.0.get(index) {
            Some(LinkRoute::Frames(stats)) => Some(stats.clone()),
            Some(LinkRoute::Link(_) | LinkRoute::Other) | None => None,
        }
    }
}

/// A worker's view of an upstream that is reached over links.
#[derive(Debug)]
pub struct LinkUpstream {
    plan: UpstreamPlan,
    sharing: LinkSharing,
    rank: Priority,
}

impl LinkUpstream {
    /// Creates the view for an upstream whose calls have priority `rank`.
    #[must_use]
    pub fn new(
        plan: UpstreamPlan,
        sharing: impl Into<LinkSharing>,
        rank: Priority,
    ) -> Rc<LinkUpstream> {
        let sharing = sharing.into();
        Rc::new(LinkUpstream {
            plan,
            sharing,
            rank,
        })
    }

    /// Returns the plan of the upstream.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    /// Opens the link of a client that only listens, if each client has a link of its own.
    pub fn listen(&self, links: &ClientLinks) {
        if matches!(self.sharing, LinkSharing::PerClient(_)) {
            // A failure is ignored: the first call that needs the link opens it and reports the reason.
            let _ = self.route(Some(links));
        }
    }

    /// Sends a request over the shared link and waits for the reply. Dropping the future takes the request back, or
    /// tells the server that it is cancelled.
    ///
    /// # Errors
    /// Returns a [`RequestError`] within `limit`.
    pub async fn request(
        &self,
        outbound: Outbound,
        limit: Duration,
        repeat: RetryRule,
    ) -> Result<LinkReply, RequestError> {
        let requester = Requester::default();
        self.request_for(requester, (outbound, repeat), limit).await
    }

    /// Sends a request for a client whose connection may have a link of its own.
    ///
    /// # Errors
    /// Returns a [`RequestError`] within `limit`.
    pub async fn request_for(
        &self,
        requester: Requester<'_>,
        (outbound, repeat): (Outbound, RetryRule),
        limit: Duration,
    ) -> Result<LinkReply, RequestError> {
        let Requester {
            links,
            cancel_signal,
            notifier,
        } = requester;
        let (handle, shared) = self.route(links)?;
        let subscription = shared.and_then(|links| links.pending_subscription(&handle));
        // A client on a socket listens as long as it is connected, and receives everything from a link of its own.
        let on_socket = links.is_some_and(ClientLinks::has_subscriber);
        let progress_to = notifier.clone().filter(|_| !on_socket || shared.is_some());
        let (outbound, progress) = self.with_progress_token(outbound, progress_to);
        // A client that uses POST listens while a call with a progress token is open.
        let subscriber = match on_socket {
            true => subscription.as_ref().map(PendingSubscription::subscriber),
            false => notifier
                .clone()
                .filter(|_| progress.is_some())
                .map(Subscriber::new),
        };
        let now = clock::now();
        let deadline = now + limit;
        let wait_until = match outbound {
            // The server must acknowledge a subscription by the deadline; after that there is no limit.
            Outbound::Subscription(..) => None,
            Outbound::Call(_) | Outbound::Notice(_) | Outbound::Greeting => Some(deadline + GRACE),
        };
        let (reply, answer) = oneshot::channel();
        let request = LinkRequest {
            outbound,
            start_by: now + self.plan.queue_wait(limit),
            deadline,
            repeat,
            rank: self.rank,
            reply,
            notifier: notifier.clone(),
            subscriber,
            progress,
            cancel_signal,
            load: None,
        };
        let handle = self.send(handle, links, request)?;
        if let Some(subscription) = subscription {
            subscription.record();
        }
        let slot = ReplySlot {
            answer,
            held: None,
            abandoned: &handle.abandoned,
            notifier,
        };
        slot.answer(wait_until).await
    }
}

impl LinkUpstream {
    /// Returns the link for a request, and the client's links if the link is shared.
    fn route<'o>(
        &self,
        links: Option<&'o ClientLinks>,
    ) -> Result<(LinkHandle, Option<&'o ClientLinks>), RequestError> {
        let upstream = &self.plan.name;
        if links.is_some_and(ClientLinks::has_lost) {
            return Err(RequestError::Unreachable);
        }
        match (&self.sharing, links) {
            (LinkSharing::Shared(link), links) => Ok((link.clone(), links)),
            (LinkSharing::PerClient(opener), Some(links)) => {
                Ok((links.get_or_open(upstream, opener)?, None))
            }
            (LinkSharing::PerClient(_), None) => Err(RequestError::Unreachable),
        }
    }

    /// Sends a request to its link task, or to a new one if that task has just started to end.
    fn send(
        &self,
        handle: LinkHandle,
        links: Option<&ClientLinks>,
        request: LinkRequest,
    ) -> Result<LinkHandle, RequestError> {
        let (handle, sent) = match handle.requests.try_send(request) {
            Err(TrySendError::Closed(request)) => {
                let (next, _) = self.route(links)?;
                let sent = next.requests.try_send(request);
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
    fn with_progress_token(
        &self,
        outbound: Outbound,
        notifier: Option<NotificationSender>,
    ) -> (Outbound, Option<ProgressSink>) {
        let (Outbound::Call(call), Some(to)) = (&outbound, notifier) else {
            return (outbound, None);
        };
        let depth = self
            .plan
            .transport
            .link()
            .map_or(1, |link| link.settings.depth);
        let token = token();
        match call.with_token(&token, depth) {
            Some((call, client_token)) => (
                Outbound::Call(call),
                Some(ProgressSink {
                    token,
                    client_token,
                    to,
                }),
            ),
            None => (outbound, None),
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
