//! The failures of calls that are rejected before an upstream is asked: the client text of each, once.
//!
//! The gateway sends them and `explain` shows them. Statuses and codes are in [`super::failure`] only.
//!
//! Used by `config`, `model` and `gateway`.

use http::Method;

use super::envelope;
use super::failure::{Advice, Failure, Pause, Reason};
use super::hosts::OriginDenied;
use super::jsonrpc::{Call, MessageError, ResponseFault};
use super::lifecycle::Window;
use super::mcp::{HeaderMismatch, InputCapabilities};
use super::outcome::{RestReply, envelope_of, redirect};
use super::plan::{Plan, Unrouted, UpstreamPlan};
use super::route::{MatchError, Route};
use super::stream::Stream;
use super::time::Timestamp;
use super::translate;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::MatchErrorKind;
use dualgauge_patterns::schema::Exceeded;
use dualgauge_patterns::side::Side;

mod body;
mod credentials;
mod path;
mod unknown;

pub use body::{body_type, media_type, no_form, no_json, parse_body};
pub use credentials::unauthenticated;
pub use path::{irregular_local_path, irregular_path, irregular_rpc_path, near_route, near_stream};
pub use unknown::unknown_method;

/// Returns the failure of a REST call without a route and an upstream for such calls.
#[must_use]
pub fn unrouted(treatment: Unrouted, method: &Method, path: &str) -> Failure {
    match treatment {
        Unrouted::Passthrough | Unrouted::Reject => no_route(method, path),
        Unrouted::Unavailable => {
            let message = "the routes are not loaded yet; retry later";
            Failure::new(Reason::RoutesPending, message).advise(Advice::RetryAfter(1))
        }
    }
}

/// Returns the failure of a REST call without a route.
#[must_use]
pub fn no_route(method: &Method, path: &str) -> Failure {
    let path: String = path.chars().take(200).collect();
    Failure::new(
        Reason::RouteNotFound,
        format!("no route matches {method} `{}`", path.escape_default()),
    )
}

/// Returns the failure of a frame without a route, when no upstream accepts it unchanged.
#[must_use]
pub fn no_frame(frame: &Json) -> Failure {
    let message = format!("no route matches {}", frame_in_short(frame));
    Failure::new(Reason::RouteNotFound, message)
}

/// Returns the beginning of a frame, for messages.
#[must_use]
pub fn frame_in_short(frame: &Json) -> String {
    let shown = String::from_utf8_lossy(frame.as_bytes());
    let shown: String = shown.chars().take(60).collect();
    format!("the frame `{}`", shown.escape_debug())
}

/// Returns the failure of a REST call whose path and method match routes that require other literals.
#[must_use]
pub fn other_literals(method: &Method, path: &str) -> Failure {
    let path: String = path.chars().take(200).collect();
    let message = format!(
        "no route matches {method} `{}`: every route for this path requires a literal value in the query or the body that the call does not have",
        path.escape_default()
    );
    Failure::new(Reason::RouteNotFound, message)
}

/// Returns the failure of a call whose path has other methods only.
#[must_use]
pub fn other_methods(method: &Method, methods: &[Method]) -> Failure {
    let allowed: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let allowed = allowed.join(", ");
    let message = format!("{method} is not allowed for this path; allowed: {allowed}");
    Failure::new(Reason::MethodNotAllowed, message).advise(Advice::Allow(allowed))
}

/// Returns the failure of an MCP client whose headers contradict its message, or whose request does not fit its revision.
#[must_use]
pub fn mcp_header_mismatch(discord: HeaderMismatch, supported: &[String]) -> Failure {
    match discord {
        HeaderMismatch::Mismatch(what) => {
            let message = format!("header mismatch: {what}");
            Failure::new(Reason::HeaderMismatch, message)
        }
        HeaderMismatch::Missing(what) => Failure::new(Reason::MissingMeta, what),
        HeaderMismatch::Removed(method) => {
            let message = format!("the client's MCP revision has no `{method}`");
            Failure::new(Reason::RouteNotFound, message)
        }
        HeaderMismatch::Unsupported(requested) => {
            let requested: String = requested.chars().take(100).collect();
            let message = format!(
                "unsupported protocol version: `{}`; supported: {}",
                requested.escape_debug(),
                supported.join(", ")
            );
            let supported = supported.to_vec();
            Failure::new(Reason::UnsupportedVersion, message).advise(Advice::Versions {
                supported,
                requested,
            })
        }
    }
}

/// Returns the failure of a translated result that asks an older MCP client for input, which would read it as an empty
/// success.
#[must_use]
pub fn input_required() -> Failure {
    let message = "the server requires input, which the client's MCP revision does not support; use a client of revision 2026-07-28";
    Failure::new(Reason::UpstreamInputRequired, message)
}

/// Returns the failure of a call whose server requires input that the client does not supply. `why` ends the sentence.
#[must_use]
pub fn input_missing(required: InputCapabilities, why: &str) -> Failure {
    let names = required.names().join("`, `");
    let names = match names.is_empty() {
        true => String::new(),
        false => format!(" (`{names}`)"),
    };
    let message = format!("the server requires input{names}, but {why}");
    let failure = Failure::new(Reason::UpstreamInputRequired, message);
    failure.advise(Advice::Capabilities(required.to_json()))
}

/// Returns the failure of a call whose caller cannot be asked for input, such as a REST client.
#[must_use]
pub fn input_impossible(required: InputCapabilities) -> Failure {
    let why =
        "a caller without MCP cannot be asked; call the server with an MCP client that supplies it";
    input_missing(required, why)
}

/// Returns the failure of a sessionless MCP call that does not declare the capabilities that the server requires.
#[must_use]
pub fn missing_capability(required: InputCapabilities) -> Failure {
    let names = required.names().join("`, `");
    let message = format!(
        "the server requires the client capability `{names}`; declare it in `io.modelcontextprotocol/clientCapabilities` if the client has it"
    );
    let failure = Failure::new(Reason::MissingCapability, message);
    failure.advise(Advice::Capabilities(required.to_json()))
}

/// Returns the failure of a batch from a client whose MCP revision has none.
#[must_use]
pub fn no_batch() -> Failure {
    let message = "the client's MCP revision has no batches; send each message separately";
    Failure::new(Reason::NoBatch, message)
}

/// Rejects a call whose envelope contains one credential twice.
///
/// # Errors
/// A [`Failure`] that names the member, never its value.
pub fn ambiguous_credentials(plan: &Plan, call: &Call) -> Result<(), Failure> {
    let checked = envelope::unambiguous(&plan.face.envelope, &call.text);
    checked.map_err(|error| Failure::new(Reason::InvalidRequest, error.to_string()))
}

/// Rejects a method that concerns the link itself, which all clients share.
///
/// # Errors
/// A [`Failure`] that names the method.
pub fn withheld(upstream: &UpstreamPlan, method: &str) -> Result<(), Failure> {
    let link = upstream.transport.link();
    let withheld =
        link.is_some_and(|link| link.blocked_methods.iter().any(|known| known == method));
    if !withheld {
        return Ok(());
    }
    let message = format!(
        "the method `{}` is not forwarded: it would stop the server for all clients",
        method.escape_debug()
    );
    Err(Failure::new(Reason::RouteNotFound, message))
}

/// Returns the failure of a request to an RPC path that is not a POST, when no upstream accepts it.
#[must_use]
pub fn not_posted(method: &Method) -> Failure {
    let message = format!("{method} is not allowed on an RPC path; send JSON-RPC by POST");
    Failure::new(Reason::MethodNotAllowed, message).advise(Advice::Allow("POST".to_owned()))
}

/// Returns the failure of an `Origin` or a `Host` that is not allowed.
#[must_use]
pub fn origin_denied(why: OriginDenied) -> Failure {
    let message = match why {
        OriginDenied::Origin => {
            "this `Origin` is not allowed; it must be the requested host, one of `listen.hosts` or one of `cors.origins`"
        }
        OriginDenied::Host => {
            "this `Host` is not allowed; it must be one of `listen.hosts`, the names of the proxy"
        }
        OriginDenied::Rebound => {
            "this `Host` is not allowed: without `listen.hosts`, a listener on loopback accepts only loopback names and addresses; add other names of the proxy to `listen.hosts`"
        }
    };
    Failure::new(Reason::OriginRefused, message)
}

/// The replacement for one side of a route.
struct Successor {
    name: String,
    /// The name with its article, for a sentence.
    what: String,
    link: Option<String>,
}

impl Successor {
    fn new(route: &Route, side: Side, rpc_paths: &[String]) -> Successor {
        let other = match side {
            Side::Rest => &route.rpc,
            Side::Rpc => &route.rest,
        };
        let name = route.successor.as_ref().unwrap_or(other).clone();
        let what = match (&route.successor, side) {
            (Some(successor), _) => successor.clone(),
            (None, Side::Rest) => format!("the JSON-RPC method `{name}`"),
            (None, Side::Rpc) => format!("`{name}` over REST"),
        };
        Successor {
            link: successor_link(route, side, rpc_paths),
            name,
            what,
        }
    }

    fn advice(self, pause: Option<Pause>) -> Advice {
        Advice::Successor {
            name: self.name,
            link: self.link,
            pause,
        }
    }
}

/// Returns the address of the replacement for one side of a route, if it has one.
#[must_use]
pub fn successor_link(route: &Route, side: Side, rpc_paths: &[String]) -> Option<String> {
    let is_address = |text: &&String| text.starts_with('/') || text.starts_with("http");
    let link = match (&route.successor, side) {
        (Some(successor), _) => Some(successor).filter(is_address),
        // The replacement is at an RPC path.
        (None, Side::Rest) => rpc_paths.first(),
        (None, Side::Rpc) => None,
    };
    link.cloned()
}

const fn protocol_name(side: Side) -> &'static str {
    match side {
        Side::Rest => "REST",
        Side::Rpc => "JSON-RPC",
    }
}

/// Returns the failure of a call on a retired side of a route.
#[must_use]
pub fn retired(plan: &Plan, route: &Route, side: Side) -> Failure {
    let successor = Successor::new(route, side, &plan.face.paths);
    let message = format!(
        "the {} side of the route `{}` is retired; use {}",
        protocol_name(side),
        route.name,
        successor.what
    );
    Failure::new(Reason::Retired, message).advise(successor.advice(None))
}

/// Returns the failure of a call on a retired side of a stream.
#[must_use]
pub fn retired_stream(stream: &Stream, side: Side) -> Failure {
    let path = stream.path(side.other());
    let is_whole = path.holes().next().is_none();
    let path = path.as_str();
    let message = format!(
        "the {} side of the stream `{}` is retired; use `GET {path}`",
        protocol_name(side),
        stream.name
    );
    Failure::new(Reason::Retired, message).advise(Advice::Successor {
        name: format!("GET {path}"),
        link: is_whole.then(|| path.to_owned()),
        pause: None,
    })
}

/// Returns the failure of an upstream that responded with something other than an event stream.
#[must_use]
pub fn no_stream(found: &str) -> Failure {
    let message = "the server did not answer with an event stream";
    Failure::new(Reason::UpstreamNotProtocol, message).because(found)
}

/// Returns the failure of a call during a brownout.
#[must_use]
pub fn browned_out(
    plan: &Plan,
    route: usize,
    side: Side,
    window: Window,
    at: Timestamp,
) -> Failure {
    let deprecated = plan.lifecycle.of(Some(route), side);
    let sunset = deprecated.and_then(|deprecated| deprecated.announcement().sunset);
    let route = plan.routes.route(route);
    let successor = Successor::new(route, side, &plan.face.paths);
    let end = sunset.map_or(String::new(), |sunset| format!(" and ends on {sunset}"));
    let message = format!(
        "the {} side of the route `{}` is deprecated{end}; a brownout refuses its calls until {}; use {}",
        protocol_name(side),
        route.name,
        window.until,
        successor.what
    );
    let pause = Pause {
        until: window.until,
        seconds: u32::try_from(window.until.since(at)).unwrap_or(u32::MAX),
        sunset,
    };
    Failure::new(Reason::Brownout, message).advise(successor.advice(Some(pause)))
}

/// Returns the failure of a call that does not fit its route.
#[must_use]
pub fn bind_failure(error: MatchError) -> Failure {
    match (error.exceeded, error.kind) {
        (None, MatchErrorKind::Value) => Failure::new(Reason::InvalidParams, error.to_string()),
        (None, MatchErrorKind::UnknownQuery) => {
            Failure::new(Reason::UnknownQuery, error.to_string())
        }
        (Some(exceeded), _) => {
            schema_budget_exceeded(exceeded, Reason::SchemaTooCostly, error.to_string())
        }
    }
}

/// Returns the failure of a value whose validation exceeded its budget; `reason` is the one for too many steps.
fn schema_budget_exceeded(exceeded: Exceeded, reason: Reason, message: String) -> Failure {
    match exceeded {
        Exceeded::Steps => Failure::new(reason, message),
        Exceeded::Memory => Failure::new(Reason::MemoryFull, message).advise(Advice::RetryAfter(1)),
    }
}

/// Returns the failure of an RPC call whose params make a URL beyond the limit.
#[must_use]
pub fn long_url(limit: usize) -> Failure {
    let message = format!("the URL built from these params is longer than {limit} bytes");
    Failure::new(Reason::InvalidParams, message)
}

/// Returns the failure of a body beyond the limit.
#[must_use]
pub fn large_body(limit: usize) -> Failure {
    let message = format!("the body is longer than {limit} bytes");
    Failure::new(Reason::BodyTooLarge, message)
}

/// Returns the failure of a body that is not JSON-RPC.
#[must_use]
pub fn no_message(error: MessageError) -> Failure {
    let reason = match &error {
        MessageError::Json(_) => Reason::MalformedJson,
        MessageError::TooDeep(_) => Reason::TooDeep,
        MessageError::EmptyBatch => Reason::InvalidRequest,
        MessageError::BatchTooLarge { .. } => Reason::BatchTooLarge,
    };
    Failure::new(reason, error.to_string())
}

/// Returns the failure of a client's response when no upstream could have sent a request.
#[must_use]
pub fn unexpected_response() -> Failure {
    let message = "unexpected response: no RPC upstream could have sent a request";
    Failure::new(Reason::InvalidRequest, message)
}

/// Returns the failure of an upstream that answered 101 although the call requested no upgrade.
#[must_use]
pub fn unrequested_upgrade() -> Failure {
    let message = "the server answered 101, but the call requested no upgrade";
    Failure::new(Reason::UpstreamUpgrade, message)
}

/// Returns the failure of a call that requires an answer, if the gateway got none from the code that serves it.
#[must_use]
pub fn missing_answer() -> Failure {
    let message = "a call that requires an answer got none";
    Failure::new(Reason::Internal, message)
}

/// Returns the failure of a call without an upstream on the other side. `check` rejects plans that could cause it.
#[must_use]
pub fn no_upstream(side: Side) -> Failure {
    let message = format!("no {side} upstream to translate for");
    Failure::new(Reason::Internal, message)
}

/// Returns the failure of an RPC request with a content coding.
#[must_use]
pub fn coded_message() -> Failure {
    Failure::new(
        Reason::UnsupportedMediaType,
        "content codings are not supported on an RPC path; send the message unencoded",
    )
}

/// Returns the failure of an RPC upstream that sent something other than a response.
#[must_use]
pub fn no_response(reply: &RestReply, fault: ResponseFault, error_text: usize) -> Failure {
    let status = reply.status;
    if (300..400).contains(&status) {
        return redirect(reply);
    }
    let reason = match &fault {
        ResponseFault::Json(_) if reply.body.is_empty() => Reason::UpstreamEmpty,
        ResponseFault::Json(_) => Reason::UpstreamNotJson,
        ResponseFault::Protocol(_) => Reason::UpstreamNotProtocol,
    };
    let kind = reply.content_type_words();
    let message = format!("the server answered HTTP {status} {kind}: {fault}");
    let mut failure = Failure::new(reason, message).upstream_status(status);
    failure.detail = Some(envelope_of(reply, None, error_text));
    failure
}

/// Returns the failure of an event stream where a complete response was expected.
#[must_use]
pub fn event_stream(status: u16) -> Failure {
    let message = format!(
        "the server answered HTTP {status} with an event stream; the call requires a single answer"
    );
    Failure::new(Reason::UpstreamStream, message).upstream_status(status)
}

/// Rejects a result that violates its route's schema, as a fault of the upstream.
///
/// # Errors
/// The [`Failure`] for the client.
pub fn unless_valid(route: &Route, result: &Json) -> Result<(), Failure> {
    let Some(schema) = &route.schema.result else {
        return Ok(());
    };
    translate::fits_schema(schema, result, "result").map_err(|error| match error.exceeded {
        None => {
            let message = format!("the server's answer violates the route's schema: {error}");
            Failure::new(Reason::UpstreamInvalid, message)
        }
        Some(exceeded) => {
            let message = format!("the server's answer was not checked completely: {error}");
            schema_budget_exceeded(exceeded, Reason::UpstreamTooCostly, message)
        }
    })
}
