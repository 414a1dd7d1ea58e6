//! One value between a text and JSON: the type is declared, so nothing is guessed.

use super::{Absence, Hole, Scalar, Shape};
use crate::domain::json::{Json, Kind, decode, elements, encode, is_integer, is_number, kind_of};

impl Scalar {
    /// What is accepted, for messages.
    #[must_use]
    pub fn described(&self) -> String {
        match self {
            Scalar::String => "a string".into(),
            Scalar::Integer => "an integer".into(),
            Scalar::Number => "a number".into(),
            Scalar::Boolean => "`true` or `false`".into(),
            Scalar::Enum(words) => format!("one of `{}`", words.join("`, `")),
        }
    }

    /// Whether a text is a value of this type.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Scalar::String => true,
            Scalar::Integer => is_integer(text.as_bytes()),
            Scalar::Number => is_number(text.as_bytes()),
            Scalar::Boolean => matches!(text, "true" | "false"),
            Scalar::Enum(words) => words.iter().any(|word| word == text),
        }
    }

    /// Writes the JSON value that a text stands for.
    ///
    /// # Errors
    /// What the text should have been.
    pub fn read(&self, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        if !self.accepts(text) {
            return Err(format!("`{}` is not {}", shown(text), self.described()));
        }
        match self {
            Scalar::String | Scalar::Enum(_) => encode(text, out),
            Scalar::Integer | Scalar::Number | Scalar::Boolean => {
                out.extend_from_slice(text.as_bytes())
            }
        }
        Ok(())
    }

    /// The text that a JSON value stands for.
    ///
    /// # Errors
    /// What the value should have been.
    pub fn write(&self, value: &[u8]) -> Result<String, String> {
        let kind = kind_of(value);
        let right = match self {
            Scalar::String | Scalar::Enum(_) => kind == Kind::String,
            Scalar::Integer | Scalar::Number => kind == Kind::Number,
            Scalar::Boolean => kind == Kind::Boolean,
        };
        if !right {
            return Err(format!(
                "it must be {}, not {}",
                self.described(),
                kind.described()
            ));
        }
        let inner = value
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\""))
            .unwrap_or(value);
        let text = decode(inner)
            .map_err(|error| error.to_string())?
            .into_owned();
        if self.accepts(&text) {
            Ok(text)
        } else {
            Err(format!("`{}` is not {}", shown(&text), self.described()))
        }
    }
}

/// The start of a caller's text, for messages.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
    if text.chars().nth(64).is_some() {
        shown.push('…');
    }
    shown
}

impl Hole {
    /// Writes the JSON value that the texts of a URL stand for, and tells whether there is one.
    /// Only a required hole may never be empty: `""` and absent are the two states that a URL has.
    ///
    /// # Errors
    /// What the texts should have been.
    pub fn read(&self, texts: &[&str], out: &mut Vec<u8>) -> Result<Presence, String> {
        let start = out.len();
        let presence = self.read_texts(texts, out)?;
        if self.leaves_out(&out[start..]) {
            // The other side has the same default, and does not write it either.
            out.truncate(start);
            return Ok(Presence::Absent);
        }
        Ok(presence)
    }

    fn read_texts(&self, texts: &[&str], out: &mut Vec<u8>) -> Result<Presence, String> {
        let list = match (&self.shape, texts) {
            (_, []) => return self.read_absent(out),
            (Shape::One(scalar), [text]) => {
                if text.is_empty() && (self.is_required() || *scalar != Scalar::String) {
                    return Err("it must not be empty".into());
                }
                return scalar.read(text, out).map(|()| Presence::Present);
            }
            (Shape::One(_), [..]) => return Err("it is given more than once".into()),
            (Shape::Repeated(_), texts) => texts.to_vec(),
            (Shape::Separated(_), [""]) if self.is_required() => {
                return Err("it must not be empty".into());
            }
            (Shape::Separated(_), [""]) => Vec::new(),
            (Shape::Separated(_), [text]) => text.split(',').collect(),
            (Shape::Separated(_), [..]) => return Err("it is given more than once".into()),
        };
        out.push(b'[');
        for (index, text) in list.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.shape.scalar().read(text, out)?;
        }
        out.push(b']');
        Ok(Presence::Present)
    }

    fn read_absent(&self, out: &mut Vec<u8>) -> Result<Presence, String> {
        match &self.absence {
            Absence::Refused => Err("it is required".into()),
            Absence::Kept | Absence::Implied(_) => Ok(Presence::Absent),
            Absence::Filled(default) => {
                out.extend_from_slice(default.as_bytes());
                Ok(Presence::Present)
            }
        }
    }

    /// The texts of a URL that a JSON value stands for: none, one, or one for each element.
    ///
    /// # Errors
    /// What the value should have been.
    pub fn write(&self, value: Option<&[u8]>) -> Result<Vec<String>, String> {
        // In a URL null has no text; where a value may be absent, it reads as absent.
        let value = value.filter(|value| self.is_required() || *value != b"null");
        let Some(value) = value.or(match &self.absence {
            Absence::Filled(default) => Some(default.as_bytes()),
            Absence::Refused | Absence::Kept | Absence::Implied(_) => None,
        }) else {
            return if self.is_required() {
                Err("it is required".into())
            } else {
                Ok(Vec::new())
            };
        };
        if self.leaves_out(value) {
            return Ok(Vec::new());
        }
        match &self.shape {
            Shape::One(scalar) => {
                let text = scalar.write(value)?;
                if text.is_empty() && self.is_required() {
                    return Err("it must not be empty".into());
                }
                Ok(vec![text])
            }
            Shape::Repeated(scalar) => self.elements(scalar, value),
            Shape::Separated(scalar) => self.separated(scalar, value),
        }
    }

    fn elements(&self, scalar: &Scalar, value: &[u8]) -> Result<Vec<String>, String> {
        let kind = kind_of(value);
        if kind != Kind::Array {
            return Err(format!("it must be an array, not {}", kind.described()));
        }
        // The value was validated with its message; only the places of its elements are wanted.
        let texts = elements(value).enumerate().map(|(index, place)| {
            scalar
                .write(&value[place])
                .map_err(|what| format!("element {index}: {what}"))
        });
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        if texts.is_empty() && self.is_required() {
            Err("it must not be empty".into())
        } else {
            Ok(texts)
        }
    }

    fn separated(&self, scalar: &Scalar, value: &[u8]) -> Result<Vec<String>, String> {
        let texts = self.elements(scalar, value)?;
        if let Some(index) = texts.iter().position(|text| text.contains(',')) {
            return Err(format!(
                "element {index}: it contains a comma, which separates the elements of this list"
            ));
        }
        if texts.len() == 1 && texts[0].is_empty() {
            return Err("element 0: one empty element cannot be told from an empty list".into());
        }
        Ok(if texts.is_empty() {
            texts
        } else {
            vec![texts.join(",")]
        })
    }

    /// The default as the JSON value of this hole's type.
    pub(super) fn check_default(shape: &Shape, default: &str) -> Result<Json, String> {
        let bare = matches!(shape, Shape::One(Scalar::String | Scalar::Enum(_)));
        let parsed = Json::parse(bytes::Bytes::copy_from_slice(default.as_bytes()), 16);
        let json = match parsed {
            Ok(json) if !bare || json.kind() == Kind::String => json,
            Ok(_) | Err(_) if bare => Json::string(default),
            Ok(_) | Err(_) => {
                return Err(format!(
                    "the default `{default}` is not {}",
                    shape.described()
                ));
            }
        };
        let hole = Hole {
            name: String::new(),
            shape: shape.clone(),
            absence: Absence::Kept,
        };
        hole.write(Some(json.as_bytes()))
            .map_err(|what| format!("the default `{default}`: {what}"))?;
        Ok(json)
    }
}

impl Shape {
    fn described(&self) -> String {
        match self {
            Shape::One(scalar) => scalar.described(),
            Shape::Repeated(scalar) | Shape::Separated(scalar) => {
                format!("an array, each element {}", scalar.described())
            }
        }
    }
}

/// Whether a hole has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It has one.
    Present,
    /// It has none, and that is allowed.
    Absent,
}
