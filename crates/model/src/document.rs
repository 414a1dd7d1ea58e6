//! API documents generated from the route table: OpenAPI of the REST side, OpenRPC of the RPC side.
//!
//! They describe requests and responses as far as patterns do; a value that a pattern carries unopened is `{}`. Every
//! operation has the name of its route as `x-dualgauge-route`, or a list if several routes share it. Laws: the same
//! routes give the same document; their order in a file stays visible; a route that clients can call only on the other
//! side is left out.
//!
//! Used by `app`, `cli` and `config`.

mod api_info;
mod bundle;
mod described;
mod openapi;
mod openrpc;
mod parameter;
mod response;
mod route_names;
mod schema;
#[cfg(test)]
mod tests;
mod tools;

use serde_json::Value;

use dualgauge_patterns::json::Json;

pub use api_info::{ApiInfo, TITLE};
pub use bundle::{Messages, bundled};
pub use openapi::openapi;
pub use openrpc::openrpc;
pub use tools::tools;

/// Renders a document for serving; called once for each plan.
#[must_use]
pub fn rendered(document: &Value) -> Json {
    Json::written(document.to_string())
}
