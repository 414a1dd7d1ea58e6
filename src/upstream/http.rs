//! An HTTP upstream: a pool of keep-alive connections of one worker.
//!
//! The pool is a stack, so that few connections stay warm and the others age out. One permit stands for
//! one call, and a call takes an idle connection before it opens another, so that open connections never
//! exceed the permits. Where HTTP/2 is spoken, calls share connections; upgrades never do.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response, Version};
use tokio::time::{Instant, interval, timeout};

use super::again::{Again, Heads, Manner, Spare, Wants};
use super::connection::{Connection, Idle, Open};
use super::error::{UpstreamError, classify, is_malformed, is_reset};
use super::line::{Left, Line, Unanswered};
use super::permits::{Permit, Permits};
use super::places::{Attempt, InUse, Places};
use super::trunks::Trunks;
use super::uploads::{LOOK, Uploads};
use super::{Body, Inflow, Outgoing, Tasks, pinned};
use crate::domain::addresses::Sign;
use crate::domain::plan::UpstreamPlan;
use crate::domain::wire::{Ending, Spelling, has_padded_value, settle_response};
use crate::telemetry::clock;
use crate::telemetry::metrics::{AddressCounts, UpstreamCalls};

/// An answer's head, and the connection that its body comes from.
#[derive(Debug)]
pub struct Exchange {
    /// The answer.
    pub response: Box<Response<Inflow>>,
    /// The connection.
    pub lease: Lease,
}

impl Exchange {
    /// The same with at most one length, and none beside a transfer coding: then the connection serves no other call.
    fn settled(mut self) -> Result<Exchange, UpstreamError> {
        let is_http2 = self.response.version() == Version::HTTP_2;
        if is_http2 && has_padded_value(self.response.headers()) {
            return Err(UpstreamError::Padded);
        }
        if !self.response.body().came_whole() {
            let ending = settle_response(self.response.headers_mut());
            if ending.map_err(UpstreamError::Unframed)? == Ending::Conflicting {
                self.lease.spoil();
            }
        }
        Ok(self)
    }
}

/// A server behind the proxy, as one worker sees it.
#[derive(Debug)]
pub struct HttpUpstream {
    plan: UpstreamPlan,
    places: Places,
    tasks: Tasks,
    permits: Permits,
    uploads: Uploads,
    open: Rc<Cell<usize>>,
    pooling: Cell<Pooling>,
}

/// Whether connections are kept for other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pooling {
    On,
    /// The worker drains, or the plan has another upstream now.
    Off,
}

/// A connection in use, or a part of one. Dropped, it is closed; released, it goes back to the pool.
#[derive(Debug)]
pub struct Lease {
    upstream: Rc<HttpUpstream>,
    place: usize,
    line: Line,
    reused: Reused,
    prospect: Prospect,
    permit: Permit,
    _in_use: Option<InUse>,
}

/// Whether a connection may serve again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prospect {
    Open,
    Closed,
}

/// Whether a connection has served before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reused {
    Yes,
    No,
}

impl Lease {
    fn of(
        (upstream, place): (&Rc<HttpUpstream>, usize),
        (line, reused): (Line, Reused),
        permit: Permit,
    ) -> Lease {
        Lease {
            upstream: upstream.clone(),
            place,
            line,
            reused,
            prospect: Prospect::Open,
            permit,
            _in_use: InUse::count(upstream, place),
        }
    }

    /// Keeps the connection from serving again, because of what is left in it.
    pub fn spoil(&mut self) {
        self.prospect = Prospect::Closed;
    }

    /// How the names of the answer were written that came by it, where that was noted.
    pub fn take_spelling(&mut self) -> Option<Spelling> {
        self.line.take_spelling()
    }

    /// What was to come by it has not come in time: where calls share the connection, it takes no further ones.
    pub fn late(&self) {
        if let Line::Shared(ride) = &self.line {
            ride.trunk().retires();
        }
    }

    /// Gives the connection back, after a whole answer to a whole request.
    pub fn release(self) {
        let wanted = self.prospect == Prospect::Open && self.upstream.pooling.get() == Pooling::On;
        let Line::Own(connection) = self.line else {
            return;
        };
        if wanted
            && !connection.is_closed()
            && !self.upstream.is_aged(&connection)
            && let Some(idle) = self.upstream.places.idle(self.place)
        {
            connection.rests();
            idle.borrow_mut().push(Idle {
                connection,
                since: clock::now(),
            });
        }
    }
}

impl HttpUpstream {
    /// A pool without connections.
    #[must_use]
    pub fn new(plan: UpstreamPlan, tasks: Tasks) -> HttpUpstream {
        HttpUpstream {
            places: Places::of(&plan),
            permits: Permits::new(plan.connections),
            uploads: Uploads::default(),
            plan,
            tasks,
            open: Rc::default(),
            pooling: Cell::new(Pooling::On),
        }
    }

    /// What the plan says of it.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// What has happened with its addresses, and how they stand.
    #[must_use]
    pub fn addresses(&self) -> AddressCounts {
        self.places.counts()
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// How many of them wait for their next call.
    #[must_use]
    pub fn idle(&self) -> usize {
        let own: usize = self.places.all_idle().map(|idle| idle.borrow().len()).sum();
        own + self.places.all_trunks().map(Trunks::idle).sum::<usize>()
    }

    /// The calls that are here, against what may be.
    #[must_use]
    pub fn calls(&self) -> UpstreamCalls {
        let limit = self.plan.connections;
        UpstreamCalls {
            sent: (limit - self.permits.free()) as u64,
            waiting: self.permits.waiting() as u64,
            limit: limit as u64,
        }
    }

    /// Closes connections that have been idle for too long.
    pub fn forget_idle(&self) {
        let now = clock::now();
        for idle in self.places.all_idle() {
            idle.borrow_mut().retain(|idle| {
                !idle.connection.is_closed() && now - idle.since < self.plan.keep_alive
            });
        }
        for trunks in self.places.all_trunks() {
            trunks.forget_idle(&self.plan);
        }
    }

    /// Whether a connection is too old for another call.
    fn is_aged(&self, connection: &Connection) -> bool {
        let max_age = self.plan.max_age;
        max_age.is_some_and(|age| clock::now() - connection.opened() >= age)
    }

    /// Closes all connections that are not in use, and each other one when its call is over.
    pub fn stop_pooling(&self) {
        self.pooling.set(Pooling::Off);
        for idle in self.places.all_idle() {
            idle.borrow_mut().clear();
        }
        for trunks in self.places.all_trunks() {
            trunks.clear();
        }
    }

    /// Whether connections are kept for other calls.
    pub(super) fn is_pooling(&self) -> bool {
        self.pooling.get() == Pooling::On
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Counts a connection as open.
    pub(super) fn opens(&self) -> Open {
        Open::count(self.open.clone())
    }

    /// Asks the addresses that are due whether they are well.
    pub fn check_health(self: &Rc<Self>) {
        let Some(check) = self.plan.watch.check.clone() else {
            return;
        };
        if self.pooling.get() == Pooling::Off {
            return;
        }
        for place in self.places.due() {
            let (own, check) = (self.clone(), check.clone());
            self.tasks.start(async move {
                let asked = timeout(check.timeout, own.is_well(place, &check.path)).await;
                let sign = match asked {
                    Ok(true) => Sign::Well,
                    Ok(false) | Err(_) => Sign::Ill,
                };
                own.places
                    .checked(&own.plan.name, (place, sign), check.every);
            });
        }
    }

    /// Whether an address answers a check with success.
    async fn is_well(self: &Rc<Self>, place: usize, path: &str) -> bool {
        let mut request = Request::new(Body::empty());
        let (Ok(target), Some(host)) = (path.parse(), self.plan.authority.host()) else {
            return false;
        };
        *request.uri_mut() = target;
        request.headers_mut().insert(HOST, host.clone());
        // A connection of its own: calls never wait for a check, nor a check for calls.
        let Ok(mut line) = self.apart(place).await else {
            return false;
        };
        let answer = line.offer(request.into(), Heads::Made).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Waits for the right to use a connection, in the order of asking.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] where none has come free within `limit`, and where as many wait already as may.
    pub async fn reserve(&self, limit: Duration) -> Result<Permit, UpstreamError> {
        if let Some(permit) = self.permits.take() {
            return Ok(permit);
        }
        let busy = |waiting| UpstreamError::Busy {
            upstream: self.plan.name.clone(),
            connections: self.plan.connections,
            waiting,
        };
        if self.permits.waiting() >= self.plan.queue {
            return Err(busy(self.permits.waiting()));
        }
        // Apart, so that a call that need not wait does not carry the room for it.
        let waited = Box::pin(self.wait(limit)).await;
        // It was among those that wait.
        waited.ok_or_else(|| busy(self.permits.waiting() + 1))
    }

    /// Waits for a permit, and meanwhile gives up uploads that are slow.
    async fn wait(&self, limit: Duration) -> Option<Permit> {
        let mut waits = pin!(self.permits.wait(limit));
        let mut looks = interval(LOOK);
        loop {
            // Both branches are cancel-safe; the first one has its place in the queue from its first poll.
            tokio::select! {
                biased;
                permit = waits.as_mut() => return permit,
                _ = looks.tick() => self.uploads.give_up_slow(self.permits.waiting()),
            }
        }
    }

    /// A call that is to be sent now: its address is told how it ended.
    #[must_use]
    pub fn attempt(&self, now: Instant) -> Attempt<'_> {
        Attempt::new(self, now)
    }

    /// Sends a call and waits for the head of its answer. The caller bounds the time; dropped, the call's
    /// connection is closed.
    ///
    /// # Errors
    /// [`UpstreamError`] after at most two attempts.
    pub async fn send(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (permit, outgoing): (Permit, Outgoing),
        manner: Manner<'_>,
    ) -> Result<Exchange, UpstreamError> {
        self.places.called();
        let progress = outgoing.body.progress();
        let _listed = progress.clone().map(|own| self.uploads.list(own));
        let sent = self.sent(attempt, (permit, outgoing), manner).await;
        let sent = sent.and_then(Exchange::settled);
        match &sent {
            Ok(exchange) => {
                attempt.answered(exchange.response.status());
                if let Some(progress) = progress {
                    progress.answered();
                }
            }
            // The client's doing says nothing of the server.
            Err(_) if progress.is_some_and(|progress| progress.is_broken()) => {}
            Err(_) => attempt.failed(),
        }
        sent
    }

    async fn sent(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (permit, outgoing): (Permit, Outgoing),
        Manner {
            repeat,
            heads,
            wants,
        }: Manner<'_>,
    ) -> Result<Exchange, UpstreamError> {
        let lease = self.lease(attempt, permit, wants).await?;
        let (reused, place) = (lease.reused, lease.place);
        let spare = match lease.reused {
            Reused::Yes => Spare::of(&outgoing, repeat, &lease.line),
            // It was not closed while it waited.
            Reused::No => Spare::Nothing,
        };
        let Failed {
            unanswered: Unanswered { error, left },
            permit,
        } = match offer(attempt, lease, (outgoing, heads)).await {
            Ok(exchange) => return Ok(exchange),
            Err(failed) => *failed,
        };
        let again = match (reused, left) {
            // A kept connection may have been closed by the server at the very moment it was taken.
            (Reused::Yes, Left::Unsent(unsent)) => Some(Again::Outgoing(unsent.into())),
            (_, Left::Refused(refused)) if self.places.may_repeat() => {
                Some(Again::Outgoing(refused.into()))
            }
            (Reused::Yes, Left::Taken(bytes)) if !is_malformed(&error) && !is_reset(&error) => {
                let again = spare.again(bytes);
                again.filter(|_| self.places.may_repeat())
            }
            (Reused::Yes | Reused::No, _) => None,
        };
        let Some(again) = again else {
            return Err(classify(error));
        };
        let lease = pinned(|| self.fresh(attempt, (place, permit), wants)).await?;
        let Some(outgoing) = again.on(&lease.line) else {
            return Err(classify(error));
        };
        offer(attempt, lease, (outgoing, heads))
            .await
            .map_err(|failed| classify(failed.unanswered.error))
    }

    /// A connection to the address that the call goes to.
    async fn lease(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        permit: Permit,
        wants: Wants,
    ) -> Result<Lease, UpstreamError> {
        let choice = self.places.choose(&self.plan, None)?;
        attempt.goes_to(choice);
        let (place, _) = choice;
        while let Some(mut kept) = self.take_idle(place, attempt.began()) {
            if kept.is_ready().await {
                let kept = (Line::Own(kept), Reused::Yes);
                return Ok(Lease::of((self, place), kept, permit));
            }
        }
        // Apart, so that a call on a kept connection does not carry the room for it.
        pinned(|| self.fresh(attempt, (place, permit), wants)).await
    }

    /// A connection that is opened for the call, or shared with others; to another address where this one cannot be
    /// reached, since nothing was sent there.
    async fn fresh(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (place, permit): (usize, Permit),
        wants: Wants,
    ) -> Result<Lease, UpstreamError> {
        let fault = match self.line(place, wants).await {
            Ok(line) => return Ok(Lease::of((self, place), line, permit)),
            Err(fault) => fault,
        };
        if !self.places.has_others() || !self.places.may_repeat() {
            return Err(fault);
        }
        attempt.moves_on();
        let choice = self.places.choose(&self.plan, Some(place))?;
        attempt.goes_to(choice);
        let (other, _) = choice;
        let line = self.line(other, wants).await?;
        Ok(Lease::of((self, other), line, permit))
    }

    fn take_idle(&self, place: usize, now: Instant) -> Option<Box<Connection>> {
        let mut idle = self.places.idle(place)?.borrow_mut();
        while let Some(last) = idle.pop() {
            if now - last.since >= self.plan.keep_alive {
                // The stack is ordered by age: what lies below is older still.
                idle.clear();
                return None;
            }
            if !last.connection.is_closed() && !self.is_aged(&last.connection) {
                return Some(last.connection);
            }
        }
        None
    }
}

/// An attempt without an answer, and the permit that it had.
struct Failed {
    unanswered: Unanswered,
    permit: Permit,
}

async fn offer(
    attempt: &Attempt<'_>,
    mut lease: Lease,
    (outgoing, heads): (Outgoing, Heads<'_>),
) -> Result<Exchange, Box<Failed>> {
    attempt.goes_by(&lease.line);
    match lease.line.offer(outgoing, heads).await {
        Ok(response) => Ok(Exchange { response, lease }),
        Err(unanswered) => Err(Box::new(Failed {
            unanswered: *unanswered,
            permit: lease.permit,
        })),
    }
}
