//! Defaults that changed, and the routes that a change affects.
//!
//! CHANGELOG.md lists the changes in the section "Upgrading", one row each. One note is printed for each route that a
//! change affects, and one for the changes that affect all routes. It shows the operator before the upgrade which calls
//! will behave differently. A key that the file sets settles its change.
//!
//! Used by `cli::check::upgrade`.

use super::mapped::lacks_tool_failures;
use crate::cors::{Cors, Origins};
use crate::failure::FailureCodes;
use crate::outcome::{OutcomeRow, RpcReplyPattern, ToolResult};
use crate::pending::LogMessages;
use crate::plan::{Plan, Sharing, Transport, UpstreamPlan};
use crate::route::{Effect, EmptyBody, Extra, Route, RouteForm, UnknownNames, has_content};
use dualgauge_patterns::side::Side;

/// The codes of proxy failures before they moved out of the range reserved for servers.
const FORMER_CODES: std::ops::RangeInclusive<i64> = -32019..=-32001;

/// The statuses with which a server refuses a caller for a reason that the caller can act on.
const REFUSALS: [i64; 4] = [401, 403, 429, 503];

/// A default that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Query names that the route does not know are refused.
    UnknownQuery,
    /// Empty params become the body `{}`.
    EmptyBody,
    /// Members that the route has no place for are refused.
    UnknownMembers,
    /// An empty 200 is the result `null`.
    EmptyAnswer,
    /// REST errors that no row names have other codes.
    ErrorCodes,
    /// 401, 403, 429 and 503 of the REST server keep their HTTP status for RPC clients.
    ErrorStatus,
    /// 401, 403, 429 and 503 of the RPC server keep their HTTP status for REST clients.
    RpcStatus,
    /// A tool that failed is 422.
    ToolError,
    /// A failed REST answer to the call of a tool is a result.
    ToolResult,
    /// A row reads or writes a code that proxy failures had before.
    FormerCode,
    /// The check against a schema has a limited budget.
    SchemaBudget,
    /// A tool without a route is an invalid param.
    UnknownTool,
    /// An unreadable response over a link fails its call immediately.
    LinkAnswer,
    /// Log messages of a server behind a link go to their caller only.
    LinkMessages,
    /// The WebSocket of a client opens with the connection of the client.
    ClientSocket,
    /// Results have the form of the revision of MCP that the client speaks.
    ClientRevision,
}

impl Change {
    /// All changes, in the order in which they are printed.
    pub const ALL: [Change; 16] = [
        Change::UnknownQuery,
        Change::EmptyBody,
        Change::UnknownMembers,
        Change::EmptyAnswer,
        Change::ErrorCodes,
        Change::ErrorStatus,
        Change::RpcStatus,
        Change::ToolError,
        Change::ToolResult,
        Change::FormerCode,
        Change::SchemaBudget,
        Change::UnknownTool,
        Change::LinkAnswer,
        Change::LinkMessages,
        Change::ClientSocket,
        Change::ClientRevision,
    ];
}

impl Change {
    /// Returns the word used in notes; the page on `check` explains each.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Change::UnknownQuery => "unknown_query",
            Change::EmptyBody => "empty_body",
            Change::UnknownMembers => "unknown_members",
            Change::EmptyAnswer => "empty_answer",
            Change::ErrorCodes => "error_codes",
            Change::ErrorStatus => "error_status",
            Change::RpcStatus => "rpc_status",
            Change::ToolError => "tool_error",
            Change::ToolResult => "tool_result",
            Change::FormerCode => "former_code",
            Change::SchemaBudget => "schema_budget",
            Change::UnknownTool => "unknown_tool",
            Change::LinkAnswer => "link_answer",
            Change::LinkMessages => "link_messages",
            Change::ClientSocket => "client_socket",
            Change::ClientRevision => "client_revision",
        }
    }
}

/// A default that changed for all routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GeneralChange {
    /// Failures of the proxy have codes of their own.
    FailureCodes,
    /// `Origin` and `Host` of translated calls are checked.
    Origin,
    /// Paths near that of a route are decided by one rule.
    NearPaths,
    /// An event stream as the answer to a translated call is refused.
    EventStream,
    /// A call waits for a connection to an HTTP upstream until its own timeout.
    QueueTimeout,
    /// Calls that are open at the end of a drain get an answer.
    Draining,
}

impl GeneralChange {
    /// All changes, in the order in which they are printed.
    pub const ALL: [GeneralChange; 6] = [
        GeneralChange::FailureCodes,
        GeneralChange::Origin,
        GeneralChange::NearPaths,
        GeneralChange::EventStream,
        GeneralChange::QueueTimeout,
        GeneralChange::Draining,
    ];

    /// Returns the word used in notes; the page on `check` explains each.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            GeneralChange::FailureCodes => "failure_codes",
            GeneralChange::Origin => "origin",
            GeneralChange::NearPaths => "near_paths",
            GeneralChange::EventStream => "event_stream",
            GeneralChange::QueueTimeout => "queue_timeout",
            GeneralChange::Draining => "draining",
        }
    }
}

/// Returns the changes that affect all routes of a plan, unless one of its keys settles them. Returns none for a plan
/// without a route that is served over HTTP.
#[must_use]
pub fn general_changes(plan: &Plan) -> Vec<GeneralChange> {
    let routes = || {
        plan.routes
            .routes()
            .iter()
            .filter(|route| !route.is_frame())
    };
    if routes().next().is_none() {
        return Vec::new();
    }
    let any_origin = |cors: &Cors| cors.origins == Origins::Any;
    let affects = |change: &GeneralChange| match change {
        GeneralChange::FailureCodes => plan.face.failure_codes == FailureCodes::default(),
        GeneralChange::Origin => !plan.cors.as_ref().is_some_and(any_origin),
        GeneralChange::NearPaths => routes().any(|route| route.enters_from(Side::Rest)),
        GeneralChange::EventStream | GeneralChange::Draining => true,
        GeneralChange::QueueTimeout => plan.upstreams.all.iter().any(|upstream| {
            upstream.transport == Transport::Http && upstream.queue_timeout.is_none()
        }),
    };
    GeneralChange::ALL.into_iter().filter(affects).collect()
}

/// The keys of a route that are set in its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenKeys {
    /// `extra`
    pub extra: Option<Extra>,
}

/// Returns the changes that affect the route at `index` of a plan.
#[must_use]
pub fn changes(plan: &Plan, index: usize, written: WrittenKeys) -> Vec<Change> {
    let route = plan.routes.route(index);
    if route.is_frame() {
        return Vec::new();
    }
    let serves = |from: Side, to: Side| {
        route.enters_from(from) && plan.upstream_for(Some(index), to).is_some()
    };
    let rpc = plan.upstream_for(Some(index), Side::Rpc);
    let served = ServedRoute {
        route,
        written,
        to_rpc: serves(Side::Rest, Side::Rpc),
        to_rest: serves(Side::Rpc, Side::Rest),
        link: rpc.filter(|upstream| upstream.transport.link().is_some()),
        passes_unknown: plan.upstream(Side::Rpc).is_some(),
    };
    let affects = |change: &Change| served.is_affected(*change);
    Change::ALL.into_iter().filter(affects).collect()
}

/// One route, with the directions in which its calls are translated.
struct ServedRoute<'p> {
    route: &'p Route,
    written: WrittenKeys,
    /// True when calls of REST clients reach an RPC server.
    to_rpc: bool,
    /// True when calls of RPC clients reach a REST server.
    to_rest: bool,
    /// The RPC server, if it is behind a link.
    link: Option<&'p UpstreamPlan>,
    /// True when RPC calls of no route pass to a server.
    passes_unknown: bool,
}

impl ServedRoute<'_> {
    fn is_affected(&self, change: Change) -> bool {
        let (route, written) = (self.route, self.written);
        let former = former_extra(route);
        let calls_tool = route.outcomes.tool() == ToolResult::Succeeded;
        match change {
            Change::UnknownQuery => {
                let dropped = written.extra.unwrap_or(former) != Extra::Reject;
                self.to_rpc && dropped && route.unknown_query.others == UnknownNames::Refused
            }
            Change::EmptyBody => {
                self.to_rest
                    && route.form == RouteForm::Short
                    && route.rest_call.body.is_some()
                    && route.rest_call.empty == EmptyBody::Sent
            }
            Change::UnknownMembers => {
                let dropped = written.extra.is_none() && former == Extra::Drop;
                dropped && (self.to_rest || self.to_rpc && route.form == RouteForm::Full)
            }
            Change::EmptyAnswer => {
                self.to_rest && route.effect != Effect::Safe && !self.reads_all(&[200])
            }
            Change::ErrorCodes => {
                self.to_rest && !calls_tool && !self.reads_all(&[404, 409, 410, 501])
            }
            Change::ToolResult => self.to_rest && calls_tool && !self.reads_all(&[404, 422, 500]),
            Change::ErrorStatus => self.to_rest && !self.reads_all(&REFUSALS),
            Change::RpcStatus => self.to_rpc,
            Change::ToolError => self.to_rpc && lacks_tool_failures(route),
            Change::SchemaBudget => {
                (self.to_rest || self.to_rpc)
                    && (route.schema.params.is_some() || route.schema.result.is_some())
            }
            Change::FormerCode => route.outcomes.rows().iter().any(has_former_code),
            Change::UnknownTool => {
                calls_tool && route.enters_from(Side::Rpc) && !self.passes_unknown
            }
            Change::LinkAnswer => self.link.is_some(),
            Change::LinkMessages => self.has_link(|upstream| {
                let link = upstream.transport.link();
                link.is_some_and(|link| link.settings.log_messages != LogMessages::AllSubscribers)
            }),
            Change::ClientSocket => {
                self.has_link(|upstream| upstream.transport.sharing() == Sharing::Client)
            }
            Change::ClientRevision => {
                let answered = self.to_rest || self.has_link(|_| true);
                answered && route.enters_from(Side::Rpc) && self.is_of_mcp()
            }
        }
    }

    /// Returns true when the RPC server is behind a link that satisfies `is`.
    fn has_link(&self, is: impl Fn(&UpstreamPlan) -> bool) -> bool {
        self.link.is_some_and(is)
    }

    /// Returns true when MCP clients call the method of the route.
    fn is_of_mcp(&self) -> bool {
        let families = ["tools/", "prompts/", "resources/"];
        families
            .iter()
            .any(|family| self.route.rpc.starts_with(family))
    }

    /// Returns true when rows of the route read answers with each of these statuses.
    fn reads_all(&self, statuses: &[i64]) -> bool {
        let rows = self.route.outcomes.rows();
        statuses
            .iter()
            .all(|status| rows.iter().any(|row| row.rest.status.fits(*status)))
    }
}

/// Returns the former default of `extra`.
fn former_extra(route: &Route) -> Extra {
    match (route.form, route.effect) {
        (RouteForm::Short, _) if has_content(&route.method) => Extra::Carry,
        (RouteForm::Short, _) | (RouteForm::Full, Effect::Safe | Effect::Idempotent) => Extra::Drop,
        (RouteForm::Full, Effect::Unsafe) => Extra::Reject,
    }
}

fn has_former_code(row: &OutcomeRow) -> bool {
    match &row.rpc {
        RpcReplyPattern::Error { code, .. } => {
            code.numbers().any(|code| FORMER_CODES.contains(&code))
        }
        RpcReplyPattern::Result(_) => false,
    }
}
