//! One request over a link within a time limit, and the failures that result from it.
//!
//! Used by `rpc`, `socket_call`, `subscribed_call` and `translate`.

mod era_bridge;
mod input;
mod message;
mod server_requests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::watch;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::UpstreamResponse;
use super::exchange::{client_timeout_failure, ensure_client_open, remaining_time};
use super::failures::{memory_exhausted, upstream_timeout};
use super::rpc_reply::RpcReply;
use crate::telemetry::clock;
use crate::upstream::link::{
    CallListener, CancelSignal, LinkReply, LinkUpstream, Requester, ServerRequest,
    SubscriptionReceiver, SuspendedCall,
};
use dualgauge_model::failure::{Advice, Failure, Reason};
use dualgauge_model::jsonrpc::{
    self, Call, ExtraMembers, RequestId, RequestTemplate, ended_subscription,
};
use dualgauge_model::mcp::{InputCapabilities, LogFilter};
use dualgauge_model::pending::{Outbound, RequestError, RetryRule, ServerRequests};
use dualgauge_model::plan::UpstreamPlan;
use dualgauge_model::rejections;
use dualgauge_model::route::Route;
use dualgauge_model::subscription::SubscriptionRule;
use dualgauge_net::BudgetExhausted;
use dualgauge_patterns::rope::Rope;

/// The id of a response written by the proxy; no call on a link has it.
const NO_ID: u64 = 0;

/// A request to send over a link.
pub(super) struct LinkRequest<'a> {
    pub(super) method: &'a str,
    pub(super) call: RequestTemplate,
    pub(super) retry_rule: RetryRule,
    /// Signals that the client cancelled the call.
    pub(super) cancel_signal: Option<Arc<CancelSignal>>,
    /// The client's id of the call, if it is a subscription.
    pub(super) subscription: Option<RequestId>,
    /// The log messages of the call that the client receives.
    pub(super) logs: LogFilter,
    /// The requests of the server that the client answers during its call.
    pub(super) input: InputCapabilities,
}

/// A call of a JSON-RPC client, and the link that it is sent over.
#[derive(Clone, Copy)]
struct LinkedCall<'a> {
    link: &'a LinkUpstream,
    call: &'a Call,
}

/// A message for a link.
struct LinkMessage {
    outbound: Outbound,
    retry_rule: RetryRule,
    cancel_signal: Option<Arc<CancelSignal>>,
    logs: LogFilter,
    input: InputCapabilities,
}

/// The progress of a call over a link.
pub(super) enum CallProgress {
    /// The response, with the id that the call had on the link.
    Reply(RpcReply),
    /// The server sent a request during the call, and waits for the answer.
    ServerRequest(ServerRequest),
}

/// The parts of a call that is sent over a link.
pub(super) struct RoutedCall<'a> {
    pub(super) method: &'a str,
    pub(super) params: Rope,
    pub(super) members: ExtraMembers<'a>,
}

/// Sends a call over a link, with an id that no other call has.
pub(super) async fn send_over_link(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    route: &Route,
    call: RoutedCall<'_>,
) -> Result<Option<RpcReply>, Failure> {
    let RoutedCall {
        method,
        params,
        members,
    } = call;
    let limit = route.timeout.unwrap_or(link.plan().timeout);
    if !route.expects_reply {
        let message = jsonrpc::notification(method, params, members);
        send_notification(record, link, method, message.into_bytes(), limit).await?;
        return Ok(None);
    }
    let request = LinkRequest {
        method,
        call: RequestTemplate::new(method, params, members),
        retry_rule: RetryRule::of(route.effect),
        cancel_signal: None,
        subscription: None,
        logs: LogFilter::All,
        input: InputCapabilities::default(),
    };
    send(record, link, request, limit).await.map(Some)
}

/// Sends a request whose caller answers no requests of the server, and returns the response.
pub(super) async fn send(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    request: LinkRequest<'_>,
    limit: Duration,
) -> Result<RpcReply, Failure> {
    match send_interactive(record, link, request, limit).await? {
        CallProgress::Reply(reply) => Ok(reply),
        // The link declines the requests itself.
        CallProgress::ServerRequest(_) => Err(rejections::missing_answer()),
    }
}

/// Sends a request, and returns the response or the first request of the server.
pub(super) async fn send_interactive(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    request: LinkRequest<'_>,
    limit: Duration,
) -> Result<CallProgress, Failure> {
    let LinkRequest {
        method,
        call,
        retry_rule,
        cancel_signal,
        subscription,
        logs,
        input,
    } = request;
    let message = LinkMessage {
        outbound: match &subscription {
            Some(id) => Outbound::Subscription(call, id.clone()),
            // The proxy initialized the link itself, so every client gets the server's response to that.
            None if link.plan().sends_initialize() && method == "initialize" => Outbound::Greeting,
            None => Outbound::Call(call),
        },
        retry_rule,
        cancel_signal,
        logs,
        input,
    };
    let limit = remaining_time(&record.context, limit)?;
    let reply = match &subscription {
        None => exchange(record, link, message, limit).await?,
        Some(_) => {
            let mut drain_signal = record.context.worker().drain_signal();
            // Dropping the request cancels the subscription at its server.
            tokio::select! {
                reply = exchange(record, link, message, limit) => reply?,
                () = until_shutdown(&mut drain_signal) => LinkReply::Ended,
            }
        }
    };
    match (reply, subscription) {
        (LinkReply::Ended, Some(client)) => {
            let body = ended_subscription(NO_ID, &client);
            Ok(CallProgress::Reply(link_reply(NO_ID, body)))
        }
        (reply, _) => progress(&record.context, reply),
    }
}

/// A call that opens a subscription with an id of the server.
pub(super) struct SubscribeRequest {
    pub(super) call: RequestTemplate,
    pub(super) rule: Arc<SubscriptionRule>,
    pub(super) retry_rule: RetryRule,
}

/// Opens a subscription.
pub(super) async fn open_subscription(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    request: SubscribeRequest,
    limit: Duration,
) -> Result<(SubscriptionReceiver, LinkReply), Failure> {
    ensure_client_open(&record.context)?;
    let limit = remaining_time(&record.context, limit)?;
    let since = clock::now();
    record.start_upstream_time(since);
    let requester = Requester {
        links: record.context.links(),
        logs: LogFilter::Nothing,
        authorized: record.context.authorized_links(),
        credentials: record.context.login_headers(),
        ..Requester::default()
    };
    let outbound = Outbound::IdSubscription(request.call, request.rule);
    let opened = link.open_id_subscription(requester, outbound, request.retry_rule, limit);
    let (notifications, reply) =
        opened.map_err(|why| exchange_failure(&record.context, link, why, limit))?;
    let reply = record.context.worker().until_shutdown(reply).await;
    record.add_upstream_time(since);
    let reply = reply?.map_err(|why| exchange_failure(&record.context, link, why, limit))?;
    Ok((notifications, reply))
}

/// Returns the response to a call, charged to the memory budget.
pub(super) fn answered(context: &CallContext, id: u64, body: Bytes) -> Result<RpcReply, Failure> {
    Ok(link_reply(id, accounted(context, body)?))
}

/// A call that continues with the responses to the server's requests.
pub(super) struct ResumedCall {
    pub(super) call: SuspendedCall,
    pub(super) responses: Vec<Bytes>,
    /// The receiver of further notifications, if it changes.
    pub(super) listener: Option<CallListener>,
}

/// Continues a call, and returns the response or the next request of the server.
pub(super) async fn resume(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    resumed: ResumedCall,
) -> Result<CallProgress, Failure> {
    ensure_client_open(&record.context)?;
    let limit = remaining_time(&record.context, link.plan().timeout)?;
    let ResumedCall {
        call,
        responses,
        listener,
    } = resumed;
    let since = clock::now();
    record.start_upstream_time(since);
    let reply = call.resume(responses, listener, since + limit);
    let reply = record.context.worker().until_shutdown(reply).await;
    record.add_upstream_time(since);
    let reply = reply?.map_err(|why| exchange_failure(&record.context, link, why, limit))?;
    progress(&record.context, reply)
}

fn progress(context: &CallContext, reply: LinkReply) -> Result<CallProgress, Failure> {
    match reply {
        LinkReply::Sent | LinkReply::Ended | LinkReply::Subscribed(..) => {
            Err(rejections::missing_answer())
        }
        LinkReply::ServerRequest(request) => {
            let message = accounted(context, request.message)?;
            let request = ServerRequest {
                message,
                ..*request
            };
            Ok(CallProgress::ServerRequest(request))
        }
        LinkReply::Answer(id, body) => {
            let body = accounted(context, body)?;
            Ok(CallProgress::Reply(link_reply(id, body)))
        }
    }
}

/// Charges a message of the server to the memory budget that applies to the call.
fn accounted(context: &CallContext, body: Bytes) -> Result<Bytes, Failure> {
    let limit = context.runtime_plan().plan.limits.answer;
    match context.second_run_budget() {
        _ if body.len() > limit => Err(too_large(limit)),
        // Second runs are charged to their own budget, not to the memory of client calls.
        Some(budget) if budget.charge(body.len()) => Ok(body),
        Some(_) => Err(too_large(limit)),
        None => {
            let memory = context.worker().memory();
            memory.account(body).map_err(memory_exhausted)
        }
    }
}

/// Returns the response to a call that the proxy writes itself.
pub(super) fn own_reply(body: impl FnOnce(u64) -> Bytes) -> RpcReply {
    link_reply(NO_ID, body(NO_ID))
}

/// Returns a response that came over a link, where it has no head.
fn link_reply(id: u64, body: Bytes) -> RpcReply {
    RpcReply {
        response: UpstreamResponse {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body,
        },
        id,
        may_ask: true,
    }
}

/// Waits until the process shuts down.
async fn until_shutdown(drain_signal: &mut watch::Receiver<bool>) {
    // An error means that the worker is gone, but a worker outlives its calls.
    let _ = drain_signal.wait_for(|is_draining| *is_draining).await;
}

/// Sends a notification. It is written before returning, so that the caller learns of an unreachable or busy server.
pub(super) async fn send_notification(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    method: &str,
    message: Bytes,
    limit: Duration,
) -> Result<(), Failure> {
    if link.plan().keeps(method) {
        return Ok(());
    }
    let notification = LinkMessage {
        outbound: Outbound::Notice(message),
        retry_rule: RetryRule::Never,
        cancel_signal: None,
        logs: LogFilter::All,
        input: InputCapabilities::default(),
    };
    match exchange(record, link, notification, limit).await? {
        LinkReply::Sent => Ok(()),
        // The server rejected the handshake of the link.
        LinkReply::Answer(..)
        | LinkReply::Subscribed(..)
        | LinkReply::Ended
        | LinkReply::ServerRequest(_) => Err(request_failure(
            RequestError::Unreachable,
            link.plan(),
            limit,
        )),
    }
}

async fn exchange(
    record: &mut AccessRecord,
    link: &LinkUpstream,
    message: LinkMessage,
    limit: Duration,
) -> Result<LinkReply, Failure> {
    ensure_client_open(&record.context)?;
    let since = clock::now();
    record.start_upstream_time(since);
    let requester = Requester {
        links: record.context.links(),
        cancel_signal: message.cancel_signal,
        logs: message.logs,
        authorized: record.context.authorized_links(),
        credentials: record.context.login_headers(),
        input: message.input,
        notifier: record.context.notifications(),
    };
    let reply = link.request_for(requester, message.outbound, message.retry_rule, limit);
    let reply = record.context.worker().until_shutdown(reply).await;
    record.add_upstream_time(since);
    reply?.map_err(|why| exchange_failure(&record.context, link, why, limit))
}

fn exchange_failure(
    context: &CallContext,
    link: &LinkUpstream,
    why: RequestError,
    limit: Duration,
) -> Failure {
    match (why, client_timeout_failure(context, Duration::ZERO)) {
        (RequestError::Late, Some(client_failure)) => client_failure,
        (why, _) => request_failure(why, link.plan(), limit),
    }
}

pub(super) fn request_failure(
    why: RequestError,
    upstream: &UpstreamPlan,
    limit: Duration,
) -> Failure {
    match why {
        RequestError::Busy => {
            let message =
                "the server is busy with other calls; this call was not sent; retry later";
            Failure::new(Reason::UpstreamBusy, message).advise(Advice::RetryAfter(1))
        }
        RequestError::Unreachable => {
            let cause = format!("there is no link to the upstream `{}`", upstream.name);
            Failure::new(Reason::UpstreamUnreachable, "the server cannot be reached").because(cause)
        }
        RequestError::LoginFailed => {
            let cause = format!(
                "the proxy cannot log in at the upstream `{}`",
                upstream.name
            );
            let message = "the proxy cannot log in at the server";
            Failure::new(Reason::UpstreamUnreachable, message).because(cause)
        }
        RequestError::Unauthenticated => {
            let cause = format!(
                "the login at the upstream `{}` needs other credentials of the client",
                upstream.name
            );
            let message = "the credentials of this call are missing, or the server refused them";
            Failure::new(Reason::Unauthenticated, message).because(cause)
        }
        RequestError::Cut => {
            let cause = format!("the link to the upstream `{}` broke", upstream.name);
            let message = "the server closed the connection before it answered";
            Failure::new(Reason::UpstreamCut, message).because(cause)
        }
        RequestError::Late => upstream_timeout(limit),
        RequestError::TooLarge(status) => {
            let message = "the server's answer is longer than the limit of a message";
            Failure::new(Reason::UpstreamTooLarge, message).upstream_status(status)
        }
        RequestError::NoMemory => memory_exhausted(BudgetExhausted),
        RequestError::CodedStream => {
            let message = "the server's event stream has a content coding, which is not supported";
            Failure::new(Reason::UpstreamNotProtocol, message)
        }
        RequestError::Misnumbered => {
            let message = "the server answered with an id of another type";
            Failure::new(Reason::UpstreamWrongId, message)
        }
        RequestError::InputRequired(required) => input_refused(required, upstream),
        RequestError::Unusable(status) => unusable(status),
    }
}

/// Returns the failure of a call whose server refused it without the input that it required.
fn input_refused(required: InputCapabilities, upstream: &UpstreamPlan) -> Failure {
    let link = upstream.transport.link();
    match link.map(|link| link.settings.server_requests) {
        Some(ServerRequests::Decline) => {
            let message =
                "the server requires input, but `server_requests` of this upstream is \"decline\"";
            Failure::new(Reason::UpstreamInputRequired, message)
        }
        Some(ServerRequests::Caller) | None => rejections::input_impossible(required),
    }
}

/// Returns the failure of a call whose response has this HTTP status and is no MCP message; 0 without a status.
fn unusable(status: u16) -> Failure {
    match status {
        0 => {
            let message = "the server's answer is not valid HTTP";
            Failure::new(Reason::UpstreamMalformedHttp, message)
        }
        300..400 => {
            let message =
                format!("the server answered {status}, a redirect; the proxy follows none");
            Failure::new(Reason::UpstreamRedirect, message)
        }
        status => {
            let message =
                format!("the server answered {status} with something other than an MCP message");
            Failure::new(Reason::UpstreamNotProtocol, message).upstream_status(status)
        }
    }
}

fn too_large(limit: usize) -> Failure {
    Failure::new(
        Reason::UpstreamTooLarge,
        format!("the server's answer is longer than {limit} bytes"),
    )
}
