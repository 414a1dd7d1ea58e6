//! One value between a text and JSON: the type is declared, so nothing is guessed.

use std::borrow::Cow;

use super::{Absence, Bound, Codec, Null, Role, Scalar, Shape, Slot, Texts};
use crate::domain::json::{
    Json, Kind, Spelling, all_plain, decode, encode, is_integer, is_number, kind_of,
};
use crate::domain::percent::{self, Keep, Plus};

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

    /// Reads the array of values that texts stand for.
    fn read_list<'t>(&self, texts: impl Iterator<Item = &'t str>) -> Result<Bound, String> {
        /// Most lists are this short.
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
        Ok(Bound::Value(Json::written(out)))
    }

    /// The text that a JSON value stands for.
    ///
    /// # Errors
    /// What the value should have been.
    #[inline]
    pub fn write<'v>(&self, value: &'v [u8]) -> Result<Cow<'v, str>, String> {
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
        let text = decode(inner).map_err(|error| error.to_string())?;
        if self.accepts(&text) {
            Ok(text)
        } else {
            Err(format!("`{}` is not {}", shown(&text), self.described()))
        }
    }

    /// Whether a JSON value is one of this type.
    ///
    /// # Errors
    /// What it should have been.
    pub fn check(&self, value: &[u8]) -> Result<(), String> {
        // Most values are strings, any text of which will do; one that is no text cannot be written anew.
        match (self, kind_of(value)) {
            (Scalar::String, Kind::String) if is_plain(value) => Ok(()),
            (Scalar::Integer, Kind::Number) if is_integer(value) => Ok(()),
            (Scalar::Number, Kind::Number) => Ok(()),
            (Scalar::Boolean, Kind::Boolean) => Ok(()),
            _ => self.write(value).map(drop),
        }
    }
}

/// Whether a string of JSON is spelled without escapes.
#[inline]
fn is_plain(quoted: &[u8]) -> bool {
    all_plain(quoted.get(1..quoted.len() - 1).unwrap_or_default())
}

/// The start of a caller's text, for messages.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
    if text.chars().nth(64).is_some() {
        shown.push('…');
    }
    shown
}

impl Slot {
    /// What stands for a value that is not there.
    ///
    /// # Errors
    /// That there must be one.
    pub fn read_absent(&self) -> Result<Bound, String> {
        match (&self.role, &self.absence) {
            (Role::Written(_) | Role::Forgotten(_), _) => Ok(Bound::Absent),
            (Role::Shared(_), Absence::Refused) => Err("it is required".into()),
            (Role::Shared(_), Absence::Kept) => Ok(Bound::Absent),
            (Role::Shared(_), Absence::Filled(default) | Absence::Implied(default)) => {
                Ok(Bound::Value(default.clone()))
            }
        }
    }

    /// Reads a value of JSON.
    ///
    /// # Errors
    /// What the value should have been.
    pub fn read_json(&self, value: Option<&Json>, depth: u16) -> Result<Bound, String> {
        match value {
            Some(value) => self.take_json(value.clone(), depth),
            None => self.read_absent(),
        }
    }

    /// Reads a value of JSON that is given away.
    #[inline(always)]
    pub(super) fn take_json(&self, value: Json, depth: u16) -> Result<Bound, String> {
        if self.binds().is_none() {
            return Ok(Bound::Absent);
        }
        if self.null == Null::Absent && value.kind() == Kind::Null {
            return self.read_absent();
        }
        let value = match self.codec {
            Codec::Plain | Codec::Percent => value,
            Codec::Json => inside(&value, depth)?,
        };
        self.shape.check(&value)?;
        Ok(Bound::Value(value))
    }

    /// The value of JSON to write, if there is one.
    ///
    /// # Errors
    /// What the value should have been.
    pub fn write_json<'b>(&self, bound: &'b Bound) -> Result<Option<Cow<'b, Json>>, String> {
        let value = match bound {
            Bound::Unbound | Bound::Absent => return Ok(None),
            Bound::Members(members) => Cow::Owned(members.whole()),
            Bound::Each(_) => return Err("it has a value for each element".into()),
            Bound::Value(value) => Cow::Borrowed(value),
        };
        if self.leaves_out(&value) {
            return Ok(None);
        }
        Ok(Some(self.as_json(value)))
    }

    /// A value as it is spelled here.
    pub(super) fn as_json<'b>(&self, value: Cow<'b, Json>) -> Cow<'b, Json> {
        match self.codec {
            Codec::Plain | Codec::Percent => value,
            Codec::Json => Cow::Owned(Json::string(&text_of(&value.compact()))),
        }
    }

    /// Reads a text that is there once.
    ///
    /// # Errors
    /// What the text should have been.
    pub fn read_text(&self, text: &str, depth: u16) -> Result<Bound, String> {
        if self.binds().is_none() {
            return Ok(Bound::Absent);
        }
        if self.codec == Codec::Percent {
            let decoded =
                percent::decode(text, Plus::Literal).map_err(|error| error.to_string())?;
            return self.plain_text(&decoded);
        }
        if self.codec == Codec::Json {
            return parsed(text, depth).and_then(|value| {
                self.shape.check(&value)?;
                Ok(Bound::Value(value))
            });
        }
        self.plain_text(text)
    }

    fn plain_text(&self, text: &str) -> Result<Bound, String> {
        let scalar = self.shape.scalar().unwrap_or(&Scalar::String);
        // A buffer that is just full is shared as it is, and these need none.
        let quotes = match (scalar, text) {
            (Scalar::Boolean, "true") => return Ok(Bound::Value(Json::literal("true"))),
            (Scalar::Boolean, "false") => return Ok(Bound::Value(Json::literal("false"))),
            (Scalar::String | Scalar::Enum(_), _) => 2,
            (Scalar::Integer | Scalar::Number | Scalar::Boolean, _) => 0,
        };
        let mut out = Vec::with_capacity(text.len() + quotes);
        scalar.read(text, &mut out)?;
        Ok(Bound::Value(Json::written(out)))
    }

    /// Reads the texts of a URL or a header: none, one or several.
    /// Only a required hole may never be empty: `""` and absent are the two states that a URL has.
    ///
    /// # Errors
    /// What the texts should have been.
    pub fn read_texts(&self, texts: &[&str], depth: u16) -> Result<Bound, String> {
        if self.binds().is_none() {
            return Ok(Bound::Absent);
        }
        match (&self.shape, texts) {
            (_, []) => self.read_absent(),
            (Shape::Repeated(scalar), texts) if self.codec == Codec::Plain => {
                scalar.read_list(texts.iter().copied())
            }
            (_, [_, _, ..]) => Err("it is given more than once".into()),
            (Shape::Separated(scalar), [text]) if self.codec == Codec::Plain => match text.len() {
                0 if self.is_required() => Err("it must not be empty".into()),
                0 => scalar.read_list(std::iter::empty()),
                _ => scalar.read_list(text.split(',')),
            },
            (shape, [text]) => {
                let may_be_empty = || !self.is_required() && *shape == Shape::One(Scalar::String);
                if text.is_empty() && !may_be_empty() {
                    return Err("it must not be empty".into());
                }
                self.read_text(text, depth)
            }
        }
    }

    /// The text of a value, if there is one.
    ///
    /// # Errors
    /// What the value should have been.
    #[inline]
    pub fn write_text<'b>(&self, bound: &'b Bound) -> Result<Option<Cow<'b, str>>, String> {
        let value = match bound {
            Bound::Unbound | Bound::Absent => return Ok(None),
            Bound::Value(value) => value,
            Bound::Members(members) => {
                // Only what is only written may have no type here.
                let whole = Bound::Value(members.whole());
                let text = self.write_text(&whole)?;
                return Ok(text.map(|text| Cow::Owned(text.into_owned())));
            }
            Bound::Each(_) => return Err("it has a value for each element".into()),
        };
        if self.leaves_out(value) {
            return Ok(None);
        }
        self.as_text(value).map(Some)
    }

    /// The text of a value, one that is left out elsewhere as well.
    ///
    /// # Errors
    /// What the value should have been.
    #[inline]
    pub(super) fn as_text<'b>(&self, value: &'b Json) -> Result<Cow<'b, str>, String> {
        if self.codec == Codec::Json {
            return Ok(Cow::Owned(text_of(&value.compact())));
        }
        let text = match self.shape.scalar() {
            Some(scalar) => scalar.write(value.as_bytes())?,
            // Only what is only written has no type here: a string as it is, anything else as its JSON.
            None => match value.text() {
                Some(text) => Cow::Owned(text.map_err(|fault| fault.to_string())?),
                None => Cow::Owned(text_of(&value.compact())),
            },
        };
        Ok(match self.codec {
            Codec::Percent => {
                let mut encoded = String::with_capacity(text.len());
                percent::encode(&text, Keep::Nothing, &mut encoded);
                Cow::Owned(encoded)
            }
            Codec::Plain | Codec::Json => text,
        })
    }

    /// The texts of a URL or a header that a value stands for: none, one, or one for each element.
    ///
    /// # Errors
    /// What the value should have been.
    pub fn write_texts<'b>(&self, bound: &'b Bound) -> Result<Texts<'b>, String> {
        let text = match (&self.shape, bound) {
            (Shape::Repeated(scalar), Bound::Value(value)) if self.codec == Codec::Plain => {
                return if self.leaves_out(value) {
                    Ok(Texts::None)
                } else {
                    self.elements(scalar, value).map(Texts::Many)
                };
            }
            (Shape::Separated(scalar), Bound::Value(value)) if self.codec == Codec::Plain => {
                if self.leaves_out(value) {
                    return Ok(Texts::None);
                }
                self.separated(scalar, value)?.map(Cow::Owned)
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

    fn elements<'v>(&self, scalar: &Scalar, value: &'v Json) -> Result<Vec<Cow<'v, str>>, String> {
        if value.kind() != Kind::Array {
            return Err(format!(
                "it must be an array, not {}",
                value.kind().described()
            ));
        }
        let texts = value.elements().enumerate();
        let texts = texts.map(|(index, place)| {
            scalar
                .write(&value.as_bytes()[place])
                .map_err(|what| format!("element {index}: {what}"))
        });
        let texts: Vec<Cow<'v, str>> = texts.collect::<Result<_, _>>()?;
        if texts.is_empty() && self.is_required() {
            Err("it must not be empty".into())
        } else {
            Ok(texts)
        }
    }

    fn separated(&self, scalar: &Scalar, value: &Json) -> Result<Option<String>, String> {
        let texts = self.elements(scalar, value)?;
        if let Some(index) = texts.iter().position(|text| text.contains(',')) {
            return Err(format!(
                "element {index}: it contains a comma, which separates the elements of this list"
            ));
        }
        if texts.len() == 1 && texts[0].is_empty() {
            return Err("element 0: one empty element cannot be told from an empty list".into());
        }
        Ok((!texts.is_empty()).then(|| texts.join(",")))
    }
}

/// The value whose text a string holds.
fn inside(value: &Json, depth: u16) -> Result<Json, String> {
    match value.text() {
        Some(Ok(text)) => parsed(&text, depth),
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

impl Shape {
    /// Whether a text of this kind has this shape, told at a glance; others may have it as well.
    #[inline(always)]
    pub(super) fn takes(&self, kind: Kind, text: &[u8], spelling: Spelling) -> bool {
        match self {
            Shape::Any => true,
            Shape::One(Scalar::String) => kind == Kind::String && spelling == Spelling::Plain,
            Shape::One(Scalar::Integer) => kind == Kind::Number && is_integer(text),
            Shape::One(Scalar::Number) => kind == Kind::Number,
            Shape::One(Scalar::Boolean) => kind == Kind::Boolean,
            Shape::Object => kind == Kind::Object,
            Shape::Array => kind == Kind::Array,
            Shape::Null => kind == Kind::Null,
            Shape::One(Scalar::Enum(_)) | Shape::Repeated(_) | Shape::Separated(_) => false,
        }
    }

    /// Whether a value has this shape.
    ///
    /// # Errors
    /// What it should have been.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let kind = value.kind();
        let right = match self {
            Shape::Any => true,
            Shape::One(scalar) => return scalar.check(value.as_bytes()),
            Shape::Object => kind == Kind::Object,
            Shape::Array => kind == Kind::Array,
            Shape::Null => kind == Kind::Null,
            Shape::Repeated(scalar) | Shape::Separated(scalar) => {
                if kind == Kind::Array {
                    for (index, place) in value.elements().enumerate() {
                        scalar
                            .check(&value.as_bytes()[place])
                            .map_err(|what| format!("element {index}: {what}"))?;
                    }
                }
                kind == Kind::Array
            }
        };
        if right {
            Ok(())
        } else {
            let wanted = match self {
                Shape::Repeated(_) | Shape::Separated(_) => Shape::Array.described(),
                Shape::Any | Shape::One(_) | Shape::Object | Shape::Array | Shape::Null => {
                    self.described()
                }
            };
            Err(format!("it must be {wanted}, not {}", kind.described()))
        }
    }

    /// The default as a value of this shape.
    pub(super) fn check_default(&self, default: &str) -> Result<Json, String> {
        let bare = matches!(self, Shape::One(Scalar::String | Scalar::Enum(_)));
        let parsed = Json::parse(bytes::Bytes::copy_from_slice(default.as_bytes()), 16);
        let json = match parsed {
            Ok(json) if !bare || json.kind() == Kind::String => json,
            Ok(_) | Err(_) if bare => Json::string(default),
            Err(_) if *self == Shape::Any => Json::string(default),
            Ok(_) | Err(_) => {
                return Err(format!(
                    "the default `{default}` is not {}",
                    self.described()
                ));
            }
        };
        self.check(&json)
            .map_err(|what| format!("the default `{default}`: {what}"))?;
        Ok(json)
    }

    /// What is accepted, for messages.
    #[must_use]
    pub fn described(&self) -> String {
        match self {
            Shape::Any => "any value".into(),
            Shape::One(scalar) => scalar.described(),
            Shape::Object => "an object".into(),
            Shape::Array => "an array".into(),
            Shape::Null => "null".into(),
            Shape::Repeated(scalar) | Shape::Separated(scalar) => {
                format!("an array, each element {}", scalar.described())
            }
        }
    }
}

/// Whether a place has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It has one.
    Present,
    /// It has none, and that is allowed.
    Absent,
}
