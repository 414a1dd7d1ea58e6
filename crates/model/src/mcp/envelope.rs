//! Request metadata of revisions without sessions: in the params, and in the headers that repeat it.
//!
//! Used by `mcp` and `upstream`.

use std::fmt::Write;

use bytes::Bytes;

use super::revision::CLIENT_INFO;
use crate::jsonrpc::{RequestId, SUBSCRIPTION_KEY};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::rope::RopeWriter;

pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request with its metadata, and the name that it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotatedRequest {
    /// The request.
    pub body: Bytes,
    /// The tool, prompt or resource, for methods that have one.
    pub name: Option<String>,
}

/// Returns a request with the metadata of a revision without sessions. The caller's own metadata stays, except that the
/// revision becomes `version`. Every other byte is unchanged.
#[must_use]
pub fn annotated(message: &Bytes, method: &str, version: &str, depth: u16) -> AnnotatedRequest {
    let whole = Json::parse(message.clone(), depth).ok();
    let params = whole.as_ref().and_then(|whole| whole.member("params"));
    let named = named_by(method).zip(params.as_ref());
    let name = named.and_then(|(key, params)| params.member(key)?.text()?.ok());
    let body = whole.and_then(|whole| envelope(&whole, version));
    AnnotatedRequest {
        body: body.unwrap_or_else(|| message.clone()),
        name,
    }
}

/// Returns the member of the params that a header repeats (MCP 2026-07-28, "Standard Request Headers").
pub(super) fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

fn envelope(whole: &Json, version: &str) -> Option<Bytes> {
    let metadata = [
        (VERSION_KEY, Json::string(version)),
        (CLIENT_KEY, Json::literal(CLIENT_INFO)),
        (CAPABILITIES_KEY, Json::literal("{}")),
    ];
    with_metadata(whole, &metadata)
}

/// Returns a notification with the id of the subscription that it belongs to (MCP 2026-07-28, "Subscriptions"). Every
/// other byte is unchanged. Returns `None` if its params are not an object.
#[must_use]
pub fn with_subscription(message: &Bytes, id: &RequestId, depth: u16) -> Option<Bytes> {
    let whole = Json::parse(message.clone(), depth).ok()?;
    let id = Json::written(String::from_utf8_lossy(id.as_bytes()).into_owned());
    with_metadata(&whole, &[(SUBSCRIPTION_KEY, id)])
}

/// Returns `None` if the params are not an object or can be read in two ways; the server reports that.
pub(super) fn with_metadata(whole: &Json, metadata: &[(&str, Json)]) -> Option<Bytes> {
    let members = whole.open().ok()?;
    let Some(params) = members.iter().find(|member| member.name == "params") else {
        let mut inside = with(
            &Json::literal("{}"),
            &[("_meta", with(&Json::literal("{}"), metadata)?)],
        )?;
        inside = with(whole, &[("params", inside)])?;
        return Some(inside.into_bytes());
    };
    let range = params.value.clone();
    let params = whole.piece(range.clone());
    if params.kind() != JsonKind::Object {
        return None;
    }
    let found = params.open().ok()?;
    let params = match found.iter().find(|member| member.name == "_meta") {
        None => with(&params, &[("_meta", with(&Json::literal("{}"), metadata)?)])?,
        Some(meta) => {
            let changed = with(&params.piece(meta.value.clone()), metadata)?;
            replaced(&params, meta.value.clone(), &changed)
        }
    };
    Some(replaced(whole, range, &params).into_bytes())
}

/// Returns an object with additional members in front. Existing ones stay unchanged, except the revision.
fn with(object: &Json, more: &[(&str, Json)]) -> Option<Json> {
    if object.kind() != JsonKind::Object {
        return None;
    }
    let mut object = object.clone();
    for (name, value) in more.iter().rev() {
        let range = {
            let known = object.open().ok()?;
            let known = known.into_iter().find(|member| member.name == *name);
            known.map(|member| member.value)
        };
        object = match range {
            Some(range) if *name == VERSION_KEY => replaced(&object, range, value),
            Some(_) => object,
            None => preceded(&object, name, value),
        };
    }
    Some(object)
}

fn preceded(object: &Json, name: &str, value: &Json) -> Json {
    let mut writer = RopeWriter::with_capacity(name.len() + 8);
    writer.copy(b"{");
    writer.string(name);
    writer.copy(b":");
    writer.value(value);
    let rest = object.as_bytes()[1..].trim_ascii_start();
    if rest != b"}" {
        writer.push(b',');
    }
    writer.copy(rest);
    Json::sent(writer.finish())
}

fn replaced(object: &Json, range: std::ops::Range<usize>, value: &Json) -> Json {
    let text = object.as_bytes();
    let mut writer = RopeWriter::with_capacity(text.len());
    writer.copy(&text[..range.start]);
    writer.value(value);
    writer.copy(&text[range.end..]);
    Json::sent(writer.finish())
}

/// Returns a text as a header value: unchanged, or in marked base64 if a header cannot contain it (MCP 2026-07-28,
/// "Value Encoding").
#[must_use]
pub fn header_value(text: &str) -> String {
    let printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let is_marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if printable && text.trim() == text && !is_marked {
        return text.to_owned();
    }
    marked(text)
}

/// Returns a text in marked base64.
pub(super) fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len() / 3 * 4 + 16);
    out.push_str("=?base64?");
    base64(text.as_bytes(), &mut out);
    out.push_str("?=");
    out
}

/// RFC 4648 §4.
fn base64(bytes: &[u8], out: &mut String) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for position in 0..4_usize {
            if position > chunk.len() {
                out.push('=');
                continue;
            }
            let index = bits >> (18 - 6 * position) & 0x3f;
            let digit = ALPHABET.get(index as usize).copied().unwrap_or(b'=');
            // Writing to a `String` cannot fail.
            let _ = out.write_char(char::from(digit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn params(message: &'static str) -> Value {
        let annotated_request = annotated(&message.into(), "m", "2026-07-28", 16);
        let whole: Value = serde_json::from_slice(&annotated_request.body).unwrap();
        whole["params"].clone()
    }

    #[test]
    fn a_request_names_its_client() {
        for message in [
            r#"{"id":1,"method":"m"}"#,
            r#"{"id":1,"params":{ },"method":"m"}"#,
            r#"{"id":1,"method":"m","params":{"_meta":{}}}"#,
            r#"{"id":1,"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999"}}}"#,
        ] {
            let meta = &params(message)["_meta"];
            assert_eq!(meta[VERSION_KEY], "2026-07-28", "{message}");
            assert_eq!(meta[CLIENT_KEY]["name"], "dualgauge", "{message}");
            assert_eq!(meta[CAPABILITIES_KEY], json!({}), "{message}");
        }
    }

    #[test]
    fn the_metadata_of_the_caller_is_kept() {
        let message = r#"{"id":1,"method":"m","params":{"x":1.10,"_meta":{"progressToken":7,"io.modelcontextprotocol/clientInfo":{"name":"c"}}}}"#;
        let got = annotated(&message.into(), "m", "2026-07-28", 16).body;
        let text = std::str::from_utf8(&got).unwrap();
        assert!(
            text.contains("\"x\":1.10") && text.contains("\"progressToken\":7"),
            "{text}"
        );
        assert_eq!(params(message)["_meta"][CLIENT_KEY], json!({ "name": "c" }));
        let list = r#"{"id":1,"method":"m","params":[1]}"#;
        assert_eq!(annotated(&list.into(), "m", "2026-07-28", 16).body, list);
    }

    #[test]
    fn the_name_is_the_one_of_the_method() {
        let call = r#"{"params":{"name":"a","uri":"b"}}"#;
        let name = |method| annotated(&call.into(), method, "v", 16).name;
        assert_eq!(name("tools/call").as_deref(), Some("a"));
        assert_eq!(name("prompts/get").as_deref(), Some("a"));
        assert_eq!(name("resources/read").as_deref(), Some("b"));
        assert_eq!(name("tools/list"), None);
    }

    #[test]
    fn a_header_can_contain_any_text() {
        for (text, value) in [
            ("get_user", "get_user"),
            ("file:///a b", "file:///a b"),
            ("", ""),
            ("ü", "=?base64?w7w=?="),
            (" a", "=?base64?IGE=?="),
            ("a\n", "=?base64?YQo=?="),
            ("日本", "=?base64?5pel5pys?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(header_value(text), value, "{text:?}");
        }
    }
}
