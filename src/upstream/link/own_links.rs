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

use super::ask::{Inbox, LinkHandle, open};
use super::ear::Ear;
use super::listeners::Listener;
use crate::domain::pending::Unanswered;
use crate::domain::side::Side;

/// How many links may wait to be begun.
const LAUNCHES: usize = 256;

/// How the calls of a worker come to a server.
#[derive(Debug, Clone)]
pub enum Reach {
    /// All of the process share one link.
    Shared(LinkHandle),
    /// Each connection of a client has a link for itself.
    Apart(Opener),
}

impl From<LinkHandle> for Reach {
    fn from(link: LinkHandle) -> Reach {
        Reach::Shared(link)
    }
}

/// What bounds the links of an upstream.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many there are at a time.
    pub most: usize,
    /// How long one may be unused.
    pub idle: Duration,
    /// How many questions may wait on each.
    pub queue: usize,
}

/// The links that clients have at a server, whatever plans they began with. What tells it from others.
#[derive(Debug, Clone, Default)]
pub struct LinkPlaces(Arc<AtServer>);

#[derive(Debug, Default)]
struct AtServer {
    /// How many are open.
    open: AtomicUsize,
    /// Whether no plan means the server any more.
    over: watch::Sender<bool>,
}

impl LinkPlaces {
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
    fn take(&self, most: usize) -> Option<Place> {
        let take = |open: usize| (open < most).then_some(open + 1);
        let open = &self.0.open;
        let taken = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok().map(|_| Place(self.clone()))
    }

    /// Whether these are those at the same server.
    fn are(&self, others: &LinkPlaces) -> bool {
        Arc::ptr_eq(&self.0, &others.0)
    }
}

/// Opens links. When the last one is gone, no more are opened.
#[derive(Debug, Clone)]
pub struct Opener {
    launches: mpsc::Sender<Apart>,
    places: LinkPlaces,
    bounds: Bounds,
}

/// The same, which keeps nothing open.
#[derive(Debug)]
pub struct WeakOpener {
    launches: mpsc::WeakSender<Apart>,
    places: LinkPlaces,
    bounds: Bounds,
}

impl WeakOpener {
    /// The opener, while somebody else still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Opener> {
        Some(Opener {
            launches: self.launches.upgrade()?,
            places: self.places.clone(),
            bounds: self.bounds,
        })
    }
}

/// A link that is to be owned, for one connection of a client.
#[derive(Debug)]
pub struct Apart {
    /// Its end of the way.
    pub inbox: Inbox,
    /// It is one of those that may be open, for as long as this lives.
    pub place: Place,
}

/// A place among the links that may be open.
#[derive(Debug)]
pub struct Place(LinkPlaces);

impl Drop for Place {
    fn drop(&mut self) {
        let Place(LinkPlaces(server)) = self;
        server.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Both ends of the way on which links are opened, each of which takes one of these places.
#[must_use]
pub fn opener(bounds: Bounds, places: LinkPlaces) -> (Opener, mpsc::Receiver<Apart>) {
    let (launches, inbox) = mpsc::channel(LAUNCHES);
    let opener = Opener {
        launches,
        places,
        bounds,
    };
    (opener, inbox)
}

impl Opener {
    /// The same, which keeps nothing open.
    #[must_use]
    pub fn downgrade(&self) -> WeakOpener {
        WeakOpener {
            launches: self.launches.downgrade(),
            places: self.places.clone(),
            bounds: self.bounds,
        }
    }

    fn open(&self, notices: Option<Ear>) -> Result<LinkHandle, Unanswered> {
        let place = self.places.take(self.bounds.most);
        let place = place.ok_or(Unanswered::Busy)?;
        let (handle, inbox) = open(self.bounds.queue);
        let inbox = inbox.for_one(notices, self.bounds.idle);
        // One that finds no room gives its place back.
        self.launches
            .try_send(Apart { inbox, place })
            .map_err(|_| Unanswered::Busy)?;
        Ok(handle)
    }
}

/// The links of one connection of a client.
#[derive(Debug, Default)]
pub struct OwnLinks {
    links: RefCell<Vec<Known>>,
    /// Where what servers tell goes.
    notices: RefCell<Option<Ear>>,
    /// Whose events the client hears, where servers of both sides have some for it.
    speaker: Cell<Option<Side>>,
    /// The links, shared with others, whose owners know that, each for as long as it does.
    listens: RefCell<Vec<(Weak<Notify>, Weak<()>)>>,
}

/// One of them.
#[derive(Debug)]
struct Known {
    upstream: String,
    /// Those at its server.
    places: LinkPlaces,
    link: LinkHandle,
}

/// A client that is about to hear what a server tells to all.
pub(super) struct Listens<'a> {
    own: &'a OwnLinks,
    link: Weak<Notify>,
    listener: Listener,
}

impl Listens<'_> {
    pub(super) fn listener(&self) -> Listener {
        self.listener.clone()
    }

    /// The owner of the link is told, and knows unless it has no room.
    pub(super) fn begun(self) {
        let known = (self.link, self.listener.hears());
        self.own.listens.borrow_mut().push(known);
    }
}

impl OwnLinks {
    /// What servers tell goes here: over links that are opened from now on, and, as far as it is for all or for this
    /// client, over links that it shares, once it has asked something there.
    pub fn tell(&self, notices: Ear) {
        // One that was opened before would tell nobody.
        self.links.borrow_mut().clear();
        *self.notices.borrow_mut() = Some(notices);
    }

    /// A server of a side is asked: the first one is heard from then on, so that no event comes twice.
    pub fn asks(&self, side: Side) {
        if self.speaker.get().is_none() {
            self.speaker.set(Some(side));
        }
    }

    /// The servers of a side say no more.
    pub fn falls_silent(&self, side: Side) {
        if self.speaker.get() == Some(side) {
            self.speaker.set(None);
        }
    }

    /// Whether the client hears the servers of a side.
    #[must_use]
    pub fn hears(&self, side: Side) -> bool {
        self.speaker.get().is_none_or(|speaker| speaker == side)
    }

    /// Where what is told to this client goes.
    #[must_use]
    pub fn ear(&self) -> Option<Ear> {
        self.notices.borrow().clone()
    }

    /// Whether there is a client that hears what servers tell for as long as its connection lasts.
    pub(super) fn is_heard(&self) -> bool {
        self.notices.borrow().is_some()
    }

    /// What the owner of a shared link is to know, unless it knows it.
    pub(super) fn listens(&self, link: &LinkHandle) -> Option<Listens<'_>> {
        let listener = self.ear()?;
        let link = link.identity();
        let mut known = self.listens.borrow_mut();
        known.retain(|(link, hears)| link.strong_count() > 0 && hears.strong_count() > 0);
        let is_known = known.iter().any(|(known, _)| known.ptr_eq(&link));
        (!is_known).then_some(Listens {
            own: self,
            link,
            listener: Listener::new(listener),
        })
    }

    /// Whether a client on a socket has lost a link of its own, or is about to: it is let go, and asks nobody till then.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        let notices = self.notices.borrow();
        let is_over = |known: &Known| known.places.are_over() && !known.link.has_ended();
        notices
            .as_ref()
            .is_some_and(|ear| ear.has_lost() || self.links.borrow().iter().any(is_over))
    }

    /// The link that is there for this connection at the server of an opener, or is opened now.
    ///
    /// # Errors
    /// [`Unanswered::Busy`] where as many as allowed are open; [`Unanswered::Unreachable`] where a client on a socket has
    /// one at another server of that name: it is about to hear of the end of that.
    pub(super) fn of(&self, upstream: &str, opener: &Opener) -> Result<LinkHandle, Unanswered> {
        self.asks(Side::Rpc);
        let mut links = self.links.borrow_mut();
        links.retain(|known| !known.link.has_ended());
        let place = links.iter().position(|known| known.upstream == upstream);
        if let Some(place) = place {
            let known = &links[place];
            if known.places.are(&opener.places) {
                return Ok(known.link.clone());
            }
            if self.is_heard() {
                return Err(Unanswered::Unreachable);
            }
            // It ends behind the calls that it has.
            links.swap_remove(place);
        }
        let link = opener.open(self.ear())?;
        links.push(Known {
            upstream: upstream.to_owned(),
            places: opener.places.clone(),
            link: link.clone(),
        });
        Ok(link)
    }
}
