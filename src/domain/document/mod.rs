//! Documents made from the route table: OpenAPI of its REST side, OpenRPC of its RPC side.
//!
//! They say what a caller may send and what comes back, as far as patterns say it; a value that a pattern
//! carries unopened is `{}`. Every operation bears the name of its route as `x-dualgauge-route`, a list where
//! several routes share it. Laws: the same routes give the same document, whatever their order in a file is
//! not hidden; a route that is entered from the other side only is in none.

mod openapi;
mod openrpc;
mod parameter;
mod response;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use super::json::Json;
use super::route::Route;

pub use openapi::openapi;
pub use openrpc::openrpc;

/// What a document is called that nobody has given a title.
pub const TITLE: &str = "dualgauge";

/// The extension that leads back to the route table.
const ROUTE: &str = "x-dualgauge-route";

/// A document as bytes to serve, made once for each plan.
#[must_use]
pub fn rendered(document: &Value) -> Json {
    Json::written(document.to_string())
}

/// The names of the routes of one operation.
fn names(routes: &[&Route]) -> Value {
    match routes {
        [route] => json!(route.name),
        routes => routes.iter().map(|route| route.name.as_str()).collect(),
    }
}

/// What a document says of itself. Route tables have no version of their own.
fn info(title: &str) -> Value {
    json!({ "title": title, "version": "1" })
}
