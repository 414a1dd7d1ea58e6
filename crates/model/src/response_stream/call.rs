//! The call whose response streams: the input of its translation, and the results that are reported.

use std::sync::Arc;

use http::HeaderMap;

use crate::event::Events;
use crate::failure::{Blame, Failure, FailureCodes, Reason};
use crate::jsonrpc::RequestId;
use crate::mcp::ClientRevision;
use crate::outcome::ReplyLimits;
use crate::route::Route;
use crate::translate::TranslateContext;
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::side::Side;

/// The call whose response streams.
#[derive(Debug)]
pub struct StreamedCall {
    /// The values of the call's holes.
    pub bindings: Bindings,
    /// The client's side, with the data that its responses need.
    pub client: StreamClient,
}

/// The client of a streamed response.
#[derive(Debug)]
pub enum StreamClient {
    /// A REST client; the RPC upstream knows the call by this id.
    Rest {
        /// The id of the call at the upstream.
        upstream_id: u64,
    },
    /// An RPC client of a REST upstream.
    Rpc {
        /// The client's id of the call.
        id: RequestId,
        /// The method of the call.
        method: Arc<str>,
        /// The kind of the client's MCP revision.
        revision: ClientRevision,
        /// The status of the upstream's response.
        status: u16,
        /// The headers of the upstream's response.
        headers: HeaderMap,
    },
}

impl StreamClient {
    /// Returns the side of the client.
    #[must_use]
    pub const fn side(&self) -> Side {
        match self {
            StreamClient::Rest { .. } => Side::Rest,
            StreamClient::Rpc { .. } => Side::Rpc,
        }
    }
}

/// The parts of the plan that translate a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamScope<'p> {
    /// The route of the call.
    pub route: &'p Route,
    /// The declared events, for notifications.
    pub events: &'p Events,
    /// The limits of reading a response.
    pub limits: ReplyLimits,
    /// The codes of the proxy's failures.
    pub codes: &'p FailureCodes,
    /// The context of translations.
    pub context: TranslateContext,
}

/// The end of a streamed response other than the end of the upstream's stream.
#[derive(Debug)]
pub enum StreamEnd {
    /// The upstream reported an error.
    Error {
        /// The code of the RPC error.
        code: i64,
        /// The party at fault.
        blame: Blame,
    },
    /// A tool reported its failure.
    ToolError,
    /// The proxy reported a failure.
    Failed(Box<Failure>),
}

/// Returns the failure of an event that cannot be translated.
pub(super) fn unreadable(why: &str) -> Failure {
    let message = format!("an event of the server's response cannot be translated: {why}");
    Failure::new(Reason::UpstreamNotProtocol, message)
}
