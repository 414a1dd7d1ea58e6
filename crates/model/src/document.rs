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
mod schema;
#[cfg(test)]
mod tests;
mod tools;

use serde_json::{Value, json};

use super::route::Route;
use dualgauge_patterns::json::Json;

pub use api_info::ApiInfo;
pub use bundle::bundled;
pub use openapi::openapi;
pub use openrpc::openrpc;
pub use tools::tools;

/// The title of a document without a configured one.
pub const TITLE: &str = "dualgauge";

/// The extension that names the routes of an operation.
const ROUTE: &str = "x-dualgauge-route";

/// Renders a document for serving; called once for each plan.
#[must_use]
pub fn rendered(document: &Value) -> Json {
    Json::written(document.to_string())
}

/// Returns the names of the routes of one operation.
fn names(routes: &[&Route]) -> Value {
    match routes {
        [route] => json!(route.name),
        routes => routes.iter().map(|route| route.name.as_str()).collect(),
    }
}
