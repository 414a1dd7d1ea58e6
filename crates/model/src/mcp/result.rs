//! Adaptation of results to the MCP revision of the client.
//!
//! A client of 2026-07-28 requires `resultType`, and for lists and resources `ttlMs` and `cacheScope` ("Result",
//! "Caching"). REST servers and servers of older revisions send none of them. A client of an older revision does not
//! know `input_required` and would read such a result as an empty success. Law: every byte that the server wrote stays.
//!
//! Used by `mcp`, `outcome`, `routing` and `gateway`.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName};
use memchr::memmem::Finder;

use super::envelope::VERSION_KEY;
use crate::jsonrpc::Call;
use crate::local_reply::STATELESS;
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::rope::{Rope, RopeWriter};

/// The header that names the revision.
static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The member that determines how to read a result. If absent, it means [`COMPLETE`].
const RESULT_TYPE: &str = "resultType";
const COMPLETE: &str = "complete";
const INPUT_REQUIRED: &str = "input_required";
/// The methods whose results can be cached.
const CACHEABLE: [&str; 6] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "server/discover",
];
/// The methods whose result may be `input_required` (MCP 2026-07-28, "Multi Round-Trip Requests").
pub(super) const INTERACTIVE: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The kind of a client's MCP revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientRevision {
    /// A revision that begins with `initialize`, or none.
    Sessions,
    /// A revision without sessions.
    Stateless,
}

impl ClientRevision {
    /// Determines the revision from the headers of a posted message. A client without sessions names it there.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> ClientRevision {
        let version = headers.get(&VERSION).map(http::HeaderValue::as_bytes);
        ClientRevision::from_version(version)
    }

    /// Determines the revision from `params._meta` of a message without headers.
    #[must_use]
    pub fn of_message(call: &Call) -> ClientRevision {
        let params = call.params.as_ref();
        let meta = params.and_then(|params| params.member("_meta"));
        let version = meta.and_then(|meta| meta.member(VERSION_KEY)?.text()?.ok());
        ClientRevision::from_version(version.as_deref().map(str::as_bytes))
    }

    /// Returns whether [`missing_members_for`] may change the results of a method.
    #[must_use]
    pub fn may_change(self, method: &str) -> bool {
        match self {
            ClientRevision::Stateless => method != "initialize",
            ClientRevision::Sessions => INTERACTIVE.contains(&method),
        }
    }

    /// Returns the HTTP status of a server's error for a client of this kind (MCP 2026-07-28, "Protocol Version Header",
    /// "Per-Request Protocol Fields"). Older clients read errors by their codes alone.
    #[must_use]
    pub fn status(self, code: i64) -> u16 {
        match (self, code) {
            (ClientRevision::Stateless, -32601) => 404,
            (ClientRevision::Stateless, -32022..=-32020) => 400,
            (ClientRevision::Stateless | ClientRevision::Sessions, _) => 200,
        }
    }

    fn from_version(version: Option<&[u8]>) -> ClientRevision {
        let mut known = STATELESS.iter();
        match known.any(|known| version == Some(known.as_bytes())) {
            true => ClientRevision::Stateless,
            false => ClientRevision::Sessions,
        }
    }
}

/// A result that the client cannot read: it asks for input in a form that the client's revision does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputRequired;

/// Whether a result may have the member `resultType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultType {
    /// It has no such member.
    Absent,
    /// It may have one.
    Possible,
}

impl ResultType {
    /// Returns `Possible` if a member name, as written, is or may be `resultType`: an escape may spell any character.
    #[must_use]
    pub fn with_member(self, name: &[u8]) -> ResultType {
        match name == RESULT_TYPE.as_bytes() || name.contains(&b'\\') {
            true => ResultType::Possible,
            false => self,
        }
    }
}

/// Returns the members that a result of `method` lacks for a client of `client_revision`; `None` if it can be sent
/// unchanged.
///
/// # Errors
/// [`InputRequired`] if the client cannot read the result.
pub fn missing_members_for(
    client_revision: ClientRevision,
    method: &str,
    result: &Json,
) -> Result<Option<Rope>, InputRequired> {
    match client_revision {
        _ if !client_revision.may_change(method) => Ok(None),
        ClientRevision::Stateless => Ok(completed(method, result)),
        ClientRevision::Sessions if is_input_required(result) => Err(InputRequired),
        ClientRevision::Sessions => Ok(None),
    }
}

/// Returns a result written by the proxy in the form for a client of `client_revision`.
///
/// # Errors
/// [`InputRequired`] if the client cannot read the result.
pub fn render_for(
    client_revision: ClientRevision,
    method: &str,
    result: Rope,
    result_type: ResultType,
) -> Result<Rope, InputRequired> {
    if !client_revision.may_change(method) {
        return Ok(result);
    }
    if client_revision == ClientRevision::Sessions {
        return match result_type == ResultType::Possible && asks_for_input(&result) {
            true => Err(InputRequired),
            false => Ok(result),
        };
    }
    let result = Json::sent(result);
    let fitted = missing_members_for(client_revision, method, &result)?;
    Ok(fitted.unwrap_or_else(|| Rope::from(result.into_bytes())))
}

/// Returns the missing members. They forbid caching unless the server allows it.
fn completed(method: &str, result: &Json) -> Option<Rope> {
    if result.kind() != JsonKind::Object {
        return None;
    }
    let kind = result_type(result);
    let mut missing = Vec::with_capacity(3);
    if kind.is_none() {
        missing.push((RESULT_TYPE, "\"complete\""));
    }
    // A result of another type, such as `input_required`, is never cached.
    let is_complete = kind.is_none_or(|kind| kind == COMPLETE);
    if is_complete && CACHEABLE.contains(&method) {
        let members = [("ttlMs", "0"), ("cacheScope", "\"private\"")];
        missing.extend(members.iter().filter(|(name, _)| !result.has(name)));
    }
    if missing.is_empty() {
        return None;
    }
    let mut writer = RopeWriter::with_capacity(80);
    for (index, (name, value)) in missing.into_iter().enumerate() {
        writer.push(if index == 0 { b'{' } else { b',' });
        writer.string(name);
        writer.push(b':');
        writer.copy(value.as_bytes());
    }
    let inside = result.as_bytes()[1..].trim_ascii_start();
    if inside != b"}" {
        writer.push(b',');
    }
    let skipped = result.as_bytes().len() - inside.len();
    writer.append(result.clone().into_bytes().slice(skipped..));
    Some(writer.finish())
}

/// Returns whether a result asks for input. Most cannot, and only those that may are joined into one piece. A string
/// this short is never split.
fn asks_for_input(result: &Rope) -> bool {
    result.chunks().iter().any(|chunk| may_ask(chunk))
        && is_input_required(&Json::sent(result.clone()))
}

/// Returns true if a result asks for input.
#[must_use]
pub fn is_input_required(result: &Json) -> bool {
    may_ask(result.as_bytes()) && result_type(result).is_some_and(|kind| kind == INPUT_REQUIRED)
}

/// Returns whether a text contains the word, or an escape that may be part of it.
pub(super) fn may_ask(text: &[u8]) -> bool {
    static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(INPUT_REQUIRED));
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u"));
    WORD.find(text).is_some() || ESCAPE.find(text).is_some()
}

/// Returns the type of a result. A value other than a string names no known type.
fn result_type(result: &Json) -> Option<String> {
    let kind = result.member(RESULT_TYPE)?.text();
    Some(kind.and_then(Result::ok).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;

    use super::*;
    use crate::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};

    fn sent(
        client_revision: ClientRevision,
        method: &str,
        result: &'static str,
    ) -> Result<String, InputRequired> {
        let json = Json::parse(result.into(), 8).unwrap();
        let fitted = missing_members_for(client_revision, method, &json)?;
        let text = fitted.map_or(result.into(), Rope::into_bytes);
        Ok(String::from_utf8(text.to_vec()).unwrap())
    }

    #[test]
    fn a_client_with_sessions_gets_the_bytes_of_the_server() {
        for (method, result) in [
            ("tools/list", "{ }"),
            ("tools/call", r#"{"resultType":"complete"}"#),
            ("tools/call", r#"{"a":"input_required"}"#),
            // Another API may use the same words.
            ("orders/get", r#"{"resultType":"input_required"}"#),
        ] {
            assert_eq!(
                sent(ClientRevision::Sessions, method, result).as_deref(),
                Ok(result)
            );
        }
    }

    #[test]
    fn a_client_with_sessions_is_never_asked_for_input_by_a_result() {
        for method in ["tools/call", "prompts/get", "resources/read"] {
            for asks in [
                r#"{"requestState":"s","resultType":"input_required"}"#,
                r#"{ "resultType" : "input_required", "inputRequests":{} }"#,
                r#"{"resultType":"input\u005frequired"}"#,
                r#"{"result\u0054ype":"input_required"}"#,
            ] {
                assert_eq!(
                    sent(ClientRevision::Sessions, method, asks),
                    Err(InputRequired)
                );
                assert_eq!(
                    sent(ClientRevision::Stateless, method, asks).as_deref(),
                    Ok(asks)
                );
            }
        }
    }

    #[test]
    fn a_result_that_the_proxy_has_written_asks_for_input_only_where_it_may() {
        let long = "x".repeat(2000);
        let pieces = |result: &str, after: &str| {
            let mut writer = RopeWriter::with_capacity(16);
            writer.copy(result.as_bytes());
            writer.append(Bytes::from(long.clone()));
            writer.copy(after.as_bytes());
            writer.finish()
        };
        let asks = pieces(r#"{"text":""#, r#"","resultType":"input_required"}"#);
        let text = pieces(
            r#"{"text":"input_required \\u "#,
            r#"","a":{"resultType":1}}"#,
        );
        assert!(asks.chunks().len() > 1);
        for method in ["tools/call", "prompts/get", "resources/read"] {
            let sent = |client_revision, result: &Rope| {
                render_for(
                    client_revision,
                    method,
                    result.clone(),
                    ResultType::Possible,
                )
            };
            assert_eq!(sent(ClientRevision::Sessions, &asks), Err(InputRequired));
            assert_eq!(sent(ClientRevision::Sessions, &text).as_ref(), Ok(&text));
            let stateless = sent(ClientRevision::Stateless, &asks).unwrap().into_bytes();
            assert_eq!(stateless, asks.clone().into_bytes());
            let completed = sent(ClientRevision::Stateless, &text).unwrap().into_bytes();
            assert!(completed.starts_with(br#"{"resultType":"complete","#));
        }
        let (sessions, possible) = (ClientRevision::Sessions, ResultType::Possible);
        let other = render_for(sessions, "orders/get", asks.clone(), possible);
        assert_eq!(other.as_ref(), Ok(&asks));
    }

    #[test]
    fn a_result_for_a_client_without_sessions_has_its_type_and_cache_rules() {
        let list = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","a":[]}"#;
        for method in CACHEABLE {
            let got = sent(ClientRevision::Stateless, method, r#"{"a":[]}"#);
            assert_eq!(got.as_deref(), Ok(list), "{method}");
        }
        for (method, result, expected) in [
            ("ping", "{}", r#"{"resultType":"complete"}"#),
            (
                "tools/call",
                "{ \"a\" : 1.10 }",
                r#"{"resultType":"complete","a" : 1.10 }"#,
            ),
            (
                "resources/read",
                r#"{"ttlMs":5}"#,
                r#"{"resultType":"complete","cacheScope":"private","ttlMs":5}"#,
            ),
            (
                "tools/list",
                r#"{"resultType":"complete"}"#,
                r#"{"ttlMs":0,"cacheScope":"private","resultType":"complete"}"#,
            ),
            (
                "tools/list",
                r#"{"resultType":"task"}"#,
                r#"{"resultType":"task"}"#,
            ),
            ("initialize", "{}", "{}"),
            ("other", "[1]", "[1]"),
            ("other", "null", "null"),
        ] {
            let got = sent(ClientRevision::Stateless, method, result);
            assert_eq!(got.as_deref(), Ok(expected), "{method}");
        }
    }

    #[test]
    fn a_client_without_sessions_reads_the_status_of_an_error() {
        for (code, status) in [
            (-32601, 404),
            (-32020, 400),
            (-32021, 400),
            (-32022, 400),
            // An unknown tool, or arguments that the tool does not take.
            (-32602, 200),
            (-32603, 200),
            (-32019, 200),
            (-32023, 200),
            (7, 200),
        ] {
            assert_eq!(ClientRevision::Stateless.status(code), status, "{code}");
            assert_eq!(ClientRevision::Sessions.status(code), 200, "{code}");
        }
    }

    #[test]
    fn a_client_names_its_revision_in_headers_or_in_its_message() {
        let limits = MessageLimits {
            depth: 16,
            batch: 1,
        };
        for (version, client_revision) in [
            (None, ClientRevision::Sessions),
            (Some("2025-11-25"), ClientRevision::Sessions),
            (Some("2026"), ClientRevision::Sessions),
            (Some(""), ClientRevision::Sessions),
            (Some("2026-07-28"), ClientRevision::Stateless),
        ] {
            let header = version.map(|version| {
                let value = HeaderValue::from_static(version);
                (VERSION.clone(), value)
            });
            assert_eq!(
                ClientRevision::of_headers(&HeaderMap::from_iter(header)),
                client_revision
            );
            let meta = version.map_or(String::new(), |version| {
                format!(r#""_meta":{{"{VERSION_KEY}":"{version}"}}"#)
            });
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{{meta}}}}}"#);
            let Ok(Incoming::Single(MessageItem::Call(call))) = parse(&message.into(), limits)
            else {
                panic!("no call");
            };
            assert_eq!(
                ClientRevision::of_message(&call),
                client_revision,
                "{version:?}"
            );
        }
    }
}
