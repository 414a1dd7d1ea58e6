//! An MCP server over Streamable HTTP, as a link: each message is a POST of its own, and what the server says on the
//! ways back is heard as if it came on one line.
//!
//! A [`SessionStart`] is such a link, with a session of the server or, where the server speaks a revision without, with none.
//! Several POSTs run at a time, all of them within the one task that owns the link.

mod call;
mod coded;
mod get_stream;
mod post;
mod refused;
mod retry;
mod session;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::time::timeout;

pub use session::Session;

use self::post::{OutboundPost, PostClient, PostOutcome, PostResult};
use super::link::Transport;
use super::{HttpUpstream, MemoryBudget, Tasks};
use crate::domain::json::Json;
use crate::domain::jsonrpc::parse_response;
use crate::domain::local_reply::STATELESS;
use crate::domain::mcp::{DiscoverResult, ParamHeaders, Revision, annotated, discover, verdict};
use crate::domain::pending::{RequestError, SUBSCRIPTIONS};
use crate::domain::plan::{McpPlan, UpstreamPlan};

/// How many connections the messages of a link itself may have beside those of calls and subscriptions.
const OWN_CONNECTIONS: usize = 16;
/// How long the question for the revision may take. Some servers never answer what they do not know.
const PROBE: Duration = Duration::from_secs(10);

/// A server that sessions can be opened with.
#[derive(Debug, Clone)]
pub struct Mcp {
    plan: Rc<McpPlan>,
    door: PostClient,
    /// What was found out about the server; each of its links begins with it.
    era: Rc<Cell<ServerRevision>>,
    own_stream: Rc<Cell<GetStream>>,
    /// The tools that want headers.
    mirrored: Rc<RefCell<ParamHeaders>>,
    /// Bounds what the link says by itself.
    limit: Duration,
}

/// What is known of a server's revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerRevision {
    Unknown,
    Sessions,
    Stateless,
}

/// Whether a server has a stream for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GetStream {
    Unknown,
    /// It has said that it has none.
    Never,
}

/// How a link is spoken.
#[derive(Debug, Clone)]
enum SessionMode {
    /// With `initialize`, and a session if the server gives one.
    Sessions,
    /// By this revision, with what the server says of itself.
    Stateless(&'static str, Json),
}

impl Mcp {
    /// The server of a plan. Connections are served by `tasks`; what is decoded is counted in `memory`.
    #[must_use]
    pub fn new(
        upstream: &UpstreamPlan,
        plan: McpPlan,
        (tasks, memory): (Tasks, MemoryBudget),
    ) -> Mcp {
        let calls = plan.link.settings.order.in_flight();
        let http = UpstreamPlan {
            connections: calls + SUBSCRIPTIONS + OWN_CONNECTIONS,
            queue: calls,
            ..upstream.clone()
        };
        let door = PostClient::new(
            HttpUpstream::new(http, tasks.clone()),
            (tasks, memory),
            &plan,
        );
        Mcp {
            plan: Rc::new(plan),
            door,
            era: Rc::new(Cell::new(ServerRevision::Unknown)),
            own_stream: Rc::new(Cell::new(GetStream::Unknown)),
            mirrored: Rc::default(),
            limit: upstream.timeout,
        }
    }

    /// Asks the server for its revisions, in the newest one. Whatever it says that is no sign of it means another, but a
    /// server that cannot be reached says nothing.
    async fn discover(&self) -> Result<SessionMode, String> {
        let [.., newest] = STATELESS;
        let (id, method) = (0, "server/discover");
        let asked = Bytes::from(discover(id));
        let dressed = annotated(&asked, method, newest, self.plan.link.settings.depth);
        let letter = OutboundPost {
            id: Some(id),
            body: dressed.body,
            headers: stateless_headers(newest, method, None),
        };
        let start = self.plan.link.settings.start_timeout;
        let came = timeout(PROBE.min(start / 2), self.door.post(letter)).await;
        let outcome = came.map_or(PostOutcome::Accepted, |PostResult { outcome, .. }| outcome);
        let found = match outcome {
            PostOutcome::Answered(body) => parse_response(&body, self.plan.link.settings.depth)
                .map_or(DiscoverResult::Sessions, |answer| verdict(&answer.reply)),
            PostOutcome::Failed(RequestError::Unreachable | RequestError::Busy) => {
                return Err("it cannot be reached".to_owned());
            }
            PostOutcome::Failed(_)
            | PostOutcome::Refused(_)
            | PostOutcome::Accepted
            | PostOutcome::Forgotten => DiscoverResult::Sessions,
        };
        match (found, self.plan.revision) {
            (DiscoverResult::Stateless(version, greeting), _) => {
                self.era.set(ServerRevision::Stateless);
                Ok(SessionMode::Stateless(version, greeting))
            }
            (DiscoverResult::Unknown(versions), _) => Err(format!(
                "it speaks the revisions {}, and none that is known here",
                versions.escape_debug()
            )),
            (DiscoverResult::Sessions, Revision::Stateless(wanted)) => Err(format!(
                "it does not say that it speaks the revision {wanted}"
            )),
            (DiscoverResult::Sessions, Revision::Auto | Revision::Sessions(_)) => {
                Ok(SessionMode::Sessions)
            }
        }
    }
}

impl Transport for Mcp {
    type Link = Session;

    async fn open(&self) -> Result<Session, String> {
        let mode = match (self.plan.revision, self.era.get()) {
            (Revision::Sessions(_), _) | (Revision::Auto, ServerRevision::Sessions) => {
                SessionMode::Sessions
            }
            (Revision::Auto, ServerRevision::Unknown | ServerRevision::Stateless)
            | (Revision::Stateless(_), _) => self.discover().await?,
        };
        Ok(Session::new(self.clone(), mode))
    }
}

/// The headers that each request of a revision without sessions bears (MCP 2026-07-28, "Standard Request Headers").
fn stateless_headers(version: &'static str, method: &str, name: Option<&str>) -> HeaderMap {
    use crate::domain::mcp::header_value;
    let mut headers = HeaderMap::new();
    headers.insert(post::VERSION, HeaderValue::from_static(version));
    let said = [("mcp-method", Some(method)), ("mcp-name", name)];
    for (header, value) in said {
        let value = value.map(|value| HeaderValue::from_str(&header_value(value)));
        if let Some(Ok(value)) = value {
            headers.insert(header, value);
        }
    }
    headers
}
