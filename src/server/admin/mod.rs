//! The admin listener: health, metrics, and the flags at run time.
//!
//! ```text
//! GET               /healthz               200 as long as the process lives
//! GET               /readyz                200 or 503, with the reasons
//! GET               /metrics               Prometheus text format 0.0.4
//! GET               /api/v1/flags          all flags in order, and the revision of the flips
//! GET, PUT, DELETE  /api/v1/flags/{name}   one flag; flip it; back to the flags file
//! GET               /api/v1/plan           routes, clients, upstreams and defaults
//! GET               /api/v1/mismatches     the last mismatches; `?route=GLOB` for some routes
//! GET               /api/v1/openapi.json   what the routes are for a REST client
//! GET               /api/v1/openrpc.json   what the routes are for an RPC client
//! ```
//!
//! Nothing here holds state: each request becomes a [`Command`] to the one owner of it. The API changes flags
//! only. Laws: Host and Origin are checked before anything else; a write is `application/json`; every wait, body
//! and queue is bounded; every refusal is `application/problem+json`.

mod answer;
mod command;
mod decode;
mod gate;
mod mismatches;
mod problem;
mod serve;
mod target;
#[cfg(test)]
mod tests;
mod view;

pub use answer::Admin;
pub use command::{Change, Command, Flipping, Readiness, Refusal, Reloaded, StillMissing};
pub use serve::serve;
pub use view::{ClientView, DefaultsView, FileView, FlagView, FlagsView, FlippedView};
pub use view::{PlanView, RouteView, UpstreamView};
