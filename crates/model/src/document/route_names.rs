//! The names of the routes of an operation. Used by `openapi` and `openrpc`.

use serde_json::{Value, json};

use crate::route::Route;

/// The extension that names the routes of an operation.
pub(super) const ROUTE: &str = "x-dualgauge-route";

/// Returns the names of the routes of one operation.
pub(super) fn names(routes: &[&Route]) -> Value {
    match routes {
        [route] => json!(route.name),
        routes => routes.iter().map(|route| route.name.as_str()).collect(),
    }
}
