//! The admin listener: health, metrics, and the flags at run time.
//!
//! ```text
//! GET               /healthz               200 as long as the process lives
//! GET               /readyz                200 or 503, with the reasons
//! GET               /metrics               Prometheus text format 0.0.4
//! GET               /api/v1/flags          all flags in order, the kill switch, and the revision
//! GET, PUT, DELETE  /api/v1/flags/{name}   one flag; flip it; back to the flags file
//! POST              /api/v1/flags/{name}/undo, …/rearm
//!                                          take the last change of it back; put it in force after a trip
//! PUT, DELETE       /api/v1/kill           throw the kill switch; let the rollout decide again
//! PUT, DELETE       /api/v1/called-off/{route}
//!                                          call the brownouts of a route off; let them be
//! POST              /api/v1/undo           take the last change of anything back
//! GET               /api/v1/history        what was changed, by whom, the newest first
//! POST              /api/v1/reload         read the files again
//! GET               /api/v1/plan           routes, clients, upstreams and defaults
//! GET, POST         /api/v1/explain        what becomes of a call that is not made; a POST only reads as well
//! GET               /api/v1/usage          who still calls which route, and which may be deleted
//! GET, DELETE       /api/v1/mismatches     the last mismatches, forget them; `?route=GLOB` for some routes
//! GET               /api/v1/admin.json     this API as an OpenAPI document
//! GET               /api/v1/openapi.json   what the routes are for a REST client
//! GET               /api/v1/openrpc.json   what the routes are for an RPC client
//! ```
//!
//! Nothing here holds state: each request becomes a [`AdminCommand`] to the one owner of it. The API changes flags
//! only, and reads files again where they are. Laws: Host and Origin are checked before anything else; a write is `application/json`; every wait, body
//! and queue is bounded; every refusal is `application/problem+json`.

mod access;
mod command;
mod connection_limit;
mod decode;
mod explain;
mod mismatches;
mod problem;
mod query;
mod response;
mod routes;
mod serve;
#[cfg(test)]
mod tests;
mod token;
mod view;

pub use command::{
    AdminCommand, ChangeRequest, Readiness, Refusal, ReloadView, Reloaded, StillMissing,
};
pub use explain::HypotheticalCall;
pub use response::AdminApi;
pub use serve::serve;
pub use token::AdminTokens;
pub use view::{ClientView, DefaultsView, FileView, FlagView, FlagsView, RampView};
pub use view::{PlanView, RouteView, UpstreamView};
