//! The fields of a form, as a JSON object and back. Used by `form`, `form::multipart` and `form::urlencoded`.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use dualgauge_patterns::json::{Json, JsonKind, encode};
use dualgauge_patterns::pattern::MatchError;

/// The member of a file with its bytes in base64.
pub const CONTENT: &str = "content";
/// The member of a file with its name.
pub const FILE_NAME: &str = "filename";
/// The member of a file with its content type.
pub const CONTENT_TYPE: &str = "content_type";

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field<'b> {
    pub(super) name: Cow<'b, str>,
    pub(super) value: FieldValue<'b>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldValue<'b> {
    Text(Cow<'b, str>),
    File(File<'b>),
}

/// A file of a multipart form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File<'b> {
    pub(super) content: Cow<'b, [u8]>,
    pub(super) name: Option<Cow<'b, str>>,
    pub(super) content_type: Option<Cow<'b, str>>,
}

/// Returns the object of fields: one member for each name, in the order of first occurrence.
pub(super) fn to_json(fields: &[Field<'_>]) -> Json {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(fields.len());
    let mut groups: Vec<(&str, Vec<&FieldValue<'_>>)> = Vec::new();
    for field in fields {
        let place = *places.entry(&field.name).or_insert_with(|| {
            groups.push((&field.name, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(&field.value);
    }
    let mut out = vec![b'{'];
    for (index, (name, values)) in groups.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        encode(name, &mut out);
        out.push(b':');
        match values[..] {
            [one] => one.write(&mut out),
            _ => {
                for (index, value) in values.iter().enumerate() {
                    out.push(if index == 0 { b'[' } else { b',' });
                    value.write(&mut out);
                }
                out.push(b']');
            }
        }
    }
    out.push(b'}');
    Json::written(out)
}

impl FieldValue<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let file = match self {
            FieldValue::Text(text) => return encode(text, out),
            FieldValue::File(file) => file,
        };
        out.extend_from_slice(b"{\"content\":\"");
        out.extend_from_slice(STANDARD.encode(&file.content).as_bytes());
        out.push(b'"');
        let more = [(FILE_NAME, &file.name), (CONTENT_TYPE, &file.content_type)];
        for (name, text) in more {
            if let Some(text) = text {
                out.push(b',');
                encode(name, out);
                out.push(b':');
                encode(text, out);
            }
        }
        out.push(b'}');
    }
}

/// Returns the fields of an object. An array repeats the field; an array of fewer than two elements would be read as
/// something else.
///
/// # Errors
/// [`MatchError`] names the member that no field can hold.
pub(super) fn from_json(object: &Json) -> Result<Vec<Field<'static>>, MatchError> {
    if object.kind() != JsonKind::Object {
        let what = format!("a form is an object, not {}", object.kind().described());
        return Err(MatchError::here(what));
    }
    let mut fields = Vec::new();
    for member in object.open()? {
        let value = object.piece(member.value.clone());
        let values = elements(&value);
        let values = values.map_err(|error| error.within(&member.name))?;
        for value in values {
            let value = field_value(&value).map_err(|error| error.within(&member.name))?;
            let name = Cow::Owned(member.name.to_string());
            fields.push(Field { name, value });
        }
    }
    Ok(fields)
}

fn elements(value: &Json) -> Result<Vec<Json>, MatchError> {
    if value.kind() != JsonKind::Array {
        return Ok(vec![value.clone()]);
    }
    let values: Vec<Json> = value.elements().map(|range| value.piece(range)).collect();
    if values.len() < 2 {
        let what = "a list of fewer than two elements is not distinguished from a single value in a form; name the field in `body` as a list, such as `{x:string[]}`";
        return Err(MatchError::here(what));
    }
    Ok(values)
}

fn field_value(value: &Json) -> Result<FieldValue<'static>, MatchError> {
    match value.kind() {
        JsonKind::String => text(value).map(|text| FieldValue::Text(Cow::Owned(text))),
        JsonKind::Object => file(value).map(FieldValue::File),
        kind @ (JsonKind::Array | JsonKind::Number | JsonKind::Boolean | JsonKind::Null) => {
            let what = format!(
                "a field of a form is a string or a file, not {}",
                kind.described()
            );
            Err(MatchError::here(what))
        }
    }
}

fn text(value: &Json) -> Result<String, MatchError> {
    match value.text() {
        Some(text) => text.map_err(MatchError::here),
        None => {
            let what = format!("it must be a string, not {}", value.kind().described());
            Err(MatchError::here(what))
        }
    }
}

fn file(value: &Json) -> Result<File<'static>, MatchError> {
    let (mut content, mut name, mut content_type) = (None, None, None);
    for member in value.open()? {
        let found = text(&value.piece(member.value.clone()));
        let found = found.map_err(|error| error.within(&member.name))?;
        let place = match &*member.name {
            CONTENT => &mut content,
            FILE_NAME => &mut name,
            CONTENT_TYPE => &mut content_type,
            _ => {
                let what = format!(
                    "a file of a form has `{CONTENT}` (base64), `{FILE_NAME}` and `{CONTENT_TYPE}`"
                );
                return Err(MatchError::new(&*member.name, what));
            }
        };
        *place = Some(found);
    }
    let content =
        content.ok_or_else(|| MatchError::new(CONTENT, "a file needs its content in base64"))?;
    let content = STANDARD.decode(content).map_err(|error| {
        let what = format!("it is not base64 with padding (RFC 4648 §4): {error}");
        MatchError::new(CONTENT, what)
    })?;
    Ok(File {
        content: Cow::Owned(content),
        name: name.map(Cow::Owned),
        content_type: content_type.map(Cow::Owned),
    })
}
