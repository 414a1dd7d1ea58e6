//! The event stream that a client with a session opens by GET (MCP 2025-11-25, "Listening for Messages from the
//! Server"), and the end of its session. [`SessionListener`] keeps its subscriptions. Used by `rpc`.

use http::header::ACCEPT;
use http::{HeaderValue, Method, Response, StatusCode, request};

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::acknowledgement;
use crate::gateway::cancellation::{CancelScope, MCP_SESSION};
use crate::gateway::identity::identify;
use crate::gateway::progress_stream::{ProgressReply, ProgressStream};
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::session_listener::{
    Listener, SessionListener, listen, open_streams, session_link,
};
use crate::gateway::session_streams::SessionStream;
use crate::gateway::stream_headers;
use crate::upstream::link::channel;
use dualgauge_model::failure::Failure;
use dualgauge_model::rollout::Way;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::sse;

/// Returns true if a request opens the stream of a session, or ends one.
pub(super) fn is_about_session(runtime_plan: &RuntimePlan, head: &request::Parts) -> bool {
    let accept = head.headers.get_all(ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    let opens = head.method == Method::GET && accept.any(sse::is_accepted);
    (opens || head.method == Method::DELETE)
        && head.headers.contains_key(&MCP_SESSION)
        && session_link(runtime_plan, Way::Old).is_some()
}

/// Serves the stream.
pub(super) fn serve(
    mut record: Box<AccessRecord>,
    head: &request::Parts,
    origin: &RequestOrigin,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let mut response = match open(&mut record, head, origin) {
        Err(failure) => response::render_failure(record, failure, None),
        Ok(streams) => {
            let (sender, notifications) = channel();
            let worker = record.context.worker().clone();
            record.context.release_upstreams();
            let serving = Box::pin(async move {
                let listeners = streams.map(|(way, stream)| SessionListener {
                    worker: worker.clone(),
                    stream,
                    way,
                    client: Listener::Stream(sender.clone()),
                });
                listen(&listeners).await;
                record.set_response(200);
                ProgressReply::default()
            });
            let progress = ProgressStream::new(notifications, serving);
            let mut response = Response::new(ResponseBody::with_progress(progress));
            *response.headers_mut() = stream_headers::own_events();
            response
        }
    };
    response::add_cors_headers(&runtime_plan.plan, &head.headers, &mut response);
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
    response::add_cors_headers(&runtime_plan.plan, &head.headers, &mut response);
    response
}

fn open(
    record: &mut AccessRecord,
    head: &request::Parts,
    origin: &RequestOrigin,
) -> Result<[(Way, SessionStream); 2], Failure> {
    let worker = record.context.worker().clone();
    with_session(record, head, origin, |session| {
        open_streams(&worker, session)
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
    let identity = identify(record, &head.headers, origin);
    let caller = identity.caller(&plan.rollout.clients);
    record.context.admit()?;
    routing::check_origin(plan, RequestHead::new(head), origin.entry())?;
    let name = HeaderValue::from_static("");
    let name = head.headers.get(&MCP_SESSION).unwrap_or(&name);
    Ok(then(CancelScope::session(caller, name)))
}
