//! `application/x-www-form-urlencoded` (WHATWG URL, "application/x-www-form-urlencoded"). Used by `form`.

use std::borrow::Cow;

use super::field::{Field, FieldValue};
use super::format::{FormFault, MOST_FIELDS};
use dualgauge_patterns::pattern::MatchError;
use dualgauge_patterns::percent::{self, Keep, Plus};

/// Reads the fields of a body.
pub(super) fn decode(body: &[u8]) -> Result<Vec<Field<'_>>, FormFault> {
    let text = std::str::from_utf8(body).map_err(|_| FormFault::new("the form is not UTF-8"))?;
    let mut fields = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        if fields.len() == MOST_FIELDS {
            return Err(FormFault::new(format!(
                "the form has more than {MOST_FIELDS} fields"
            )));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = percent::decode(name, Plus::Space)
            .map_err(|error| FormFault::new(format!("a name in the form: {error}")))?;
        let value = percent::decode(value, Plus::Space)
            .map_err(|error| FormFault::new(format!("the field `{}`: {error}", shown(&name))))?;
        fields.push(Field {
            name,
            value: FieldValue::Text(value),
        });
    }
    Ok(fields)
}

/// Writes the fields as a body.
pub(super) fn encode(fields: &[Field<'_>]) -> Result<Vec<u8>, MatchError> {
    let mut body = String::new();
    for field in fields {
        let FieldValue::Text(text) = &field.value else {
            let what = "a form of this type has no files; write `body_format = \"multipart\"`";
            return Err(MatchError::new(&*field.name, what));
        };
        if !body.is_empty() {
            body.push('&');
        }
        percent::encode(&field.name, Keep::Nothing, &mut body);
        body.push('=');
        percent::encode(text, Keep::Nothing, &mut body);
    }
    Ok(body.into_bytes())
}

/// Returns the start of a caller's text, escaped for messages.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 64;
    let is_plain = |letter: char| letter.is_ascii_graphic() && letter != '`';
    if text.len() <= LONGEST && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    text.escape_debug().take(LONGEST).collect()
}
