//! Request targets (RFC 9112 §3.2): those of forwarded requests, and the origin form of the client's.
//!
//! Used throughout `gateway`.

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Uri, request};

use dualgauge_model::failure::{Failure, Reason};

/// Joins the path of an upstream's url and the client's query.
pub(super) fn upstream_uri(path: &PathAndQuery, query: Option<&str>) -> Result<Uri, Failure> {
    match query {
        Some(query) => target_uri(format!("{path}?{query}")),
        None => Ok(path.clone().into()),
    }
}

/// Parses a target written by the proxy, without copying it.
pub(super) fn target_uri(target: String) -> Result<Uri, Failure> {
    parse_target(target).map(Uri::from)
}

/// Parses a target written by the proxy as path and query.
pub(super) fn parse_target(target: String) -> Result<PathAndQuery, Failure> {
    let parsed = PathAndQuery::from_maybe_shared(Bytes::from(target));
    parsed.map_err(|error| {
        Failure::new(
            Reason::Internal,
            "the target of the translated call is not a valid URL",
        )
        .because(error)
    })
}

/// Converts the target to origin form; the authority moves to `Host` (RFC 9112 §3.2.2).
pub(super) fn origin_form(head: &mut request::Parts) {
    if head.uri.authority().is_none() || head.method == Method::CONNECT {
        return;
    }
    if let Some(host) = head
        .uri
        .authority()
        .and_then(|authority| HeaderValue::try_from(authority.as_str()).ok())
    {
        head.headers.insert(HOST, host);
    }
    let origin = head
        .uri
        .path_and_query()
        .cloned()
        .unwrap_or(PathAndQuery::from_static("/"));
    head.uri = Uri::from(origin);
}
