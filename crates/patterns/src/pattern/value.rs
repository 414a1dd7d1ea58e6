//! Conversion of one value between text and JSON, by its declared type. Used by `pattern::write`.

use std::borrow::Cow;

use super::shown::shown;
use super::{Absence, BoundValue, Codec, JsonText, Null, Role, Scalar, Shape, Slot, WrittenTexts};
use crate::json::{Json, JsonKind, all_plain, decode, encode, is_integer, is_number, kind_of};
use crate::percent::{self, Keep, Plus};

impl Scalar {
    /// Describes the accepted values, for messages.
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

    /// Returns true if a text is a value of this type.
    #[must_use]
    #[inline]
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Scalar::String => true,
            Scalar::Integer => is_integer(text.as_bytes()),
            Scalar::Number => is_number(text.as_bytes()),
            Scalar::Boolean => matches!(text, "true" | "false"),
            Scalar::Enum(words) => words.iter().any(|word| word == text),
        }
    }

    /// Returns the JSON value of a text.
    ///
    /// # Errors
    ///
    /// Describes the expected text.
    #[inline]
    fn value(&self, text: &str) -> Result<Json, String> {
        self.must_accept(text)?;
        Ok(match self {
            Scalar::String | Scalar::Enum(_) => Json::string(text),
            Scalar::Integer | Scalar::Number | Scalar::Boolean => Json::copied(text),
        })
    }

    /// Writes the JSON value of a text.
    fn read(&self, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        self.must_accept(text)?;
        match self {
            Scalar::String | Scalar::Enum(_) => encode(text, out),
            Scalar::Integer | Scalar::Number | Scalar::Boolean => {
                out.extend_from_slice(text.as_bytes())
            }
        }
        Ok(())
    }

    #[inline]
    fn must_accept(&self, text: &str) -> Result<(), String> {
        if self.accepts(text) {
            Ok(())
        } else {
            Err(format!("`{}` is not {}", shown(text), self.described()))
        }
    }

    /// Reads texts into an array of values.
    pub(super) fn read_list<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<BoundValue, String> {
        /// Most lists are at most this long in bytes.
        const USUAL: usize = 32;
        let mut out = Vec::with_capacity(USUAL);
        out.push(b'[');
        for text in texts {
            if out.len() > 1 {
                out.push(b',');
            }
            self.read(text, &mut out)?;
        }
        out.push(b']');
        Ok(BoundValue::Value(Json::written(out)))
    }

    /// Returns the text of a JSON value.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    #[inline]
    pub fn write<'v>(&self, value: &'v [u8]) -> Result<Cow<'v, str>, String> {
        let kind = kind_of(value);
        let right = match self {
            Scalar::String | Scalar::Enum(_) => kind == JsonKind::String,
            Scalar::Integer | Scalar::Number => kind == JsonKind::Number,
            Scalar::Boolean => kind == JsonKind::Boolean,
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
        let text = decode(inner).map_err(|error| error.to_string())?;
        self.must_accept(&text)?;
        Ok(text)
    }

    /// Checks that a JSON value has this type.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    pub fn check(&self, value: &[u8]) -> Result<(), String> {
        // Fast path: most values are strings. A string with escapes is decoded, because it may not be valid text.
        match (self, kind_of(value)) {
            (Scalar::String, JsonKind::String) if is_plain(value) => Ok(()),
            (Scalar::Integer, JsonKind::Number) if is_integer(value) => Ok(()),
            (Scalar::Number, JsonKind::Number) => Ok(()),
            (Scalar::Boolean, JsonKind::Boolean) => Ok(()),
            _ => self.write(value).map(drop),
        }
    }
}

/// Returns true if a JSON string has no escapes.
#[inline]
fn is_plain(quoted: &[u8]) -> bool {
    all_plain(quoted.get(1..quoted.len() - 1).unwrap_or_default())
}

impl Slot {
    /// Returns the value that replaces an absent one.
    ///
    /// # Errors
    ///
    /// Fails if a value must be present.
    pub fn read_absent(&self) -> Result<BoundValue, String> {
        match (&self.role, &self.absence) {
            (Role::WriteOnly(_) | Role::Ignored(_), _) => Ok(BoundValue::Absent),
            (Role::Shared(_) | Role::Equal(_) | Role::ReadOnly(_), Absence::Required) => {
                Err("it is required".into())
            }
            (Role::Shared(_) | Role::Equal(_) | Role::ReadOnly(_), Absence::Optional) => {
                Ok(BoundValue::Absent)
            }
            (
                Role::Shared(_) | Role::Equal(_) | Role::ReadOnly(_),
                Absence::Default(default) | Absence::OmittedDefault(default),
            ) => Ok(BoundValue::Value(default.clone())),
        }
    }

    /// Reads a JSON value.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    pub fn read_json(&self, value: Option<&Json>, depth: u16) -> Result<BoundValue, String> {
        match value {
            Some(value) => self.take_json(value.clone(), depth),
            None => self.read_absent(),
        }
    }

    /// Reads an owned JSON value.
    #[inline(always)]
    pub(super) fn take_json(&self, value: Json, depth: u16) -> Result<BoundValue, String> {
        if self.binds().is_none() {
            return self.take_unbound(value);
        }
        if self.null == Null::Absent && value.kind() == JsonKind::Null {
            return self.read_absent();
        }
        let value = match &self.codec {
            Codec::Plain | Codec::Percent => value,
            Codec::Json(text) => inside(*text, &value, depth)?,
            Codec::Map(map) => map.read(&self.shape, value)?,
            Codec::Keys(styles) => styles.read(&value)?,
            Codec::Page(page) => {
                let value = self.shape.take(value)?;
                return page.check(value).map(BoundValue::Value);
            }
        };
        self.shape.take(value).map(BoundValue::Value)
    }

    /// Returns the JSON value to write, if any.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    pub fn write_json<'b>(&self, bound: &'b BoundValue) -> Result<Option<Cow<'b, Json>>, String> {
        let value = match bound {
            BoundValue::Unbound | BoundValue::Absent => return Ok(None),
            BoundValue::Members(members) => Cow::Owned(members.whole()),
            BoundValue::Each(_) => return Err("it has a value for each element".into()),
            BoundValue::Value(value) => Cow::Borrowed(value),
        };
        if self.leaves_out(&value) {
            return Ok(None);
        }
        if self.equals().is_some() {
            return self.equal_json(value).map(Some);
        }
        self.as_json(value).map(Some)
    }

    /// Returns a value in the encoding of this slot.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    pub fn as_json<'b>(&self, value: Cow<'b, Json>) -> Result<Cow<'b, Json>, String> {
        Ok(match &self.codec {
            Codec::Plain | Codec::Percent => value,
            Codec::Json(text) => Cow::Owned(Json::string(&text.encode(text_of(&value.compact())))),
            Codec::Map(map) => Cow::Owned(map.write(&self.shape, &value)?),
            Codec::Keys(styles) => Cow::Owned(styles.write(&value)?),
            // Any other offset has become a page, because that needs the limit.
            Codec::Page(page) => match page.without_limit(&value) {
                Some(first) => Cow::Owned(first),
                None => value,
            },
        })
    }

    /// Reads a text that occurs once.
    ///
    /// # Errors
    ///
    /// Describes the expected text.
    pub fn read_text(&self, text: &str, depth: u16) -> Result<BoundValue, String> {
        if self.binds().is_none() {
            return Ok(BoundValue::Absent);
        }
        if self.codec == Codec::Percent {
            let decoded =
                percent::decode(text, Plus::Literal).map_err(|error| error.to_string())?;
            return self.plain_text(&decoded);
        }
        if let Codec::Json(encoding) = self.codec {
            let value = parsed(&encoding.decode(text)?, depth)?;
            return self.shape.take(value).map(BoundValue::Value);
        }
        self.plain_text(text)
    }

    fn plain_text(&self, text: &str) -> Result<BoundValue, String> {
        if let Codec::Map(map) = &self.codec {
            return map.read_text(text).map(BoundValue::Value);
        }
        let scalar = self.shape.scalar().unwrap_or(&Scalar::String);
        let value = scalar.value(text)?;
        match &self.codec {
            Codec::Page(page) => page.check(value).map(BoundValue::Value),
            Codec::Plain | Codec::Json(_) | Codec::Percent | Codec::Map(_) | Codec::Keys(_) => {
                Ok(BoundValue::Value(value))
            }
        }
    }

    /// Reads the texts of a URL or a header: none, one or several. A required hole rejects the empty text; for an
    /// optional one, `""` and absent are two states.
    ///
    /// # Errors
    ///
    /// Describes the expected texts.
    pub fn read_texts(&self, texts: &[&str], depth: u16) -> Result<BoundValue, String> {
        if self.binds().is_none() {
            return Ok(BoundValue::Absent);
        }
        match (&self.shape, texts) {
            (_, []) => self.read_absent(),
            (Shape::Repeated(scalar), texts) if self.codec.keeps_elements() => {
                self.read_list(scalar, texts.iter().copied())
            }
            (_, [_, _, ..]) => Err("it is given more than once".into()),
            (Shape::Separated(scalar, delimiter), [text]) if self.codec.keeps_elements() => {
                match text.len() {
                    0 if self.is_required() => Err("it must not be empty".into()),
                    0 => scalar.read_list(std::iter::empty()),
                    _ => {
                        let mut rest = Some(*text);
                        let elements = std::iter::from_fn(|| {
                            let (element, after) = delimiter.cut(rest?);
                            rest = after;
                            Some(element)
                        });
                        self.read_list(scalar, elements)
                    }
                }
            }
            (shape, [text]) => {
                let may_be_empty = || !self.is_required() && *shape == Shape::One(Scalar::String);
                if text.is_empty() && !may_be_empty() {
                    return Err("it must not be empty".into());
                }
                self.read_text(text, depth)
            }
        }
    }

    /// Returns the text of a value, if any.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    #[inline]
    pub fn write_text<'b>(&'b self, bound: &'b BoundValue) -> Result<Option<Cow<'b, str>>, String> {
        let value = match bound {
            BoundValue::Unbound | BoundValue::Absent => return Ok(None),
            BoundValue::Value(value) => value,
            BoundValue::Members(members) => {
                // Only a write-only hole may have no type here.
                let whole = BoundValue::Value(members.whole());
                let text = self.write_text(&whole)?;
                return Ok(text.map(|text| Cow::Owned(text.into_owned())));
            }
            BoundValue::Each(_) => return Err("it has a value for each element".into()),
        };
        if self.leaves_out(value) {
            return Ok(None);
        }
        self.as_text(value).map(Some)
    }

    /// Returns the text of a value, even of one that is omitted elsewhere.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    #[inline]
    pub(super) fn as_text<'b>(&'b self, value: &'b Json) -> Result<Cow<'b, str>, String> {
        if let Codec::Json(encoding) = self.codec {
            return Ok(Cow::Owned(encoding.encode(text_of(&value.compact()))));
        }
        let text = match self.shape.scalar() {
            Some(scalar) => self.text_of(scalar, value.as_bytes())?,
            // Only a write-only hole has no type here: a string is written as text, any other value as its JSON.
            None => match value.text() {
                Some(text) => Cow::Owned(text.map_err(|fault| fault.to_string())?),
                None => Cow::Owned(text_of(&value.compact())),
            },
        };
        Ok(match &self.codec {
            Codec::Percent => {
                let mut encoded = String::with_capacity(text.len());
                percent::encode(&text, Keep::Nothing, &mut encoded);
                Cow::Owned(encoded)
            }
            Codec::Plain | Codec::Json(_) | Codec::Map(_) | Codec::Keys(_) | Codec::Page(_) => text,
        })
    }

    /// Returns the texts of a value for a URL or a header: none, one, or one for each element.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    pub fn write_texts<'b>(&'b self, bound: &'b BoundValue) -> Result<WrittenTexts<'b>, String> {
        let text = match (&self.shape, bound) {
            (Shape::Repeated(scalar), BoundValue::Value(value)) if self.codec.keeps_elements() => {
                return if self.leaves_out(value) {
                    Ok(WrittenTexts::None)
                } else {
                    self.elements(scalar, value).map(WrittenTexts::Many)
                };
            }
            (Shape::Separated(scalar, delimiter), BoundValue::Value(value))
                if self.codec.keeps_elements() =>
            {
                if self.leaves_out(value) {
                    return Ok(WrittenTexts::None);
                }
                self.separated(scalar, *delimiter, value)?.map(Cow::Owned)
            }
            (_, bound) => self.write_text(bound)?,
        };
        match text {
            Some(text) if text.is_empty() && self.is_required() => {
                Err("it must not be empty".into())
            }
            None if self.is_required() => Err("it is required".into()),
            text => Ok(text.into()),
        }
    }
}

/// Parses the JSON text inside a string.
fn inside(encoding: JsonText, value: &Json, depth: u16) -> Result<Json, String> {
    match value.text() {
        Some(Ok(text)) => parsed(&encoding.decode(&text)?, depth),
        Some(Err(fault)) => Err(fault.to_string()),
        None => Err(format!(
            "it must be a string that holds JSON, not {}",
            value.kind().described()
        )),
    }
}

fn parsed(text: &str, depth: u16) -> Result<Json, String> {
    let parsed = Json::parse(bytes::Bytes::copy_from_slice(text.as_bytes()), depth);
    parsed.map_err(|fault| format!("the JSON in this text: {fault}"))
}

fn text_of(value: &Json) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The presence of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuePresence {
    /// There is a value.
    Present,
    /// There is no value, and that is allowed.
    Absent,
}
