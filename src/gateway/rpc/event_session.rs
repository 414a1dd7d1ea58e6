//! Clients over HTTP with SSE (MCP 2024-11-05, "Transports"): a GET opens an event stream, whose first event names the
//! target of POSTs. Each message that is posted there is served like one on a WebSocket; responses come on the stream.
//!
//! Used by `rpc`.

use bytes::Bytes;
use http::{Method, Response, StatusCode, request};
use tokio::sync::mpsc;

use super::client_channel::EventChannel;
use super::websocket_session::WebSocketSession;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::acknowledgement;
use crate::gateway::event_sessions::{EventSession, Undeliverable};
use crate::gateway::exchange::with_total_timeout;
use crate::gateway::identity::identify;
use crate::gateway::request_body::read_raw;
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::serve::IncomingRequest;
use crate::gateway::stream_headers;
use dualgauge_model::failure::{Advice, Failure, Reason};
use dualgauge_model::mcp::{SessionEvent, endpoint_event};
use dualgauge_model::rejections;
use dualgauge_model::rollout::Caller;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_net::IncomingBody;

/// The query parameter with the id of a session.
const SESSION: &str = "session_id";

/// Serves a request to the path of event streams.
pub(super) async fn serve(request: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        mut record,
        head,
        body,
        origin,
    } = request;
    // What fails here is no answer to a message.
    record.context.set_side_to_rest();
    let identity = identify(&mut record, &head.headers, &origin);
    let runtime_plan = record.context.runtime_plan().clone();
    let caller = identity.caller(&runtime_plan.plan.rollout.clients);
    let cors_origin = response::cors_origin(&runtime_plan.plan, &head.headers);
    let answered = match head.method {
        Method::POST => {
            let message = read(&record.context, &head, body, &origin).await;
            message.and_then(|message| deliver(&record.context, caller, &head, message))
        }
        _ => open(&record.context, caller, &head, &origin),
    };
    let mut response = match answered {
        Ok(Answer::Delivered) => {
            // The session logs and counts the message.
            record.discard();
            response::respond(acknowledgement(StatusCode::ACCEPTED))
        }
        Ok(Answer::Opened(session)) => start(record, head, &origin, session),
        Err(failure) => response::render_failure(record, failure, None),
    };
    if let Some(cors) = &runtime_plan.plan.cors {
        cors.mark(cors_origin.as_ref(), response.headers_mut());
    }
    response
}

/// The result of a request.
enum Answer {
    /// The session has the message.
    Delivered,
    /// A session for the client.
    Opened(EventSession),
}

fn open(
    context: &CallContext,
    caller: Caller<'_>,
    head: &request::Parts,
    origin: &RequestOrigin,
) -> Result<Answer, Failure> {
    context.admit()?;
    let plan = &context.runtime_plan().plan;
    routing::check_origin(plan, RequestHead::new(head), origin.entry())?;
    let worker = context.worker();
    let has_capacity = worker.has_capacity(origin.peer_in_limits().map(|peer| &**peer));
    let session = has_capacity.then(|| worker.event_sessions().open(caller));
    let Some(session) = session.flatten() else {
        worker.count(|shard| shard.event_session(SessionEvent::Refused));
        let message = "too many clients have an event stream; retry later";
        return Err(Failure::new(Reason::Overloaded, message).advise(Advice::RetryAfter(1)));
    };
    Ok(Answer::Opened(session))
}

/// Starts the event stream of a session.
fn start(
    record: Box<AccessRecord>,
    head: Box<request::Parts>,
    origin: &RequestOrigin,
    session: EventSession,
) -> Response<ResponseBody> {
    let worker = record.context.worker().clone();
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let Some(streams) = plan.face.event_streams_at(head.uri.path()) else {
        let failure = rejections::no_route(&head.method, head.uri.path());
        return response::render_failure(record, failure, None);
    };
    let public = plan.public_url.as_ref();
    let path = public.map_or_else(
        || head.uri.path().to_owned(),
        |public| public.path(head.uri.path()),
    );
    let endpoint = endpoint_event(&format!("{path}?{SESSION}={}", session.id));
    // The event has room: the channel is new.
    let (sender, chunks) = mpsc::channel(1);
    let _ = sender.try_send(endpoint);
    let served = WebSocketSession::over_events(&worker, head, origin, streams.session);
    // Each message has its own record from here on.
    record.discard();
    let channel = EventChannel::new(session, sender);
    // The stream counts like a connection of its own: HTTP/2 has many on one.
    let connection_guard = worker.count_connection(origin.peer_in_limits().cloned());
    worker.count(|shard| shard.event_session(SessionEvent::Opened));
    worker.tasks().start({
        let worker = worker.clone();
        async move {
            served.serve(channel).await;
            worker.count(|shard| shard.event_session(SessionEvent::Ended));
            drop(connection_guard);
        }
    });
    let mut response = Response::new(ResponseBody::with_events(chunks));
    *response.headers_mut() = stream_headers::own_events();
    response
}

/// Reads a posted message.
async fn read(
    context: &CallContext,
    head: &request::Parts,
    body: IncomingBody,
    origin: &RequestOrigin,
) -> Result<Bytes, Failure> {
    context.admit()?;
    let runtime_plan = context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    routing::check_origin(plan, RequestHead::new(head), origin.entry())?;
    let worker = context.worker().clone();
    with_total_timeout(context.deadline(), async || {
        read_raw(body, &plan.limits, &worker).await
    })
    .await
}

/// Hands a posted message to its session.
fn deliver(
    context: &CallContext,
    caller: Caller<'_>,
    head: &request::Parts,
    message: Bytes,
) -> Result<Answer, Failure> {
    let sessions = context.worker().event_sessions();
    let id = session_id(head.uri.query());
    let delivered = id.map_or(Err(Undeliverable::Unknown), |id| {
        sessions.deliver(caller, id, message)
    });
    delivered.map_err(|why| match why {
        Undeliverable::Unknown => {
            let message = "there is no such session; open an event stream by GET, and post to the endpoint that it names";
            Failure::new(Reason::RouteNotFound, message)
        }
        Undeliverable::Full => {
            let message = "too many messages of this session wait; retry later";
            Failure::new(Reason::Overloaded, message).advise(Advice::RetryAfter(1))
        }
    })?;
    Ok(Answer::Delivered)
}

fn session_id(query: Option<&str>) -> Option<&str> {
    let mut pairs = query?.split('&');
    let named = pairs.find_map(|pair| pair.strip_prefix(SESSION));
    named?.strip_prefix('=')
}
