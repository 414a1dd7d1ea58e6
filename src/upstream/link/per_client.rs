//! Links that one connection of a client has for itself, where a server keeps state per connection.
//!
//! A link is opened with the first call that needs it, and ends with the client's connection, or when it was not used for
//! too long. There are as many at a time as the plan says, and no more. Law: a client on a socket has one at each upstream,
//! and none at another server of that name while it has that.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};

use super::handle::{LinkHandle, RequestReceiver, open};
use super::notifications::NotificationSender;
use super::subscriber_set::Subscriber;
use crate::domain::pending::RequestError;
use crate::domain::side::Side;

/// How many links may wait to be begun.
const LAUNCHES: usize = 256;

/// How the calls of a worker come to a server.
#[derive(Debug, Clone)]
pub enum LinkSharing {
    /// All of the process share one link.
    Shared(LinkHandle),
    /// Each connection of a client has a link for itself.
    PerClient(LinkOpener),
}

impl From<LinkHandle> for LinkSharing {
    fn from(link: LinkHandle) -> LinkSharing {
        LinkSharing::Shared(link)
    }
}

/// What bounds the links of an upstream.
#[derive(Debug, Clone, Copy)]
pub struct LinkLimits {
    /// How many there are at a time.
    pub most: usize,
    /// How long one may be unused.
    pub idle: Duration,
    /// How many questions may wait on each.
    pub queue: usize,
}

/// The links that clients have at a server, whatever plans they began with. What tells it from others.
#[derive(Debug, Clone, Default)]
pub struct LinkSlots(Arc<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    /// How many are open.
    open: AtomicUsize,
    /// Whether no plan means the server any more.
    over: watch::Sender<bool>,
}

impl LinkSlots {
    /// No plan means the server any more, nor will: those who are there are let go.
    pub fn end(&self) {
        self.0.over.send_replace(true);
    }

    /// Tells when that is.
    #[must_use]
    pub fn over(&self) -> watch::Receiver<bool> {
        self.0.over.subscribe()
    }

    fn are_over(&self) -> bool {
        *self.0.over.borrow()
    }

    /// One of so many, unless all are taken.
    fn take(&self, most: usize) -> Option<LinkPermit> {
        let take = |open: usize| (open < most).then_some(open + 1);
        let open = &self.0.open;
        let taken = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok().map(|_| LinkPermit(self.clone()))
    }

    /// Whether these are those at the same server.
    fn are(&self, others: &LinkSlots) -> bool {
        Arc::ptr_eq(&self.0, &others.0)
    }
}

/// Opens links. When the last one is gone, no more are opened.
#[derive(Debug, Clone)]
pub struct LinkOpener {
    launches: mpsc::Sender<LinkLaunch>,
    places: LinkSlots,
    bounds: LinkLimits,
}

/// The same, which keeps nothing open.
#[derive(Debug)]
pub struct WeakLinkOpener {
    launches: mpsc::WeakSender<LinkLaunch>,
    places: LinkSlots,
    bounds: LinkLimits,
}

impl WeakLinkOpener {
    /// The opener, while somebody else still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<LinkOpener> {
        Some(LinkOpener {
            launches: self.launches.upgrade()?,
            places: self.places.clone(),
            bounds: self.bounds,
        })
    }
}

/// A link that is to be owned, for one connection of a client.
#[derive(Debug)]
pub struct LinkLaunch {
    /// Its end of the way.
    pub inbox: RequestReceiver,
    /// It is one of those that may be open, for as long as this lives.
    pub place: LinkPermit,
}

/// A place among the links that may be open.
#[derive(Debug)]
pub struct LinkPermit(LinkSlots);

impl Drop for LinkPermit {
    fn drop(&mut self) {
        let LinkPermit(LinkSlots(server)) = self;
        server.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Both ends of the way on which links are opened, each of which takes one of these places.
#[must_use]
pub fn opener(bounds: LinkLimits, places: LinkSlots) -> (LinkOpener, mpsc::Receiver<LinkLaunch>) {
    let (launches, inbox) = mpsc::channel(LAUNCHES);
    let opener = LinkOpener {
        launches,
        places,
        bounds,
    };
    (opener, inbox)
}

impl LinkOpener {
    /// The same, which keeps nothing open.
    #[must_use]
    pub fn downgrade(&self) -> WeakLinkOpener {
        WeakLinkOpener {
            launches: self.launches.downgrade(),
            places: self.places.clone(),
            bounds: self.bounds,
        }
    }

    fn open(&self, notices: Option<NotificationSender>) -> Result<LinkHandle, RequestError> {
        let place = self.places.take(self.bounds.most);
        let place = place.ok_or(RequestError::Busy)?;
        let (handle, inbox) = open(self.bounds.queue);
        let inbox = inbox.for_one(notices, self.bounds.idle);
        // One that finds no room gives its place back.
        self.launches
            .try_send(LinkLaunch { inbox, place })
            .map_err(|_| RequestError::Busy)?;
        Ok(handle)
    }
}

/// The links of one connection of a client.
#[derive(Debug, Default)]
pub struct ClientLinks {
    links: RefCell<Vec<KnownLink>>,
    /// Where what servers tell goes.
    notices: RefCell<Option<NotificationSender>>,
    /// Whose events the client hears, where servers of both sides have some for it.
    speaker: Cell<Option<Side>>,
    /// The links, shared with others, whose owners know that, each for as long as it does.
    listens: RefCell<Vec<(Weak<Notify>, Weak<()>)>>,
}

/// One of them.
#[derive(Debug)]
struct KnownLink {
    upstream: String,
    /// Those at its server.
    places: LinkSlots,
    link: LinkHandle,
}

/// A client that is about to hear what a server tells to all.
pub(super) struct PendingSubscription<'a> {
    own: &'a ClientLinks,
    link: Weak<Notify>,
    listener: Subscriber,
}

impl PendingSubscription<'_> {
    pub(super) fn listener(&self) -> Subscriber {
        self.listener.clone()
    }

    /// The owner of the link is told, and knows unless it has no room.
    pub(super) fn begun(self) {
        let known = (self.link, self.listener.subscription());
        self.own.listens.borrow_mut().push(known);
    }
}

impl ClientLinks {
    /// What servers tell goes here: over links that are opened from now on, and, as far as it is for all or for this
    /// client, over links that it shares, once it has asked something there.
    pub fn notify(&self, notices: NotificationSender) {
        // One that was opened before would tell nobody.
        self.links.borrow_mut().clear();
        *self.notices.borrow_mut() = Some(notices);
    }

    /// A server of a side is asked: the first one is heard from then on, so that no event comes twice.
    pub fn request(&self, side: Side) {
        if self.speaker.get().is_none() {
            self.speaker.set(Some(side));
        }
    }

    /// The servers of a side say no more.
    pub fn on_silence(&self, side: Side) {
        if self.speaker.get() == Some(side) {
            self.speaker.set(None);
        }
    }

    /// Whether the client hears the servers of a side.
    #[must_use]
    pub fn subscribe(&self, side: Side) -> bool {
        self.speaker.get().is_none_or(|speaker| speaker == side)
    }

    /// Where what is told to this client goes.
    #[must_use]
    pub fn notifications(&self) -> Option<NotificationSender> {
        self.notices.borrow().clone()
    }

    /// Whether there is a client that hears what servers tell for as long as its connection lasts.
    pub(super) fn has_subscriber(&self) -> bool {
        self.notices.borrow().is_some()
    }

    /// What the owner of a shared link is to know, unless it knows it.
    pub(super) fn pending_subscription(
        &self,
        link: &LinkHandle,
    ) -> Option<PendingSubscription<'_>> {
        let listener = self.notifications()?;
        let link = link.identity();
        let mut known = self.listens.borrow_mut();
        known.retain(|(link, hears)| link.strong_count() > 0 && hears.strong_count() > 0);
        let is_known = known.iter().any(|(known, _)| known.ptr_eq(&link));
        (!is_known).then_some(PendingSubscription {
            own: self,
            link,
            listener: Subscriber::new(listener),
        })
    }

    /// Whether a client on a socket has lost a link of its own, or is about to: it is let go, and asks nobody till then.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        let notices = self.notices.borrow();
        let is_over = |known: &KnownLink| known.places.are_over() && !known.link.has_ended();
        notices
            .as_ref()
            .is_some_and(|ear| ear.has_lost() || self.links.borrow().iter().any(is_over))
    }

    /// The link that is there for this connection at the server of an opener, or is opened now.
    ///
    /// # Errors
    /// [`RequestError::Busy`] where as many as allowed are open; [`RequestError::Unreachable`] where a client on a socket has
    /// one at another server of that name: it is about to hear of the end of that.
    pub(super) fn of(
        &self,
        upstream: &str,
        opener: &LinkOpener,
    ) -> Result<LinkHandle, RequestError> {
        self.request(Side::Rpc);
        let mut links = self.links.borrow_mut();
        links.retain(|known| !known.link.has_ended());
        let place = links.iter().position(|known| known.upstream == upstream);
        if let Some(place) = place {
            let known = &links[place];
            if known.places.are(&opener.places) {
                return Ok(known.link.clone());
            }
            if self.has_subscriber() {
                return Err(RequestError::Unreachable);
            }
            // It ends behind the calls that it has.
            links.swap_remove(place);
        }
        let link = opener.open(self.notifications())?;
        links.push(KnownLink {
            upstream: upstream.to_owned(),
            places: opener.places.clone(),
            link: link.clone(),
        });
        Ok(link)
    }
}
