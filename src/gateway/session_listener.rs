//! The subscriptions of clients with sessions at the servers of links, to changes of lists and of resources.
//!
//! While it is open, the proxy holds one subscription for the session: to changes of lists, and to the resources that
//! the client has subscribed to. When these change, or a reload changes the link, the next subscription begins before the
//! one before it ends. Before a pair of MCP servers, a session has another subscription at the candidate, once it uses
//! that. Laws: a stream never ends because of the server; it ends if the plan has no such link any more.
//!
//! Used by `link_call` and `rpc`.

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};

use super::cancellation::CancelScope;
use super::runtime_plan::RuntimePlan;
use super::session_streams::{ServedSession, SessionStream, StreamState, Wanted};
use super::worker::Worker;
use crate::telemetry::clock;
use crate::upstream::Upstream;
use crate::upstream::link::{
    LinkIdentity, LinkReply, LinkUpstream, Notification, NotificationReceiver, NotificationSender,
    Requester, channel,
};
use dualgauge_model::jsonrpc::{ACKNOWLEDGED, RequestId};
use dualgauge_model::mcp::{BridgeAction, ListChanges, LogFilter, ServerEra, listen_request};
use dualgauge_model::pending::{Outbound, RequestError};
use dualgauge_model::rollout::Way;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// The first wait after a subscription that ended; it doubles.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest wait.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// The time for which a replaced subscription stays open after the next one begins.
const OVERLAP: Duration = Duration::from_secs(5);
/// The time for which the server stays subscribed for a session without a stream.
const STREAMLESS_GRACE: Duration = Duration::from_secs(5 * 60);

/// Returns the link whose clients have sessions with streams: to the RPC server, or to its candidate.
pub(super) fn session_link(runtime_plan: &RuntimePlan, way: Way) -> Option<&Rc<LinkUpstream>> {
    let upstream = match way {
        Way::Old => runtime_plan.upstream(None, Side::Rpc),
        Way::New => {
            let pair = runtime_plan.plan.upstreams.pair;
            pair.and_then(|pair| runtime_plan.upstream_at(pair.candidate))
        }
    };
    match upstream {
        Some(Upstream::Link(link)) if has_session_streams(link) => Some(link),
        Some(Upstream::Link(_) | Upstream::Http(_) | Upstream::Frames(_)) | None => None,
    }
}

/// Returns the way of the calls that go over a link.
pub(super) fn way_of(runtime_plan: &RuntimePlan, link: &Rc<LinkUpstream>) -> Way {
    let candidate = session_link(runtime_plan, Way::New);
    match candidate.is_some_and(|candidate| Rc::ptr_eq(candidate, link)) {
        true => Way::New,
        false => Way::Old,
    }
}

/// Returns true if clients of a link have sessions with streams. Over a link of its own, the server's updates reach a
/// client without one.
pub(super) fn has_session_streams(link: &LinkUpstream) -> bool {
    link.is_shared() && link.plan().sends_initialize()
}

/// Opens the streams of a session at both servers of a pair. Without a pair, the second one waits for one.
pub(super) fn open_streams(worker: &Worker, session: CancelScope<'_>) -> [(Way, SessionStream); 2] {
    [Way::Old, Way::New].map(|way| {
        let stream = worker.session_streams();
        (way, stream.open(ServedSession { session, way }))
    })
}

/// Keeps the resources of a session without a stream subscribed at a server with sessions, until the session opens one.
/// It may do so later on; the server is told if it does not. Where too many sessions wait, the resources are subscribed
/// again once the session opens its stream.
pub(super) fn hold(worker: &Rc<Worker>, session: ServedSession<'_>) {
    let Some(stream) = worker.session_streams().hold(session) else {
        return;
    };
    let listener = SessionListener {
        worker: worker.clone(),
        stream,
        way: session.way,
        client: Listener::None,
    };
    worker.tasks().start(async move {
        // A session that waits longer subscribes again when it opens its stream.
        let _ = timeout(STREAMLESS_GRACE, listener.listen()).await;
    });
}

/// The receiver of the notifications of a session.
pub(super) enum Listener {
    /// A client that reads an event stream.
    Stream(NotificationSender),
    /// A client on a socket. A server with sessions tells it of changes of lists without a subscription.
    Socket(NotificationSender),
    /// No receiver: the notifications are dropped.
    None,
}

/// The subscriptions that a session has at one server, one after another.
pub(super) struct SessionListener {
    pub(super) worker: Rc<Worker>,
    pub(super) stream: SessionStream,
    /// The server of the pair, if there is one.
    pub(super) way: Way,
    pub(super) client: Listener,
}

/// One subscription of a session.
struct Listening {
    reply: Pin<Box<dyn Future<Output = Result<LinkReply, RequestError>>>>,
    notifications: NotificationReceiver,
    /// The number of changes of the session that it includes.
    changes: u64,
    lists: ListChanges,
    link: Option<LinkIdentity>,
}

impl Listening {
    fn begin(link: &LinkUpstream, wanted: &Wanted, lists: ListChanges) -> Option<Listening> {
        let request = listen_request(&wanted.resources, lists);
        let id = RequestId::new(Json::literal("\"session\""))?;
        let (notifier, notifications) = channel();
        let requester = Requester {
            logs: LogFilter::Nothing,
            notifier: Some(notifier),
            ..Requester::default()
        };
        let reply = link.listen_for_changes(requester, Outbound::Subscription(request, id));
        Some(Listening {
            // A subscription that could not be sent ends at once.
            reply: Box::pin(async move { reply?.await }),
            notifications,
            changes: wanted.changes,
            lists,
            link: link.identity(),
        })
    }

    /// Waits for the next notification; `None` once the subscription has ended. Cancel-safe.
    async fn next(&mut self) -> Option<Bytes> {
        let notification = tokio::select! {
            biased;
            notification = self.notifications.next() => notification,
            _ = &mut self.reply => return None,
        };
        match notification {
            Notification::Message(text, _) => Some(text),
            Notification::Lost(_) => None,
        }
    }
}

/// The next step of a session.
enum NextStep {
    /// A subscription begins.
    Listen(Listening),
    /// The session does not use the server, or the plan has no candidate. Both may change.
    Wait,
    /// The session needs no subscription any more, or the plan has no such link.
    End,
}

/// Keeps the subscriptions of a session at both servers until the first of them ends.
pub(super) async fn listen([first, second]: &[SessionListener; 2]) {
    tokio::select! {
        () = first.listen() => {}
        () = second.listen() => {}
    }
}

/// The reason why a subscription is replaced.
enum StreamEvent {
    /// The resources have changed, or the link to the server.
    Changed,
    Ended,
}

impl SessionListener {
    /// Keeps a subscription for the session until the session opens another stream or ends, or the process shuts down.
    pub(super) async fn listen(&self) {
        let mut drain_signal = self.worker.drain_signal();
        // An error means that the worker is gone, but a worker outlives its calls.
        tokio::select! {
            () = self.subscribe() => {}
            _ = drain_signal.wait_for(|is_draining| *is_draining) => {}
        }
    }

    async fn subscribe(&self) {
        let mut plan_changes = self.worker.plan_changes();
        let mut delay = RETRY_DELAY;
        let mut earlier: Option<Listening> = None;
        loop {
            let mut current = match self.begin() {
                NextStep::Listen(listening) => listening,
                NextStep::Wait => {
                    earlier = None;
                    tokio::select! {
                        () = self.stream.changed() => {}
                        // An error means that the worker is gone, but a worker outlives its calls.
                        _ = plan_changes.changed() => {}
                    }
                    continue;
                }
                NextStep::End => break,
            };
            let link = current.link.clone();
            let first = tokio::select! {
                first = current.next() => first,
                // The next subscription is at the new server.
                () = self.link_change(&link, &mut plan_changes) => continue,
            };
            if is_acknowledged(first) && self.is_current(&current) {
                delay = RETRY_DELAY;
                self.on_begun(&current, earlier.take());
                let event = self.forward(&mut current, &mut plan_changes).await;
                if let StreamEvent::Changed = event {
                    earlier = Some(current);
                    continue;
                }
            }
            earlier = None;
            tokio::select! {
                () = self.stream.changed() => {}
                // An error means that the worker is gone, but a worker outlives its calls.
                _ = plan_changes.changed() => {}
                () = sleep_until(clock::now() + delay) => delay = (delay * 2).min(MAX_RETRY_DELAY),
            }
        }
        if self.stream.state() == StreamState::Replaced {
            self.outlive(earlier);
        }
    }

    /// Records that a subscription has begun, and forwards what the one before it still has.
    fn on_begun(&self, current: &Listening, earlier: Option<Listening>) {
        self.stream.include(current.changes);
        let runtime_plan = self.worker.runtime_plan();
        let era = session_link(&runtime_plan, self.way).map(|link| link.server_era());
        if era == Some(ServerEra::Stateless) {
            let action = BridgeAction::Subscription;
            self.worker.count(|shard| shard.bridged(action));
        }
        if let Some(earlier) = earlier {
            self.forward_rest(earlier);
        }
    }

    /// Holds a subscription open for a while, because the server could receive its end and the start of the next one in
    /// any order.
    fn outlive(&self, earlier: Option<Listening>) {
        let Some(earlier) = earlier else { return };
        let Some(permit) = self.stream.permit_to_hold() else {
            return;
        };
        let mut drain_signal = self.worker.drain_signal();
        self.worker.tasks().start(async move {
            let drained = drain_signal.wait_for(|is_draining| *is_draining);
            let _ = timeout(OVERLAP, drained).await;
            drop((earlier, permit));
        });
    }

    /// Begins the next subscription, if the session needs one.
    fn begin(&self) -> NextStep {
        let StreamState::Current(wanted) = self.stream.state() else {
            return NextStep::End;
        };
        let runtime_plan = self.worker.runtime_plan();
        let link = session_link(&runtime_plan, self.way);
        match (self.way, &self.client, link) {
            (_, Listener::None, _) if wanted.resources.is_empty() => NextStep::End,
            (Way::Old, _, None) => NextStep::End,
            (Way::New, _, None) => NextStep::Wait,
            (Way::New, _, Some(_)) if !wanted.is_used => NextStep::Wait,
            (_, _, Some(link)) => {
                let begun = Listening::begin(link, &wanted, self.lists(link));
                begun.map_or(NextStep::End, NextStep::Listen)
            }
        }
    }

    fn lists(&self, link: &LinkUpstream) -> ListChanges {
        let is_told = link.server_era() != ServerEra::Stateless;
        match self.client {
            Listener::Stream(_) => ListChanges::All,
            Listener::Socket(_) if !is_told => ListChanges::All,
            Listener::Socket(_) | Listener::None => ListChanges::None,
        }
    }

    /// Returns true if a subscription has the lists that it needs at the server.
    fn is_current(&self, listening: &Listening) -> bool {
        let runtime_plan = self.worker.runtime_plan();
        session_link(&runtime_plan, self.way)
            .is_some_and(|link| listening.lists == self.lists(link))
    }

    /// Waits until a plan has another link; cancel-safe.
    async fn link_change(
        &self,
        link: &Option<LinkIdentity>,
        plan_changes: &mut watch::Receiver<()>,
    ) {
        loop {
            let runtime_plan = self.worker.runtime_plan();
            let current = session_link(&runtime_plan, self.way).and_then(|link| link.identity());
            if current != *link {
                return;
            }
            drop(runtime_plan);
            // An error means that the worker is gone, but a worker outlives its calls.
            let _ = plan_changes.changed().await;
        }
    }

    async fn forward(
        &self,
        current: &mut Listening,
        plan_changes: &mut watch::Receiver<()>,
    ) -> StreamEvent {
        let link = current.link.clone();
        loop {
            // All branches are cancel-safe.
            let text = tokio::select! {
                text = current.next() => text,
                () = self.stream.changed() => return StreamEvent::Changed,
                () = self.link_change(&link, plan_changes) => return StreamEvent::Changed,
            };
            match text {
                Some(text) => self.tell(text),
                None => return StreamEvent::Ended,
            }
        }
    }

    /// Forwards what the earlier subscription still has.
    fn forward_rest(&self, mut earlier: Listening) {
        while let Some(Some(text)) = earlier.next().now_or_never() {
            self.tell(text);
        }
    }

    fn tell(&self, text: Bytes) {
        match &self.client {
            // A client that is too slow misses notifications.
            Listener::Stream(client) | Listener::Socket(client) => {
                let _ = client.ask(text);
            }
            Listener::None => {}
        }
    }
}

fn is_acknowledged(first: Option<Bytes>) -> bool {
    first.is_some_and(|text| memchr::memmem::find(&text, ACKNOWLEDGED.as_bytes()).is_some())
}
