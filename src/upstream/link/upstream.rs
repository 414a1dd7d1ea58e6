//! A worker's view of an upstream that is reached over links: the choice of a link, and the requests sent over it.
//!
//! Used by `gateway`.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::cancel::CancelSignal;
use super::handle::{LinkHandle, LinkRequest, ProgressSink};
use super::notifications::{
    LinkReply, Notification, NotificationReceiver, NotificationSender, channel,
};
use super::per_client::{AuthorizedLinks, ClientLinks, LinkSharing, PendingSubscription};
use super::reply_slot::ReplySlot;
use super::subscriber_set::Subscriber;
use crate::telemetry::clock;
use dualgauge_model::mcp::{InputCapabilities, LogFilter, ServerEra};
use dualgauge_model::pending::{LoginCall, Outbound, Priority, RequestError, RetryRule};
use dualgauge_model::plan::UpstreamPlan;
use dualgauge_net::random_u64;

/// Extra time after its deadline in which a request still waits for the link task to report the timeout.
const GRACE: Duration = Duration::from_millis(250);

/// The client that sends a request.
#[derive(Debug, Default)]
pub struct Requester<'a> {
    /// The links that belong to the client's connection.
    pub links: Option<&'a ClientLinks>,
    /// The client's cancellation signal for this request.
    pub cancel_signal: Option<Arc<CancelSignal>>,
    /// The log messages of its own call that the client receives.
    pub logs: LogFilter,
    /// The links that belong to one `Authorization`, and that of this client.
    pub authorized: Option<(&'a AuthorizedLinks, Option<HeaderValue>)>,
    /// The headers of the client that the logins of links take values from.
    pub credentials: Option<&'a HeaderMap>,
    /// The requests of the server that the client answers during its call.
    pub input: InputCapabilities,
    /// The client's notification channel, which also orders the reply among its notifications.
    pub notifier: Option<NotificationSender>,
}

/// A guard that wakes the link task when it is dropped, so that it ends the subscription of a client that has left.
#[derive(Debug)]
struct SubscriptionGuard(Arc<Notify>);

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// The receiver of the notifications of a subscription with an id of the server. Dropping it ends the subscription.
#[derive(Debug)]
pub struct SubscriptionReceiver {
    // Dropped before the guard: the link task then finds it closed.
    notifications: NotificationReceiver,
    _guard: SubscriptionGuard,
}

impl SubscriptionReceiver {
    /// Waits for the next notification.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Notification> {
        self.notifications.poll_next(cx)
    }
}

/// The identity of a link, which distinguishes it from the links of earlier plans.
#[derive(Debug, Clone)]
pub struct LinkIdentity(Weak<Notify>);

impl PartialEq for LinkIdentity {
    fn eq(&self, other: &LinkIdentity) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// The links of the client that sends a request.
struct CallerLinks<'a> {
    links: Option<&'a ClientLinks>,
    authorized: Option<(&'a AuthorizedLinks, Option<HeaderValue>)>,
    credentials: Option<&'a HeaderMap>,
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

    /// Returns the era of the server, as far as it is known. A client's own link is a WebSocket, which has sessions.
    #[must_use]
    pub fn server_era(&self) -> ServerEra {
        match &self.sharing {
            LinkSharing::Shared(link) => link.era(),
            LinkSharing::PerClient(_) => ServerEra::Sessions,
            LinkSharing::PerAuthorization(opener) => opener.era(),
        }
    }

    /// Returns the identity of the link if all clients share it. It does not keep the link open.
    #[must_use]
    pub fn identity(&self) -> Option<LinkIdentity> {
        match &self.sharing {
            LinkSharing::Shared(link) => Some(LinkIdentity(link.identity())),
            LinkSharing::PerClient(_) | LinkSharing::PerAuthorization(_) => None,
        }
    }

    /// Returns true if all clients share the link.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self.sharing, LinkSharing::Shared(_))
    }

    /// Opens the link of a client that only listens, if each client has a link of its own. `headers` are those of its
    /// handshake.
    pub fn listen(&self, links: &ClientLinks, headers: &HeaderMap) {
        if matches!(self.sharing, LinkSharing::PerClient(_)) {
            // A failure is ignored: the first call that needs the link opens it and reports the reason.
            let _ = self.route(&CallerLinks {
                links: Some(links),
                authorized: None,
                credentials: Some(headers),
            });
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
        self.request_for(requester, outbound, repeat, limit).await
    }

    /// Sends a request for a client whose connection may have a link of its own.
    ///
    /// # Errors
    /// Returns a [`RequestError`] within `limit`.
    pub async fn request_for(
        &self,
        requester: Requester<'_>,
        outbound: Outbound,
        repeat: RetryRule,
        limit: Duration,
    ) -> Result<LinkReply, RequestError> {
        let (slot, wait_until) = self.begin(requester, outbound, repeat, limit)?;
        slot.answer(wait_until).await
    }

    /// Opens a subscription over the shared link. The server must acknowledge it by the timeout of the upstream. The
    /// returned future ends with the subscription, and does not keep the link open; dropping it ends the subscription.
    ///
    /// # Errors
    /// Returns a [`RequestError`] if the link takes no requests.
    pub fn listen_for_changes(
        &self,
        requester: Requester<'_>,
        outbound: Outbound,
    ) -> Result<impl Future<Output = Result<LinkReply, RequestError>> + 'static, RequestError> {
        let limit = self.plan.timeout;
        let (slot, wait_until) = self.begin(requester, outbound, RetryRule::Never, limit)?;
        Ok(slot.answer(wait_until))
    }

    /// Opens a subscription with an id of the server. The returned future waits for the response within `limit`.
    ///
    /// # Errors
    /// Returns a [`RequestError`] if the link takes no requests.
    pub fn open_id_subscription(
        &self,
        mut requester: Requester<'_>,
        outbound: Outbound,
        repeat: RetryRule,
        limit: Duration,
    ) -> Result<
        (
            SubscriptionReceiver,
            impl Future<Output = Result<LinkReply, RequestError>> + 'static,
        ),
        RequestError,
    > {
        let (notifier, notifications) = channel();
        requester.notifier = Some(notifier);
        let (slot, wait_until) = self.begin(requester, outbound, repeat, limit)?;
        let receiver = SubscriptionReceiver {
            notifications,
            _guard: SubscriptionGuard(slot.caller_gone()),
        };
        Ok((receiver, slot.answer(wait_until)))
    }

    /// Sends a request. Returns the slot of its reply, and the time until which to wait for it.
    fn begin(
        &self,
        requester: Requester<'_>,
        outbound: Outbound,
        repeat: RetryRule,
        limit: Duration,
    ) -> Result<(ReplySlot, Option<Instant>), RequestError> {
        let Requester {
            links,
            cancel_signal,
            logs,
            authorized,
            credentials,
            input,
            notifier,
        } = requester;
        let clients = CallerLinks {
            links,
            authorized,
            credentials,
        };
        let (handle, shared) = self.route(&clients)?;
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
            Outbound::Call(_)
            | Outbound::IdSubscription(..)
            | Outbound::Notice(_)
            | Outbound::Greeting => Some(deadline + GRACE),
        };
        let (reply, answer) = oneshot::channel();
        let request = LinkRequest {
            outbound,
            start_by: now + self.plan.queue_wait(limit),
            deadline,
            repeat,
            rank: self.rank,
            reply,
            notifier,
            subscriber,
            progress,
            cancel_signal,
            logs,
            input,
            load: None,
        };
        let handle = self.send(handle, &clients, request)?;
        if let Some(subscription) = subscription {
            subscription.record();
        }
        let slot = ReplySlot::new(answer, handle.caller_gone.clone());
        Ok((slot, wait_until))
    }
}

impl LinkUpstream {
    /// Returns the link for a request, and the client's links if the link is shared.
    fn route<'o>(
        &self,
        clients: &CallerLinks<'o>,
    ) -> Result<(LinkHandle, Option<&'o ClientLinks>), RequestError> {
        let links = clients.links;
        let upstream = &self.plan.name;
        if links.is_some_and(ClientLinks::has_lost) {
            return Err(RequestError::Unreachable);
        }
        match (&self.sharing, links) {
            (LinkSharing::Shared(link), links) => Ok((link.clone(), links)),
            (LinkSharing::PerClient(opener), Some(links)) => {
                let login = self.login(clients.credentials)?;
                Ok((links.get_or_open(upstream, opener, login)?, None))
            }
            (LinkSharing::PerClient(_), None) => Err(RequestError::Unreachable),
            (LinkSharing::PerAuthorization(opener), links) => {
                let (table, own) = clients
                    .authorized
                    .as_ref()
                    .ok_or(RequestError::Unreachable)?;
                let link = table.get_or_open(upstream, opener, own.as_ref())?;
                Ok((link, links))
            }
        }
    }

    /// Returns the login for the credentials of a client, if the login takes values from clients.
    fn login(&self, credentials: Option<&HeaderMap>) -> Result<Option<LoginCall>, RequestError> {
        let link = self.plan.transport.link();
        let login = link.and_then(|link| link.login.as_ref());
        let Some(login) = login.filter(|login| login.needs_caller()) else {
            return Ok(None);
        };
        let call = credentials.and_then(|headers| login.call_for(headers));
        call.map(Some).ok_or(RequestError::Unauthenticated)
    }

    /// Sends a request to its link task, or to a new one if that task has just started to end.
    fn send(
        &self,
        handle: LinkHandle,
        clients: &CallerLinks<'_>,
        request: LinkRequest,
    ) -> Result<LinkHandle, RequestError> {
        let (handle, sent) = match handle.requests.try_send(request) {
            Err(TrySendError::Closed(request)) => {
                let (next, _) = self.route(clients)?;
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
    let guess = random_u64();
    format!("dualgauge-{number}-{guess:016x}")
}
