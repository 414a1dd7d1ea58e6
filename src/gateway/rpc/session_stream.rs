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
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, request};
use tokio::time::sleep_until;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::cancellation::{CancelScope, MCP_SESSION};
use crate::gateway::cors;
use crate::gateway::identity::identify;
use crate::gateway::progress_stream::{ProgressReply, ProgressStream};
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::session_streams::SessionStream;
use crate::telemetry::clock;
use crate::upstream::Upstream;
use crate::upstream::link::{
    LinkReply, LinkUpstream, Notification, NotificationReceiver, NotificationSender, Requester,
    channel,
};
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{ACKNOWLEDGED, RequestId};
use dualgauge_model::mcp::{BridgeAction, LogFilter, ServerEra, listen_request};
use dualgauge_model::pending::{Outbound, RequestError, RetryRule};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::sse;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// The first wait after a subscription that ended; it doubles.
const REST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Returns the link whose notifications a request asks for, if it opens the stream of a session.
pub(super) fn link_of(
    runtime_plan: &RuntimePlan,
    head: &request::Parts,
) -> Option<Rc<LinkUpstream>> {
    let accept = head.headers.get_all(ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    let is_wanted = head.method == Method::GET
        && head.headers.contains_key(&MCP_SESSION)
        && accept.any(sse::is_accepted);
    match runtime_plan.upstream(None, Side::Rpc) {
        Some(Upstream::Link(link)) => {
            let has_sessions = link.is_shared() && link.plan().sends_initialize();
            (is_wanted && has_sessions).then(|| link.clone())
        }
        Some(Upstream::Http(_) | Upstream::Frames(_)) | None => None,
    }
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
            let serving = Box::pin(async move {
                listen(&record, &link, &stream, &sender).await;
                record.set_response(200);
                ProgressReply::default()
            });
            let progress = ProgressStream::new(notifications, serving);
            let mut response = Response::new(ResponseBody::with_progress(progress));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(sse::EVENT_STREAM));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            response
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
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let identity = identify(&mut record.context, &head.headers, origin);
    let caller = identity.caller(&plan.rollout.clients);
    record.context.admit()?;
    routing::check_origin(plan, RequestHead::new(head), origin.entry())?;
    let name = HeaderValue::from_static("");
    let name = head.headers.get(&MCP_SESSION).unwrap_or(&name);
    let session = CancelScope::session(caller, name);
    Ok(record.context.worker().session_streams().open(session))
}

/// One subscription of a session.
struct Listening {
    reply: Pin<Box<dyn Future<Output = Result<LinkReply, RequestError>>>>,
    notifications: NotificationReceiver,
}

impl Listening {
    fn begin(link: &Rc<LinkUpstream>, stream: &SessionStream) -> Option<Listening> {
        let request = listen_request(&stream.resources()?);
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

/// Keeps a subscription for the session until it opens another stream, or the process shuts down.
async fn listen(
    record: &AccessRecord,
    link: &Rc<LinkUpstream>,
    stream: &SessionStream,
    client: &NotificationSender,
) {
    let mut drain_signal = record.context.worker().drain_signal();
    let serving = async {
        let mut rest = REST;
        let mut earlier: Option<Listening> = None;
        while let Some(mut current) = Listening::begin(link, stream) {
            if is_acknowledged(current.next().await) {
                rest = REST;
                if link.server_era() == ServerEra::Stateless {
                    let action = BridgeAction::Subscription;
                    record.context.worker().count(|shard| shard.bridged(action));
                }
                if let Some(earlier) = earlier.take() {
                    forward_rest(earlier, client);
                }
                if let StreamEvent::Resources = forward(&mut current, stream, client).await {
                    earlier = Some(current);
                    continue;
                }
            }
            earlier = None;
            tokio::select! {
                () = stream.changed() => {}
                () = sleep_until(clock::now() + rest) => rest = (rest * 2).min(LONGEST_REST),
            }
        }
    };
    // An error means that the worker is gone, but a worker outlives its calls.
    tokio::select! {
        () = serving => {}
        _ = drain_signal.wait_for(|is_draining| *is_draining) => {}
    }
}

/// The reason why a subscription is replaced.
enum StreamEvent {
    Resources,
    Ended,
}

async fn forward(
    current: &mut Listening,
    stream: &SessionStream,
    client: &NotificationSender,
) -> StreamEvent {
    loop {
        // Both branches are cancel-safe.
        let text = tokio::select! {
            text = current.next() => text,
            () = stream.changed() => return StreamEvent::Resources,
        };
        match text {
            // A client that is too slow misses notifications.
            Some(text) => {
                let _ = client.ask(text);
            }
            None => return StreamEvent::Ended,
        }
    }
}

/// Forwards what the earlier subscription still has.
fn forward_rest(mut earlier: Listening, client: &NotificationSender) {
    while let Some(Some(text)) = earlier.next().now_or_never() {
        let _ = client.ask(text);
    }
}

fn is_acknowledged(first: Option<Bytes>) -> bool {
    first.is_some_and(|text| memchr::memmem::find(&text, ACKNOWLEDGED.as_bytes()).is_some())
}
