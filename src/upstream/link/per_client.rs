//! Links that belong to one client connection, for servers that keep state per connection.
//!
//! A link is opened by the first call that needs it. It ends with the client's connection, or when it is idle for too
//! long. The plan limits their number. Law: a client on a socket has one link per upstream, and none to another server
//! of the same name while it has that one.
//!
//! Used by `app`, `gateway` and `link`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::{Notify, mpsc, watch};

use super::handle::{LinkHandle, RequestReceiver, open};
use super::notifications::NotificationSender;
use super::subscriber_set::Subscriber;
use dualgauge_model::mcp::ServerEra;
use dualgauge_model::pending::{LoginCall, RequestError};
use dualgauge_patterns::side::Side;

/// The number of links that may wait to be launched.
const LAUNCHES: usize = 256;

/// The way in which the calls of a worker reach a server.
#[derive(Debug, Clone)]
pub enum LinkSharing {
    /// The whole process shares one link.
    Shared(LinkHandle),
    /// Each client connection has a link of its own.
    PerClient(LinkOpener),
    /// Each `Authorization` of clients has a link of its own.
    PerAuthorization(LinkOpener),
}

impl From<LinkHandle> for LinkSharing {
    fn from(link: LinkHandle) -> LinkSharing {
        LinkSharing::Shared(link)
    }
}

/// The limits on the links of an upstream.
#[derive(Debug, Clone, Copy)]
pub struct LinkLimits {
    /// The maximum number of links.
    pub most: usize,
    /// The longest time in which a link may be unused.
    pub idle: Duration,
    /// The maximum number of queued requests on each link.
    pub queue: usize,
}

/// The slots for client links at a server, kept across plans. Also serves as the server's identity.
#[derive(Debug, Clone, Default)]
pub struct LinkSlots(Arc<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    /// The number of open links. Not a semaphore: a new plan may lower the limit below it.
    open: AtomicUsize,
    /// Becomes true when no plan refers to the server any more.
    over: watch::Sender<bool>,
}

impl LinkSlots {
    /// Ends all links of the server: no plan refers to it any more.
    pub fn end(&self) {
        self.0.over.send_replace(true);
    }

    /// Returns a receiver that becomes true when the links must end.
    #[must_use]
    pub fn subscribe_end(&self) -> watch::Receiver<bool> {
        self.0.over.subscribe()
    }

    fn have_ended(&self) -> bool {
        *self.0.over.borrow()
    }

    /// Takes one of `most` slots, unless all are taken.
    fn take(&self, most: usize) -> Option<LinkPermit> {
        let take = |open: usize| (open < most).then_some(open + 1);
        let open = &self.0.open;
        let taken = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok().map(|_| LinkPermit(self.clone()))
    }

    /// Returns true if both belong to the same server.
    fn is_same_server(&self, others: &LinkSlots) -> bool {
        Arc::ptr_eq(&self.0, &others.0)
    }
}

/// Opens links. No more links can be opened once the last opener is dropped.
#[derive(Debug, Clone)]
pub struct LinkOpener {
    launches: mpsc::Sender<LinkLaunch>,
    slots: LinkSlots,
    limits: LinkLimits,
    /// The number of the era of the server, which all its links share.
    era: Arc<AtomicU8>,
}

/// An opener that does not keep its channel open.
#[derive(Debug)]
pub struct WeakLinkOpener {
    launches: mpsc::WeakSender<LinkLaunch>,
    slots: LinkSlots,
    limits: LinkLimits,
    era: Arc<AtomicU8>,
}

impl WeakLinkOpener {
    /// Returns the opener while another one exists.
    #[must_use]
    pub fn upgrade(&self) -> Option<LinkOpener> {
        Some(LinkOpener {
            launches: self.launches.upgrade()?,
            slots: self.slots.clone(),
            limits: self.limits,
            era: self.era.clone(),
        })
    }
}

/// A request to launch a link task for one client connection.
#[derive(Debug)]
pub struct LinkLaunch {
    /// The receiving end for the link task.
    pub inbox: RequestReceiver,
    /// The slot that the link holds while it lives.
    pub permit: LinkPermit,
}

/// A held slot; dropping it frees the slot.
#[derive(Debug)]
pub struct LinkPermit(LinkSlots);

impl Drop for LinkPermit {
    fn drop(&mut self) {
        let LinkPermit(LinkSlots(server)) = self;
        server.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Creates an opener, and the channel of its launches. Each launch takes one of `slots`.
#[must_use]
pub fn opener(limits: LinkLimits, slots: LinkSlots) -> (LinkOpener, mpsc::Receiver<LinkLaunch>) {
    let (launches, inbox) = mpsc::channel(LAUNCHES);
    let opener = LinkOpener {
        launches,
        slots,
        limits,
        era: Arc::default(),
    };
    (opener, inbox)
}

impl LinkOpener {
    /// Returns an opener that does not keep its channel open.
    #[must_use]
    pub fn downgrade(&self) -> WeakLinkOpener {
        WeakLinkOpener {
            launches: self.launches.downgrade(),
            slots: self.slots.clone(),
            limits: self.limits,
            era: self.era.clone(),
        }
    }

    /// Returns the era of the server, as far as a link has learnt it.
    pub(super) fn era(&self) -> ServerEra {
        ServerEra::from_number(self.era.load(Ordering::Relaxed))
    }

    /// Opens a link that sends this `Authorization` with all its messages.
    fn open_for(&self, authorization: Option<HeaderValue>) -> Result<LinkHandle, RequestError> {
        let permit = self.slots.take(self.limits.most);
        let permit = permit.ok_or(RequestError::Busy)?;
        let (mut handle, inbox) = open(self.limits.queue);
        let mut inbox = inbox.for_client(None, self.limits.idle);
        (handle.era, inbox.era) = (self.era.clone(), self.era.clone());
        inbox.authorization = authorization;
        inbox.ends_on_rejection = true;
        // A failed send drops the launch and with it the slot.
        self.launches
            .try_send(LinkLaunch { inbox, permit })
            .map_err(|_| RequestError::Busy)?;
        Ok(handle)
    }

    fn open(
        &self,
        notifier: Option<NotificationSender>,
        login: Option<LoginCall>,
    ) -> Result<LinkHandle, RequestError> {
        let permit = self.slots.take(self.limits.most);
        let permit = permit.ok_or(RequestError::Busy)?;
        let (handle, inbox) = open(self.limits.queue);
        let inbox = RequestReceiver {
            login,
            ..inbox.for_client(notifier, self.limits.idle)
        };
        // A failed send drops the launch and with it the slot.
        self.launches
            .try_send(LinkLaunch { inbox, permit })
            .map_err(|_| RequestError::Busy)?;
        Ok(handle)
    }
}

/// The links of one client connection.
#[derive(Debug, Default)]
pub struct ClientLinks {
    links: RefCell<Vec<KnownLink>>,
    /// The notification channel of the client.
    notifier: RefCell<Option<NotificationSender>>,
    /// The side whose events the client receives, if servers on both sides send some.
    speaker: Cell<Option<Side>>,
    /// Shared links whose tasks know this client as a subscriber, each with its subscription.
    subscriptions: RefCell<Vec<(Weak<Notify>, Weak<()>)>>,
}

/// One of the client's links.
#[derive(Debug)]
struct KnownLink {
    upstream: String,
    /// The slots of its server, which identify it.
    slots: LinkSlots,
    link: LinkHandle,
    /// The login of the link, if it takes values from the client.
    login: Option<LoginCall>,
}

/// A subscription to a shared link that its task does not know yet.
pub(super) struct PendingSubscription<'a> {
    links: &'a ClientLinks,
    link: Weak<Notify>,
    subscriber: Subscriber,
}

impl PendingSubscription<'_> {
    pub(super) fn subscriber(&self) -> Subscriber {
        self.subscriber.clone()
    }

    /// Records the subscription after the link task was sent it. The task drops it only when it is full.
    pub(super) fn record(self) {
        let known = (self.link, self.subscriber.subscription());
        self.links.subscriptions.borrow_mut().push(known);
    }
}

impl ClientLinks {
    /// Sets the client's notification channel. It receives everything from links opened from now on, and the
    /// notifications for all clients or for this client from shared links, once the client has sent a request there.
    pub fn set_notifications(&self, notifier: NotificationSender) {
        // A link that was opened before has no notification channel.
        self.links.borrow_mut().clear();
        *self.notifier.borrow_mut() = Some(notifier);
    }

    /// Records that a server of `side` was sent a request. The first side wins, so that no event is delivered twice.
    pub fn record_request(&self, side: Side) {
        if self.speaker.get().is_none() {
            self.speaker.set(Some(side));
        }
    }

    /// Records that the servers of `side` send nothing more.
    pub fn on_quiet(&self, side: Side) {
        if self.speaker.get() == Some(side) {
            self.speaker.set(None);
        }
    }

    /// Returns true if the client receives events of `side`.
    #[must_use]
    pub fn receives_events_of(&self, side: Side) -> bool {
        self.speaker.get().is_none_or(|speaker| speaker == side)
    }

    /// Returns the client's notification channel, if it has one.
    #[must_use]
    pub fn notifications(&self) -> Option<NotificationSender> {
        self.notifier.borrow().clone()
    }

    /// Returns true if a client receives notifications as long as its connection lasts.
    pub(super) fn has_subscriber(&self) -> bool {
        self.notifier.borrow().is_some()
    }

    /// Returns the subscription that the task of a shared link must be sent, unless it knows it already.
    pub(super) fn pending_subscription(
        &self,
        link: &LinkHandle,
    ) -> Option<PendingSubscription<'_>> {
        let subscriber = self.notifications()?;
        let link = link.identity();
        let mut known = self.subscriptions.borrow_mut();
        known.retain(|(link, alive)| link.strong_count() > 0 && alive.strong_count() > 0);
        let is_known = known.iter().any(|(known, _)| known.ptr_eq(&link));
        (!is_known).then_some(PendingSubscription {
            links: self,
            link,
            subscriber: Subscriber::new(subscriber),
        })
    }

    /// Returns true if a client on a socket has lost a link of its own, or is about to. The client is disconnected, and
    /// its requests fail until then.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        let notifier = self.notifier.borrow();
        let is_over = |known: &KnownLink| known.slots.have_ended() && !known.link.has_ended();
        notifier
            .as_ref()
            .is_some_and(|notifier| notifier.has_lost() || self.links.borrow().iter().any(is_over))
    }

    /// Returns the link of this connection to the server of `opener`; opens one if there is none. A link serves only calls
    /// with the credentials that it has logged in with.
    ///
    /// # Errors
    /// Returns [`RequestError::Busy`] if all slots are taken, and [`RequestError::Unreachable`] if a client on a socket
    /// has a link to another server of that name, whose end is about to be reported. Returns
    /// [`RequestError::Unauthenticated`] if such a client has a link with another login.
    pub(super) fn get_or_open(
        &self,
        upstream: &str,
        opener: &LinkOpener,
        login: Option<LoginCall>,
    ) -> Result<LinkHandle, RequestError> {
        self.record_request(Side::Rpc);
        let mut links = self.links.borrow_mut();
        links.retain(|known| !known.link.has_ended());
        let index = links.iter().position(|known| known.upstream == upstream);
        if let Some(index) = index {
            let known = &links[index];
            let is_same_server = known.slots.is_same_server(&opener.slots);
            // A new secret from a file is for new links.
            let is_same_login = login.is_none() || known.login == login;
            match (is_same_server, is_same_login, self.has_subscriber()) {
                (true, true, _) => return Ok(known.link.clone()),
                (true, false, true) => return Err(RequestError::Unauthenticated),
                (false, _, true) => return Err(RequestError::Unreachable),
                (_, _, false) => {}
            }
            // The old link ends after its pending calls.
            links.swap_remove(index);
        }
        let link = opener.open(self.notifications(), login.clone())?;
        links.push(KnownLink {
            upstream: upstream.to_owned(),
            slots: opener.slots.clone(),
            link: link.clone(),
            login,
        });
        Ok(link)
    }
}

/// The links of a worker that belong to one `Authorization` of clients each.
#[derive(Debug, Default)]
pub struct AuthorizedLinks {
    /// By upstream and `Authorization`. The openers limit the number of live links.
    links: RefCell<HashMap<(String, Option<HeaderValue>), KnownLink>>,
}

/// The size at which links that have ended are forgotten.
const SWEEP: usize = 256;

impl AuthorizedLinks {
    /// Returns the link of an `Authorization` to the server of `opener`; opens one if there is none.
    ///
    /// # Errors
    /// Returns [`RequestError::Busy`] if all slots are taken.
    pub(super) fn get_or_open(
        &self,
        upstream: &str,
        opener: &LinkOpener,
        authorization: Option<&HeaderValue>,
    ) -> Result<LinkHandle, RequestError> {
        let mut links = self.links.borrow_mut();
        if links.len() >= SWEEP {
            links.retain(|_, known| !known.link.has_ended());
        }
        let key = (upstream.to_owned(), authorization.cloned());
        let known = links
            .get(&key)
            .filter(|known| !known.link.has_ended() && known.slots.is_same_server(&opener.slots));
        if let Some(known) = known {
            return Ok(known.link.clone());
        }
        let link = opener.open_for(authorization.cloned())?;
        let known = KnownLink {
            upstream: upstream.to_owned(),
            slots: opener.slots.clone(),
            link: link.clone(),
            login: None,
        };
        links.insert(key, known);
        Ok(link)
    }
}
