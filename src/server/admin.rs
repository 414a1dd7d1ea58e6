//! The admin listener: health, metrics, and the flags at run time.
//!
//! ```text
//! GET               /, /console/…          the console
//! GET               /healthz               200 while the process lives
//! GET               /readyz                200 or 503, with the reasons
//! GET               /metrics               Prometheus text format 0.0.4
//! GET               /api/v1/flags          all flags in order, the kill switch, and the revision
//! GET, PUT, DELETE  /api/v1/flags/{name}   read a flag; override it; return it to the flags file
//! POST              /api/v1/flags/{name}/undo, …/rearm
//!                                          undo its last change; re-enable it after its guard tripped
//! PUT, DELETE       /api/v1/kill           turn the kill switch on; turn it off
//! PUT, DELETE       /api/v1/called-off/{route}
//!                                          cancel the brownouts of a route; allow them again
//! POST              /api/v1/undo           undo the last change of anything
//! GET               /api/v1/history        changes and their authors, newest first
//! POST              /api/v1/reload         reload the configuration files
//! GET, PUT, DELETE  /api/v1/recording      the recording of calls; start one; stop it
//! GET               /api/v1/plan           routes, clients, upstreams and defaults
//! GET, POST         /api/v1/explain        explain a call without making it; POST is read-only too
//! GET               /api/v1/usage          usage of routes by client, and the routes that may be deleted
//! GET               /api/v1/unrouted       calls without a route, by method and path template
//! GET, DELETE       /api/v1/mismatches     the last mismatches; delete them; `?route=GLOB` for some routes
//! GET               /api/v1/overview       the state of the migration, and what needs attention
//! GET               /api/v1/live           the overview as server-sent events, again whenever it changes
//! GET               /api/v1/status         the state of the configuration, with the problems of the last reload
//! GET               /api/v1/clients        a page of clients with their calls
//! GET               /api/v1/routes         a page of routes with their calls
//! GET               /api/v1/routes/{route}, …/verdict
//!                                          one route in detail; the check of its translations
//! GET               /api/v1/performance    errors, latency and verdicts, in total and of a page of routes
//! GET               /api/v1/differences    a page of mismatches and failed candidates
//! GET               /api/v1/flags/{name}/preview
//!                                          the effect that new values of a flag would have
//! POST              /ofrep/v1/evaluate/flags, …/{key}
//!                                          evaluate all flags, or one, for an application; read-only too
//! GET               /api/v1/docs           a page that shows this API
//! GET               /api/v1/admin.json     this API as an OpenAPI document
//! GET               /api/v1/openapi.json   the routes as an OpenAPI document for REST clients
//! GET               /api/v1/openrpc.json   the routes as an OpenRPC document for RPC clients
//! ```
//!
//! This module holds no state: each request becomes an [`AdminCommand`] to the task that owns the state. The API
//! changes flags, reloads files in place, and starts and stops recordings. Laws: Host and Origin are checked first; a write is
//! `application/json`; every wait, body and queue is bounded; every error is `application/problem+json`.
//!
//! Used by `app`.

mod access;
mod api;
mod client_view;
mod command;
mod connection_limit;
mod console;
mod decode;
mod differences;
mod evaluation;
mod explain;
mod live;
mod live_streams;
mod mismatches;
mod ofrep;
mod overview;
mod page;
mod performance_view;
mod problem;
mod query;
mod recording;
mod refusal;
mod response;
mod route_view;
mod routes;
mod serve;
#[cfg(test)]
mod tests;
mod token;
mod verdict_view;
mod view;
mod view_command;
mod views;

pub use api::AdminApi;
pub use client_view::{ClientRow, ServedByStage};
pub use command::{AdminCommand, ChangeRequest, Readiness, ReloadView, Reloaded};
pub use decode::{Attribution, RecordingRequest};
pub use explain::HypotheticalCall;
pub use live::AdminBody;
pub use live_streams::LiveStreams;
pub use ofrep::{EvaluatedFlags, OfrepCommand};
pub use overview::{
    AttentionKind, AttentionView, MAX_ATTENTION, OverviewView, ProblemView, ReloadCounts,
    ServedCalls, Severity, StatusView, TimelineView,
};
pub use page::{ListOrder, ListQuery, Page};
pub use performance_view::{PerformanceRow, PerformanceView, RoutePerformance};
pub use recording::{RecordingCommand, RecordingView};
pub use refusal::{Refusal, StaleSubject, StillMissing};
pub use route_view::{
    CallerRow, ExampleReplyView, ExampleView, LatencyView, OutcomePatterns, PatternPart,
    RouteDetail, RoutePatterns, RouteRow,
};
pub use serve::serve;
pub use token::AdminTokens;
pub use view::{ClientView, DefaultsView, FileView, FlagView, FlagsView, PreviewView, RampView};
pub use view::{PlanView, RouteView, UpstreamView};
pub use view_command::ViewCommand;
