//! The opening handshake of a WebSocket, server side (RFC 6455 §4.2.1). Used by `explain`, `routing` and `gateway`.

use http::header::{
    CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, Method};

use super::failure::{Failure, Reason};

/// The only supported protocol version.
pub const VERSION: &str = "13";

/// Subprotocols that name the protocol used here.
const PROTOCOLS: [&str; 3] = ["jsonrpc", "jsonrpc-2.0", "mcp"];

/// The parts of a request that determine the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// `Sec-WebSocket-Key`
    pub key: &'a [u8],
    /// The first subprotocol of the client that is supported.
    pub protocol: Option<&'static str>,
}

/// A step in the life of a WebSocket with the events of a subscription, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSocketStep {
    /// A client opened the socket.
    Opened,
    /// The client closed the socket, or does not react.
    Closed,
    /// The events ended.
    Ended,
    /// The last event was a failure.
    Failed,
}

impl EventSocketStep {
    /// Every step.
    pub const ALL: [EventSocketStep; 4] = [
        EventSocketStep::Opened,
        EventSocketStep::Closed,
        EventSocketStep::Ended,
        EventSocketStep::Failed,
    ];

    /// Returns the word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventSocketStep::Opened => "opened",
            EventSocketStep::Closed => "closed",
            EventSocketStep::Ended => "ended",
            EventSocketStep::Failed => "failed",
        }
    }
}

/// Returns whether a request asks for a WebSocket. A request with content does not: its content would be read as frames
/// after the response.
#[must_use]
pub fn is_asked(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::GET
        && !has_content(headers)
        && tokens(headers, &UPGRADE).any(|token| token.eq_ignore_ascii_case("websocket"))
        && tokens(headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
}

fn has_content(headers: &HeaderMap) -> bool {
    let is_none = |length: &[u8]| length.iter().all(|digit| *digit == b'0');
    headers.contains_key(TRANSFER_ENCODING)
        || headers
            .get_all(CONTENT_LENGTH)
            .iter()
            .any(|length| !is_none(length.as_bytes()))
}

/// Parses the handshake of a request.
///
/// # Errors
/// A [`Failure`] if it has another version, or no key.
pub fn handshake(headers: &HeaderMap) -> Result<Handshake<'_>, Failure> {
    let version = one(headers, &SEC_WEBSOCKET_VERSION);
    if version != Some(VERSION.as_bytes()) {
        let message = "the version of the WebSocket protocol must be 13";
        return Err(Failure::new(Reason::MalformedHttp, message));
    }
    let key = one(headers, &SEC_WEBSOCKET_KEY).filter(|key| is_key(key));
    let key = key.ok_or_else(|| {
        let message = "`Sec-WebSocket-Key` must be 16 bytes in base64, once";
        Failure::new(Reason::MalformedHttp, message)
    })?;
    let known = |token: &str| PROTOCOLS.into_iter().find(|known| *known == token);
    Ok(Handshake {
        key,
        protocol: tokens(headers, &SEC_WEBSOCKET_PROTOCOL).find_map(known),
    })
}

/// Returns whether a key is valid: 16 bytes are 22 base64 digits and two padding characters.
fn is_key(key: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(is_digit)
}

fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.as_bytes())
}

/// Iterates over the members of a list, which may span several lines (RFC 9110 §5.3).
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn a_websocket_is_asked_for_by_two_lists() {
        let asked = [("upgrade", "h3c, WebSocket"), ("connection", "x, Upgrade")];
        assert!(is_asked(&Method::GET, &headers(&asked)));
        assert!(!is_asked(&Method::POST, &headers(&asked)));
        assert!(!is_asked(&Method::GET, &headers(&asked[..1])));
        assert!(!is_asked(&Method::GET, &headers(&asked[1..])));
    }

    #[test]
    fn a_request_with_content_asks_for_no_websocket() {
        let [upgrade, connection] = [("upgrade", "websocket"), ("connection", "upgrade")];
        let is_asked = |framing| is_asked(&Method::GET, &headers(&[upgrade, connection, framing]));
        assert!(is_asked(("content-length", "0")));
        assert!(!is_asked(("content-length", "5")));
        assert!(!is_asked(("transfer-encoding", "chunked")));
    }

    #[test]
    fn a_handshake_has_one_version_and_one_key() {
        let (version, key) = (("sec-websocket-version", "13"), ("sec-websocket-key", KEY));
        let whole = headers(&[version, key]);
        let found = handshake(&whole).unwrap();
        assert_eq!((found.key, found.protocol), (KEY.as_bytes(), None));
        let named = headers(&[version, key, ("sec-websocket-protocol", "chat, mcp")]);
        assert_eq!(handshake(&named).unwrap().protocol, Some("mcp"));
        for bad in [
            headers(&[version]),
            headers(&[key]),
            headers(&[version, key, key]),
            headers(&[version, ("sec-websocket-key", "c2hvcnQ=")]),
            headers(&[("sec-websocket-version", "8"), key]),
        ] {
            let reason = handshake(&bad).unwrap_err().reason;
            assert_eq!(reason, Reason::MalformedHttp, "{bad:?}");
        }
    }
}
