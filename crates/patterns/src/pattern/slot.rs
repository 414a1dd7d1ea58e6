//! Slots: the occurrences of holes in a pattern, with the role, the shape and the encoding of their values.

use std::sync::Arc;

use super::default_json::default_json;
use super::{KeyStyles, Page, ValueMap};
use crate::json::{Json, JsonKind};

/// An occurrence of a hole in a pattern, resolved with the declarations of both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The name of the hole, for messages.
    pub name: String,
    /// The role of the hole in reading and writing.
    pub role: Role,
    /// The shape of the value.
    pub shape: Shape,
    /// The meaning of an absent value on this side.
    pub absence: Absence,
    /// The encoding of the value.
    pub codec: Codec,
    /// The meaning of `null`.
    pub null: Null,
}

impl Slot {
    /// Returns true if a value must be present.
    #[must_use]
    #[inline]
    pub fn is_required(&self) -> bool {
        matches!(self.role, Role::Shared(_) | Role::Equal(_))
            && matches!(self.absence, Absence::Required)
    }

    /// Returns the value that replaces an absent one.
    #[must_use]
    pub fn default(&self) -> Option<&Json> {
        self.absence.default()
    }

    /// Returns true if this value is omitted when written.
    #[must_use]
    #[inline]
    pub fn leaves_out(&self, value: &Json) -> bool {
        matches!(&self.absence, Absence::OmittedDefault(default) if default == value)
    }

    /// Returns the hole that reading binds.
    #[must_use]
    #[inline]
    pub fn binds(&self) -> Option<usize> {
        match self.role {
            Role::Shared(hole) | Role::ReadOnly(hole) => Some(hole),
            Role::Equal(_) | Role::WriteOnly(_) | Role::Ignored(_) => None,
        }
    }

    /// Returns the hole that a value here must equal.
    #[must_use]
    pub fn equals(&self) -> Option<usize> {
        match self.role {
            Role::Equal(hole) => Some(hole),
            Role::Shared(_) | Role::ReadOnly(_) | Role::WriteOnly(_) | Role::Ignored(_) => None,
        }
    }
}

/// The role of a hole in reading and writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// `{x}`: reading binds the hole with this number; writing writes its value.
    Shared(usize),
    /// `{<x}`, `{<x=v}`: reading binds the hole with this number, if there is a value; writing writes nothing, or the
    /// default. The response on the same side may write the value.
    ReadOnly(usize),
    /// `{>x}`: reading accepts any value; writing takes the value from this source.
    WriteOnly(HoleSource),
    /// `{=x}`, `{=x?}`: reading accepts a value that equals that of the hole with this number; writing writes that
    /// value. With `?` the value may be absent, and is not written.
    Equal(usize),
    /// `{_}`, `{_=v}`: reading accepts any value and ignores it; writing writes nothing or this value.
    Ignored(Option<Json>),
}

/// The source of a write-only value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleSource {
    /// A hole of the same pair.
    Hole(usize),
    /// A hole of the call, in the response to it.
    Call(usize),
    /// The current time.
    Now,
}

/// The meaning of `null` at a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// A value like others, if the shape allows it.
    Value,
    /// No value: the other side has the hole in a text, where `null` does not exist, or the hole is an optional
    /// object.
    Absent,
}

/// The shape of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Any JSON value.
    Any,
    /// A scalar.
    One(Scalar),
    /// `{x:string[]}`: a list; in a query a repeated key.
    Repeated(Scalar),
    /// `{x:string[,]}`: a list; in a query one text with a delimiter.
    Separated(Scalar, Delimiter),
    /// Any object.
    Object,
    /// Any array.
    Array,
    /// `null`.
    Null,
}

impl Shape {
    /// Returns the type of the value, or of each element, if it can be written as text.
    #[must_use]
    pub fn scalar(&self) -> Option<&Scalar> {
        match self {
            Shape::One(scalar) | Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
                Some(scalar)
            }
            Shape::Any | Shape::Object | Shape::Array | Shape::Null => None,
        }
    }

    /// Checks that a value has this shape.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let kind = value.kind();
        let right = match self {
            Shape::Any => true,
            Shape::One(scalar) => return scalar.check(value.as_bytes()),
            Shape::Object => kind == JsonKind::Object,
            Shape::Array => kind == JsonKind::Array,
            Shape::Null => kind == JsonKind::Null,
            Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
                if kind == JsonKind::Array {
                    for (index, range) in value.elements().enumerate() {
                        scalar
                            .check(&value.as_bytes()[range])
                            .map_err(|what| format!("element {index}: {what}"))?;
                    }
                }
                kind == JsonKind::Array
            }
        };
        if right {
            Ok(())
        } else {
            let wanted = match self {
                Shape::Repeated(_) | Shape::Separated(..) => Shape::Array.described(),
                Shape::Any | Shape::One(_) | Shape::Object | Shape::Array | Shape::Null => {
                    self.described()
                }
            };
            Err(format!("it must be {wanted}, not {}", kind.described()))
        }
    }

    /// Returns a value of this shape in its normal form.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    #[inline]
    pub(super) fn take(&self, value: Json) -> Result<Json, String> {
        match self.check(&value) {
            Ok(()) => Ok(value),
            Err(what) => self.with_plain_integers(&value).ok_or(what),
        }
    }

    /// Parses a default as a value of this shape.
    pub(super) fn check_default(&self, default: &str) -> Result<Json, String> {
        let bare = matches!(self, Shape::One(Scalar::String | Scalar::Enum(_)));
        let json = match default_json(default) {
            Some(json) if !bare || json.kind() == JsonKind::String => json,
            Some(_) | None if bare => Json::string(default),
            None if *self == Shape::Any => Json::string(default),
            Some(_) | None => {
                return Err(format!(
                    "the default `{default}` is not {}",
                    self.described()
                ));
            }
        };
        self.take(json)
            .map_err(|what| format!("the default `{default}`: {what}"))
    }

    /// Describes the accepted values, for messages.
    #[must_use]
    pub fn described(&self) -> String {
        match self {
            Shape::Any => "any value".into(),
            Shape::One(scalar) => scalar.described(),
            Shape::Object => "an object".into(),
            Shape::Array => "an array".into(),
            Shape::Null => "null".into(),
            Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
                format!("an array, each element {}", scalar.described())
            }
        }
    }
}

/// The delimiter of a list in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// `{x:string[,]}`
    Comma,
    /// `{x:string[|]}`
    Pipe,
    /// `{x:string[ ]}`
    Space,
}

/// The type of a scalar. In a URL every scalar is text; in JSON each type has its own kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// Any text.
    String,
    /// A number without fraction and exponent; it keeps its spelling.
    Integer,
    /// Any JSON number; it keeps its spelling.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these texts.
    Enum(Vec<String>),
}

/// The meaning of an absent value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// An error of the caller.
    Required,
    /// `{x?}`: absent on one side means absent on the other.
    Optional,
    /// `{x=50}`: absent reads as the default, which is always written.
    Default(Json),
    /// `{x?=50}`: absent reads as the default, which is not written.
    OmittedDefault(Json),
}

impl Absence {
    /// Returns the value that an absent one reads as.
    #[must_use]
    pub fn default(&self) -> Option<&Json> {
        match self {
            Absence::Default(default) | Absence::OmittedDefault(default) => Some(default),
            Absence::Required | Absence::Optional => None,
        }
    }
}

/// The encoding of a JSON text in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonText {
    /// The text itself.
    Plain,
    /// Base64 with the standard alphabet (RFC 4648 §4); it is written with padding, and read without, too.
    Base64,
}

/// The encoding of a value at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codec {
    /// The value itself.
    Plain,
    /// `{x:json}` or `{x:base64}`: a string that contains its JSON text.
    Json(JsonText),
    /// Percent-encoded (RFC 3986 §2.1), within the text of a header that is a URL.
    Percent,
    /// `{x:map(open=OPEN|done=DONE)}`: another word for each value.
    Map(Arc<ValueMap>),
    /// `{x:keys(kebab=snake)}`: keys in another style.
    Keys(KeyStyles),
    /// `{offset:page(limit)}`: the number of the page that begins at the offset.
    Page(Arc<Page>),
}
