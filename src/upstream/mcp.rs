//! An MCP server over Streamable HTTP, as a link: each message is a POST of its own, and the responses are delivered as
//! if they came on one connection.
//!
//! A [`Session`] is such a link, with a session of the server, or without one if the server speaks a stateless
//! revision. Several POSTs run at a time, all within the one task that owns the link.
//!
//! Used by `mcp::call` and `mcp::session`.

mod call;
mod coded;
mod get_stream;
mod post;
mod post_outcome;
mod running_post;
mod session;
mod sse;
mod stateless;
mod stream_cursor;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use tokio::time::timeout;

pub use session::Session;
pub use sse::{SseServer, SseSession};

use self::post::{OWN_CONNECTIONS, PostClient};
use self::post_outcome::{OutboundPost, PostOutcome, PostResult};
use self::stateless::stateless_headers;
use super::HttpUpstream;
use super::link::Transport;
use dualgauge_model::jsonrpc::parse_response;
use dualgauge_model::local_reply::STATELESS;
use dualgauge_model::mcp::{
    DiscoverResult, ParamHeaders, Revision, annotated, discover, discover_result,
};
use dualgauge_model::pending::{RequestError, SUBSCRIPTIONS};
use dualgauge_model::plan::{McpPlan, UpstreamPlan};
use dualgauge_model::redact::Redaction;
use dualgauge_net::{MemoryBudget, Tasks};
use dualgauge_patterns::json::Json;

/// The time limit for discovering the revision. Some servers never answer a method they do not know.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// An MCP server on which sessions can be opened.
#[derive(Debug, Clone)]
pub struct Mcp {
    plan: Rc<McpPlan>,
    client: PostClient,
    /// The discovered kind of revision, from which each new link starts.
    server_revision: Rc<Cell<ServerRevision>>,
    /// True once the server has answered that it has no GET stream.
    has_no_get_stream: Rc<Cell<bool>>,
    /// The parameters that tools want repeated in headers.
    param_headers: Rc<RefCell<ParamHeaders>>,
    /// The time limit for the link's own messages.
    limit: Duration,
}

/// The discovered kind of a server's revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerRevision {
    Unknown,
    Sessions,
    Stateless,
}

/// The protocol mode of a link.
#[derive(Debug, Clone)]
enum SessionMode {
    /// With `initialize`, and a session if the server opens one.
    Sessions,
    /// Stateless with this revision, and with the server's description of itself.
    Stateless(&'static str, Json),
}

impl Mcp {
    /// Creates the server of a plan. `tasks` runs its connections; `memory` accounts for decoded bodies.
    #[must_use]
    pub fn new(upstream: &UpstreamPlan, plan: McpPlan, tasks: Tasks, memory: MemoryBudget) -> Mcp {
        let calls = plan.link.settings.order.in_flight();
        let http = UpstreamPlan {
            connections: calls + SUBSCRIPTIONS + OWN_CONNECTIONS,
            queue: calls,
            ..upstream.clone()
        };
        let client = PostClient::new(HttpUpstream::new(http, tasks.clone()), tasks, memory, &plan);
        Mcp {
            plan: Rc::new(plan),
            client,
            server_revision: Rc::new(Cell::new(ServerRevision::Unknown)),
            has_no_get_stream: Rc::default(),
            param_headers: Rc::default(),
            limit: upstream.timeout,
        }
    }

    /// Sends this `Authorization` with all messages.
    #[must_use]
    pub fn with_authorization(mut self, authorization: Option<HeaderValue>) -> Mcp {
        if let Some(mut authorization) = authorization {
            authorization.set_sensitive(true);
            self.client.fixed.insert(AUTHORIZATION, authorization);
        }
        self
    }

    /// Asks the server for its revisions, in the newest one. Any reply that does not name a stateless revision means
    /// sessions, but an unreachable server is an error.
    async fn discover(&self) -> Result<SessionMode, String> {
        let [.., newest] = STATELESS;
        let (id, method) = (0, "server/discover");
        let request = Bytes::from(discover(id));
        let request = annotated(&request, method, newest, self.plan.link.settings.depth);
        let post = OutboundPost {
            id: Some(id),
            body: request.body,
            headers: stateless_headers(newest, method, None),
        };
        let start = self.plan.link.settings.start_timeout;
        let result = timeout(PROBE_TIMEOUT.min(start / 2), self.client.post(post)).await;
        // A server that does not answer in time has sessions.
        let outcome = result.map_or(PostOutcome::Accepted, |PostResult { outcome, .. }| outcome);
        let found = match outcome {
            PostOutcome::Answered(body) => parse_response(&body, self.plan.link.settings.depth)
                .map_or(DiscoverResult::Sessions, |answer| {
                    discover_result(&answer.reply)
                }),
            PostOutcome::Failed(RequestError::Unreachable | RequestError::Busy) => {
                return Err("it cannot be reached".to_owned());
            }
            PostOutcome::Failed(_)
            | PostOutcome::Ended
            | PostOutcome::Refused(_)
            | PostOutcome::Accepted
            | PostOutcome::SessionLost => DiscoverResult::Sessions,
        };
        match (found, self.plan.revision) {
            (DiscoverResult::Stateless(version, server_info), _) => {
                self.server_revision.set(ServerRevision::Stateless);
                Ok(SessionMode::Stateless(version, server_info))
            }
            (DiscoverResult::Unknown(versions), _) => Err(format!(
                "it supports the revisions {}, none of which this proxy supports",
                versions.escape_debug()
            )),
            (DiscoverResult::Sessions, Revision::Stateless(wanted)) => {
                Err(format!("it does not list the revision {wanted}"))
            }
            (DiscoverResult::Sessions, Revision::Auto | Revision::Sessions(_)) => {
                Ok(SessionMode::Sessions)
            }
        }
    }
}

impl Transport for Mcp {
    type Link = Session;

    fn redaction(&self) -> &Redaction {
        &self.plan.link.redaction
    }

    async fn open(&self) -> Result<Session, String> {
        let mode = match (self.plan.revision, self.server_revision.get()) {
            // `Session` sets `Sessions` when `initialize` succeeds.
            (Revision::Sessions(_), _) | (Revision::Auto, ServerRevision::Sessions) => {
                SessionMode::Sessions
            }
            (Revision::Auto, ServerRevision::Unknown | ServerRevision::Stateless)
            | (Revision::Stateless(_), _) => self.discover().await?,
        };
        Ok(Session::new(self.clone(), mode))
    }
}
