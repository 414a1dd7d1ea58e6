//! The event stream that a client with a session opens by GET (MCP 2025-11-25, "Listening for Messages from the
//! Server").
//!
//! While it is open, the proxy holds one subscription for the session: to changes of lists, and to the resources that
//! the client has subscribed to. When these change, the next subscription begins before the one before it ends. Law: a
//! stream never ends because of the server.
//!
//! Used by `rpc::methods`.

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::ACCEPT;
use http::{HeaderValue, Method, Response, StatusCode, request};
use tokio::time::{sleep_until, timeout};

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::acknowledgement;
use crate::gateway::cancellation::{CancelScope, MCP_SESSION};
use crate::gateway::cors;
use crate::gateway::identity::identify;
use crate::gateway::progress_stream::{ProgressReply, ProgressStream};
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::session_streams::{SessionStream, StreamState, Wanted};
use crate::gateway::stream_headers;
use crate::gateway::worker::Worker;
use crate::telemetry::clock;
use crate::upstream::Upstream;
use crate::upstream::link::{
    LinkReply, LinkUpstream, Notification, NotificationReceiver, NotificationSender, Requester,
    channel,
};
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{ACKNOWLEDGED, RequestId};
use dualgauge_model::mcp::{BridgeAction, ListChanges, LogFilter, ServerEra, listen_request};
use dualgauge_model::pending::{Outbound, RequestError, RetryRule};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::sse;
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

/// Returns the link of the session whose stream a request opens, or that it ends.
pub(super) fn link_of(
    runtime_plan: &RuntimePlan,
    head: &request::Parts,
) -> Option<Rc<LinkUpstream>> {
    let accept = head.headers.get_all(ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    let opens = head.method == Method::GET && accept.any(sse::is_accepted);
    let is_wanted = opens || head.method == Method::DELETE;
    match runtime_plan.upstream(None, Side::Rpc) {
        Some(Upstream::Link(link)) => {
            let is_wanted = is_wanted && head.headers.contains_key(&MCP_SESSION);
            (is_wanted && has_session_streams(link)).then(|| link.clone())
        }
        Some(Upstream::Http(_) | Upstream::Frames(_)) | None => None,
    }
}

/// Returns true if clients of a link have sessions with streams. Over a link of its own, the server's updates reach a
/// client without one.
pub(super) fn has_session_streams(link: &LinkUpstream) -> bool {
    link.is_shared() && link.plan().sends_initialize()
}

/// Serves the stream.
pub(super) fn serve(
    mut record: Box<AccessRecord>,
    head: &request::Parts,
    origin: &RequestOrigin,
    link: Rc<LinkUpstream>,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let mut response = match open(&mut record, head, origin) {
        Err(failure) => response::render_failure(record, failure, None),
        Ok(stream) => {
            let (sender, notifications) = channel();
            let worker = record.context.worker().clone();
            let serving = Box::pin(async move {
                let listener = SessionListener {
                    worker,
                    link,
                    stream,
                    client: Listener::Stream(sender),
                };
                listener.listen().await;
                record.set_response(200);
                ProgressReply::default()
            });
            let progress = ProgressStream::new(notifications, serving);
            let mut response = Response::new(ResponseBody::with_progress(progress));
            *response.headers_mut() = stream_headers::own_events();
            response
        }
    };
    cors::add_headers(&runtime_plan.plan, &head.headers, &mut response);
    response
}

/// Ends a session whose client deletes it (MCP 2025-11-25, "Session Management").
pub(super) fn end(
    mut record: Box<AccessRecord>,
    head: &request::Parts,
    origin: &RequestOrigin,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let worker = record.context.worker().clone();
    let ended = with_session(&mut record, head, origin, |session| {
        worker.session_streams().end(session);
    });
    let mut response = match ended {
        Err(failure) => response::render_failure(record, failure, None),
        Ok(()) => {
            record.set_response(StatusCode::NO_CONTENT.as_u16());
            response::respond(acknowledgement(StatusCode::NO_CONTENT))
        }
    };
    cors::add_headers(&runtime_plan.plan, &head.headers, &mut response);
    response
}

fn open(
    record: &mut AccessRecord,
    head: &request::Parts,
    origin: &RequestOrigin,
) -> Result<SessionStream, Failure> {
    let worker = record.context.worker().clone();
    with_session(record, head, origin, |session| {
        worker.session_streams().open(session)
    })
}

/// Calls `then` with the session that a request names, if its caller may use it.
fn with_session<T>(
    record: &mut AccessRecord,
    head: &request::Parts,
    origin: &RequestOrigin,
    then: impl FnOnce(CancelScope<'_>) -> T,
) -> Result<T, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let identity = identify(&mut record.context, &head.headers, origin);
    let caller = identity.caller(&plan.rollout.clients);
    record.context.admit()?;
    routing::check_origin(plan, RequestHead::new(head), origin.entry())?;
    let name = HeaderValue::from_static("");
    let name = head.headers.get(&MCP_SESSION).unwrap_or(&name);
    Ok(then(CancelScope::session(caller, name)))
}

/// Keeps the resources of a session without a stream subscribed at a server with sessions, until the session opens one.
/// It may do so later on; the server is told if it does not.
pub(super) fn hold(worker: &Rc<Worker>, link: Rc<LinkUpstream>, session: CancelScope<'_>) {
    let Some(stream) = worker.session_streams().hold(session) else {
        return;
    };
    let listener = SessionListener {
        worker: worker.clone(),
        link,
        stream,
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

/// The subscriptions that a session has, one after another.
pub(super) struct SessionListener {
    pub(super) worker: Rc<Worker>,
    pub(super) link: Rc<LinkUpstream>,
    pub(super) stream: SessionStream,
    pub(super) client: Listener,
}

/// One subscription of a session.
struct Listening {
    reply: Pin<Box<dyn Future<Output = Result<LinkReply, RequestError>>>>,
    notifications: NotificationReceiver,
    /// The number of changes of the session that it includes.
    changes: u64,
    lists: ListChanges,
}

impl Listening {
    fn begin(link: &Rc<LinkUpstream>, wanted: &Wanted, lists: ListChanges) -> Option<Listening> {
        let request = listen_request(&wanted.resources, lists);
        let id = RequestId::new(Json::literal("\"session\""))?;
        let (notifier, notifications) = channel();
        let link = link.clone();
        let reply = Box::pin(async move {
            let requester = Requester {
                logs: LogFilter::Nothing,
                notifier: Some(notifier),
                ..Requester::default()
            };
            let limit = link.plan().timeout;
            let outbound = Outbound::Subscription(request, id);
            link.request_for(requester, outbound, RetryRule::Never, limit)
                .await
        });
        Some(Listening {
            reply,
            notifications,
            changes: wanted.changes,
            lists,
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

/// The reason why a subscription is replaced.
enum StreamEvent {
    Resources,
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
        let mut delay = RETRY_DELAY;
        let mut earlier: Option<Listening> = None;
        while let Some(mut current) = self.begin() {
            if is_acknowledged(current.next().await) && current.lists == self.lists() {
                delay = RETRY_DELAY;
                self.stream.include(current.changes);
                if self.link.server_era() == ServerEra::Stateless {
                    let action = BridgeAction::Subscription;
                    self.worker.count(|shard| shard.bridged(action));
                }
                if let Some(earlier) = earlier.take() {
                    self.forward_rest(earlier);
                }
                if let StreamEvent::Resources = self.forward(&mut current).await {
                    earlier = Some(current);
                    continue;
                }
            }
            earlier = None;
            tokio::select! {
                () = self.stream.changed() => {}
                () = sleep_until(clock::now() + delay) => delay = (delay * 2).min(MAX_RETRY_DELAY),
            }
        }
        if self.stream.state() == StreamState::Replaced {
            self.outlive(earlier);
        }
    }

    /// Holds a subscription open for a while, because the server could receive its end and the start of the next one in
    /// any order.
    fn outlive(&self, earlier: Option<Listening>) {
        let mut drain_signal = self.worker.drain_signal();
        self.worker.tasks().start(async move {
            let drained = drain_signal.wait_for(|is_draining| *is_draining);
            let _ = timeout(OVERLAP, drained).await;
            drop(earlier);
        });
    }

    /// Begins the next subscription. Returns `None` if the session needs none.
    fn begin(&self) -> Option<Listening> {
        let StreamState::Current(wanted) = self.stream.state() else {
            return None;
        };
        match self.client {
            Listener::None if wanted.resources.is_empty() => None,
            Listener::None | Listener::Stream(_) | Listener::Socket(_) => {
                Listening::begin(&self.link, &wanted, self.lists())
            }
        }
    }

    fn lists(&self) -> ListChanges {
        let is_told = self.link.server_era() != ServerEra::Stateless;
        match self.client {
            Listener::Stream(_) => ListChanges::All,
            Listener::Socket(_) if !is_told => ListChanges::All,
            Listener::Socket(_) | Listener::None => ListChanges::None,
        }
    }

    async fn forward(&self, current: &mut Listening) -> StreamEvent {
        loop {
            // Both branches are cancel-safe.
            let text = tokio::select! {
                text = current.next() => text,
                () = self.stream.changed() => return StreamEvent::Resources,
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
