//! What a result owes to a client that speaks a revision of MCP without sessions: how to read it, and, where it is a list
//! or a resource, how long it may be kept (MCP 2026-07-28, "Result", "Caching"). A REST server knows neither.

use http::{HeaderMap, HeaderName};

use super::STATELESS;
use crate::domain::json::{Json, Kind};
use crate::domain::pieces::{Pieces, PiecesWriter};

/// The header that names the revision.
static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// What says how a result is to be read; a result that has it is complete as it is.
const RESULT_TYPE: &str = "resultType";
/// The methods whose results say how long they may be kept.
const KEPT: [&str; 5] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The result of a translated call, with the members that the client's revision asks for. Nothing is ever told to be
/// kept, because the server behind has not said so.
#[must_use]
pub fn completed(headers: &HeaderMap, method: &str, result: Pieces) -> Pieces {
    let version = headers.get(&VERSION).map(http::HeaderValue::as_bytes);
    if !STATELESS
        .iter()
        .any(|known| version == Some(known.as_bytes()))
    {
        return result;
    }
    let result = Json::sent(result);
    if result.kind() != Kind::Object || result.has(RESULT_TYPE) {
        return Pieces::from(result.into_bytes());
    }
    let mut writer = PiecesWriter::with_capacity(80);
    writer.copy(b"{\"resultType\":\"complete\"");
    if KEPT.contains(&method) {
        for (name, value) in [("ttlMs", "0"), ("cacheScope", "\"private\"")] {
            if !result.has(name) {
                writer.copy(format!(",\"{name}\":{value}").as_bytes());
            }
        }
    }
    let inside = result.as_bytes()[1..].trim_ascii_start();
    if inside != b"}" {
        writer.push(b',');
    }
    let skipped = result.as_bytes().len() - inside.len();
    writer.carry(result.into_bytes().slice(skipped..));
    writer.finish()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn told(version: Option<&'static str>, method: &str, result: &'static str) -> String {
        let headers = version.map(|version| {
            let version = HeaderValue::from_static(version);
            (VERSION.clone(), version)
        });
        let headers = HeaderMap::from_iter(headers);
        let result = Pieces::from(bytes::Bytes::from_static(result.as_bytes()));
        String::from_utf8(completed(&headers, method, result).into_bytes().to_vec()).unwrap()
    }

    #[test]
    fn revisions_with_sessions_get_the_bytes_that_there_are() {
        for version in [None, Some("2025-11-25"), Some("2026"), Some("")] {
            assert_eq!(told(version, "tools/list", "{ }"), "{ }", "{version:?}");
        }
    }

    #[test]
    fn a_result_for_the_others_says_how_to_read_and_keep_it_and_else_is_what_it_was() {
        for (method, result, expected) in [
            ("tools/call", "{}", r#"{"resultType":"complete"}"#),
            (
                "tools/call",
                "{ \"a\" : 1.10 }",
                r#"{"resultType":"complete","a" : 1.10 }"#,
            ),
            (
                "tools/list",
                r#"{"tools":[]}"#,
                r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}"#,
            ),
            (
                "resources/read",
                r#"{"ttlMs":5}"#,
                r#"{"resultType":"complete","cacheScope":"private","ttlMs":5}"#,
            ),
            (
                "tools/list",
                r#"{"resultType":"task"}"#,
                r#"{"resultType":"task"}"#,
            ),
            ("other", "[1]", "[1]"),
            ("other", "null", "null"),
        ] {
            assert_eq!(told(Some("2026-07-28"), method, result), expected);
        }
    }
}
