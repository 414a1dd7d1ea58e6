//! `multipart/form-data` (RFC 7578). Used by `form`.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::HeaderValue;
use memchr::memmem;
use sha2::{Digest, Sha256};

use super::content_type::is_media_type;
use super::disposition::{Parameters, extended, quoted, unescaped};
use super::field::{CONTENT_TYPE, FILE_NAME, Field, FieldValue, File};
use super::format::{BodyFormat, EncodedForm, FormFault, MOST_FIELDS};
use super::urlencoded::shown;
use dualgauge_patterns::pattern::MatchError;

/// The longest header section of a part.
const LONGEST_HEAD: usize = 8 * 1024;
/// The most header fields of a part.
const MOST_HEADERS: usize = 16;

/// Reads the parts of a body. A preamble and an epilogue are ignored (RFC 2046 §5.1.1).
pub(super) fn decode<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<Field<'b>>, FormFault> {
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(&delimiter);
    let mut rest = match body.strip_prefix(&delimiter.as_bytes()[2..]) {
        Some(rest) => rest,
        None => {
            let at = finder.find(body);
            let at = at.ok_or_else(|| {
                FormFault::new("the boundary of the content type is not in the body")
            })?;
            &body[at + delimiter.len()..]
        }
    };
    let mut fields = Vec::new();
    while !rest.starts_with(b"--") {
        if fields.len() == MOST_FIELDS {
            return Err(FormFault::new(format!(
                "the form has more than {MOST_FIELDS} parts"
            )));
        }
        let inside = after_padding(rest)?;
        let end = finder.find(inside).ok_or_else(|| {
            FormFault::new(format!(
                "part {} is not complete: no boundary follows it",
                fields.len() + 1
            ))
        })?;
        let (part, behind) = inside.split_at(end);
        let field = read_part(part);
        fields.push(
            field.map_err(|fault| FormFault::new(format!("part {}: {fault}", fields.len() + 1)))?,
        );
        rest = &behind[delimiter.len()..];
    }
    Ok(fields)
}

/// Returns the text after the padding and the line break of a boundary.
fn after_padding(text: &[u8]) -> Result<&[u8], FormFault> {
    let blank = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    text[blank..]
        .strip_prefix(b"\r\n")
        .ok_or_else(|| FormFault::new("a boundary is not followed by a line break"))
}

fn read_part(part: &[u8]) -> Result<Field<'_>, FormFault> {
    let end = memmem::find(part, b"\r\n\r\n")
        .filter(|end| *end <= LONGEST_HEAD)
        .ok_or_else(|| {
            FormFault::new(format!(
                "its headers do not end with a blank line within {LONGEST_HEAD} bytes"
            ))
        })?;
    let head = PartHead::read(&part[..end])?;
    let content = &part[end + 4..];
    let name = head.name;
    if head.file_name.is_none() && head.content_type.is_none_or(is_text) {
        let text = std::str::from_utf8(content).map_err(|_| {
            FormFault::new(format!(
                "the field `{}` is not UTF-8, and not a file: it has no `filename`",
                shown(&name)
            ))
        })?;
        let value = FieldValue::Text(Cow::Borrowed(text));
        return Ok(Field { name, value });
    }
    let file = File {
        content: Cow::Borrowed(content),
        name: head.file_name,
        content_type: head.content_type.map(Cow::Borrowed),
    };
    Ok(Field {
        name,
        value: FieldValue::File(file),
    })
}

/// Returns true for the content types of texts: `text/…` and JSON.
fn is_text(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence.starts_with("text/") || essence == "application/json" || essence.ends_with("+json")
}

/// The header section of a part.
struct PartHead<'b> {
    name: Cow<'b, str>,
    file_name: Option<Cow<'b, str>>,
    content_type: Option<&'b str>,
}

impl<'b> PartHead<'b> {
    fn read(head: &'b [u8]) -> Result<PartHead<'b>, FormFault> {
        let head =
            std::str::from_utf8(head).map_err(|_| FormFault::new("its headers are not UTF-8"))?;
        let (mut disposition, mut content_type) = (None, None);
        for (index, line) in head.split("\r\n").enumerate() {
            if index == MOST_HEADERS {
                return Err(FormFault::new(format!(
                    "it has more than {MOST_HEADERS} headers"
                )));
            }
            let (name, value) = line
                .split_once(':')
                .filter(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()))
                .ok_or_else(|| FormFault::new("a line of its headers is not `Name: value`"))?;
            let value = value.trim_matches([' ', '\t']);
            // All other fields must be ignored (RFC 7578 §4.8).
            let place = match name.to_ascii_lowercase().as_str() {
                "content-disposition" => &mut disposition,
                "content-type" => &mut content_type,
                "content-transfer-encoding" => {
                    accept_encoding(value)?;
                    continue;
                }
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(FormFault::new(format!("it has `{name}` twice")));
            }
        }
        accept_type(content_type)?;
        let (name, file_name) = names(disposition)?;
        Ok(PartHead {
            name,
            file_name,
            content_type,
        })
    }
}

/// Rejects encodings that RFC 7578 §4.7 deprecates.
fn accept_encoding(value: &str) -> Result<(), FormFault> {
    match value.to_ascii_lowercase().as_str() {
        "7bit" | "8bit" | "binary" => Ok(()),
        _ => Err(FormFault::new(
            "its `Content-Transfer-Encoding` is not supported; send the bytes as they are",
        )),
    }
}

fn accept_type(content_type: Option<&str>) -> Result<(), FormFault> {
    let Some(content_type) = content_type else {
        return Ok(());
    };
    if !is_media_type(content_type) {
        return Err(FormFault::new("its `Content-Type` is malformed"));
    }
    let lower = content_type.to_ascii_lowercase();
    if lower.starts_with("multipart/") {
        return Err(FormFault::new(
            "it is a multipart itself; repeat the field instead (RFC 7578 §4.3)",
        ));
    }
    let (_, parameters) = lower.split_once(';').unwrap_or_default();
    let parameters = Parameters::parse(parameters).unwrap_or_default();
    let charset = parameters.get("charset");
    match charset.filter(|_| is_text(&lower)) {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(()),
        Some(charset) => Err(FormFault::new(format!(
            "the charset `{}` is not supported; send UTF-8",
            shown(charset)
        ))),
    }
}

/// Returns the name of the field, and that of the file.
fn names(disposition: Option<&str>) -> Result<(Cow<'_, str>, Option<Cow<'_, str>>), FormFault> {
    let wrong =
        || FormFault::new("it needs `Content-Disposition: form-data; name=\"…\"` (RFC 7578 §4.2)");
    let (kind, parameters) = disposition
        .and_then(|value| value.split_once(';'))
        .ok_or_else(wrong)?;
    let mut parameters = Parameters::parse(parameters).ok_or_else(wrong)?;
    if !kind.trim_end().eq_ignore_ascii_case("form-data") {
        return Err(wrong());
    }
    let name = parameters.take("name").map(unescaped).ok_or_else(wrong)?;
    let file_name = match parameters.take("filename*") {
        // RFC 7578 §4.2 forbids it, but some clients send it; it is the exact name (RFC 6266 §4.3).
        Some(text) => {
            let decoded = extended(&text).map(Cow::Owned);
            Some(decoded.ok_or_else(|| FormFault::new("its `filename*` is malformed"))?)
        }
        None => parameters.take("filename").map(unescaped),
    };
    Ok((name, file_name))
}

/// Writes the fields as a body.
pub(super) fn encode(
    fields: &[Field<'_>],
    json_fields: &[String],
) -> Result<EncodedForm, MatchError> {
    let mut heads = Vec::with_capacity(fields.len());
    let mut hash = Sha256::new();
    for field in fields {
        let head = part_head(field, json_fields);
        heads.push(head.map_err(|error| error.within(&field.name))?);
        hash.update(field.content());
    }
    // The boundary follows from the contents, so that the same call gives the same bytes. No content can contain it:
    // that would be a fixed point of the hash.
    let mut boundary = "dualgauge-".to_owned();
    for byte in &hash.finalize()[..16] {
        let _ = write!(boundary, "{byte:02x}");
    }
    let mut body = Vec::new();
    for (field, head) in fields.iter().zip(heads) {
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
        body.extend_from_slice(field.content());
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let content_type = format!(
        "{}; boundary={boundary}",
        BodyFormat::Multipart.media_type()
    );
    let content_type = HeaderValue::try_from(content_type).map_err(MatchError::here)?;
    Ok(EncodedForm { content_type, body })
}

impl Field<'_> {
    fn content(&self) -> &[u8] {
        match &self.value {
            FieldValue::Text(text) => text.as_bytes(),
            FieldValue::File(file) => &file.content,
        }
    }
}

fn part_head(field: &Field<'_>, json_fields: &[String]) -> Result<String, MatchError> {
    let name = quoted(&field.name)
        .ok_or_else(|| MatchError::here("servers read this name of a field in different ways"))?;
    let mut head = format!("Content-Disposition: form-data; name={name}");
    match &field.value {
        FieldValue::Text(_) => {
            if json_fields.iter().any(|known| *known == field.name) {
                head.push_str("\r\nContent-Type: application/json");
            }
        }
        FieldValue::File(file) => {
            if file.name.is_none() && file.content_type.as_deref().is_none_or(is_text) {
                let what = "a file without a name is read as a text; give a name, or a content type that is not text";
                return Err(MatchError::new(FILE_NAME, what));
            }
            if let Some(name) = &file.name {
                let name = quoted(name).ok_or_else(|| {
                    let what = "servers read this file name in different ways: control characters, `\\`, `%22`, `%0D` and `%0A` are refused";
                    MatchError::new(FILE_NAME, what)
                })?;
                head.push_str("; filename=");
                head.push_str(&name);
            }
            if let Some(content_type) = &file.content_type {
                if accept_type(Some(content_type)).is_err() {
                    let what = "it is not the content type of a part, such as `image/png`";
                    return Err(MatchError::new(CONTENT_TYPE, what));
                }
                head.push_str("\r\nContent-Type: ");
                head.push_str(content_type);
            }
        }
    }
    if head.len() > LONGEST_HEAD {
        let what = "its names are too long for the headers of a part";
        return Err(MatchError::here(what));
    }
    Ok(head)
}
