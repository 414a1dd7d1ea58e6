//! Checks that MCP request headers agree with the message, which they repeat for intermediaries that read no bodies.
//!
//! Laws: a request of a revision without sessions whose header and message differ is rejected; headers of earlier
//! revisions are not checked, but an unsupported revision is rejected in any case (MCP 2026-07-28, "Server Validation";
//! 2025-11-25, "Protocol Version Header").
//!
//! Used by `rejections` and `routing::mcp_checks`.

use http::{HeaderMap, HeaderName};

use super::envelope::{CAPABILITIES_KEY, VERSION_KEY, marked, named_by};
use super::result::ClientRevision;
use crate::jsonrpc::Call;
use crate::local_reply::HANDSHAKES;
use dualgauge_patterns::json::JsonKind;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The reason why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderMismatch {
    /// A header differs from the message.
    Mismatch(String),
    /// The message lacks what each request of its revision has.
    Missing(String),
    /// The method does not exist in the revision of the request.
    Removed(String),
    /// The revision is not supported.
    Unsupported(String),
}

/// Returns whether a client uses a revision without sessions, according to its headers.
#[must_use]
pub fn is_modern(headers: &HeaderMap) -> bool {
    let value = headers.get(&VERSION).map(http::HeaderValue::as_bytes);
    value.is_some_and(|value| !HANDSHAKES.iter().any(|known| known.as_bytes() == value))
}

/// Checks that the headers of a request repeat its message, and that its revision is supported; an empty list supports
/// all.
///
/// # Errors
/// A [`HeaderMismatch`].
pub fn check(headers: &HeaderMap, call: &Call, supported: &[String]) -> Result<(), HeaderMismatch> {
    if call.id.is_none() {
        // The headers of notifications are not defined.
        return Ok(());
    }
    let header = one(headers, &VERSION)?;
    let body = version(call)?;
    let is_old = |value: &str| HANDSHAKES.contains(&value);
    let version = match (header, body) {
        (None, None) => return Ok(()),
        // The revision is still being negotiated.
        (Some(_), None) if *call.method == *"initialize" => return Ok(()),
        (Some(value), None) if is_old(value) || !is_supported(value, supported) => {
            return require_supported(value, supported);
        }
        (Some(_), None) => {
            let what = format!("params/_meta: `{VERSION_KEY}` is missing");
            return Err(HeaderMismatch::Missing(what));
        }
        // Earlier revisions do not know this member.
        (None, Some(value)) if is_old(&value) => return Ok(()),
        (None, Some(_)) => return mismatch("`MCP-Protocol-Version` is missing".to_owned()),
        (Some(header), Some(body)) if header != body => {
            return differ("MCP-Protocol-Version", header, &body);
        }
        (Some(value), Some(_)) => value,
    };
    if !is_old(version) {
        check_method_and_name(headers, call)?;
    }
    require_supported(version, supported)?;
    match !is_old(version) && *call.method == *"initialize" {
        // The proxy would answer it, as if there were a session.
        true => Err(HeaderMismatch::Removed(call.method.to_string())),
        false => Ok(()),
    }
}

/// Checks the method, and the name if the method has one.
fn check_method_and_name(headers: &HeaderMap, call: &Call) -> Result<(), HeaderMismatch> {
    match one(headers, &METHOD)? {
        None => return mismatch("`Mcp-Method` is missing".to_owned()),
        Some(value) if *value != *call.method => return differ("Mcp-Method", value, &call.method),
        Some(_) => {}
    }
    let Some(key) = named_by(&call.method) else {
        return Ok(());
    };
    let name = call.params.as_ref().and_then(|params| params.member(key));
    let name = name.and_then(|name| name.text()?.ok());
    match (one(headers, &NAME)?, name) {
        (None, None) => Ok(()),
        (Some(value), Some(name)) if has_header(value, &name) => Ok(()),
        (None, Some(_)) => mismatch("`Mcp-Name` is missing".to_owned()),
        (Some(value), name) => differ("Mcp-Name", value, &name.unwrap_or_default()),
    }
}

/// Checks that the revision of a message without headers is supported. A message without a revision comes from an older
/// client.
///
/// # Errors
/// [`HeaderMismatch::Unsupported`].
pub fn check_message(call: &Call, supported: &[String]) -> Result<(), HeaderMismatch> {
    match version(call) {
        Ok(Some(version)) => require_supported(&version, supported),
        // There is no header to contradict.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Checks that the name or URI of a call is a string, if present.
///
/// # Errors
/// A text that names the member of the wrong type.
pub fn named(call: &Call) -> Result<(), String> {
    let Some(key) = named_by(&call.method) else {
        return Ok(());
    };
    let params = call.params.as_ref();
    let name = params.and_then(|params| params.member(key));
    match name.is_some_and(|name| name.kind() != JsonKind::String) {
        true => Err(format!("params/{key}: it must be a string")),
        false => Ok(()),
    }
}

/// Checks that a call of a client without sessions lists the client's capabilities (MCP 2026-07-28, "Per-Request
/// Protocol Fields"). [`check`] has checked the revision.
///
/// # Errors
/// A text that names the member that is missing or of the wrong type.
pub fn check_client_capabilities(
    client_revision: ClientRevision,
    call: &Call,
) -> Result<(), String> {
    if client_revision == ClientRevision::Sessions {
        return Ok(());
    }
    let meta = call
        .params
        .as_ref()
        .and_then(|params| params.member("_meta"));
    match meta.and_then(|meta| meta.member(CAPABILITIES_KEY)) {
        None => Err(format!("params/_meta: `{CAPABILITIES_KEY}` is missing")),
        Some(value) if value.kind() != JsonKind::Object => Err(format!(
            "params/_meta: `{CAPABILITIES_KEY}` must be an object"
        )),
        Some(_) => Ok(()),
    }
}

/// Returns whether a header contains a text, either unchanged or in marked base64 ("Value Encoding").
fn has_header(value: &str, text: &str) -> bool {
    if value.starts_with("=?base64?") && value.ends_with("?=") {
        return value == marked(text);
    }
    value == text
}

/// Returns the revision according to the message.
fn version(call: &Call) -> Result<Option<String>, HeaderMismatch> {
    let value = call
        .params
        .as_ref()
        .and_then(|params| params.member("_meta"));
    let Some(value) = value.and_then(|meta| meta.member(VERSION_KEY)) else {
        return Ok(None);
    };
    match value.text() {
        Some(Ok(version)) => Ok(Some(version)),
        Some(Err(_)) | None => mismatch(format!("`{VERSION_KEY}` is not a string")),
    }
}

/// Returns the value of a header, if present. A repeated header, or one that is not visible ASCII, is a mismatch.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, HeaderMismatch> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    match (value.to_str(), all.next()) {
        (Ok(value), None) => Ok(Some(value)),
        (_, Some(_)) => mismatch(format!("`{name}` is given twice")),
        (Err(_), None) => mismatch(format!("`{name}` has invalid characters")),
    }
}

fn is_supported(version: &str, supported: &[String]) -> bool {
    supported.is_empty() || supported.iter().any(|known| known == version)
}

fn require_supported(version: &str, supported: &[String]) -> Result<(), HeaderMismatch> {
    match is_supported(version, supported) {
        true => Ok(()),
        false => Err(HeaderMismatch::Unsupported(version.to_owned())),
    }
}

fn differ<T>(header: &str, value: &str, body: &str) -> Result<T, HeaderMismatch> {
    let shortened = |text: &str| {
        let text: String = text.chars().take(100).collect();
        text.escape_debug().to_string()
    };
    let (value, body) = (shortened(value), shortened(body));
    mismatch(format!(
        "`{header}` is `{value}`, but the message has `{body}`"
    ))
}

fn mismatch<T>(what: String) -> Result<T, HeaderMismatch> {
    Err(HeaderMismatch::Mismatch(what))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    const NEW: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

    fn called(message: String) -> Call {
        let limits = MessageLimits {
            depth: 16,
            batch: 1,
        };
        let Ok(Incoming::Single(MessageItem::Call(call))) = parse(&message.into(), limits) else {
            panic!("no call");
        };
        call
    }

    fn checked(
        headers: &[(&'static str, &str)],
        method: &str,
        params: &str,
    ) -> Option<HeaderMismatch> {
        let all = headers.iter().map(|(name, value)| {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            (HeaderName::from_static(name), value)
        });
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(name, value);
        }
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        let supported = ["2025-06-18", "2026-07-28"].map(str::to_owned);
        check(&headers, &called(message), &supported).err()
    }

    fn is_mismatch(found: &Option<HeaderMismatch>) -> bool {
        matches!(found, Some(HeaderMismatch::Mismatch(_)))
    }

    #[test]
    fn headers_that_repeat_the_message_agree() {
        let named = format!(r#""name":"a",{META}"#);
        let agrees = [NEW, ("mcp-method", "tools/call"), ("mcp-name", "a")];
        assert_eq!(checked(&agrees, "tools/call", &named), None);
        for (text, header) in [
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            ("a", "=?base64?YQ==?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            let params = format!(r#""uri":"{text}",{META}"#);
            let value = [NEW, ("mcp-method", "resources/read"), ("mcp-name", header)];
            assert_eq!(checked(&value, "resources/read", &params), None, "{text}");
        }
        assert_eq!(checked(&[NEW, ("mcp-method", "x")], "x", META), None);
    }

    #[test]
    fn contradictory_headers_are_refused() {
        let named = format!(r#""name":"a",{META}"#);
        let method = ("mcp-method", "tools/call");
        for headers in [
            &[][..],
            &[NEW],
            &[method, ("mcp-name", "a")],
            &[NEW, method],
            &[NEW, method, ("mcp-name", "b")],
            &[NEW, method, ("mcp-name", "A")],
            &[NEW, method, ("mcp-name", "=?base64?Yg==?=")],
            &[NEW, method, ("mcp-name", "a"), ("mcp-name", "a")],
            &[NEW, ("mcp-method", "tools/list"), ("mcp-name", "a")],
            &[
                ("mcp-protocol-version", "2025-06-18"),
                method,
                ("mcp-name", "a"),
            ],
            &[
                ("mcp-protocol-version", "\u{e4}"),
                method,
                ("mcp-name", "a"),
            ],
        ] {
            let found = checked(headers, "tools/call", &named);
            assert!(is_mismatch(&found), "{headers:?}: {found:?}");
        }
        let raw = format!(r#""name":"größe",{META}"#);
        let value = [NEW, method, ("mcp-name", "größe")];
        assert!(is_mismatch(&checked(&value, "tools/call", &raw)));
        let twice = format!(r#""name":"=?base64?YQ==?=",{META}"#);
        let value = [NEW, method, ("mcp-name", "=?base64?YQ==?=")];
        assert!(is_mismatch(&checked(&value, "tools/call", &twice)));
        let number = r#""_meta":{"io.modelcontextprotocol/protocolVersion":1}"#;
        assert!(is_mismatch(&checked(
            &[NEW, ("mcp-method", "x")],
            "x",
            number
        )));
    }

    #[test]
    fn a_request_without_its_revision_lacks_a_param_and_one_without_sessions_begins_none() {
        let missing = checked(&[NEW, ("mcp-method", "x")], "x", "");
        assert!(
            matches!(missing, Some(HeaderMismatch::Missing(_))),
            "{missing:?}"
        );
        let method = ("mcp-method", "initialize");
        let removed = Some(HeaderMismatch::Removed("initialize".to_owned()));
        assert_eq!(checked(&[NEW, method], "initialize", META), removed);
        // The revision is still being negotiated.
        assert_eq!(checked(&[NEW], "initialize", ""), None);
    }

    #[test]
    fn an_unsupported_revision_is_named() {
        let version = |version| ("mcp-protocol-version", version);
        let unsupported = |version: &str| Some(HeaderMismatch::Unsupported(version.to_owned()));
        let later = META.replace("2026-07-28", "2027-01-01");
        let value = [version("2027-01-01"), ("mcp-method", "x")];
        assert_eq!(checked(&value, "x", &later), unsupported("2027-01-01"));
        assert_eq!(
            checked(&[version("2025-03-26")], "x", ""),
            unsupported("2025-03-26")
        );
        assert_eq!(checked(&[version("1999")], "x", ""), unsupported("1999"));
        // A contradiction within the request is reported first.
        let value = [version("2027-01-01"), ("mcp-method", "y")];
        assert!(is_mismatch(&checked(&value, "x", &later)));
    }

    #[test]
    fn headers_of_earlier_revisions_are_not_checked() {
        let old = ("mcp-protocol-version", "2025-06-18");
        assert_eq!(checked(&[], "tools/call", r#""name":"a""#), None);
        assert_eq!(checked(&[old], "tools/call", r#""name":"a""#), None);
        assert_eq!(checked(&[("mcp-method", "other")], "x", ""), None);
        assert_eq!(checked(&[NEW], "initialize", ""), None);
        let meta = META.replace("2026-07-28", "2025-06-18");
        assert_eq!(checked(&[], "x", &meta), None);
        assert_eq!(checked(&[old], "x", &meta), None);
        let call = called(r#"{"jsonrpc":"2.0","method":"x"}"#.to_owned());
        let headers = HeaderMap::from_iter([(VERSION, HeaderValue::from_static("1"))]);
        assert_eq!(check(&headers, &call, &["2".to_owned()]), Ok(()));
    }

    fn call_of(method: &str, params: &str) -> Call {
        called(format!(
            r#"{{"id":1,"jsonrpc":"2.0","method":"{method}","params":{params}}}"#
        ))
    }

    #[test]
    fn the_name_in_a_call_must_be_a_string() {
        for (method, key) in [
            ("tools/call", "name"),
            ("prompts/get", "name"),
            ("resources/read", "uri"),
        ] {
            for value in ["7", "null", "{}", "[]", "true"] {
                let params = format!(r#"{{"{key}":{value}}}"#);
                let wrong = format!("params/{key}: it must be a string");
                assert_eq!(named(&call_of(method, &params)), Err(wrong));
                assert_eq!(named(&call_of("other", &params)), Ok(()));
            }
            let params = format!(r#"{{"{key}":"7"}}"#);
            assert_eq!(named(&call_of(method, &params)), Ok(()));
            // The server reports the missing member.
            assert_eq!(named(&call_of(method, "{}")), Ok(()));
        }
    }

    #[test]
    fn a_call_of_a_client_without_sessions_lists_capabilities() {
        let able = r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#;
        assert_eq!(
            check_client_capabilities(ClientRevision::Stateless, &call_of("x", able)),
            Ok(())
        );
        for params in [
            "{}",
            "[]",
            r#"{"_meta":7}"#,
            r#"{"_meta":{}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":7}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":null}}"#,
        ] {
            let call = call_of("x", params);
            assert_eq!(
                check_client_capabilities(ClientRevision::Sessions, &call),
                Ok(())
            );
            let wrong = check_client_capabilities(ClientRevision::Stateless, &call).unwrap_err();
            assert!(wrong.contains(CAPABILITIES_KEY), "{params}: {wrong}");
        }
    }

    #[test]
    fn a_message_without_headers_names_a_supported_revision() {
        let supported = ["2026-07-28".to_owned()];
        let message = |version: &str| {
            let params =
                format!(r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":{version}}}}}"#);
            check_message(&call_of("x", &params), &supported)
        };
        assert_eq!(message(r#""2026-07-28""#), Ok(()));
        assert_eq!(message("7"), Ok(()));
        assert_eq!(check_message(&call_of("x", "{}"), &supported), Ok(()));
        let unsupported = HeaderMismatch::Unsupported("2099-01-01".to_owned());
        assert_eq!(message(r#""2099-01-01""#), Err(unsupported));
    }

    #[test]
    fn headers_identify_clients_without_sessions() {
        let modern = |value| {
            is_modern(&HeaderMap::from_iter([(
                VERSION,
                HeaderValue::from_static(value),
            )]))
        };
        assert!(modern("2026-07-28") && modern("2027-01-01"));
        assert!(!modern("2025-11-25") && !is_modern(&HeaderMap::new()));
    }
}
