//! Requests for the protected resource metadata of an MCP server behind an RPC path (RFC 9728).
//!
//! Used by `explain` and `gateway`.

use http::Method;
use http::uri::PathAndQuery;

use super::{RequestHead, is_local, is_routed};
use crate::mcp::{METADATA_PATH, metadata_resource};
use crate::plan::{PathIrregularity, Plan, Transport, UpstreamPlan};
use crate::route::without_slash;
use dualgauge_patterns::side::Side;

/// A request for the metadata of the server behind an RPC path.
#[derive(Debug, Clone, Copy)]
pub struct MetadataRequest<'p> {
    /// The index of the upstream.
    pub index: usize,
    /// The upstream.
    pub upstream: &'p UpstreamPlan,
    /// The path of the resource at the proxy; empty for the whole proxy.
    pub resource: &'p str,
}

impl MetadataRequest<'_> {
    /// Returns the paths of the metadata at the server, the first one first. Servers publish the metadata of their
    /// endpoint at its own path, that of the origin, or both (MCP, "Protected Resource Metadata Discovery").
    #[must_use]
    pub fn targets(&self) -> Vec<PathAndQuery> {
        let endpoint = without_slash(self.upstream.path.path());
        let is_whole = self.resource.is_empty() || endpoint == "/";
        let own = (!is_whole).then(|| format!("{METADATA_PATH}{endpoint}"));
        let paths = own.into_iter().chain([METADATA_PATH.to_owned()]);
        // Two valid paths make a valid one.
        paths.filter_map(|path| path.try_into().ok()).collect()
    }
}

/// Returns the request for metadata that a request is. Routes and local replies come first. A REST upstream keeps the
/// metadata of the whole origin; those of an RPC path belong to the server behind it.
#[must_use]
pub fn metadata_request<'p>(plan: &'p Plan, head: RequestHead<'p>) -> Option<MetadataRequest<'p>> {
    let resource = metadata_resource(head.uri.path(), plan.public_url.as_ref())?;
    if !matches!(*head.method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return None;
    }
    let index = plan.upstreams.of(None, Side::Rpc)?;
    let upstream = plan.upstreams.all.get(index)?;
    let is_http = match upstream.transport {
        Transport::Http | Transport::Mcp(_) => true,
        Transport::Stdio(_) | Transport::WebSocket(_) | Transport::Frames(_) => false,
    };
    let of_endpoint =
        || !resource.is_empty() && plan.face.find(resource) == Some(PathIrregularity::No);
    let of_origin = || resource.is_empty() && plan.upstream(Side::Rest).is_none();
    let is_taken = || is_local(plan, head) || is_routed(plan, head);
    let is_found = is_http && (of_endpoint() || of_origin()) && !is_taken();
    is_found.then_some(MetadataRequest {
        index,
        upstream,
        resource,
    })
}

/// Returns the RPC path that a request names, as part of the identifier of its resource; the first one if it names none.
#[must_use]
pub fn public_rpc_path<'p>(plan: &'p Plan, path: &'p str) -> &'p str {
    if plan.face.find(path) == Some(PathIrregularity::No) {
        return without_slash(path);
    }
    plan.face.paths.first().map_or("", String::as_str)
}
