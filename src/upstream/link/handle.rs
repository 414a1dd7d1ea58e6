//! Between a worker and the owner of a link.

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

/// How many questions may be on their way to an owner beyond those that may wait there.
const ON_THE_WAY: usize = 64;

/// How much longer than its time a question waits to hear from the owner that its time is over.
const GRACE: Duration = Duration::from_millis(250);

/// One question on its way to the owner.
#[derive(Debug)]
pub struct LinkRequest {
    pub(super) say: Outbound,
    pub(super) start_by: Instant,
    pub(super) deadline: Instant,
    pub(super) repeat: RetryRule,
    pub(super) rank: Priority,
    pub(super) reply: ReplySender,
    /// The ear of the client that waits for the answer.
    pub(super) ear: Option<NotificationSender>,
    /// Who hears from now on what the server tells to all.
    pub(super) listener: Option<Subscriber>,
    /// Who hears how far the server is with this question.
    pub(super) progress: Option<ProgressSink>,
    /// Whether its client has recalled it.
    pub(super) recall: Option<Arc<CancelSignal>>,
    /// It is one of those that its owner has, for as long as this lives.
    pub(super) load: Option<InFlightGuard>,
}

/// Who asks.
#[derive(Debug, Default)]
pub struct Requester<'a> {
    /// The links that the client's connection has for itself.
    pub own: Option<&'a ClientLinks>,
    /// Where the client says that it does not want the answer any more.
    pub recall: Option<Arc<CancelSignal>>,
    /// Where what the server tells of this goes, and what the answer has its place among.
    pub ear: Option<NotificationSender>,
}

/// Where what the server tells of the progress of a question goes.
#[derive(Debug)]
pub(super) struct ProgressSink {
    /// The token that the question has on the link.
    pub(super) token: String,
    /// The token that its caller has given it.
    pub(super) said: Json,
    pub(super) to: NotificationSender,
}

/// What a caller is told.
#[derive(Debug)]
pub enum LinkReply {
    /// The answer, to a request that had this id.
    Answer(u64, Bytes),
    /// What was to be told is told.
    Sent,
    /// A subscription has ended in good order, without a response of its server.
    Ended,
}

/// Where questions to an owner go. When the last one is gone, the owner ends its link.
#[derive(Debug, Clone)]
pub struct LinkHandle {
    asks: mpsc::Sender<LinkRequest>,
    gone: Arc<Notify>,
}

/// The same, which keeps nothing open.
#[derive(Debug)]
pub struct WeakLinkHandle {
    asks: mpsc::WeakSender<LinkRequest>,
    gone: Arc<Notify>,
}

impl WeakLinkHandle {
    /// The handle, while somebody else still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<LinkHandle> {
        Some(LinkHandle {
            asks: self.asks.upgrade()?,
            gone: self.gone.clone(),
        })
    }
}

impl LinkHandle {
    /// Whether its owner has ended, and answers nobody any more.
    pub(super) fn has_ended(&self) -> bool {
        self.asks.is_closed()
    }

    /// Gives a question to the owner, whom somebody else has asked.
    pub(super) async fn hand_on(&self, asked: LinkRequest) -> Result<(), RequestError> {
        let sent = self.asks.send(asked).await;
        sent.map_err(|_| RequestError::Unreachable)
    }

    /// A caller has gone away.
    pub(super) fn is_closed(&self) {
        self.gone.notify_one();
    }

    /// What tells it from others for as long as it is there.
    pub(super) fn identity(&self) -> Weak<Notify> {
        Arc::downgrade(&self.gone)
    }

    /// The same, which keeps nothing open.
    #[must_use]
    pub fn downgrade(&self) -> WeakLinkHandle {
        WeakLinkHandle {
            asks: self.asks.downgrade(),
            gone: self.gone.clone(),
        }
    }
}

/// Where an owner's questions come from.
#[derive(Debug)]
pub struct RequestReceiver {
    pub(super) asks: mpsc::Receiver<LinkRequest>,
    /// Rung when a caller goes away.
    pub(super) gone: Arc<Notify>,
    /// Where what the server tells goes, if anywhere.
    pub(super) notices: Option<NotificationSender>,
    /// How long the link may be unused.
    pub(super) idle: Option<Duration>,
    /// How old it grows before it takes no more questions.
    pub(super) max_age: Option<Duration>,
    /// Whether its upstream was changed or removed.
    pub(super) over: Option<watch::Receiver<bool>>,
    /// Rung each time that the link is ready.
    pub(super) ready: Option<Arc<Notify>>,
    /// Who hears what the server tells to all.
    pub(super) listeners: SubscriberSet,
}

impl RequestReceiver {
    /// The same for a link that one client has for itself.
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

    /// Nothing of what was not taken is written.
    pub(super) fn refuse(&mut self) {
        self.asks.close();
        while let Ok(LinkRequest { reply, ear, .. }) = self.asks.try_recv() {
            notifications::answer(reply, ear.as_ref(), Err(RequestError::Unreachable));
        }
    }

    /// The same for a link that ends when its upstream is changed or removed.
    #[must_use]
    pub fn until(self, over: watch::Receiver<bool>) -> RequestReceiver {
        let over = Some(over);
        RequestReceiver { over, ..self }
    }

    /// The same for a link that ends at an age; the next question opens another.
    #[must_use]
    pub fn aging(self, max_age: Option<Duration>) -> RequestReceiver {
        RequestReceiver { max_age, ..self }
    }
}

/// Both ends of the way to an owner where so many questions may wait.
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

/// What workers are told of an upstream that is not their own alone.
#[derive(Debug, Clone)]
pub enum LinkRoute {
    /// It is spoken to over links of the process.
    Link(LinkSharing),
    /// It is spoken to in frames, over sockets that workers own and that are counted here.
    Frames(Arc<LinkStats>),
    /// All of it is each worker's own.
    Other,
}

/// The links of a plan, by the places of their upstreams.
#[derive(Debug, Clone, Default)]
pub struct Links(Arc<[LinkRoute]>);

impl Links {
    /// The links of upstreams in the order of the plan.
    #[must_use]
    pub fn new(all: Vec<LinkRoute>) -> Links {
        Links(all.into())
    }

    /// How the upstream at a place is reached.
    #[must_use]
    pub fn of(&self, place: usize) -> Option<&LinkSharing> {
        match self.0.get(place)? {
            LinkRoute::Link(reach) => Some(reach),
            LinkRoute::Frames(_) | LinkRoute::Other => None,
        }
    }

    /// Where the sockets of frames at a place are counted, if there are some.
    #[must_use]
    pub fn stats(&self, place: usize) -> Option<Arc<LinkStats>> {
        match self.0.get(place) {
            Some(LinkRoute::Frames(standing)) => Some(standing.clone()),
            Some(LinkRoute::Link(_) | LinkRoute::Other) | None => None,
        }
    }
}

/// A server that is spoken to over a link, as one worker sees it.
#[derive(Debug)]
pub struct LinkUpstream {
    plan: UpstreamPlan,
    reach: LinkSharing,
    rank: Priority,
}

impl LinkUpstream {
    /// The server of a plan, whose calls have a rank.
    #[must_use]
    pub fn new(
        plan: UpstreamPlan,
        reach: impl Into<LinkSharing>,
        rank: Priority,
    ) -> Rc<LinkUpstream> {
        let reach = reach.into();
        Rc::new(LinkUpstream { plan, reach, rank })
    }

    /// What the plan says of it.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    /// Opens the link of a client that only listens, where each connection has one for itself.
    pub fn listen(&self, own: &ClientLinks) {
        if matches!(self.reach, LinkSharing::PerClient(_)) {
            // One that cannot be opened is opened by the first call that needs it, which is told why not.
            let _ = self.way(Some(own));
        }
    }

    /// Asks over the link that all share, and waits for the answer. Dropped, it takes the question back, or has the
    /// server told that nobody waits.
    ///
    /// # Errors
    /// [`RequestError`] within `limit`.
    pub async fn request(
        &self,
        say: Outbound,
        limit: Duration,
        repeat: RetryRule,
    ) -> Result<LinkReply, RequestError> {
        let nobody = Requester::default();
        self.request_for(nobody, (say, repeat), limit).await
    }

    /// The same for a client whose connection may have a link for itself.
    ///
    /// # Errors
    /// [`RequestError`] within `limit`.
    pub async fn request_for(
        &self,
        asker: Requester<'_>,
        (say, repeat): (Outbound, RetryRule),
        limit: Duration,
    ) -> Result<LinkReply, RequestError> {
        let Requester { own, recall, ear } = asker;
        let (handle, shared) = self.way(own)?;
        let listens = shared.and_then(|own| own.pending_subscription(&handle));
        // A client on a socket listens for as long as it is there, and hears all that a link of its own tells.
        let on_socket = own.is_some_and(ClientLinks::has_subscriber);
        let told = ear.clone().filter(|_| !on_socket || shared.is_some());
        let (say, progress) = self.in_progress(say, told);
        // One who posts listens while a call with a token is open.
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
            // Its server has until then to acknowledge it, and no more is waited for.
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
    /// Where a question goes, and the links of its client if that shares this one.
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

    /// Gives a question to its owner, or to the next one where that has just begun to end.
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

    /// A call of a client who hears of its progress, with a token that no other call has.
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

/// A token that nobody can guess, and that comes once.
fn token() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let guess = RandomState::new().build_hasher().finish();
    format!("dualgauge-{number}-{guess:016x}")
}

/// Where an answer comes in. Closed, it tells the owner.
struct ReplySlot<'a> {
    answer: oneshot::Receiver<SequencedReply>,
    /// The answer, while others that went before it are not taken.
    held: Option<SequencedReply>,
    gone: &'a Notify,
    ear: Option<NotificationSender>,
}

impl ReplySlot<'_> {
    /// The answer within its time, if that is limited, in its turn among those that its client gets.
    async fn answer(mut self, until: Option<Instant>) -> Result<LinkReply, RequestError> {
        let answer = &mut self.answer;
        let answered = match until {
            Some(until) => timeout_at(until, answer).await,
            None => Ok(answer.await),
        };
        match answered {
            Ok(Ok(answered)) => self.held = Some(answered),
            // The owner has ended, or has no time.
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
        // What comes behind an answer that nobody wants does not wait for it.
        drop(self.take());
    }
}
