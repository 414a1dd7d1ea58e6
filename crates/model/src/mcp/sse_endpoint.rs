//! The `endpoint` event of the transport HTTP with SSE (MCP 2024-11-05, "Transports"): where a client posts its messages.
//!
//! Law: messages never go to another origin than that of the event stream, since they may carry credentials.
//!
//! Used by `upstream::mcp::sse` and `gateway::rpc`.

use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;

use crate::sse::RawEvent;

/// The name of the event.
const ENDPOINT: &str = "endpoint";
/// The maximum length of an endpoint.
const MOST: usize = 2048;

/// An event in the life of a client's event stream, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEvent {
    /// A client opened a stream.
    Opened,
    /// A stream ended.
    Ended,
    /// A client got no stream, because too many are open.
    Refused,
}

impl SessionEvent {
    /// All values, in the order of their numbers.
    pub const ALL: [SessionEvent; 3] = [
        SessionEvent::Opened,
        SessionEvent::Ended,
        SessionEvent::Refused,
    ];

    /// Returns the word of metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SessionEvent::Opened => "opened",
            SessionEvent::Ended => "ended",
            SessionEvent::Refused => "refused",
        }
    }
}

/// The reason why an endpoint is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointFault {
    /// More than 2,048 bytes.
    #[error("it is too long")]
    TooLong,
    /// Neither a URL nor a path.
    #[error("it is not a URL")]
    NotAUrl,
    /// A URL of another server.
    #[error("it is on another origin")]
    OtherOrigin,
}

/// The origin and the path of an event stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamUrl<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// `host:port` as in requests.
    pub authority: &'a str,
    /// The path of the stream.
    pub path: &'a str,
}

/// Returns the data of an event if it is the `endpoint` event.
#[must_use]
pub fn endpoint_of_event(event: &Bytes) -> Option<String> {
    let event = RawEvent::read(event)?;
    let data = event.data().filter(|_| event.event() == ENDPOINT)?;
    Some(data.trim().to_owned())
}

/// Returns the target of POSTs that an endpoint names, relative to the URL of its stream (RFC 3986 §5.2).
///
/// # Errors
/// [`EndpointFault`] if messages may not go there.
pub fn endpoint_target(
    endpoint: &str,
    stream: StreamUrl<'_>,
) -> Result<PathAndQuery, EndpointFault> {
    if endpoint.len() > MOST {
        return Err(EndpointFault::TooLong);
    }
    let endpoint = endpoint.split('#').next().unwrap_or_default();
    if endpoint.contains("://") || endpoint.starts_with("//") {
        return absolute(endpoint, stream);
    }
    let whole = match endpoint.chars().next() {
        None => return Err(EndpointFault::NotAUrl),
        Some('/') => endpoint.to_owned(),
        Some('?') => format!("{}{endpoint}", stream.path),
        Some(_) => {
            let folder = stream.path.rfind('/').map_or(0, |slash| slash + 1);
            format!("{}{endpoint}", &stream.path[..folder])
        }
    };
    whole.try_into().map_err(|_| EndpointFault::NotAUrl)
}

fn absolute(endpoint: &str, stream: StreamUrl<'_>) -> Result<PathAndQuery, EndpointFault> {
    let whole = match endpoint.starts_with("//") {
        true => format!("{}:{endpoint}", stream.scheme),
        false => endpoint.to_owned(),
    };
    let uri: Uri = whole.parse().map_err(|_| EndpointFault::NotAUrl)?;
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let is_same = scheme.eq_ignore_ascii_case(stream.scheme)
        && with_port(authority, scheme).eq_ignore_ascii_case(&with_port(stream.authority, scheme));
    if !is_same {
        return Err(EndpointFault::OtherOrigin);
    }
    Ok(uri
        .path_and_query()
        .cloned()
        .unwrap_or(PathAndQuery::from_static("/")))
}

fn with_port(authority: &str, scheme: &str) -> String {
    crate::plan::with_port(authority, if scheme == "https" { 443 } else { 80 })
}

/// Writes the `endpoint` event for a target of this origin.
#[must_use]
pub fn endpoint_event(target: &str) -> Bytes {
    format!("event: {ENDPOINT}\ndata: {target}\n\n").into()
}

/// Reads any bytes as an event and as an endpoint, and checks the law of this module. For the fuzz target and its corpus.
#[doc(hidden)]
pub fn check_any_endpoint(data: &[u8]) {
    let stream = StreamUrl {
        scheme: "http",
        authority: "server.example:8000",
        path: "/a/sse",
    };
    let _ = endpoint_of_event(&Bytes::copy_from_slice(data));
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(target) = endpoint_target(text, stream) {
        assert!(
            target.as_str().starts_with('/'),
            "a target of the same origin"
        );
        let again = endpoint_target(target.as_str(), stream);
        assert!(
            target.as_str().starts_with("//") || again == Ok(target),
            "a path stays as it is"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: StreamUrl<'_> = StreamUrl {
        scheme: "http",
        authority: "10.0.0.5:8000",
        path: "/tools/sse",
    };

    #[test]
    fn an_endpoint_is_relative_to_its_stream() {
        for (endpoint, target) in [
            ("/messages/?session_id=1", "/messages/?session_id=1"),
            ("messages?s=1", "/tools/messages?s=1"),
            ("?s=1", "/tools/sse?s=1"),
            ("http://10.0.0.5:8000/messages?s=1", "/messages?s=1"),
            ("HTTP://10.0.0.5:8000", "/"),
            ("//10.0.0.5:8000/m#part", "/m"),
        ] {
            let found = endpoint_target(endpoint, STREAM).map(|found| found.to_string());
            assert_eq!(found, Ok(target.to_owned()), "{endpoint}");
        }
        let secured = StreamUrl {
            scheme: "https",
            authority: "tools.example",
            path: "/sse",
        };
        let found = endpoint_target("https://tools.example:443/m", secured);
        assert_eq!(found.unwrap().as_str(), "/m");
    }

    #[test]
    fn messages_go_to_no_other_origin() {
        for endpoint in [
            "http://10.0.0.6:8000/m",
            "http://10.0.0.5/m",
            "https://10.0.0.5:8000/m",
            "http://me@10.0.0.5:8000/m",
            "//evil.example/m",
        ] {
            let found = endpoint_target(endpoint, STREAM);
            assert_eq!(found, Err(EndpointFault::OtherOrigin), "{endpoint}");
        }
        assert_eq!(endpoint_target("", STREAM), Err(EndpointFault::NotAUrl));
        assert_eq!(endpoint_target("/a b", STREAM), Err(EndpointFault::NotAUrl));
        let long = format!("/{}", "x".repeat(MOST));
        assert_eq!(endpoint_target(&long, STREAM), Err(EndpointFault::TooLong));
    }

    #[test]
    fn only_the_endpoint_event_has_an_endpoint() {
        let data = |event: &'static str| endpoint_of_event(&Bytes::from_static(event.as_bytes()));
        assert_eq!(
            data("event: endpoint\ndata: /m?s=1\n\n").as_deref(),
            Some("/m?s=1")
        );
        assert_eq!(data("data: /m?s=1\n\n"), None);
        assert_eq!(
            endpoint_of_event(&endpoint_event("/m?s=2")).as_deref(),
            Some("/m?s=2")
        );
    }
}
