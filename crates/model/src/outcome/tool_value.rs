//! Results of tools as values: the REST body is `structuredContent`, and a text for models (MCP, "Tools").
//!
//! Laws: the bytes of a JSON body stay; `structuredContent` is always an object, so a value that is none is wrapped as
//! `{"result": …}`; a result that was made from a body becomes this body again.
//!
//! Used by `config`, `model` and `outcome`.

use bytes::Bytes;

use super::builtin::{EMPTY_TOOL_RESULT, ReplyLimits};
use super::response::{RestAnswer, RestReply, RpcAnswer, is_json};
use super::row::reports_failure;
use super::tool_media;
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::rope::{Rope, RopeWriter};

/// The REST body of a tool's result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolValue {
    /// The result itself.
    #[default]
    Whole,
    /// Its value; one that is no object is wrapped, and marked in `_meta`.
    Open,
    /// Its value, which is always wrapped.
    Wrapped,
}

/// The member with the value of a result.
const STRUCTURED: &str = "structuredContent";
/// The member that has a wrapped value.
const RESULT: &str = "result";
/// The mark of a wrapped value, in the form of fastmcp, whose clients unwrap it.
const MARK: &str = r#","_meta":{"fastmcp":{"wrap_result":true}}"#;
/// The member of `_meta` with the content type of a text.
const TEXT_TYPE: &str = "dualgauge/type";

/// Returns the result of a tool for a successful response; `None` if the built-in table decides.
pub(super) fn to_result(
    value: ToolValue,
    reply: &RestReply,
    limits: ReplyLimits,
) -> Option<RpcAnswer> {
    if value == ToolValue::Whole || !matches!(reply.status, 200..=299) || reply.status == 206 {
        return None;
    }
    if reply.body.iter().all(u8::is_ascii_whitespace) {
        let empty = Json::literal(EMPTY_TOOL_RESULT);
        return Some(RpcAnswer::Result(empty.into_bytes().into()));
    }
    let kind = reply.content_type().unwrap_or_default();
    let media = || RpcAnswer::Result(tool_media::to_result(value, &reply.body, kind));
    if tool_media::is_media(kind) {
        return Some(media());
    }
    let says_text = kind.starts_with("text/") && !is_json(kind);
    let json = (!says_text).then(|| Json::read(reply.body.clone(), limits.depth).ok());
    if let Some(json) = json.flatten() {
        return Some(RpcAnswer::Result(of_json(value, &json)));
    }
    if is_json(kind) {
        return None;
    }
    Some(match str::from_utf8(&reply.body) {
        Ok(text) => RpcAnswer::Result(of_text(value, text, kind)),
        Err(_) => media(),
    })
}

fn of_json(value: ToolValue, json: &Json) -> Rope {
    let bytes = json.as_bytes();
    let mut writer = RopeWriter::with_capacity(128 + bytes.len());
    writer.copy(br#"{"content":[{"type":"text","text":"#);
    // JSON is UTF-8.
    writer.string(std::str::from_utf8(bytes).unwrap_or_default());
    writer.copy(br#"}],"structuredContent":"#);
    let is_object = json.kind() == JsonKind::Object;
    if is_object && value != ToolValue::Wrapped {
        writer.value(json);
        writer.push(b'}');
    } else {
        writer.copy(br#"{"result":"#);
        writer.value(json);
        writer.push(b'}');
        writer.copy(MARK.as_bytes());
        writer.push(b'}');
    }
    writer.finish()
}

fn of_text(value: ToolValue, text: &str, kind: &str) -> Rope {
    let mut writer = RopeWriter::with_capacity(128 + text.len());
    writer.copy(br#"{"content":[{"type":"text","text":"#);
    writer.string(text);
    writer.copy(b"}]");
    if value == ToolValue::Wrapped {
        writer.copy(br#","structuredContent":{"result":"#);
        writer.string(text);
        writer.push(b'}');
    }
    writer.copy(br#","_meta":{"#);
    writer.string(TEXT_TYPE);
    writer.push(b':');
    writer.string(kind);
    writer.copy(b"}}");
    writer.finish()
}

/// Returns the response for a REST client: the value of a tool's result, or its `content` if that is more than one text.
/// `None` if the built-in table decides: for a failure, and for a result without content.
pub(super) fn to_rest(value: ToolValue, result: &Json) -> Option<RestAnswer> {
    if value == ToolValue::Whole || result.kind() != JsonKind::Object || reports_failure(result) {
        return None;
    }
    if let Some(answer) = tool_media::to_rest(result) {
        return Some(answer);
    }
    let text = only_text(result);
    let meta = result.member("_meta");
    let kind = meta
        .as_ref()
        .and_then(|meta| meta.member(TEXT_TYPE)?.text()?.ok());
    if let (Some(kind), Some(text)) = (kind, &text) {
        return Some(answer(Some(kind), Bytes::from(text.clone()).into()));
    }
    if let Some(found) = result.member(STRUCTURED) {
        let marked = || {
            let mark = meta.as_ref()?.member("fastmcp")?.member("wrap_result")?;
            Some(mark.as_bytes() == b"true")
        };
        let is_wrapped = value == ToolValue::Wrapped || marked() == Some(true);
        let only = (found.member_count() == 1).then(|| found.member(RESULT));
        let body = only.flatten().filter(|_| is_wrapped).unwrap_or(found);
        let kind = "application/json".to_owned();
        return Some(answer(Some(kind), body.into_bytes().into()));
    }
    if result.member("content")?.elements().next().is_none() {
        return Some(answer(None, Rope::default()));
    }
    let Some(text) = text else {
        let content = result.member("content")?;
        let kind = "application/json".to_owned();
        return Some(answer(Some(kind), content.into_bytes().into()));
    };
    let is_json = Json::parse(text.clone().into(), u16::MAX).is_ok();
    let kind = match is_json {
        true => "application/json",
        false => "text/plain; charset=utf-8",
    };
    Some(answer(Some(kind.to_owned()), Bytes::from(text).into()))
}

/// Returns the result with its value as `structuredContent`, if only the one text of `content` has it. Rows of outcomes
/// then read both forms.
pub(super) fn with_value(value: ToolValue, result: &Json) -> Option<Json> {
    if value == ToolValue::Whole
        || result.kind() != JsonKind::Object
        || result.member(STRUCTURED).is_some()
        || reports_failure(result)
    {
        return None;
    }
    let text = only_text(result)?;
    Json::parse(text.clone().into(), u16::MAX).ok()?;
    let open = result.as_bytes().trim_ascii_end().strip_suffix(b"}")?;
    let mut whole = open.to_vec();
    whole.extend_from_slice(br#","structuredContent":"#);
    whole.extend_from_slice(text.as_bytes());
    whole.push(b'}');
    Some(Json::written(whole))
}

/// Adds the text of `structuredContent` to a result that a row wrote without `content` (MCP, "Tools", structured
/// content).
pub(super) fn with_content(value: ToolValue, result: Rope) -> Rope {
    // Results that begin with it are usual; the others are searched.
    let begins = |chunk: &Bytes| chunk.starts_with(br#"{"content":"#);
    if value == ToolValue::Whole || result.chunks().first().is_some_and(begins) {
        return result;
    }
    let json = Json::sent(result.clone());
    let found = (json.kind() == JsonKind::Object && json.member("content").is_none())
        .then(|| json.member(STRUCTURED))
        .flatten();
    let (Some(found), Some(members)) =
        (found, json.as_bytes().trim_ascii_start().strip_prefix(b"{"))
    else {
        return result;
    };
    let mut writer = RopeWriter::with_capacity(64 + 2 * json.as_bytes().len());
    writer.copy(br#"{"content":[{"type":"text","text":"#);
    writer.string(std::str::from_utf8(found.as_bytes()).unwrap_or_default());
    writer.copy(b"}],");
    writer.copy(members);
    writer.finish()
}

/// Returns the text of a result whose content is one text.
fn only_text(result: &Json) -> Option<String> {
    let content = result.member("content")?;
    let mut blocks = content.elements();
    let (block, None) = (blocks.next()?, blocks.next()) else {
        return None;
    };
    let block = content.piece(block);
    let is_text = block.member("type")?.as_bytes() == br#""text""#;
    is_text
        .then(|| block.member("text")?.text()?.ok())
        .flatten()
}

fn answer(content_type: Option<String>, body: Rope) -> RestAnswer {
    RestAnswer {
        status: if content_type.is_some() { 200 } else { 204 },
        content_type,
        headers: Vec::new(),
        body,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;

    const LIMITS: ReplyLimits = ReplyLimits {
        depth: 32,
        error_text: 100,
    };

    fn reply(kind: &'static str, body: &'static str) -> RestReply {
        let mut reply = RestReply {
            status: 200,
            body: body.into(),
            ..RestReply::default()
        };
        let kind = HeaderValue::from_static(kind);
        reply.headers.insert(CONTENT_TYPE, kind);
        reply
    }

    fn result(value: ToolValue, reply: &RestReply) -> String {
        match to_result(value, reply, LIMITS) {
            Some(RpcAnswer::Result(result)) => {
                String::from_utf8(result.into_bytes().to_vec()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_object_is_structured_and_its_bytes_stay() {
        let body = r#"{ "a" : 1.10 }"#;
        let found = result(ToolValue::Open, &reply("application/json", body));
        let expected = r#"{"content":[{"type":"text","text":"{ \"a\" : 1.10 }"}],"structuredContent":{ "a" : 1.10 }}"#;
        assert_eq!(found, expected);
    }

    #[test]
    fn a_value_that_is_no_object_is_wrapped() {
        for value in [ToolValue::Open, ToolValue::Wrapped] {
            let found = result(value, &reply("application/json", "[1]"));
            let expected = r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]},"_meta":{"fastmcp":{"wrap_result":true}}}"#;
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_body_comes_back_as_it_was() {
        let bodies = [
            ("application/json", r#"{ "a" : 1.10 }"#),
            ("application/json", r#"{"result":5}"#),
            ("application/json", "[1, 2]"),
            ("application/json", "\"text\""),
            ("application/json", "null"),
            ("text/plain; charset=utf-8", "a \"b\"\n{"),
            ("text/csv", "a,b"),
            ("text/plain", "12"),
        ];
        for value in [ToolValue::Open, ToolValue::Wrapped] {
            for (kind, body) in bodies {
                let text = result(value, &reply(kind, body));
                let json = Json::parse(text.clone().into(), 32).unwrap();
                let back = to_rest(value, &json).unwrap();
                assert_eq!(back.body.into_bytes(), body.as_bytes(), "{text}");
                assert_eq!(back.content_type.as_deref(), Some(kind), "{text}");
                assert_eq!(back.status, 200);
            }
            let empty = Json::parse(result(value, &reply("", " ")).into(), 8).unwrap();
            let back = to_rest(value, &empty).unwrap();
            assert_eq!((back.status, back.body.len()), (204, 0));
        }
    }

    #[test]
    fn rows_read_and_write_the_value_of_a_result() {
        let json = |body: &'static str| Json::parse(body.into(), 16).unwrap();
        let text = json(r#"{"content":[{"type":"text","text":"{\"a\":1}"}]} "#);
        let whole = with_value(ToolValue::Open, &text).unwrap();
        assert_eq!(whole.member(STRUCTURED).unwrap().as_bytes(), br#"{"a":1}"#);
        for other in [
            r#"{"content":[{"type":"text","text":"words"}]}"#,
            r#"{"content":[],"structuredContent":1}"#,
            r#"{"content":[{"type":"text","text":"1"}],"isError":true}"#,
        ] {
            assert!(
                with_value(ToolValue::Open, &json(other)).is_none(),
                "{other}"
            );
        }
        let written = |body: &'static str| {
            let body = bytes::Bytes::from_static(body.as_bytes());
            let written = with_content(ToolValue::Open, body.into());
            String::from_utf8(written.into_bytes().to_vec()).unwrap()
        };
        assert_eq!(
            written(r#"{"structuredContent":{"a":1}}"#),
            r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#
        );
        let own = r#"{"content":[],"structuredContent":{"a":1}}"#;
        assert_eq!(written(own), own);
    }

    #[test]
    fn results_of_other_servers_are_unwrapped() {
        let text = |body: &'static str| {
            let json = Json::parse(body.into(), 16).unwrap();
            let back = to_rest(ToolValue::Open, &json)?;
            let body = String::from_utf8(back.body.into_bytes().to_vec()).unwrap();
            Some((back.content_type.unwrap_or_default(), body))
        };
        let some = |kind: &str, body: &str| Some((kind.to_owned(), body.to_owned()));
        assert_eq!(
            text(r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#),
            some("application/json", r#"{"a":1}"#)
        );
        assert_eq!(
            text(r#"{"content":[{"type":"text","text":"words"}]}"#),
            some("text/plain; charset=utf-8", "words")
        );
        assert_eq!(
            text(r#"{"content":[],"structuredContent":{"result":1}}"#),
            some("application/json", r#"{"result":1}"#)
        );
        assert_eq!(text(r#"{"content":[],"isError":true}"#), None);
        assert_eq!(
            text(r#"{"content":[{"type":"image"}]}"#),
            some("application/json", r#"[{"type":"image"}]"#)
        );
    }
}
