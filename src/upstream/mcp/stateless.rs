//! Headers of stateless revisions. Used by `mcp` and `mcp::call`.

use http::{HeaderMap, HeaderValue};

use super::post::VERSION;
use dualgauge_model::mcp::header_value;

/// Returns the headers of a request of a stateless revision (MCP 2026-07-28, "Standard Request Headers").
pub(super) fn stateless_headers(
    version: &'static str,
    method: &str,
    name: Option<&str>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(VERSION, HeaderValue::from_static(version));
    let fields = [("mcp-method", Some(method)), ("mcp-name", name)];
    for (header, value) in fields {
        let value = value.map(|value| HeaderValue::from_str(&header_value(value)));
        if let Some(Ok(value)) = value {
            headers.insert(header, value);
        }
    }
    headers
}
