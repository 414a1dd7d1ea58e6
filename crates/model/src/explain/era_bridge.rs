//! Explanations of calls over MCP links: the eras of client and server, and the conversions between them.
//!
//! Used by `explain::rpc`.

use http::Method;
use http::header::ACCEPT;

use super::case::Case;
use super::view::{ExplainedBridge, Term};
use crate::jsonrpc::{Call, LISTEN};
use crate::mcp::{BridgeAction, ClientRevision, InputCapabilities, Revision, SET_LEVEL, ServerEra};
use crate::pending::ServerRequests;
use crate::plan::{CANCELLED, Sharing};
use crate::plan::{Transport, UpstreamPlan};
use crate::sse;
use dualgauge_patterns::side::Side;

/// A conversion that applies to some calls between two eras.
struct Conversion {
    client: ClientRevision,
    server: ServerEra,
    applies: fn(&Call) -> bool,
    action: BridgeAction,
    text: &'static str,
}

/// Returns true for the methods whose calls may require input.
fn is_interactive(call: &Call) -> bool {
    InputCapabilities::is_interactive(&call.method)
}

const CONVERSIONS: [Conversion; 14] = {
    use BridgeAction::{
        Discovery, ForeignCode, InputRequest, LogLevel, MissingResource, ServerRequest,
        Subscription, UrlElicitation,
    };
    use ClientRevision::{Sessions as OldClient, Stateless as NewClient};
    use ServerEra::{Sessions as OldServer, Stateless as NewServer};
    const fn row(
        client: ClientRevision,
        server: ServerEra,
        applies: fn(&Call) -> bool,
        action: BridgeAction,
        text: &'static str,
    ) -> Conversion {
        Conversion {
            client,
            server,
            applies,
            action,
            text,
        }
    }
    [
        row(
            NewClient,
            OldServer,
            |call| *call.method == *"server/discover",
            Discovery,
            "the server's response to `initialize` is the result",
        ),
        row(
            NewClient,
            OldServer,
            |call| *call.method == *LISTEN,
            Subscription,
            "the proxy acknowledges it and subscribes to the resources",
        ),
        row(
            NewClient,
            OldServer,
            is_interactive,
            ServerRequest,
            "a request of the server becomes a result `input_required`, if the call declares the capability",
        ),
        row(
            NewClient,
            OldServer,
            is_interactive,
            UrlElicitation,
            "-32042 becomes a result `input_required`",
        ),
        row(
            NewClient,
            OldServer,
            is_interactive,
            LogLevel,
            "`logging/setLevel` precedes a call that asks for more than the link has",
        ),
        row(
            NewClient,
            OldServer,
            |call| *call.method == *"resources/read",
            MissingResource,
            "-32002 becomes -32602",
        ),
        row(
            NewClient,
            OldServer,
            |call| call.id.is_some(),
            ForeignCode,
            "-32042 that remains becomes -32602",
        ),
        row(
            OldClient,
            NewServer,
            |call| *call.method == *SET_LEVEL,
            LogLevel,
            "the proxy keeps the level for the session, and sends it with each call",
        ),
        row(
            OldClient,
            NewServer,
            |call| call.method.starts_with("resources/") && call.method.ends_with("subscribe"),
            Subscription,
            "the proxy keeps the resource for the session, and subscribes while its stream is open",
        ),
        row(
            OldClient,
            NewServer,
            is_interactive,
            InputRequest,
            "input that the server requires is asked of the client, if its session declares the capability",
        ),
        row(
            OldClient,
            NewServer,
            is_interactive,
            LogLevel,
            "the level of the session is sent with the call",
        ),
        row(
            OldClient,
            NewServer,
            |call| *call.method == *"resources/read",
            MissingResource,
            "-32602 for the resource becomes -32002",
        ),
        row(
            OldClient,
            NewServer,
            |call| call.id.is_some(),
            ForeignCode,
            "-32020, -32021 and -32022 become codes of the client's revision",
        ),
        row(
            OldClient,
            OldServer,
            is_interactive,
            ServerRequest,
            "a request of the server reaches the client during the call, if its session declares the capability",
        ),
    ]
};

/// Describes the eras of a call over an MCP link. Returns `None` for other upstreams.
pub(super) fn describe(
    case: &Case<'_>,
    upstream: &UpstreamPlan,
    call: &Call,
) -> Option<ExplainedBridge> {
    if !upstream.speaks_mcp() {
        return None;
    }
    let client = ClientRevision::of_headers(case.request.head.headers);
    let server = server_era(upstream);
    let settings = upstream.transport.link().map(|link| &link.settings);
    let declines =
        settings.is_some_and(|settings| settings.server_requests == ServerRequests::Decline);
    let all = CONVERSIONS.iter().filter(|one| {
        one.client == client
            && (server == ServerEra::Unknown || server == one.server)
            && !(declines && one.action == BridgeAction::ServerRequest)
            && (one.applies)(call)
    });
    let conversions = all.map(|one| {
        let action = one.action.as_str();
        let condition = match (server, one.server) {
            (ServerEra::Unknown, ServerEra::Stateless) => "with a server of 2026-07-28, ",
            (ServerEra::Unknown, ServerEra::Sessions) => "with a server with sessions, ",
            (ServerEra::Unknown, ServerEra::Unknown)
            | (ServerEra::Sessions | ServerEra::Stateless, _) => "",
        };
        Term::from(format!("{action}: {condition}{}", one.text))
    });
    Some(ExplainedBridge {
        client: match client {
            ClientRevision::Stateless => "2026-07-28".into(),
            ClientRevision::Sessions => "with sessions".into(),
        },
        server: match server {
            ServerEra::Stateless => "2026-07-28".into(),
            ServerEra::Sessions => "with sessions".into(),
            ServerEra::Unknown => "of either era, found at the handshake".into(),
        },
        conversions: conversions.collect(),
    })
}

/// Returns the status and the note for a request that opens the stream of a session, or ends the session.
pub(super) fn of_session(case: &Case<'_>) -> Option<(u16, &'static str)> {
    let head = case.request.head;
    let upstream = case.plan.upstream_for(None, Side::Rpc)?;
    let is_shared = upstream.transport.sharing() == Sharing::Shared;
    let has_streams = is_shared && upstream.sends_initialize();
    if !has_streams || !head.headers.contains_key("mcp-session-id") {
        return None;
    }
    let accept = head.headers.get_all(ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    match *head.method {
        Method::GET if accept.any(sse::is_accepted) => Some((
            200,
            "the event stream of the session: changes of lists, and updates of the resources that it subscribed to",
        )),
        Method::DELETE => Some((204, "the session ends: its stream, and its resources")),
        _ => None,
    }
}

/// Returns a note for a message that the proxy answers itself, because it concerns the shared link to the server.
pub(super) fn link_note(upstream: &UpstreamPlan, call: &Call) -> Option<&'static str> {
    match (&call.id, &*call.method) {
        (Some(_), "initialize") if upstream.sends_initialize() => {
            Some("by the proxy: the server's answer to the handshake of the link")
        }
        (None, method) if upstream.keeps(method) && method == CANCELLED => Some(
            "nothing; the named call is cancelled if it belongs to the same session, and the server is notified with \
             its id of the call",
        ),
        (None, method) if upstream.keeps(method) => {
            Some("nothing, and nothing is sent: the link has its own handshake with the server")
        }
        _ => None,
    }
}

/// Returns the era of a server, as far as the plan determines it.
fn server_era(upstream: &UpstreamPlan) -> ServerEra {
    match &upstream.transport {
        Transport::Mcp(mcp) => match mcp.revision {
            Revision::Auto => ServerEra::Unknown,
            Revision::Sessions(_) => ServerEra::Sessions,
            Revision::Stateless(_) => ServerEra::Stateless,
        },
        Transport::Stdio(_) => ServerEra::Unknown,
        Transport::Http | Transport::WebSocket(_) | Transport::Frames(_) => ServerEra::Sessions,
    }
}
