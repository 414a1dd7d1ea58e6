//! The addresses of an upstream as one worker sees them: the connections that wait at each, and how each has done.
//!
//! What is decided of them is decided by the core ([`crate::domain::addresses`]); here it is told what happens. An upstream
//! with one address, no breaker and no health check has nothing to decide, and its calls are not looked at.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::connect::Connector;
use super::connection::Idle;
use super::error::UpstreamError;
use super::heard::Cuts;
use super::http::HttpUpstream;
use super::line::Line;
use super::trunk::Trunk;
use super::trunks::Trunks;
use crate::config::compile::tls::Spoken;
use crate::domain::addresses::{Addresses, Choice, End, News, Part, Repeats, Sign};
use crate::domain::plan::{Multiplexing, UpstreamPlan};
use crate::telemetry::clock;
use crate::telemetry::metrics::AddressCounts;

/// The addresses of an upstream.
#[derive(Debug)]
pub(super) struct Places {
    all: Vec<Place>,
    core: RefCell<Addresses>,
    /// Where its time begins.
    began: Instant,
    watched: Watched,
    counts: Cell<AddressCounts>,
    cuts: Cuts,
}

/// Whether there is anything to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    Yes,
    No,
}

/// One of them.
#[derive(Debug)]
struct Place {
    /// Offers HTTP/1.1 alone.
    connector: Connector,
    /// Where HTTP/2 may be spoken.
    trunks: Option<Box<Trunks>>,
    address: String,
    /// Ordered by age, the youngest last.
    idle: RefCell<Vec<Idle>>,
    check: Cell<Check>,
}

/// When an address is asked whether it is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Due(Instant),
    Running,
}

impl Places {
    pub(super) fn of(plan: &UpstreamPlan) -> Places {
        let now = clock::now();
        let addresses = std::iter::once(plan.address()).chain(plan.more.iter().cloned());
        let all = addresses.map(|address| Place {
            connector: Connector::new(&address, plan.tls.as_deref(), Spoken::Http),
            trunks: trunks(plan, &address),
            address,
            idle: RefCell::default(),
            check: Cell::new(Check::Due(now)),
        });
        let all: Vec<Place> = all.collect();
        let watch = &plan.watch;
        let is_plain = all.len() == 1 && watch.breaker.is_none() && watch.check.is_none();
        Places {
            core: RefCell::new(Addresses::new(watch.clone(), all.len())),
            all,
            began: now,
            watched: if is_plain { Watched::No } else { Watched::Yes },
            counts: Cell::default(),
            cuts: Cuts::of(&plan.name),
        }
    }

    /// A call comes.
    pub(super) fn called(&self) {
        self.core.borrow_mut().called();
    }

    /// Where a call goes; not to the address that it was sent to before, if there is another one.
    pub(super) fn choose(
        &self,
        plan: &UpstreamPlan,
        tried: Option<usize>,
    ) -> Result<(usize, Part), UpstreamError> {
        if self.watched == Watched::No {
            return Ok((0, Part::Usual));
        }
        match self.core.borrow_mut().choose(self.now(), tried) {
            Choice::Address(place, part) => Ok((place, part)),
            Choice::Nowhere { again_in } => Err(UpstreamError::Resting {
                upstream: plan.name.clone(),
                again_in,
            }),
        }
    }

    /// Whether there is another address than the one that a call was sent to.
    pub(super) fn has_others(&self) -> bool {
        self.all.len() > 1
    }

    /// Whether a call may be tried again; counted either way.
    pub(super) fn may_repeat(&self) -> bool {
        let repeats = self.core.borrow_mut().repeats(self.now());
        self.count(|counts| match repeats {
            Repeats::Allowed => counts.repeats += 1,
            Repeats::Exhausted => counts.exhausted += 1,
        });
        repeats == Repeats::Allowed
    }

    fn now(&self) -> Duration {
        clock::now() - self.began
    }

    fn count(&self, change: impl FnOnce(&mut AddressCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// What has happened, and how the addresses stand.
    pub(super) fn counts(&self) -> AddressCounts {
        AddressCounts {
            left_out: self.core.borrow().left_out(self.now()) as u64,
            well: self.core.borrow().well() as u64,
            cut: self.cuts.count(),
            ..self.counts.get()
        }
    }

    /// Counts connections of HTTP/2 that are cut.
    pub(super) fn cuts(&self) -> Cuts {
        self.cuts.clone()
    }

    /// The way to an address.
    pub(super) fn connector(&self, place: usize) -> Option<&Connector> {
        self.all.get(place).map(|own| &own.connector)
    }

    /// The connections of HTTP/2 to an address, where there may be some.
    pub(super) fn trunks(&self, place: usize) -> Option<&Trunks> {
        self.all.get(place)?.trunks.as_deref()
    }

    /// Those to all of them.
    pub(super) fn all_trunks(&self) -> impl Iterator<Item = &Trunks> {
        self.all.iter().filter_map(|own| own.trunks.as_deref())
    }

    /// The connections that wait at an address.
    pub(super) fn idle(&self, place: usize) -> Option<&RefCell<Vec<Idle>>> {
        self.all.get(place).map(|own| &own.idle)
    }

    /// Those that wait at all of them.
    pub(super) fn all_idle(&self) -> impl Iterator<Item = &RefCell<Vec<Idle>>> {
        self.all.iter().map(|own| &own.idle)
    }

    fn ended(&self, upstream: &str, place: (usize, Part), end: End) {
        let news = self.core.borrow_mut().ended(place, end, self.now());
        for news in news {
            self.tell(upstream, news);
        }
    }

    fn tell(&self, upstream: &str, news: News) {
        let address = |place: usize| self.all.get(place).map_or("", |own| own.address.as_str());
        match news {
            News::Ejected(place, pause) => {
                self.count(|counts| counts.ejections += 1);
                tracing::warn!(
                    upstream,
                    address = address(place),
                    ?pause,
                    "an address has failed too often and is left out"
                );
            }
            News::Ill(place) => {
                tracing::warn!(
                    upstream,
                    address = address(place),
                    "an address does not pass its health checks"
                );
            }
            News::Well(place) => {
                tracing::info!(
                    upstream,
                    address = address(place),
                    "an address passes its health checks again"
                );
            }
            News::Opened(pause) => {
                self.count(|counts| (counts.openings, counts.open) = (counts.openings + 1, 1));
                tracing::warn!(
                    upstream,
                    ?pause,
                    "the upstream has failed too often and is left alone; calls are refused"
                );
            }
            News::Closed => {
                self.count(|counts| counts.open = 0);
                tracing::info!(upstream, "the upstream answers again");
            }
        }
    }

    /// The addresses whose check is due; each is checked until [`Places::checked`] says what was found.
    pub(super) fn due(&self) -> Vec<usize> {
        let now = clock::now();
        let all = self.all.iter().enumerate();
        let due = all.filter(|(_, own)| matches!(own.check.get(), Check::Due(at) if at <= now));
        let due = due.map(|(place, own)| {
            own.check.set(Check::Running);
            place
        });
        due.collect()
    }

    /// A check of an address has ended; the next one is due after a while.
    pub(super) fn checked(&self, upstream: &str, (place, sign): (usize, Sign), every: Duration) {
        if let Some(own) = self.all.get(place) {
            own.check.set(Check::Due(clock::now() + every));
        }
        let news = self.core.borrow_mut().checked(place, sign);
        if let Some(news) = news {
            self.tell(upstream, news);
        }
    }
}

fn trunks(plan: &UpstreamPlan, address: &str) -> Option<Box<Trunks>> {
    let spoken = match plan.http2 {
        Multiplexing::Off => return None,
        Multiplexing::Offered => Spoken::Http2First,
        Multiplexing::Required => Spoken::Http2,
    };
    let connector = Connector::new(address, plan.tls.as_deref(), spoken);
    Some(Box::new(Trunks::new(connector)))
}

/// One call on its way, so that its address is told how it ended. Dropped, nobody waited for it.
#[derive(Debug)]
pub struct Attempt<'a> {
    upstream: &'a HttpUpstream,
    place: Cell<Option<(usize, Part)>>,
    end: Cell<End>,
    began: Instant,
    /// What it shares with other calls.
    trunk: RefCell<Weak<Trunk>>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(upstream: &'a HttpUpstream, now: Instant) -> Attempt<'a> {
        Attempt {
            upstream,
            place: Cell::new(None),
            end: Cell::new(End::Abandoned),
            began: now,
            trunk: RefCell::default(),
        }
    }

    /// When it began.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// It goes to an address.
    pub(super) fn goes_to(&self, place: (usize, Part)) {
        if self.upstream.places().watched == Watched::Yes {
            self.place.set(Some(place));
        }
    }

    /// It goes by a connection.
    pub(super) fn goes_by(&self, line: &Line) {
        if let Line::Shared(ride) = line {
            self.trunk.replace(Rc::downgrade(ride.trunk()));
        }
    }

    /// There is the head of an answer. One that says that nobody is there is none (RFC 9110 §15.6.3 to 15.6.5).
    pub(super) fn answered(&self, status: StatusCode) {
        let is_gone = matches!(
            status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        );
        self.end
            .set(if is_gone { End::Failed } else { End::Answered });
    }

    /// No answer came.
    pub(super) fn failed(&self) {
        self.end.set(End::Failed);
    }

    /// No answer came in time. A connection that it shares takes no further calls: nothing may come by it to anybody.
    pub fn late(&self) {
        self.failed();
        self.retires();
    }

    fn retires(&self) {
        if let Some(trunk) = self.trunk.borrow().upgrade() {
            trunk.retires();
        }
    }

    /// It has failed at its address, and goes on elsewhere.
    pub(super) fn moves_on(&self) {
        self.failed();
        self.tell();
        self.end.set(End::Abandoned);
    }

    fn tell(&self) {
        if let Some(place) = self.place.take() {
            let upstream = &self.upstream.plan().name;
            self.upstream
                .places()
                .ended(upstream, place, self.end.get());
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        // Of a link, its owner measures the time.
        let limit = self.upstream.plan().timeout;
        if self.end.get() == End::Abandoned && clock::now() - self.began >= limit {
            self.retires();
        }
        self.tell();
    }
}

/// A connection in use, counted for its address.
#[derive(Debug)]
pub(super) struct InUse {
    upstream: Rc<HttpUpstream>,
    place: usize,
}

impl InUse {
    /// Counts a connection where the choice depends on it.
    pub(super) fn count(upstream: &Rc<HttpUpstream>, place: usize) -> Option<InUse> {
        let places = upstream.places();
        if places.watched == Watched::No {
            return None;
        }
        places.core.borrow_mut().begun(place);
        Some(InUse {
            upstream: upstream.clone(),
            place,
        })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.upstream.places().core.borrow_mut().over(self.place);
    }
}
