//! Results of tools that are neither JSON nor text: an image, a sound, or an embedded resource, in base64 (MCP, "Tools",
//! "Tool Result").
//!
//! Law: a body that became such a result becomes the same body again, with its content type.
//!
//! Used by `outcome::tool_value`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue};

use super::response::RestAnswer;
use super::tool_value::ToolValue;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::{Rope, RopeWriter};

/// The URI of an embedded resource, which must have one. The response is not a resource of the server.
const URI: &str = "resource:///response";
/// The content type of bytes without one.
const BYTES: &str = "application/octet-stream";

/// The kinds of content with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediaKind {
    Image,
    Audio,
    Resource,
}

impl MediaKind {
    fn of(content_type: &str) -> MediaKind {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let kind = kind.to_ascii_lowercase();
        // Models see pixels; an SVG is a text.
        if kind.starts_with("image/") && !kind.ends_with("+xml") {
            MediaKind::Image
        } else if kind.starts_with("audio/") {
            MediaKind::Audio
        } else {
            MediaKind::Resource
        }
    }
}

/// Returns true for a content type whose bytes are never text.
pub(super) fn is_media(content_type: &str) -> bool {
    MediaKind::of(content_type) != MediaKind::Resource
}

/// Returns the result with the bytes of a body.
pub(super) fn to_result(value: ToolValue, body: &[u8], content_type: &str) -> Rope {
    let data = STANDARD.encode(body);
    let kind = match content_type {
        "" => BYTES,
        kind => kind,
    };
    let mut writer = RopeWriter::with_capacity(256 + 2 * data.len());
    writer.copy(br#"{"content":[{"type":"#);
    let end: &[u8] = match MediaKind::of(content_type) {
        MediaKind::Image => {
            writer.copy(br#""image","data":"#);
            b"}]"
        }
        MediaKind::Audio => {
            writer.copy(br#""audio","data":"#);
            b"}]"
        }
        MediaKind::Resource => {
            writer.copy(br#""resource","resource":{"uri":"#);
            writer.string(URI);
            writer.copy(br#","blob":"#);
            b"}}]"
        }
    };
    writer.string(&data);
    writer.copy(br#","mimeType":"#);
    writer.string(kind);
    writer.copy(end);
    if value == ToolValue::Wrapped {
        // The schema of the tool promises a value.
        writer.copy(br#","structuredContent":{"result":"#);
        writer.string(&data);
        writer.push(b'}');
    }
    writer.push(b'}');
    writer.finish()
}

/// Returns the body that the only block of a result has; `None` if it has no bytes.
pub(super) fn to_rest(result: &Json) -> Option<RestAnswer> {
    let content = result.member("content")?;
    let mut blocks = content.elements();
    let (block, None) = (blocks.next()?, blocks.next()) else {
        return None;
    };
    let block = content.piece(block);
    let (holder, member) = match block.member("type")?.as_bytes() {
        br#""image""# | br#""audio""# => (block, "data"),
        br#""resource""# => (block.member("resource")?, "blob"),
        _ => return None,
    };
    let data = holder.member(member)?.text()?.ok()?;
    let kind = holder.member("mimeType").and_then(|kind| kind.text()?.ok());
    let kind = kind.map_or_else(|| BYTES.to_owned(), |kind| kind.to_string());
    HeaderValue::from_str(&kind).ok()?;
    let body = STANDARD.decode(&*data).ok()?;
    Some(RestAnswer {
        status: 200,
        content_type: Some(kind),
        headers: headers(),
        body: bytes::Bytes::from(body).into(),
    })
}

/// Returns the headers that keep a browser from running the bytes: a tool may return what somebody else wrote.
fn headers() -> Vec<(HeaderName, HeaderValue)> {
    vec![
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn result(value: ToolValue, body: &[u8], kind: &str) -> Value {
        let text = to_result(value, body, kind).into_bytes();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn bytes_are_content_of_their_kind() {
        let image = result(ToolValue::Open, b"\x89PNG", "image/png");
        let block = json!({ "type": "image", "data": "iVBORw==", "mimeType": "image/png" });
        assert_eq!(image, json!({ "content": [block] }));
        let sound = result(ToolValue::Open, b"\xff", "audio/wav");
        assert_eq!(sound["content"][0]["type"], "audio");
        let bytes = result(ToolValue::Wrapped, b"\xff", "");
        let resource = json!({ "uri": URI, "blob": "/w==", "mimeType": BYTES });
        assert_eq!(
            bytes,
            json!({
                "content": [{ "type": "resource", "resource": resource }],
                "structuredContent": { "result": "/w==" },
            })
        );
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        for kind in ["image/png", "audio/wav; rate=8000", "application/pdf"] {
            for value in [ToolValue::Open, ToolValue::Wrapped] {
                let body: Vec<u8> = (0..=255).collect();
                let text = to_result(value, &body, kind).into_bytes();
                let back = to_rest(&Json::parse(text, 32).unwrap()).unwrap();
                assert_eq!(back.body.into_bytes(), body);
                assert_eq!(back.content_type.as_deref(), Some(kind));
            }
        }
    }

    #[test]
    fn other_content_has_no_bytes() {
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        for content in [
            json!([image, image]),
            json!([]),
            json!([{ "type": "image", "data": "?" }]),
            json!([{ "type": "image", "data": "AA==", "mimeType": "a\nb" }]),
            json!([{ "type": "resource", "resource": { "uri": "a:b", "text": "words" } }]),
            json!([{ "type": "text", "text": "AA==" }]),
        ] {
            let result = json!({ "content": content }).to_string();
            let result = Json::parse(result.into(), 32).unwrap();
            assert!(to_rest(&result).is_none(), "{content}");
        }
    }
}
