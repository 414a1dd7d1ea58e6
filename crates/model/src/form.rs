//! Request bodies that are forms: `application/x-www-form-urlencoded` and `multipart/form-data` (RFC 7578).
//!
//! A form becomes a JSON object with a member for each field: a text is a string, a repeated field is an array, and a
//! file is an object with `content` (base64), and optionally `filename` and `content_type`. Laws: a form that was
//! written reads as the same object, and any bytes give an object or a fault.
//!
//! The parsers are our own: the `form_urlencoded` crate replaces malformed UTF-8 without an error, and `multer` reads
//! asynchronously and cannot write. Both formats are bounded: see the constants below.
//!
//! Used by `check`, `explain`, `route`, `routing` and `translate`.

mod content_type;
mod disposition;
mod field;
mod format;
mod multipart;
mod urlencoded;

use http::HeaderValue;

use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::MatchError;

pub use content_type::{FormType, TypeFault};
pub use field::{CONTENT, CONTENT_TYPE, FILE_NAME};
pub use format::{BodyFormat, EncodedForm, FormFault};

use format::MOST_FIELDS;

#[cfg(test)]
mod tests;

/// Reads a form as a JSON object.
///
/// # Errors
/// [`FormFault`] names the field or the part that is malformed, or the exceeded limit.
pub fn decode(form_type: &FormType, body: &[u8]) -> Result<Json, FormFault> {
    let fields = match form_type {
        FormType::Urlencoded => urlencoded::decode(body)?,
        FormType::Multipart { boundary } => multipart::decode(body, boundary)?,
    };
    Ok(field::to_json(&fields))
}

/// Writes a JSON object as a form. The fields in `json_fields` contain JSON, and a multipart form says so.
///
/// # Errors
/// [`MatchError`] names the member that no field can hold.
pub fn encode(
    format: BodyFormat,
    object: &Json,
    json_fields: &[String],
) -> Result<EncodedForm, MatchError> {
    let fields = field::from_json(object)?;
    match format {
        BodyFormat::Json | BodyFormat::Form => {
            let body = urlencoded::encode(&fields)?;
            Ok(EncodedForm {
                content_type: HeaderValue::from_static(BodyFormat::Form.media_type()),
                body,
            })
        }
        BodyFormat::Multipart => multipart::encode(&fields, json_fields),
    }
}

/// Reads any bytes as both formats, and checks that what was read is written and read again as the same object. For
/// fuzzing.
///
/// # Panics
/// If a law does not hold.
pub fn check_any_bytes(data: &[u8]) {
    // The first byte chooses the format; the boundary is fixed so that a corpus is easy to write.
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let (format, form_type) = if first % 2 == 0 {
        (BodyFormat::Form, FormType::Urlencoded)
    } else {
        let boundary = "b".to_owned();
        (BodyFormat::Multipart, FormType::Multipart { boundary })
    };
    let Ok(object) = decode(&form_type, body) else {
        return;
    };
    assert!(object.as_bytes().len() <= 6 * body.len() + 64 * (MOST_FIELDS + 1));
    // A name or a file name that a part cannot carry, or names that JSON readers confuse, are refused.
    let Ok(written) = encode(format, &object, &[]) else {
        return;
    };
    let written_type = FormType::of(&written.content_type);
    let again = written_type.map(|form_type| decode(&form_type, &written.body));
    assert_eq!(again, Ok(Ok(object)), "a written form reads otherwise");
}
